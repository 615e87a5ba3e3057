"""Choose a preset, save the present settings as one, delete it."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QInputDialog,
    QMenu,
    QToolButton,
    QWidget,
)

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.presets import (
    Preset,
    PresetStore,
    apply,
    preset_of,
)
from napari_embedding_game.session.settings import Settings
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.method_choices import settings_text
from napari_embedding_game.ui.tasks.throttle import throttled

BY_HAND = "Set by hand"
TIP = (
    "Settings that belong together, for what you want to see. What acts on a running "
    "game acts at once; the rest holds for the next run."
)
SOON_MS = 50


class PresetBox(QWidget):
    """A list of presets and a menu to keep them.

    Parameters
    ----------
    settings : Settings
    store : PresetStore
    """

    applied = Signal()
    """Settings were changed, all at once."""
    trouble = Signal(str)
    """A sentence about what failed, "" when something worked again."""

    def __init__(self, settings: Settings, store: PresetStore) -> None:
        super().__init__()
        self._settings = settings
        self._store = store
        self.box = QComboBox()
        self.box.setToolTip(TIP)
        self.box.setPlaceholderText(BY_HAND)
        self.box.activated.connect(self._choose)
        self.menu = QMenu(self)
        self.keep = self.menu.addAction("Save these settings as a preset…")
        self.keep.triggered.connect(lambda _=False: self._save())
        self.delete = self.menu.addAction("")
        self.delete.triggered.connect(lambda _=False: self._delete())
        self.button = QToolButton()
        self.button.setText("…")
        self.button.setProperty("role", "edit")
        self.button.setToolTip("Save the settings as a preset, or delete one.")
        self.button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.button.setMenu(self.menu)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.box, 1)
        row.addWidget(self.button)
        self.setToolTip(TIP)
        self._soon = throttled(SOON_MS, self.show_current, self)
        self._connections = Connections()
        self._connections.call(self._soon.cancel)
        self._connections.connect(settings.events, self._later)

    def close(self) -> None:
        """Undo the connections to the settings."""
        self._connections.close()

    def read(self) -> None:
        """Offer what is in the person's file."""
        try:
            self._store.read()
        except DataError as error:
            self.trouble.emit(str(error))
        self._fill()

    def show_current(self) -> None:
        """Show the preset that the settings are those of, or that there is none."""
        preset = preset_of(self._settings, self._store.presets)
        at = -1 if preset is None else self._store.presets.index(preset)
        self.box.setCurrentIndex(self._index_of(at))
        is_own = preset is not None and preset.is_own
        self.delete.setVisible(is_own)
        if preset is not None:
            self.delete.setText(f"Delete '{preset.name}'")
        self.keep.setEnabled(preset is None)

    # Inside

    def _later(self, event: object = None) -> None:
        self._soon.throttle()

    def _fill(self) -> None:
        self.box.clear()
        was_own = False
        for preset in self._store.presets:
            if preset.is_own and not was_own:
                self.box.insertSeparator(self.box.count())
            was_own = preset.is_own
            self.box.addItem(preset.name, preset)
            tip = Qt.ItemDataRole.ToolTipRole
            self.box.setItemData(self.box.count() - 1, described(preset), tip)
        self.show_current()

    def _index_of(self, at: int) -> int:
        """Return the row of a preset in the list, which has a line in it."""
        n_built_in = sum(not preset.is_own for preset in self._store.presets)
        return at + 1 if at >= n_built_in else at

    def _choose(self, index: int) -> None:
        preset = self.box.itemData(index)
        if isinstance(preset, Preset):
            apply(preset, self._settings)
            self.trouble.emit("")
            self.applied.emit()

    def _save(self) -> None:
        name, given = QInputDialog.getText(
            self, "Save preset", "Name of the preset, such as what it is good for:"
        )
        if given:
            self._keep(lambda: self._store.save(name, self._settings))

    def _delete(self) -> None:
        preset = self.box.currentData()
        if isinstance(preset, Preset):
            self._keep(lambda: self._store.delete(preset.name))

    def _keep(self, change: Callable[[], object]) -> None:
        try:
            change()
        except DataError as error:
            self.trouble.emit(str(error))
        else:
            self.trouble.emit("")
        self._fill()


def described(preset: Preset) -> str:
    """Return what a preset is good for, and what it sets."""
    sets = settings_text(preset.values) or "every setting as it is by default"
    return f"{preset.description}\n{sets}.".strip()
