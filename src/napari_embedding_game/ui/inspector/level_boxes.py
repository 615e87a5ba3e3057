"""Two boxes: which level of a column is compared with which."""

from __future__ import annotations

from collections.abc import Sequence

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QHBoxLayout, QLabel, QWidget

from napari_embedding_game.session.groups import Level
from napari_embedding_game.ui.style.form_widgets import let_be_narrow

OTHERS = "all others"


class LevelBoxes(QWidget):
    """Lets a person choose two levels; ``chosen`` tells that they chose others."""

    chosen = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.column = ""
        self._levels: tuple[Level, ...] = ()
        self.one, self.other = QComboBox(), QComboBox()
        self.one.setToolTip("The level whose markers are looked for.")
        self.other.setToolTip("The level that it is compared with, or all others.")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for box in (self.one, self.other):
            let_be_narrow(box, 6)
        layout.addWidget(self.one, 1)
        layout.addWidget(QLabel("vs"))
        layout.addWidget(self.other, 1)
        self.one.activated.connect(self._on_one)
        self.other.activated.connect(lambda _: self.chosen.emit())

    @property
    def pair(self) -> tuple[str, str]:
        """The chosen levels; "" is all others."""
        return self.one.currentData() or "", self.other.currentData() or ""

    def offer(self, column: str, levels: Sequence[Level]) -> None:
        """Offer the levels of a column; what was chosen of it stays, if it can."""
        pair = self.pair if column == self.column else ("", "")
        self.column, self._levels = column, tuple(levels)
        self.choose(*pair)

    def choose(self, one: str, other: str) -> None:
        """Show this pair; the first level with all others where it is not there."""
        _fill(self.one, [(_told(level), level.name) for level in self._levels], one)
        rest = [level for level in self._levels if level.name != self.pair[0]]
        choices = [(OTHERS, ""), *((_told(level), level.name) for level in rest)]
        _fill(self.other, choices, other)

    def _on_one(self, index: int) -> None:
        self.choose(*self.pair)
        self.chosen.emit()


def _told(level: Level) -> str:
    return f"{level.name} ({level.n_points:,})"


def _fill(box: QComboBox, choices: Sequence[tuple[str, str]], chosen: str) -> None:
    box.clear()
    for text, name in choices:
        box.addItem(text, name)
    box.setCurrentIndex(max(0, box.findData(chosen)))
