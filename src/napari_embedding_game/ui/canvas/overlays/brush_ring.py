"""The ring of the brush, which follows the mouse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QEvent, QObject, QPointF
from qtpy.QtGui import QColor, QPainter, QPaintEvent, QPen
from qtpy.QtWidgets import QWidget

from napari_embedding_game.ui.canvas.overlays.lasso_overlay import COLOR, WIDTH
from napari_embedding_game.ui.canvas.projection import CanvasOverlay

HALO = QColor(0, 0, 0, 90)
"""Below the ring, so that it is seen on points of its own colour, and on white."""


class BrushRing(CanvasOverlay):
    """A circle around the mouse; it is painted over the canvas and is no layer."""

    def __init__(self, canvas: QWidget) -> None:
        super().__init__(canvas)
        self.setObjectName("brush")
        self._middle = QPointF()
        self._radius = 0.0

    def draw(self, pixel: NDArray[np.floating], radius: float) -> None:
        """Draw it around a pixel (x, y) of the canvas."""
        self._middle, self._radius = QPointF(*map(float, pixel)), radius
        self.show()
        self.raise_()
        self.update()

    def resize_ring(self, radius: float) -> None:
        """Draw it as large around the same pixel."""
        self._radius = radius
        self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Go with the mouse when it leaves the canvas."""
        if event.type() == QEvent.Type.Leave:
            self.hide()
        return super().eventFilter(watched, event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the ring."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for color, width in ((HALO, 2 * WIDTH), (QColor(COLOR), WIDTH)):
            painter.setPen(QPen(color, width))
            painter.drawEllipse(self._middle, self._radius, self._radius)
        painter.end()
