"""A histogram with two limits that can be dragged."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QRectF, Qt, Signal
from qtpy.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from qtpy.QtWidgets import QWidget

from napari_embedding_game.ui.style.theme import ThemeColors

HEIGHT, BELOW, SIDE = 66, 14, 7
"""Pixels: in all, for the numbers, and free at each side for the handles."""
N_BARS = 60
FEW_DECADES = 2.5
"""Below these there is room for 2 and 5 beside the powers of 10."""
HANDLE = 4
"""Pixels of half a handle."""


class LimitsHistogram(QWidget):
    """Bars of many numbers from 0; what is beyond the limits is grey.

    A limit of 0 is none: its handle stands at the end.

    Parameters
    ----------
    name : str
        What the numbers are, for those who do not see the picture.
    is_log : bool
        Whether the axis is logarithmic, as suits counts.
    has_low : bool
        Whether there is a lower limit as well.
    digits : int
        Of a limit that is dragged.
    """

    limits_changed = Signal(float, float)
    """The lower and the upper one, while a handle is dragged."""

    def __init__(
        self, name: str, *, is_log: bool, has_low: bool = True, digits: int = 0
    ) -> None:
        super().__init__()
        self._is_log, self._has_low, self._digits = is_log, has_low, digits
        self._colors: ThemeColors | None = None
        self._values: NDArray[np.floating] = np.empty(0)
        self._heights: NDArray[np.floating] = np.zeros(N_BARS)
        self._range = (0.0, 1.0)
        self._dragged: int | None = None
        self.limits = (0.0, 0.0)
        self.setAccessibleName(f"Histogram of {name}")
        self.setToolTip("Drag the handles: cells beyond them are left out.")
        self.setFixedHeight(HEIGHT)
        self.setMouseTracking(True)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._colors = colors
        self.update()

    def set_values(self, values: NDArray[np.floating]) -> None:
        """Show these numbers, (n,), n > 0."""
        self._values = values
        placed = self._scaled(values)
        low, high = float(placed.min()), float(placed.max())
        self._range = low, high if high > low else low + 1
        counts, _ = np.histogram(placed, N_BARS, self._range)
        # The root: a few cells far off are what one looks for.
        self._heights = np.sqrt(counts / max(counts.max(), 1))
        self.update()

    def set_limits(self, low: float, high: float) -> None:
        """Show these limits; 0 is none."""
        self.limits = low, high
        self.update()

    def place(self, side: int) -> QPointF:
        """Return the middle of the handle of the lower (0) or upper (1) limit."""
        return QPointF(self._pixel(side), (self.height() - BELOW) / 2)

    def pixel_of(self, value: float) -> float:
        """Return where a number stands."""
        low, high = self._range
        share = (float(self._scaled(np.array(value))) - low) / (high - low)
        return SIDE + float(np.clip(share, 0, 1)) * (self.width() - 2 * SIDE)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take the nearest handle."""
        if event.button() == Qt.MouseButton.LeftButton and len(self._values):
            sides = (0, 1) if self._has_low else (1,)
            x = event.position().x()
            self._dragged = min(sides, key=lambda side: abs(self._pixel(side) - x))
            self._drag_to(x)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Move the handle that was taken."""
        if self._dragged is not None:
            self._drag_to(event.position().x())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let go."""
        self._dragged = None

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw bars, numbers and handles."""
        if self._colors is None or not len(self._values):
            return
        painter = QPainter(self)
        colors, floor = self._colors, self.height() - BELOW
        painter.fillRect(QRectF(0, 0, self.width(), floor), colors.foreground)
        width = (self.width() - 2 * SIDE) / N_BARS
        low, high = self._pixel(0), self._pixel(1)
        for bar, height in enumerate(self._heights):
            left = SIDE + bar * width
            is_in = low - width / 2 <= left + width / 2 <= high + width / 2
            color = colors.line if is_in else colors.dim
            tall = height * (floor - 4)
            painter.fillRect(QRectF(left, floor - tall, width - 0.5, tall), color)
        self._paint_numbers(painter, colors, floor)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for side in (0, 1) if self._has_low else (1,):
            self._paint_handle(painter, colors, self._pixel(side), floor)

    # Inside

    def _scaled(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.log10(1 + values) if self._is_log else np.asarray(values, float)

    def _pixel(self, side: int) -> float:
        """Return where the handle of a limit stands."""
        limit = self.limits[side]
        if not limit:
            return float(SIDE) if side == 0 else float(self.width() - SIDE)
        return self.pixel_of(limit)

    def _drag_to(self, pixel: float) -> None:
        share = (pixel - SIDE) / max(self.width() - 2 * SIDE, 1)
        low, high = self._range
        at = low + float(np.clip(share, 0, 1)) * (high - low)
        value = _rounded(10**at - 1) if self._is_log else round(at, self._digits)
        limits = list(self.limits)
        if self._dragged == 0:
            limits[0] = 0.0 if share <= 0 else min(value, limits[1] or value)
        else:
            limits[1] = 0.0 if share >= 1 else max(value, limits[0])
        self.set_limits(*limits)
        self.limits_changed.emit(*limits)

    def _paint_numbers(
        self, painter: QPainter, colors: ThemeColors, floor: float
    ) -> None:
        painter.setPen(colors.dim)
        center = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter
        for number in self._numbers():
            x, text = self.pixel_of(number), _short(number)
            wide = painter.fontMetrics().horizontalAdvance(text) + 2
            left = float(np.clip(x - wide / 2, 0, self.width() - wide))
            painter.drawText(QRectF(left, floor, wide, BELOW), center, text)

    def _numbers(self) -> list[float]:
        """Return some round numbers on the axis."""
        low, high = self._range
        if self._is_log:
            marks = (1, 2, 5) if high - low < FEW_DECADES else (1,)
            powers = range(math.floor(low), math.ceil(high) + 1)
            numbers = [m * 10.0**power for power in powers for m in marks]
            return [x for x in numbers if low <= math.log10(1 + x) <= high]
        step = 10.0 ** math.floor(math.log10(high - low))
        step = step if (high - low) / step >= 2 else step / 5
        n = math.floor(high / step)
        every = max(1, n // 5)
        return [step * number for number in range(0, n + 1, every)]

    def _paint_handle(
        self, painter: QPainter, colors: ThemeColors, x: float, floor: float
    ) -> None:
        painter.setPen(QPen(colors.text, 1))
        painter.drawLine(QPointF(x, 0), QPointF(x, floor))
        painter.setBrush(colors.text)
        top = [
            QPointF(x - HANDLE, 0),
            QPointF(x + HANDLE, 0),
            QPointF(x + HANDLE, HANDLE),
            QPointF(x, 2 * HANDLE),
            QPointF(x - HANDLE, HANDLE),
        ]
        painter.drawPolygon(QPolygonF(top))


def _rounded(value: float) -> float:
    """Return a number of two digits that count, as a person would choose it."""
    if value < 1:
        return 0.0
    return float(round(value, 1 - math.floor(math.log10(value))))


def _short(number: float) -> str:
    """Return a number with a letter for thousands."""
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"
