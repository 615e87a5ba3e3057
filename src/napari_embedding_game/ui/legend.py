"""How to read the colours of the map."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QRectF
from qtpy.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent, QPixmap
from qtpy.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from napari_embedding_game.ui.coloring import Legend
from napari_embedding_game.ui.colors import value_colors
from napari_embedding_game.ui.parts import text_label

TWO_COLUMNS_FROM = 9
"""Levels from which the legend takes two columns."""
SWATCH = 11


class LegendView(QWidget):
    """Shows one legend; ``set_legend`` replaces it."""

    def __init__(self) -> None:
        super().__init__()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 2, 0, 0)
        self._shown: Legend | None = None
        self._body: QWidget | None = None

    def set_legend(self, legend: Legend) -> None:
        """Show how to read these colours."""
        body = self._body
        if isinstance(body, _Scale) and legend.limits:
            body.set_limits(legend.limits)
        else:
            self._replace(_body(legend))

    def _replace(self, body: QWidget) -> None:
        if self._body is not None:
            self._layout.removeWidget(self._body)
            self._body.deleteLater()
        self._body = body
        self._layout.addWidget(body)


class _Scale(QWidget):
    """A bar from low to high with its limits."""

    def __init__(self, limits: tuple[float, float]) -> None:
        super().__init__()
        self._low, self._high = QLabel(), QLabel()
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._low)
        layout.addWidget(_Bar(), 1)
        layout.addWidget(self._high)
        self.set_limits(limits)

    def set_limits(self, limits: tuple[float, float]) -> None:
        for label, value in zip((self._low, self._high), limits, strict=True):
            label.setText(f"{value:.3g}")


class _Bar(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(SWATCH)

    def paintEvent(self, event: QPaintEvent) -> None:
        gradient = QLinearGradient(0, 0, self.width(), 0)
        places = np.linspace(0, 1, 9)
        for place, rgba in zip(places, value_colors(places, (0.0, 1.0)), strict=True):
            gradient.setColorAt(place, _qcolor(rgba))
        painter = QPainter(self)
        painter.fillRect(self.rect(), gradient)


def _body(legend: Legend) -> QWidget:
    if legend.limits is not None:
        return _Scale(legend.limits)
    if legend.levels and legend.colors is not None:
        return _levels(legend)
    return text_label(legend.title)


def _levels(legend: Legend) -> QWidget:
    body = QWidget()
    grid = QGridLayout(body)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(6)
    grid.setVerticalSpacing(1)
    n_levels = len(legend.levels)
    n_rows = n_levels if n_levels < TWO_COLUMNS_FROM else -(-n_levels // 2)
    for number, (level, count) in enumerate(legend.levels):
        block, row = divmod(number, n_rows)
        name = text_label(level, "plain")
        name.setToolTip(f"{level}: {count:,} points")
        grid.addWidget(_swatch(legend.colors[number]), row, 2 * block)
        grid.addWidget(name, row, 2 * block + 1)
        grid.setColumnStretch(2 * block + 1, 1)
    return body


def _swatch(rgba: np.ndarray) -> QLabel:
    pixmap = QPixmap(SWATCH, SWATCH)
    pixmap.fill(QColor(0, 0, 0, 0))
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QColor(0, 0, 0, 0))
    painter.setBrush(_qcolor(rgba))
    painter.drawEllipse(QRectF(0, 0, SWATCH, SWATCH))
    painter.end()
    label = QLabel()
    label.setPixmap(pixmap)
    return label


def _qcolor(rgba: np.ndarray) -> QColor:
    return QColor.fromRgbF(*(float(part) for part in rgba))
