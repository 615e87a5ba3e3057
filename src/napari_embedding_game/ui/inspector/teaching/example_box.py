"""One box: its name, how many examples it has, and their pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QSize, Signal
from qtpy.QtGui import QColor, QResizeEvent
from qtpy.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QToolButton, QVBoxLayout

from napari_embedding_game.ui.inspector.teaching.example_list import ExampleList
from napari_embedding_game.ui.style.form_widgets import text_label
from napari_embedding_game.ui.style.status_label import StatusLabel

SIDE = 42
NARROWEST, ROOMY, HIGH = 112, 170, 110
"""Pixels of width and height: less than the latter leaves no room for words."""
LAST_KEY = 9
"""Boxes beyond have no key."""


class ExampleBox(QFrame):
    """Shows a box, and tells what a person wants to be done with it.

    Parameters
    ----------
    number : int
        From 1 on: the key that puts the selection into it.
    """

    put_requested = Signal()
    renamed = Signal(str)
    remove_requested = Signal()
    picked = Signal(object)
    taken_out = Signal(object)

    def __init__(self, number: int) -> None:
        super().__init__()
        self._name = ""
        self.setMinimumWidth(NARROWEST)
        self.setObjectName("exampleBox")
        self.put, self.remove = QToolButton(), QToolButton()
        self.name = QLineEdit()
        self.count = text_label(wraps=False)
        self.share = StatusLabel()
        self.examples = ExampleList(SIDE)
        self._build(number)
        self.put.clicked.connect(self.put_requested)
        self.remove.clicked.connect(self.remove_requested)
        self.name.editingFinished.connect(self._on_name)
        self.examples.picked.connect(self.picked)
        self.examples.taken_out.connect(self.taken_out)

    def sizeHint(self) -> QSize:
        """Return a size with room for a few pictures."""
        return QSize(200, 130)

    def set_box(
        self, name: str, rows: NDArray[np.intp], share: float | None, tip: str
    ) -> None:
        """Show the name and the examples.

        Parameters
        ----------
        name : str
        rows : (m,) int
        share : float, optional
            How many of them are told right, where that is known.
        tip : str
            Both in a sentence.
        """
        self._name = name
        if not self.name.hasFocus():
            self.name.setText(name)
            self.name.setCursorPosition(0)
            self.name.setToolTip(f"{name}: type another name for this kind.")
            self.name.setCursorPosition(0)
        self.put.setToolTip(f"Put the selection into {name}{self._key}.")
        self.examples.set_rows(rows)
        self.count.setText(f"{len(rows):,}")
        self.share.setText("" if share is None else f"{share:.0%} of unseen are right")
        for label in (self.count, self.share):
            label.setToolTip(tip)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Tell as much as has room."""
        super().resizeEvent(event)
        self._fit()

    def set_color(self, color: QColor, line: QColor) -> None:
        """Show in which colour its class is drawn on the map."""
        self.setStyleSheet(
            f"QFrame#exampleBox {{ border: 1px solid {line.name()};"
            f" border-top: 3px solid {color.name()}; border-radius: 2px; }}"
            'QToolButton[role="edit"] { padding: 2px 4px; }'
            "QLineEdit { padding: 1px 2px; }"
        )

    def begin_naming(self) -> None:
        """Let a person type its name."""
        self.name.setFocus()
        self.name.selectAll()

    # Inside

    def _build(self, number: int) -> None:
        has_key = number <= LAST_KEY
        self._key = f" (key {number})" if has_key else ""
        self._number = str(number)
        self.put.setProperty("role", "edit")
        self.remove.setText("×")
        self.remove.setProperty("role", "edit")
        self.remove.setToolTip("Remove this box; its examples are in none then.")
        self.name.setFrame(False)
        self.name.setMinimumWidth(30)
        self.remove.setFixedWidth(18)
        self.examples.setToolTip(
            "Examples of this kind: click to see where one is; Delete takes it out."
        )
        head = QHBoxLayout()
        head.setSpacing(2)
        head.addWidget(self.put)
        head.addWidget(self.name, 1)
        head.addWidget(self.count)
        head.addWidget(self.remove)
        column = QVBoxLayout(self)
        column.setContentsMargins(3, 3, 3, 3)
        column.setSpacing(1)
        column.addLayout(head)
        column.addWidget(self.share)
        column.addWidget(self.examples, 1)
        self.examples.setMinimumHeight(SIDE // 2)

    def _fit(self) -> None:
        """Show the words that have room."""
        words = f"Put {self._number}" if self.width() >= ROOMY else self._number
        if self.put.text() != words:
            self.put.setText(words)
            width = self.put.fontMetrics().horizontalAdvance(words)
            self.put.setMinimumWidth(width + 10)  # else it is cut before the name is
        self.share.setVisible(bool(self.share.text()) and self.height() >= HIGH)

    def _on_name(self) -> None:
        name = self.name.text()
        if self.name.hasFocus():
            self.name.clearFocus()
        if name.strip() and name != self._name:
            self.renamed.emit(name)
        else:
            self.name.setText(self._name)
