"""Label for text that changes many times a second."""

from __future__ import annotations

from qtpy.QtCore import QSize, Qt
from qtpy.QtGui import QPaintEvent
from qtpy.QtWidgets import QLabel, QStyleOption, QStylePainter, QWidget

_AS_LABELS = 4
"""Pixels beside the text, as Qt leaves them in a label that may wrap."""


class StatusLabel(QLabel):
    """Shows one line, cut where it is too long, and keeps its place when empty.

    A label has all of the dock laid out anew at each new text, layout by layer of
    layout, and every step of that has the whole window drawn; superqt's eliding label
    is one, too.  This one is only drawn.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "note")
        self.setContentsMargins(_AS_LABELS, 1, _AS_LABELS, 1)
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
        self.ensurePolished()  # in the size of the theme's letters
        margins = self.contentsMargins()
        height = self.fontMetrics().height() + margins.top() + margins.bottom()
        return QSize(1, height)

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
