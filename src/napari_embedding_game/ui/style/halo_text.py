"""Paint text with a halo, readable on any background."""

from __future__ import annotations

from functools import lru_cache

from qtpy.QtCore import QPointF, Qt
from qtpy.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen
from qtpy.QtWidgets import QApplication

SIZE = 10
"""Of the type, in points."""
HALO = 3.6
"""Width of the line around the letters, in pixels."""
AIR = 5.0
"""Pixels that are kept free around a name."""
ON_DARK = (QColor("#ffffff"), QColor(16, 18, 22, 225))
ON_LIGHT = (QColor("#14161a"), QColor(255, 255, 255, 230))
"""Colour of the letters and of the line around them."""


def half_size(text: str, is_given: bool) -> tuple[float, float]:
    """Return half the height and half the width that a name needs, in pixels."""
    metrics = QFontMetricsF(_font(is_given))
    return (
        (metrics.height() + AIR) / 2,
        (metrics.horizontalAdvance(text) + HALO + AIR) / 2,
    )


def write(
    painter: QPainter,
    middle: QPointF,
    text: str,
    is_given: bool,
    colors: tuple[QColor, QColor],
) -> None:
    """Write a name with a line around its letters: it is read on any colour."""
    letters, line = colors
    path = _letters(text, is_given).translated(middle)
    pen = QPen(line, HALO)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.strokePath(path, pen)
    painter.fillPath(path, letters)


@lru_cache(maxsize=512)
def _letters(text: str, is_given: bool) -> QPainterPath:
    """Return the outline of a text around (0, 0)."""
    path, font = QPainterPath(), _font(is_given)
    metrics = QFontMetricsF(font)
    left = -metrics.horizontalAdvance(text) / 2
    path.addText(left, metrics.capHeight() / 2, font, text)
    return path


@lru_cache(maxsize=2)
def _font(is_given: bool) -> QFont:
    font = QFont(QApplication.font())
    font.setPointSize(SIZE)
    font.setBold(is_given)
    return font
