"""A line of text that changes many times a second."""

from __future__ import annotations

from qtpy.QtCore import QSize, Qt
from qtpy.QtGui import QPaintEvent
from qtpy.QtWidgets import QLabel, QStyleOption, QStylePainter, QWidget


class Reading(QLabel):
    """Shows one line, cut where it is too long, and keeps its place when empty.

    A label has all of the dock laid out anew at each new text, layout by layer of
    layout, and every step of that has the whole window drawn.  This one is only drawn.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "note")
        self._text = text

    def text(self) -> str:
        """Return the whole line."""
        return self._text

    def setText(self, text: str | None) -> None:
        """Show another line."""
        if text != self._text:
            self._text = text or ""
            self.setAccessibleName(self._text)
            self.update()

    def sizeHint(self) -> QSize:
        """Return the height of a line, and no width of its own."""
        return QSize(1, self.fontMetrics().height())

    def minimumSizeHint(self) -> QSize:
        """Return the same: a long line must not widen the dock."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Draw the line in the colour of its role."""
        painter, option = QStylePainter(self), QStyleOption()
        option.initFrom(self)
        place = self.contentsRect()
        line = self.fontMetrics().elidedText(
            self._text, Qt.TextElideMode.ElideRight, place.width()
        )
        painter.drawItemText(
            place,
            int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter),
            option.palette,
            self.isEnabled(),
            line,
            self.foregroundRole(),
        )
