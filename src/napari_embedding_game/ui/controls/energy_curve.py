"""Plot the energy by iteration, live."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from qtpy.QtCore import QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.ui.style.status_label import StatusLabel
from napari_embedding_game.ui.style.theme import ThemeColors

COST = "Cost (energy)"
HEIGHT = 86
MARGIN = 0.08
"""Share of width and height around the line."""
STEEP_SHARE = 0.03
"""Share of the iterations, at the beginning, that may leave the picture."""
MOST_POINTS = 500
"""Drawn at most: there are not many more pixels across."""


class EnergyCurve(QWidget):
    """A line of (iteration, energy), scaled to what there is."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setToolTip(
            "What the method lowers, its energy: while it falls steeply the map still "
            "changes. Flat tells that it has come to rest, not that it is good. It "
            "compares no two methods or data sets."
        )
        self._energy = StatusLabel(COST)
        self.plot = Plot()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self._energy)
        layout.addWidget(self.plot)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.plot.set_colors(colors.foreground, colors.line)

    def set_energies(self, energies: Sequence[tuple[int, float]]) -> None:
        """Show these (iteration, energy) pairs."""
        curve = np.array(energies, dtype=np.float64).reshape(-1, 2)
        curve = curve[np.isfinite(curve).all(axis=1)]
        self.plot.set_curve(curve)
        self._energy.setText(f"{COST} {short(curve[-1, 1])}" if len(curve) else COST)


class Plot(QWidget):
    """Draws the line by Qt's own means.

    A canvas of vispy would need a context of its own for each window that the dock
    comes to be in, and hands out events in the middle of closing one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._curve = np.empty((0, 2))
        self._background, self._line = QColor("black"), QColor("white")
        self.setFixedHeight(HEIGHT)

    def set_colors(self, background: QColor, line: QColor) -> None:
        """Take on other colours."""
        self._background, self._line = background, line
        self.update()

    def set_curve(self, curve: np.ndarray) -> None:
        """Show (n, 2) iterations and energies, all of them finite."""
        self._curve = curve
        self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Draw the line over its background."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._background)
        if len(self._curve) > 1:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self._line, 2, Qt.PenStyle.SolidLine))
            painter.drawPolyline(polygon(self._curve, QRectF(self.rect())))
        painter.end()


def polygon(curve: np.ndarray, place: QRectF) -> QPolygonF:
    """Return (n, 2) iterations and energies, n > 1, as a line inside a rectangle.

    The first steps fall so far that nothing else would be seen beside them, so they
    may leave the rectangle at its top.
    """
    (left, low), right = curve.min(axis=0), curve[-1, 0]
    high = curve[curve[:, 0] >= STEEP_SHARE * right, 1].max()
    spread = np.array([right - left or 1.0, max(high - low, abs(high) * 1e-6, 1e-12)])
    steps = np.linspace(0, len(curve) - 1, min(len(curve), MOST_POINTS)).astype(int)
    shares = (curve[steps] - (left, low)) / spread * (1 - 2 * MARGIN) + MARGIN
    x = place.left() + shares[:, 0] * place.width()
    # Far above is as good as a little above, and Qt draws lines of such length slowly.
    y = place.bottom() - np.minimum(shares[:, 1], 10.0) * place.height()
    points = zip(x.tolist(), y.tolist(), strict=True)
    return QPolygonF([QPointF(*point) for point in points])


def short(number: float) -> str:
    """Return a number with three digits and a word for its size: ``475 k``."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.3g}"
