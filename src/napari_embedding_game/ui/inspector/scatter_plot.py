"""Draws all points by two numbers, and a rectangle that a person drags over them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QImage, QMouseEvent, QPainter, QPaintEvent, QPen
from qtpy.QtWidgets import QWidget

from napari_embedding_game.session.axis_values import Axis, Gate
from napari_embedding_game.ui.pixels import paint_discs
from napari_embedding_game.ui.style.cluster_colors import Colors
from napari_embedding_game.ui.style.level_click import adds
from napari_embedding_game.ui.style.theme import ThemeColors

LEFT, TOP, RIGHT, BOTTOM = 46, 6, 8, 32
"""Pixels around the points, for numbers and names of the axes."""
MARGIN = 0.04
"""Part of an axis that is free beyond the first and the last point, to drag from."""
BAND = 0.08
"""Part of an axis below 0 in which points of 0 are spread, where they are many."""
MANY_ZEROS = 0.02
"""Share of points from which they are."""
DOT, SMALL_DOT = 4, 2
"""Pixels across a point, and one of many."""
GREY_OPACITY = 0.27
"""Of points that are not chosen."""
MANY_POINTS = 20_000
N_TICKS = 5
"""Numbers on an axis at most."""
SHORTEST_DRAG = 4
"""Pixels; what is shorter is a click, which takes the gate away."""


class ScatterPlot(QWidget):
    """Points at two of their numbers; ``gated`` brings a gate, ``cleared`` a click.

    Points outside of the selection are grey and below the others.
    """

    gated = Signal(object, bool)
    """The :class:`Gate`, and whether its points are added to the selection."""
    cleared = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._colors: ThemeColors | None = None
        self._axes: tuple[Axis, Axis] | None = None
        self._rgba: Colors = np.empty((0, 4), np.float32)
        self._chosen: NDArray[np.bool_] | None = None
        self._order: NDArray[np.intp] = np.empty(0, np.intp)
        self._limits = ((0.0, 1.0), (0.0, 1.0))
        self._drawn = np.empty(0), np.empty(0)
        self._picture: QImage | None = None
        self._begun: QPointF | None = None
        self._now = QPointF()
        self.gate: Gate | None = None
        """The one that was drawn last, while its points are selected."""
        self.setAccessibleName("Scatter plot of two genes, scores or columns")
        self.setToolTip(
            "Drag a rectangle to select the cells inside, on the map too; with Shift "
            "or Ctrl they are added. A click selects nothing. Cells of 0 are spread "
            "in a band below 0, so that they can be seen."
        )
        self.setMinimumSize(180, 60)
        self.setCursor(Qt.CursorShape.CrossCursor)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._colors, self._picture = colors, None
        self.update()

    def sizeHint(self) -> QSize:
        """Return a size in which groups can be told apart."""
        return QSize(420, 220)

    def show_axes(self, axes: tuple[Axis, Axis] | None) -> None:
        """Show all points at these numbers, without a gate."""
        self._axes, self._picture, self.gate = axes, None, None
        if axes is not None:
            self._limits = _limits(axes[0].values), _limits(axes[1].values)
            rng = np.random.default_rng(0)
            self._drawn = _spread(axes[0].values, rng), _spread(axes[1].values, rng)
            # Drawn in random order: none of two mixed groups covers the other.
            self._order = rng.permutation(len(axes[0].values))
        self.update()

    def color(self, rgba: Colors, chosen: NDArray[np.bool_] | None) -> None:
        """Give the points, (n,), their colours; all but the chosen ones are grey."""
        self._rgba, self._chosen, self._picture = rgba, chosen, None
        self.update()

    def place(self, x: float, y: float) -> QPointF:
        """Return where a pair of numbers is drawn."""
        area, ((left, right), (low, high)) = self._area(), self._limits
        across = (x - left) / (right - left) * area.width()
        up = (y - low) / (high - low) * area.height()
        return QPointF(area.left() + across, area.bottom() - up)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a gate."""
        if event.button() == Qt.MouseButton.LeftButton and self._axes is not None:
            self._begun = self._now = event.position()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Draw the gate to the mouse."""
        if self._begun is not None:
            self._now = event.position()
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Tell of the gate, or of a click."""
        if self._begun is None or event.button() != Qt.MouseButton.LeftButton:
            return
        begun, self._begun, self._now = self._begun, None, event.position()
        if (self._now - begun).manhattanLength() < SHORTEST_DRAG:
            self.gate = None
            self.cleared.emit()
        else:
            self.gate = Gate.between(self._numbers(begun), self._numbers(self._now))
            self.gated.emit(self.gate, adds(event))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw axes, points and the gate."""
        if self._colors is None:
            return
        painter = QPainter(self)
        painter.fillRect(self._area(), self._colors.foreground)
        if self._axes is None:
            return
        if self._picture is None:
            self._picture = self._painted()
        painter.drawImage(QPointF(0, 0), self._picture)
        self._paint_axes(painter, self._colors, self._axes)
        self._paint_gate(painter, self._colors)

    def resizeEvent(self, event: object) -> None:
        """Draw the points anew."""
        super().resizeEvent(event)
        self._picture = None

    # Inside

    def _area(self) -> QRectF:
        return QRectF(self.rect()).adjusted(LEFT, TOP, -RIGHT, -BOTTOM)

    def _numbers(self, pixel: QPointF) -> tuple[float, float]:
        """Return the numbers at a pixel; beyond the area, those at its edge."""
        area, ((left, right), (low, high)) = self._area(), self._limits
        across = np.clip((pixel.x() - area.left()) / area.width(), 0, 1)
        up = np.clip((area.bottom() - pixel.y()) / area.height(), 0, 1)
        return left + float(across) * (right - left), low + float(up) * (high - low)

    def _painted(self) -> QImage:
        """Return a picture of all points, the chosen ones last."""
        assert self._colors is not None
        ratio = self.devicePixelRatioF()
        width, height = (math.ceil(ratio * side) for side in self._sides())
        area, ((left, right), (low, high)) = self._area(), self._limits
        x, y = self._drawn
        across = area.left() + (x - left) / (right - left) * area.width()
        down = area.bottom() - (y - low) / (high - low) * area.height()
        places = ratio * np.column_stack([down, across])
        dot = ratio * (DOT if len(x) < MANY_POINTS else SMALL_DOT)
        rgba, rows = self._rgba, self._order
        if len(rgba) != len(x):
            rgba = np.tile(self._colors.line.getRgbF(), (len(x), 1))
        if self._chosen is not None:
            is_last = self._chosen[rows]
            rows = np.concatenate([rows[~is_last], rows[is_last]])
            dim = (*self._colors.dim.getRgbF()[:3], GREY_OPACITY)
            rgba = np.where(self._chosen[:, None], rgba, dim)
        same = (1.0, 0.0), (1.0, 0.0)
        sizes = np.full(len(x), dot)
        pixels = paint_discs(places, sizes, rgba, same, (height, width), rows)
        kind = QImage.Format.Format_RGBA8888_Premultiplied
        image = QImage(pixels.tobytes(), width, height, 4 * width, kind).copy()
        image.setDevicePixelRatio(ratio)  # the bytes end with this call, so the copy
        return image

    def _sides(self) -> tuple[int, int]:
        return max(self.width(), 1), max(self.height(), 1)

    def _paint_axes(
        self, painter: QPainter, colors: ThemeColors, axes: tuple[Axis, Axis]
    ) -> None:
        area, (across, up) = self._area(), self._limits
        painter.setPen(colors.dim)
        center = Qt.AlignmentFlag.AlignCenter
        for tick in ticks(*across):
            x = self.place(tick, up[0]).x()
            painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + 3))
            box = QRectF(x - 30, area.bottom() + 3, 60, 13)
            painter.drawText(box, center, f"{tick:g}")
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for tick in ticks(*up):
            y = self.place(across[0], tick).y()
            painter.drawLine(QPointF(area.left() - 3, y), QPointF(area.left(), y))
            painter.drawText(
                QRectF(14, y - 7, area.left() - 18, 14), right, f"{tick:g}"
            )
        painter.setPen(colors.text)
        below = QRectF(area.left(), self.height() - 15, area.width(), 15)
        painter.drawText(below, center, axes[0].name)
        painter.translate(8, area.center().y())
        painter.rotate(-90)
        half = area.height() / 2
        painter.drawText(QRectF(-half, -8, 2 * half, 16), center, axes[1].name)
        painter.resetTransform()

    def _paint_gate(self, painter: QPainter, colors: ThemeColors) -> None:
        if self._begun is not None:
            box = QRectF(self._begun, self._now).normalized()
            box = box.intersected(self._area())
        elif self.gate is not None:
            one = self.place(self.gate.x[0], self.gate.y[0])
            other = self.place(self.gate.x[1], self.gate.y[1])
            box = QRectF(one, other).normalized()
        else:
            return
        painter.setPen(QPen(colors.text, 1, Qt.PenStyle.DashLine))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(box)


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two others, few and in equal steps."""
    rough = (high - low) / N_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    digits = max(0, -math.floor(math.log10(step)))
    return [round(number * step, digits) for number in range(first, last + 1)]


def _limits(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return the ends of an axis: beyond the lowest and the highest value."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    span = high - low or max(abs(low), 1.0)
    below = MARGIN + BAND * _has_band(values)
    return low - below * span, high + MARGIN * span


def _has_band(values: NDArray[np.floating]) -> bool:
    """Return whether nothing is below 0, and much of it 0."""
    zeros = np.count_nonzero(values == 0)
    return bool(zeros > MANY_ZEROS * len(values) and np.nanmin(values) == 0)


def _spread(
    values: NDArray[np.floating], rng: np.random.Generator
) -> NDArray[np.floating]:
    """Return where values are drawn: those of 0 in a band below it, if many."""
    if not _has_band(values):
        return values
    is_zero = values == 0
    width = BAND * (float(np.nanmax(values)) or 1.0)
    drawn = values.astype(float)
    drawn[is_zero] = -width * rng.random(int(np.count_nonzero(is_zero)))
    return drawn
