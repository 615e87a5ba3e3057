"""A line of some pixels that shows how a figure went."""

from __future__ import annotations

from qtpy.QtCore import QPointF, QSize
from qtpy.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from qtpy.QtWidgets import QSizePolicy, QWidget

WIDTH, HEIGHT = 46, 16
MOST = 100
"""Values that are kept."""
_LEAST_RANGE = 0.02
"""Range of values over the whole height, at least: noise is no course."""


class Sparkline(QWidget):
    """The last values of a figure, the newest at the right and marked by a dot."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[float] = []
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def add(self, value: float) -> None:
        """Go on with a value."""
        self.values = [*self.values, value][-MOST:]
        self.update()

    def clear(self) -> None:
        """Begin anew."""
        self.values = []
        self.update()

    def points(self) -> list[QPointF]:
        """Return where the values are drawn, in pixels from the upper left."""
        if not self.values:
            return []
        low, high = min(self.values), max(self.values)
        middle = (low + high) / 2
        scale = (self.height() - 6) / max(high - low, _LEAST_RANGE)
        step = (self.width() - 6) / max(len(self.values) - 1, 1)
        right = self.width() - 3 - step * (len(self.values) - 1)
        return [
            QPointF(right + step * i, self.height() / 2 - (value - middle) * scale)
            for i, value in enumerate(self.values)
        ]

    def sizeHint(self) -> QSize:
        """Return the size beside a bar."""
        return QSize(WIDTH, HEIGHT)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Draw the course from the second value on."""
        points = self.points()
        if len(points) < 2:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        color = self.palette().text().color()
        painter.setPen(QPen(color, 1.2))
        painter.drawPolyline(QPolygonF(points))
        painter.setBrush(color)
        painter.drawEllipse(points[-1], 1.8, 1.8)
