"""Choose a preset."""

from __future__ import annotations

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QComboBox

from napari_embedding_game.session.presets import PRESETS, Preset, apply, preset_of
from napari_embedding_game.session.settings import ChosenSettings
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.method_choices import settings_text
from napari_embedding_game.ui.tasks.throttle import throttled

BY_HAND = "Set by hand"
TIP = (
    "Settings that belong together, for what you want to see. What acts on a running "
    "game acts at once; the rest holds for the next run."
)
SOON_MS = 50


class PresetBox(QComboBox):
    """The presets by name, and whether the settings are those of one.

    Parameters
    ----------
    settings : ChosenSettings
    """

    applied = Signal()
    """Settings were changed, all at once."""

    def __init__(self, settings: ChosenSettings) -> None:
        super().__init__()
        self._settings = settings
        self.setToolTip(TIP)
        self.setPlaceholderText(BY_HAND)
        for preset in PRESETS:
            self.addItem(preset.name)
            tip = Qt.ItemDataRole.ToolTipRole
            self.setItemData(self.count() - 1, described(preset), tip)
        self.activated.connect(self._choose)
        self._soon = throttled(SOON_MS, self.show_current, self)
        self._connections = Connections(self)
        self._connections.connect(settings.changed, self._later)
        self.show_current()

    def show_current(self) -> None:
        """Show the preset that the settings are those of, or that there is none."""
        preset = preset_of(self._settings)
        self.setCurrentIndex(-1 if preset is None else PRESETS.index(preset))

    # Inside

    def _later(self, event: object = None) -> None:
        self._soon.throttle()

    def _choose(self, index: int) -> None:
        apply(PRESETS[index], self._settings)
        self.applied.emit()


def described(preset: Preset) -> str:
    """Return what a preset is good for, and what it sets."""
    sets = settings_text(preset.values) or "every setting as it is by default"
    return f"{preset.description}\n{sets}.".strip()
