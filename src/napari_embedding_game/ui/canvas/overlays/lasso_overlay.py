"""The lasso: an overlay that draws its line, and a test for points inside."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF
from qtpy.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from qtpy.QtWidgets import QWidget

from napari_embedding_game.ui.canvas.projection import CanvasOverlay

COLOR = "#ffb000"
WIDTH = 2.0
"""Canvas pixels."""


def inside(
    polygon: NDArray[np.floating], points: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Return for each point (N, 2) whether it is in the polygon (V, 2).

    The last corner is joined to the first.  Where the line crosses itself, a part
    that it goes around twice is outside (even-odd rule).
    """
    mask = ((points >= polygon.min(axis=0)) & (points <= polygon.max(axis=0))).all(1)
    y, x = points[mask].T.astype(float)
    odd = np.zeros(len(y), bool)
    for (y0, x0), (y1, x1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if y0 == y1:
            continue
        crosses = (y0 > y) != (y1 > y)
        odd ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    mask[mask] = odd
    return mask


class LassoOverlay(CanvasOverlay):
    """The line that follows the mouse, for as long as the button is held.

    It is painted over the canvas and is no layer: a layer would take a part of
    napari's grid, be stored, and need as many dimensions as the images have.
    """

    def __init__(self, canvas: QWidget) -> None:
        super().__init__(canvas)
        self.setObjectName("lasso")
        self._line = QPolygonF()
        self.show()
        self.raise_()

    def draw(self, corners: NDArray[np.floating]) -> None:
        """Draw through these pixels (V, 2) of the canvas, and back to the first."""
        self._line = QPolygonF([QPointF(x, y) for x, y in corners])
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the line."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(COLOR), WIDTH))
        painter.drawPolygon(self._line)
        painter.end()
