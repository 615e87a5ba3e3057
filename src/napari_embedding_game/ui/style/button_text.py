"""Long texts of buttons on several lines, so that they widen nothing."""

from __future__ import annotations

from qtpy.QtCore import QEvent, QObject, QRect, Qt
from qtpy.QtWidgets import QPushButton, QStyle, QStyleOptionButton, QStylePainter

_BESIDE = 8
"""Least pixels left free beside the text."""
CENTER = Qt.AlignmentFlag.AlignHCenter


class WrappedText(QObject):
    """Draws the text of a button on as many lines as its width needs.

    Qt's buttons are as wide as their text, and would widen the dock.
    """

    def __init__(
        self, button: QPushButton, alignment: Qt.AlignmentFlag = CENTER
    ) -> None:
        super().__init__(button)
        self._button = button
        self._flags = int(alignment | Qt.AlignmentFlag.AlignVCenter)
        self._flags |= int(Qt.TextFlag.TextWordWrap)
        button.setMinimumWidth(1)
        button.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Draw in Qt's place what has no room on one line."""
        if event.type() == QEvent.Type.Resize:
            self._fit()
        elif event.type() == QEvent.Type.Paint and self._fit():
            self._draw()
            return True
        return False

    def _fit(self) -> bool:
        """Make the button as high as its lines; return whether there are several."""
        button, metrics = self._button, self._button.fontMetrics()
        width, height = max(button.width() - 2 * _BESIDE, 1), 0
        wraps = metrics.horizontalAdvance(button.text()) > width
        if wraps:
            room = QRect(0, 0, width, 1)
            lines = metrics.boundingRect(room, self._flags, button.text()).height()
            height = lines + button.sizeHint().height() - metrics.height()
        if button.minimumHeight() != height:
            button.setMinimumHeight(height)
        return wraps

    def _draw(self) -> None:
        button, option = self._button, QStyleOptionButton()
        button.initStyleOption(option)
        painter = QStylePainter(button)
        painter.drawControl(QStyle.ControlElement.CE_PushButtonBevel, option)
        room = button.rect().adjusted(_BESIDE, 0, -_BESIDE, 0)
        of_text = option.palette, button.isEnabled(), button.text()
        painter.drawItemText(room, self._flags, *of_text, button.foregroundRole())
        painter.end()
