"""Choose the columns of a space that are embedded."""

from __future__ import annotations

from collections.abc import Sequence

from magicgui.widgets import PushButton
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.ui.style.form_widgets import Fold

MOST = 2_000
"""Columns beyond which ticking them one by one is no use, such as genes."""
_CHECKED, _UNCHECKED = Qt.CheckState.Checked, Qt.CheckState.Unchecked


class ColumnsPanel(QWidget):
    """A folded list of columns with ticks; ``wanted`` brings those to embed."""

    wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Find a column")
        self.filter.setClearButtonEnabled(True)
        self.list = QListWidget()
        self.list.setFixedHeight(130)
        self.list.setToolTip("Columns that make the map; each counts the same.")
        self.all = PushButton(text="All", tooltip="Tick every column that is shown.")
        self.none = PushButton(text="None", tooltip="Untick all that are shown.")
        self.apply = PushButton(
            text="Embed these", tooltip="Read the data again with these columns only."
        )
        self.fold = Fold("Columns", self._inside())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.fold)
        self.filter.textChanged.connect(self._on_filter)
        self.list.itemChanged.connect(self._tell)
        self.all.changed.connect(lambda: self._tick(_CHECKED))
        self.none.changed.connect(lambda: self._tick(_UNCHECKED))
        self.apply.changed.connect(lambda: self.wanted.emit(self.chosen()))
        self.set_columns((), ())

    def set_columns(self, columns: Sequence[str], embedded: Sequence[str]) -> None:
        """Offer these columns and tick those that are embedded now."""
        is_listed = 2 < len(columns) <= MOST
        self.setVisible(is_listed)
        self.list.blockSignals(True)
        self.list.clear()
        chosen = set(embedded)
        for name in columns if is_listed else ():
            item = QListWidgetItem(name, self.list)
            item.setCheckState(_CHECKED if name in chosen else _UNCHECKED)
        self.list.blockSignals(False)
        self._tell()

    def chosen(self) -> tuple[str, ...]:
        """Return the names of the columns with a tick."""
        return tuple(i.text() for i in self._items() if i.checkState() == _CHECKED)

    def _inside(self) -> QWidget:
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        buttons = QHBoxLayout()
        for button in (self.all, self.none, self.apply):
            buttons.addWidget(button.native, 1)
        column.addWidget(self.filter)
        column.addWidget(self.list)
        column.addLayout(buttons)
        return inside

    def _items(self) -> list[QListWidgetItem]:
        return [self.list.item(row) for row in range(self.list.count())]

    def _on_filter(self, text: str) -> None:
        for item in self._items():
            item.setHidden(text.lower() not in item.text().lower())

    def _tick(self, state: Qt.CheckState) -> None:
        for item in self._items():
            if not item.isHidden():
                item.setCheckState(state)

    def _tell(self) -> None:
        n_chosen = len(self.chosen())
        self.fold.set_title(f"Columns: {n_chosen} of {self.list.count()}")
        self.apply.enabled = n_chosen > 0
