"""How to read the colours of the map."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QRectF, QSignalBlocker, Qt, Signal
from qtpy.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent, QPixmap
from qtpy.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget
from superqt import QRangeSlider

from napari_embedding_game.ui.coloring import Legend
from napari_embedding_game.ui.colors import value_colors
from napari_embedding_game.ui.parts import text_label

TWO_COLUMNS_FROM = 9
"""Levels from which the legend takes two columns."""
SWATCH = 11
STEPS = 500
"""Places that a handle of the limits can stand at."""


class LegendView(QWidget):
    """Shows one legend; ``set_legend`` replaces it.

    ``limits_changed`` brings the (low, high) that a person chose for a scale.
    """

    limits_changed = Signal(tuple)

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
            body.set_legend(legend)
            return
        body = _body(legend)
        if isinstance(body, _Scale):
            body.limits_changed.connect(self.limits_changed)
        self._replace(body)

    def _replace(self, body: QWidget) -> None:
        if self._body is not None:
            self._layout.removeWidget(self._body)
            self._body.hide()
            self._body.deleteLater()
        self._body = body
        self._layout.addWidget(body)


class _Scale(QWidget):
    """A bar from low to high; the limits can be moved where that means something."""

    limits_changed = Signal(tuple)

    def __init__(self, legend: Legend) -> None:
        super().__init__()
        self._low, self._high = QLabel(), QLabel()
        self._extent = (0.0, 1.0)
        self._slider = QRangeSlider(Qt.Orientation.Horizontal)
        self._slider.setRange(0, STEPS)
        self._slider.setToolTip(
            "Values that get the first and the last colour: drag the handles."
        )
        bar = QVBoxLayout()
        bar.setSpacing(0)
        bar.addWidget(_Bar())
        bar.addWidget(self._slider)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._low)
        layout.addLayout(bar, 1)
        layout.addWidget(self._high)
        self._slider.valueChanged.connect(self._on_slider)
        self.set_legend(legend)

    def set_legend(self, legend: Legend) -> None:
        """Show other limits."""
        assert legend.limits is not None
        for label, value in zip((self._low, self._high), legend.limits, strict=True):
            label.setText(f"{value:.3g}")
        self._extent = legend.extent or legend.limits
        low, high = self._extent
        places = [STEPS * (value - low) / (high - low) for value in legend.limits]
        if not self._slider.isSliderDown():
            with QSignalBlocker(self._slider):
                self._slider.setValue([round(p) for p in np.clip(places, 0, STEPS)])

    def _on_slider(self, ends: tuple[int, int]) -> None:
        low, high = self._extent
        first, last = ends[0], max(ends[1], ends[0] + 1)
        step = (high - low) / STEPS
        self.limits_changed.emit((low + first * step, low + last * step))


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
        return _Scale(legend)
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
    for number, (level, remark) in enumerate(legend.levels):
        block, row = divmod(number, n_rows)
        name = text_label(level, "plain")
        name.setToolTip(f"{level}: {remark}" if remark else level)
        grid.addWidget(_swatch_label(legend.colors[number]), row, 2 * block)
        grid.addWidget(name, row, 2 * block + 1)
        grid.setColumnStretch(2 * block + 1, 1)
    return body


def swatch(rgba: np.ndarray) -> QPixmap:
    """Return a disc of one colour."""
    pixmap = QPixmap(SWATCH, SWATCH)
    pixmap.fill(QColor(0, 0, 0, 0))
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QColor(0, 0, 0, 0))
    painter.setBrush(_qcolor(rgba))
    painter.drawEllipse(QRectF(0, 0, SWATCH, SWATCH))
    painter.end()
    return pixmap


def _swatch_label(rgba: np.ndarray) -> QLabel:
    label = QLabel()
    label.setPixmap(swatch(rgba))
    return label


def _qcolor(rgba: np.ndarray) -> QColor:
    return QColor.fromRgbF(*(float(part) for part in rgba))
