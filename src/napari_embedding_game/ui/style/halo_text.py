"""Paint text with a halo, readable on any background."""

from __future__ import annotations

from functools import lru_cache

from napari.settings import get_settings
from qtpy.QtCore import QPointF, Qt
from qtpy.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen
from qtpy.QtWidgets import QApplication

LARGER, HALO_WIDTH, PADDING = 1, 3.6, 5.0
"""Points by which the letters are larger than napari's; width of the line around the
letters and free room around a text, in pixels."""
ON_DARK = (QColor("#ffffff"), QColor(16, 18, 22, 225))
ON_LIGHT = (QColor("#14161a"), QColor(255, 255, 255, 230))
"""Colours of the letters and of the line around them, by the ground."""


def find_text_points() -> int:
    """Return the size of the letters in points, by napari's preferences."""
    return int(get_settings().appearance.font_size) + LARGER


def measure_half_size(text: str, is_bold: bool) -> tuple[float, float]:
    """Return half the height and half the width of a text, in pixels.

    Halo and padding are included.
    """
    metrics = QFontMetricsF(_make_text_font(is_bold, find_text_points()))
    width = metrics.horizontalAdvance(text) + HALO_WIDTH + PADDING
    return (metrics.height() + PADDING) / 2, width / 2


def paint_text_with_halo(
    painter: QPainter,
    center: QPointF,
    text: str,
    is_bold: bool,
    colors: tuple[QColor, QColor],
) -> None:
    """Paint a text centred at a position, with a line around its letters.

    ``colors`` are those of the letters and of the line.
    """
    path = _make_text_outline(text, is_bold, find_text_points()).translated(center)
    pen = QPen(colors[1], HALO_WIDTH)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.strokePath(path, pen)
    painter.fillPath(path, colors[0])


@lru_cache(maxsize=512)
def _make_text_outline(text: str, is_bold: bool, points: int) -> QPainterPath:
    """Return the outline of a text of so many points, centred at (0, 0)."""
    path, font = QPainterPath(), _make_text_font(is_bold, points)
    metrics = QFontMetricsF(font)
    left = -metrics.horizontalAdvance(text) / 2
    path.addText(left, metrics.capHeight() / 2, font, text)
    return path


@lru_cache(maxsize=8)
def _make_text_font(is_bold: bool, points: int) -> QFont:
    """Return the application's font with so many points, bold or regular."""
    font = QFont(QApplication.font())
    font.setPointSize(points)
    font.setBold(is_bold)
    return font


def elide_text(text: str, is_bold: bool, width: float) -> str:
    """Return a text that fits into ``width`` pixels with its halo and padding.

    A text that is too wide ends with an ellipsis.
    """
    room = width - HALO_WIDTH - PADDING
    metrics = QFontMetricsF(_make_text_font(is_bold, find_text_points()))
    return metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
