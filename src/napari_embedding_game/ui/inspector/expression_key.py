"""How the colours and sizes of a dot plot are read."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QPointF, QRectF, QSize, Qt
from qtpy.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent, QPen
from qtpy.QtWidgets import QWidget

from napari_embedding_game.ui.inspector.expression_table import radius_share
from napari_embedding_game.ui.style.colors import value_colors
from napari_embedding_game.ui.style.theme import ThemeColors


class ExpressionKey(QWidget):
    """How colours and sizes are read."""

    SHARES = (0.25, 0.5, 0.75, 1.0)
    LINE = 15

    def __init__(self) -> None:
        super().__init__()
        self._colors: ThemeColors | None = None
        self._title, self._limits, self._has_dots = "", (0.0, 1.0), True
        self.setFixedWidth(86)
        self.setAccessibleName("Key of colours and sizes")

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._colors = colors
        self.update()

    def sizeHint(self) -> QSize:
        """Return the room of all lines."""
        return QSize(86, 9 * self.LINE)

    def explain(
        self, title: str, limits: tuple[float, float], *, has_dots: bool
    ) -> None:
        """Show what the colours tell, and between which values."""
        self._title, self._limits, self._has_dots = title, limits, has_dots
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw a bar of colours, and dots of some shares."""
        if self._colors is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        line, wide = self.LINE, self.width() - 4
        painter.setPen(self._colors.dim)
        painter.drawText(QRectF(0, 0, wide, line), self._title)
        bar = QRectF(0, line + 1, wide, 8)
        gradient = QLinearGradient(bar.topLeft(), bar.topRight())
        places = np.linspace(0, 1, 9)
        for place, rgba in zip(places, value_colors(places, (0.0, 1.0)), strict=True):
            gradient.setColorAt(place, QColor.fromRgbF(*map(float, rgba)))
        painter.fillRect(bar, gradient)
        low, high = (f"{limit:.3g}" for limit in self._limits)
        below = QRectF(0, bar.bottom() + 1, wide, line)
        painter.drawText(below, Qt.AlignmentFlag.AlignLeft, low)
        painter.drawText(below, Qt.AlignmentFlag.AlignRight, high)
        if self._has_dots:
            self._paint_shares(painter, self._colors, below.bottom() + 6)

    def _paint_shares(self, painter: QPainter, colors: ThemeColors, top: float) -> None:
        painter.setPen(colors.dim)
        line, largest = self.LINE, self.LINE / 2 - 1
        painter.drawText(QRectF(0, top, self.width(), line), "Above 0 in")
        for row, share in enumerate(self.SHARES):
            middle = top + line * (row + 1.6)
            if middle + line / 2 > self.height():
                return  # what is cut off would not be read
            radius = largest * float(radius_share(share))
            painter.setPen(QPen(colors.dim, 0.5))
            painter.setBrush(colors.dim)
            painter.drawEllipse(QPointF(largest + 1, middle), radius, radius)
            painter.setPen(colors.dim)
            box = QRectF(2 * largest + 8, middle - line / 2, 60, line)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, f"{share:.0%}")
