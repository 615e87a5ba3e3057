"""Choose the columns of a space that are embedded."""

from __future__ import annotations

from collections.abc import Sequence

from qtpy.QtCore import QSignalBlocker, Qt, Signal
from qtpy.QtWidgets import (
    QHBoxLayout,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from superqt import QSearchableListWidget

from napari_embedding_game.ui.style.form_widgets import Fold

MOST = 2_000
"""Columns beyond which ticking them one by one is no use, such as genes."""
CHECKED, UNCHECKED = Qt.CheckState.Checked, Qt.CheckState.Unchecked


class ColumnsPanel(QWidget):
    """A folded list of columns with ticks; ``wanted`` brings those to embed."""

    wanted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.search = QSearchableListWidget()
        self.search.setFixedHeight(170)
        self.search.layout().setContentsMargins(0, 0, 0, 0)
        self.filter, self.list = self.search.filter_widget, self.search.list_widget
        self.filter.setPlaceholderText("Find a column")
        self.list.setToolTip("Columns that make the map; each counts the same.")
        self.all, self.none = QPushButton("All"), QPushButton("None")
        self.apply = QPushButton("Embed these")
        inside = QWidget()
        within = QVBoxLayout(inside)
        within.setContentsMargins(0, 0, 0, 0)
        within.addWidget(self.search)
        buttons = QHBoxLayout()
        for button, tip, act in (
            (self.all, "Tick every column that is listed.", self._tick_all),
            (self.none, "Untick all that are listed.", self._tick_none),
            (self.apply, "Read the data again with these columns only.", self._apply),
        ):
            button.setToolTip(tip)
            button.clicked.connect(act)
            buttons.addWidget(button, 1)
        within.addLayout(buttons)
        self.fold = Fold("Columns", inside)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.fold)
        self.list.itemChanged.connect(self._tell)
        self.set_columns((), ())

    def set_columns(self, columns: Sequence[str], embedded: Sequence[str]) -> None:
        """Offer these columns and tick those that are embedded now."""
        is_listed, chosen = 2 < len(columns) <= MOST, set(embedded)
        self.setVisible(is_listed)
        with QSignalBlocker(self.list):
            self.list.clear()
            for name in columns if is_listed else ():
                item = QListWidgetItem(name, self.list)
                item.setCheckState(CHECKED if name in chosen else UNCHECKED)
        self._tell()

    def chosen(self) -> tuple[str, ...]:
        """Return the names of the columns with a tick."""
        return tuple(i.text() for i in self._items() if i.checkState() == CHECKED)

    # Inside

    def _items(self) -> list[QListWidgetItem]:
        return [self.list.item(row) for row in range(self.list.count())]

    def _tick(self, state: Qt.CheckState) -> None:
        for item in self._items():
            if not item.isHidden():
                item.setCheckState(state)

    def _tick_all(self) -> None:
        self._tick(CHECKED)

    def _tick_none(self) -> None:
        self._tick(UNCHECKED)

    def _apply(self) -> None:
        self.wanted.emit(self.chosen())

    def _tell(self) -> None:
        n_chosen = len(self.chosen())
        self.fold.set_title(f"Columns  ·  {n_chosen} of {self.list.count()}")
        self.apply.setEnabled(n_chosen > 0)
