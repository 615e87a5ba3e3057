"""Label for text that changes many times a second."""

from __future__ import annotations

from qtpy.QtCore import QSize, Qt
from qtpy.QtGui import QPaintEvent
from qtpy.QtWidgets import QLabel, QStyleOption, QStylePainter, QWidget

_AS_LABELS = 4
"""Pixels beside the text, as Qt leaves them in a label that may wrap."""


class StatusLabel(QLabel):
    """Shows one line, cut where it is too long, and keeps its place when empty.

    Any other label, superqt's eliding one too, has all of the dock laid out anew at
    each new text.  This one is only drawn.
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
        """Return the height of a line, and no width: a long one widens no dock."""
        self.ensurePolished()  # in the size of the theme's letters
        return QSize(1, self.fontMetrics().height() + 2)

    minimumSizeHint = sizeHint

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Draw the line in the colour of its role."""
        painter, option, room = QStylePainter(self), QStyleOption(), self.contentsRect()
        option.initFrom(self)
        cut = Qt.TextElideMode.ElideRight
        line = self.fontMetrics().elidedText(self._text, cut, room.width())
        flags = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        role = self.foregroundRole()
        is_on = self.isEnabled()
        painter.drawItemText(room, flags, option.palette, is_on, line, role)
