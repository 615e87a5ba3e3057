"""List of the texts of a cluster's points."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QListWidget, QListWidgetItem

TEXT_LENGTH = 300
"""Characters of a text that are shown."""


class TextList(QListWidget):
    """The texts of points drawn at random.

    Parameters
    ----------
    on_pick : callable
        Receives the rows of the dataset whose texts a person selected.
    """

    def __init__(self, on_pick: Callable[[NDArray[np.intp]], None]) -> None:
        super().__init__()
        self._on_pick = on_pick
        self._following = False
        self.rows: NDArray[np.intp] = np.empty(0, np.intp)
        self.setWordWrap(True)
        self.setSpacing(3)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QListWidget.Shape.NoFrame)
        self.setToolTip("Members of the selection, drawn at random: click to find one.")
        self.itemSelectionChanged.connect(self._on_selected)

    def set_texts(self, rows: NDArray[np.intp], texts: Sequence[str]) -> None:
        """Show the texts of these rows; the same again leaves the list as it is."""
        shown = [_shortened(str(text)) for text in texts]
        if np.array_equal(rows, self.rows) and shown == self._shown():
            return
        self._following = True
        self.rows = np.asarray(rows)
        self.clear()
        self.addItems(shown)
        self._following = False

    def follow(self, rows: NDArray[np.integer]) -> None:
        """Mark the texts of these rows, and show the first of them."""
        places = np.flatnonzero(np.isin(self.rows, rows)).tolist()
        if places == self._places():
            return
        self._following = True
        self.clearSelection()
        for place in places:
            self._item(place).setSelected(True)
        if places:
            self.scrollToItem(self._item(places[0]))
        self._following = False

    def holds(self, row: int) -> bool:
        """Return whether the text of a row is among those shown."""
        return row in self.rows

    def _shown(self) -> list[str]:
        return [self._item(place).text() for place in range(self.count())]

    def _item(self, place: int) -> QListWidgetItem:
        item = self.item(place)
        assert item is not None
        return item

    def _places(self) -> list[int]:
        return sorted(index.row() for index in self.selectedIndexes())

    def _on_selected(self) -> None:
        if not self._following:
            self._on_pick(self.rows[self._places()])


def _shortened(text: str) -> str:
    """Return the beginning of a text on one line, cut between words."""
    return textwrap.shorten(text, TEXT_LENGTH, placeholder=" …") or "(empty)"
