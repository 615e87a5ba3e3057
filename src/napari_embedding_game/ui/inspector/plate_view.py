"""A plate as a picture: a disc for each well, to hover and to click."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from qtpy.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import (
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from qtpy.QtWidgets import QToolTip, QWidget

from napari_embedding_game.data.export.plots import PlatePlot
from napari_embedding_game.data.wells import Well, row_letters
from napari_embedding_game.ui.style.level_click import adds
from napari_embedding_game.ui.style.theme import ThemeColors

LEFT, TOP = 26, 18
"""Pixels for the letters of rows and the numbers of columns."""
KEY = 116
"""Pixels for what the colours mean."""
WIDEST = 44
"""Pixels of a well and the room around it."""
NARROWEST = 2.0
SHARE = 0.84
"""Of that room, the disc."""
ROUND = 9
"""Pixels from which wells are discs; smaller ones are squares."""
LINE = 16
"""Pixels of a line of the key."""


class PlateView(QWidget):
    """Draws a :class:`PlatePlot`, and tells where a person clicked."""

    picked = Signal(object, bool)
    """The :data:`Well`, and whether its points are added to the selection."""
    cleared = Signal()
    """A click beside the wells."""

    def __init__(self) -> None:
        super().__init__()
        self._colors: ThemeColors | None = None
        self._chosen: frozenset[Well] = frozenset()
        self._texts: dict[Well, str] = {}
        self._hovered: Well | None = None
        self.picture: PlatePlot | None = None
        self.setMouseTracking(True)
        self.setMinimumSize(200, 64)
        self.setAccessibleName("Wells of the plate")

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._colors = colors
        self.update()

    def sizeHint(self) -> QSize:
        """Return a size in which the wells of 96 can be told apart."""
        return QSize(460, 220)

    def show_picture(self, picture: PlatePlot | None, texts: Sequence[str]) -> None:
        """Show wells, each with what is told of it under the mouse."""
        self.picture = picture
        wells = () if picture is None else picture.wells
        self._texts = dict(zip(wells, texts, strict=True))
        self.update()

    def mark(self, wells: Collection[Well]) -> None:
        """Frame the wells whose points are selected."""
        self._chosen = frozenset(wells)
        self.update()

    def place(self, well: Well) -> QPointF:
        """Return the middle of a well on the widget."""
        side = self._side()
        return QPointF(LEFT + (well[1] + 0.5) * side, TOP + (well[0] + 0.5) * side)

    def well_at(self, place: QPointF | QPoint) -> Well | None:
        """Return the measured well at a place of the widget, or None."""
        side = self._side()
        row = math.floor((place.y() - TOP) / side)
        column = math.floor((place.x() - LEFT) / side)
        return (row, column) if (row, column) in self._texts else None

    # What happens

    def event(self, event: QEvent) -> bool:
        """Tell of the well under the mouse."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            well = self.well_at(event.pos())
            if well is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self._texts[well], self)
            return True
        return super().event(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show which well can be clicked."""
        well = self.well_at(event.position())
        if well != self._hovered:
            self._hovered = well
            has_hand = well is not None
            shape = Qt.CursorShape.PointingHandCursor
            self.setCursor(shape if has_hand else Qt.CursorShape.ArrowCursor)
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        """Show no well any more that can be clicked."""
        self._hovered = None
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose a well, or none."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        well = self.well_at(event.position())
        if well is None:
            self.cleared.emit()
        else:
            self.picked.emit(well, adds(event))

    # Drawing

    def _side(self) -> float:
        """Return the pixels from one well to the next."""
        if self.picture is None:
            return float(WIDEST)
        n_rows, n_columns = self.picture.shape
        across = (self.width() - LEFT - KEY - 12) / n_columns
        along = (self.height() - TOP - 4) / n_rows
        return max(NARROWEST, min(across, along, WIDEST))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw letters, numbers, wells and the key."""
        if self._colors is None or self.picture is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        side = self._side()
        self._paint_names(painter, self._colors, self.picture, side)
        self._paint_wells(painter, self._colors, self.picture, side)
        left = LEFT + side * self.picture.shape[1] + 14
        self._paint_key(painter, self._colors, self.picture, left)

    def _paint_names(
        self,
        painter: QPainter,
        colors: ThemeColors,
        picture: PlatePlot,
        side: float,
    ) -> None:
        painter.setPen(colors.dim)
        height = QFontMetricsF(painter.font()).height()
        step = max(1, math.ceil(height * 0.8 / side))
        for row in range(0, picture.shape[0], step):
            middle = TOP + (row + 0.5) * side
            box = QRectF(0, middle - height / 2, LEFT - 6, height)
            right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(box, right, row_letters(row))
        widest = QFontMetricsF(painter.font()).horizontalAdvance("00")
        step = max(1, math.ceil(1.15 * widest / side))
        for column in range(0, picture.shape[1], step):
            middle = LEFT + (column + 0.5) * side
            box = QRectF(middle - 20, 0, 40, TOP - 2)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, str(column + 1))

    def _paint_wells(
        self,
        painter: QPainter,
        colors: ThemeColors,
        picture: PlatePlot,
        side: float,
    ) -> None:
        radius = max(1.0, SHARE * side / 2)
        measured = dict(zip(picture.wells, picture.rgba, strict=True))
        empty = QColor(colors.dim)
        empty.setAlpha(90)
        for row, column in np.ndindex(*picture.shape):
            well = (row, column)
            rgba = measured.get(well)
            painter.setPen(QPen(empty, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            if rgba is not None:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor.fromRgbF(*map(float, rgba)))
            self._paint_well(painter, well, radius)
            is_chosen, is_hovered = well in self._chosen, well == self._hovered
            if is_chosen or is_hovered:
                color = colors.text if is_chosen else colors.dim
                painter.setPen(QPen(color, 2 if side > 2 * ROUND else 1.5))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                self._paint_well(painter, well, radius + 0.5)

    def _paint_well(self, painter: QPainter, well: Well, radius: float) -> None:
        middle = self.place(well)
        if 2 * radius >= ROUND:
            painter.drawEllipse(middle, radius, radius)
        else:
            corner = middle - QPointF(radius, radius)
            painter.drawRect(QRectF(corner.x(), corner.y(), 2 * radius, 2 * radius))

    def _paint_key(
        self,
        painter: QPainter,
        colors: ThemeColors,
        picture: PlatePlot,
        left: float,
    ) -> None:
        metrics = QFontMetricsF(painter.font())
        painter.setPen(colors.dim)
        wraps = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft
        room = metrics.boundingRect(
            QRectF(left, TOP, KEY - 8, 60), wraps, picture.title
        )
        painter.drawText(QRectF(left, TOP, KEY - 8, 60), wraps, picture.title)
        top = room.bottom() + 5
        if picture.scale is None:
            self._paint_levels(painter, colors, picture, left, top)
            return
        bar = QRectF(left, top, KEY - 16, 9)
        gradient = QLinearGradient(bar.topLeft(), bar.topRight())
        last = len(picture.scale) - 1
        for place, rgba in enumerate(picture.scale):
            gradient.setColorAt(place / last, QColor.fromRgbF(*map(float, rgba)))
        painter.fillRect(bar, gradient)
        below = QRectF(left, bar.bottom() + 1, KEY - 16, LINE)
        low, high = (_said(limit, picture) for limit in picture.limits)
        painter.drawText(below, Qt.AlignmentFlag.AlignLeft, low)
        painter.drawText(below, Qt.AlignmentFlag.AlignRight, high)

    def _paint_levels(
        self,
        painter: QPainter,
        colors: ThemeColors,
        picture: PlatePlot,
        left: float,
        top: float,
    ) -> None:
        metrics = QFontMetricsF(painter.font())
        n_lines = max(1, int((self.height() - top) // LINE))
        levels = picture.levels
        shown = levels if len(levels) <= n_lines else levels[: n_lines - 1]
        for name, rgba in shown:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor.fromRgbF(*map(float, rgba)))
            painter.drawEllipse(QPointF(left + 5, top + LINE / 2), 4.5, 4.5)
            painter.setPen(colors.text)
            text = metrics.elidedText(name, Qt.TextElideMode.ElideRight, KEY - 30)
            painter.drawText(QPointF(left + 15, top + LINE - 4), text)
            top += LINE
        if len(shown) < len(levels):
            painter.setPen(colors.dim)
            more = f"and {len(levels) - len(shown)} more"
            painter.drawText(QPointF(left, top + LINE - 4), more)


def _said(limit: float, picture: PlatePlot) -> str:
    return f"{limit:.0%}" if picture.is_share else f"{limit:,.3g}"
