"""Choose the columns of a space that are embedded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtWidgets import QListWidgetItem
from superqt import QSearchableListWidget

from napari_embedding_game.ui.style.form_widgets import Fold
from napari_embedding_game.ui.style.layouts import evenly, push_button

MAX_COLUMNS = 2_000
"""Columns above which they are not ticked one by one, such as genes."""
CHECKED, UNCHECKED = Qt.CheckState.Checked, Qt.CheckState.Unchecked


class ColumnsPanel(Fold):
    """A folded list of columns with ticks.

    Parameters
    ----------
    embed : callable
        Receives the names of the columns that are to be embedded.
    """

    def __init__(self, embed: Callable[[tuple[str, ...]], Any]) -> None:
        search = QSearchableListWidget()
        search.setFixedHeight(170)
        search.layout().setContentsMargins(0, 0, 0, 0)
        self.filter, self.list = search.filter_widget, search.list_widget
        self.filter.setPlaceholderText("Find a column")
        self.filter.setAccessibleName("Find")
        self.list.setAccessibleName("Columns")
        self.list.setToolTip("Columns that make the map; each counts the same.")
        self.all = push_button("All", "", lambda: self._tick(CHECKED))
        self.none = push_button("None", "", lambda: self._tick(UNCHECKED))
        self.apply = push_button(
            "Embed these",
            "Read the data again with these columns only.",
            lambda: embed(self.chosen()),
        )
        buttons = evenly(self.all, self.none, self.apply)
        super().__init__("Columns", search, buttons)
        self.list.itemChanged.connect(self._update_title)
        self.set_columns((), ())

    def set_columns(self, columns: Sequence[str], embedded: Sequence[str]) -> None:
        """Offer these columns and tick those that are embedded now."""
        is_listed, chosen = 2 < len(columns) <= MAX_COLUMNS, set(embedded)
        self.setVisible(is_listed)
        self.filter.clear()
        with QSignalBlocker(self.list):
            self.list.clear()
            for name in columns if is_listed else ():
                item = QListWidgetItem(name, self.list)
                item.setCheckState(CHECKED if name in chosen else UNCHECKED)
        self._update_title()

    def chosen(self) -> tuple[str, ...]:
        """Return the names of the columns with a tick."""
        return tuple(i.text() for i in self._items() if i.checkState() == CHECKED)

    def _items(self) -> list[QListWidgetItem]:
        return [self.list.item(row) for row in range(self.list.count())]

    def _tick(self, state: Qt.CheckState) -> None:
        with QSignalBlocker(self.list):  # each tick alone would count all of them
            for item in self._items():
                if not item.isHidden():
                    item.setCheckState(state)
        self._update_title()

    def _update_title(self) -> None:
        n_chosen = len(self.chosen())
        self.set_title(f"Columns  ·  {n_chosen} of {self.list.count()}")
        self.apply.setVisible(n_chosen > 0)
