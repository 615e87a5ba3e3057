"""A volcano plot: how much each gene differs between two groups, and how surely."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from qtpy.QtWidgets import QToolTip, QWidget

from napari_embedding_game.core.inspect.markers import MarkerTable
from napari_embedding_game.data.export.plots import (
    LARGE,
    LEAST_P,
    N_NAMED,
    SURE,
    drawn_changes,
)
from napari_embedding_game.ui.style.theme import LOWER, ThemeColors

EDGE, BOTTOM, LEFT = 8, 18, 30
"""Pixels left free around the points, and for the numbers of both axes."""
RADIUS, REACH = 2.2, 8.0
"""Pixels of a point, and how near the mouse has to come to it."""
ROOMY = 200
"""Pixels of width from which the name of the axis has room between its ends."""
HINT = (
    "Right: higher in the selected points; left: lower. Up: the more certain. The "
    "dashed lines are a change of two times and an adjusted p-value of 5 %. Click a "
    "gene to colour the map by it."
)
TALL = 120
"""Pixels of height from which the whole name of the other axis has."""


def told_p(p: float) -> str:
    """Return a p-value as text; smaller than a number can be is told as such."""
    return f"{p:.1e}" if p > 0 else "< 1e-300"


class Volcano(QWidget):
    """Draws every gene: its change to the right or left, its certainty upwards.

    ``picked`` brings the name of the gene that was clicked.
    """

    picked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._markers: MarkerTable | None = None
        self._colors: ThemeColors | None = None
        self._x: NDArray[np.floating] = np.empty(0)
        self._y: NDArray[np.floating] = np.empty(0)
        self._chosen = ""
        self.hint = HINT
        """What is told of the plot, in the word for its points."""
        self.setAccessibleName("Volcano plot")
        self.setMinimumSize(180, 60)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._colors = colors
        self.update()

    def sizeHint(self) -> QSize:
        """Return a size in which names can be read."""
        return QSize(420, 200)

    def show_markers(self, markers: MarkerTable | None) -> None:
        """Show all columns of a comparison but those without a fold change."""
        self._markers = markers
        if markers is None:
            self._x = self._y = np.empty(0)
        else:
            self._x = drawn_changes(markers.logfoldchanges, markers.pvals_adj)
            self._y = -np.log10(np.maximum(markers.pvals_adj, LEAST_P))
        self.update()

    def choose(self, name: str) -> None:
        """Draw a ring around the gene of this name."""
        self._chosen = name
        self.update()

    def place(self, row: int) -> QPointF:
        """Return where a row of the table is drawn."""
        return QPointF(*self._places()[row].tolist())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Pick the gene under the mouse."""
        row = self._row_at(event.position())
        if row is not None and self._markers is not None:
            self.picked.emit(str(self._markers.names[row]))

    def event(self, event: QEvent) -> bool:
        """Tell of the gene under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            row = self._row_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), self.told(row), self)
            return True
        return bool(super().event(event))

    def told(self, row: int | None) -> str:
        """Return what a tooltip tells of a gene; of the plot where there is none."""
        markers = self._markers
        if row is None or markers is None:
            return self.hint
        return (
            f"{markers.names[row]}\nlog2 fold {markers.logfoldchanges[row]:+.2f}, "
            f"p adj. {told_p(markers.pvals_adj[row])}\nin {markers.pts[row]:.0%}, "
            f"out {markers.pts_rest[row]:.0%}"
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw axes, points and the names of those that stand out."""
        if self._colors is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), self._colors.foreground)
        if self._markers is None or not len(self._x):
            return
        places = self._places()
        self._paint_axes(painter, self._colors)
        is_known = np.isfinite(self._x)
        stands_out = is_known & (self._y > -np.log10(SURE)) & (abs(self._x) > LARGE)
        groups = (
            (is_known & ~stands_out, self._colors.dim),
            (stands_out & (self._x < 0), LOWER),
            (stands_out & (self._x > 0), self._colors.line),
        )
        for rows, color in groups:
            pen = QPen(color, 2 * RADIUS)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            painter.drawPoints([QPointF(x, y) for x, y in places[rows].tolist()])
        self._paint_names(painter, self._colors, places, stands_out)

    # Inside

    def _area(self) -> QRectF:
        inside = QRectF(self.rect()).adjusted(LEFT, EDGE, -EDGE, -BOTTOM)
        return inside

    def _limits(self) -> tuple[float, float]:
        known = np.abs(self._x[np.isfinite(self._x)])
        return max(2.0, float(known.max(initial=0.0))), max(3.0, float(self._y.max()))

    def _places(self) -> NDArray[np.floating]:
        """Return the pixel of each row, (G, 2); NaN where nothing is drawn."""
        area, (widest, highest) = self._area(), self._limits()
        across = area.center().x() + self._x / widest * area.width() / 2
        up = area.bottom() - self._y / highest * area.height()
        return np.column_stack([across, up])

    def _row_at(self, pixel: QPointF) -> int | None:
        if not np.isfinite(self._x).any():
            return None
        away = np.hypot(*(self._places() - [pixel.x(), pixel.y()]).T)
        row = int(np.nanargmin(away))
        return row if away[row] <= REACH else None

    def _paint_axes(self, painter: QPainter, colors: ThemeColors) -> None:
        area, (widest, highest) = self._area(), self._limits()
        dashed = QPen(colors.dim, 1, Qt.PenStyle.DashLine)
        painter.setPen(dashed)
        for change in (-LARGE, LARGE):
            x = area.center().x() + change / widest * area.width() / 2
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        y = area.bottom() + np.log10(SURE) / highest * area.height()
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        painter.setPen(colors.dim)
        below = QRectF(area.left(), area.bottom() + 2, area.width(), BOTTOM - 2)
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(below, middle | Qt.AlignmentFlag.AlignLeft, f"{-widest:.1f}")
        center = middle | Qt.AlignmentFlag.AlignHCenter
        if area.width() >= ROOMY:
            painter.drawText(below, center, "log2 fold change")
        painter.drawText(below, middle | Qt.AlignmentFlag.AlignRight, f"{widest:+.1f}")
        beside = QRectF(0, area.top() - 6, LEFT - 4, 14)
        right = middle | Qt.AlignmentFlag.AlignRight
        painter.drawText(beside, right, f"{highest:.0f}")
        painter.save()
        painter.translate(11, area.center().y())
        painter.rotate(-90)
        name = "−log10 p adj." if area.height() >= TALL else "−log10 p"
        painter.drawText(QRectF(-70, -8, 140, 16), center, name)
        painter.restore()

    def _paint_names(
        self,
        painter: QPainter,
        colors: ThemeColors,
        places: NDArray[np.floating],
        stands_out: NDArray[np.bool_],
    ) -> None:
        """Write names that cover no other one; the chosen gene's first."""
        assert self._markers is not None
        names, metrics = self._markers.names, self.fontMetrics()
        rows = np.flatnonzero(stands_out)
        chosen = np.flatnonzero(names == self._chosen)
        order = [*chosen, *rows[:N_NAMED], *rows[::-1][:N_NAMED]]
        taken: list[QRectF] = []
        for row in order:
            x, y = places[row]
            if not np.isfinite(x + y):
                continue
            width = metrics.horizontalAdvance(str(names[row])) + 4
            left = x + 5 if x + 5 + width < self.width() else x - 5 - width
            box = QRectF(left, y - 8, width, 15)
            if any(box.intersects(other) for other in taken):
                continue
            taken.append(box)
            painter.setPen(colors.text)
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, str(names[row]))
        if len(chosen) and np.isfinite(places[chosen[0]]).all():
            painter.setPen(QPen(colors.text, 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(QPointF(*places[chosen[0]].tolist()), 5.0, 5.0)
