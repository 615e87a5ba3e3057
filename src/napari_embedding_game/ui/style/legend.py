"""Legend of the map's colours: levels or a colour scale."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from qtpy.QtCore import QSignalBlocker, Qt, Signal
from qtpy.QtGui import QImage, QPixmap
from qtpy.QtWidgets import QGridLayout, QLabel, QWidget
from superqt import QDoubleRangeSlider

from napari_embedding_game.data.columns import number_text
from napari_embedding_game.data.palette import Colors, hexes
from napari_embedding_game.ui.style.coloring import BINS, SHADES, UNCOLORED, Coloring
from napari_embedding_game.ui.style.form_widgets import CLICK_TIP, Text
from napari_embedding_game.ui.style.layouts import vertical_box
from napari_embedding_game.ui.style.table import Table, TableColumn

MAX_ROWS = 12
"""Levels that are seen without scrolling."""
HISTOGRAM, BAR, HANDLE = 26, 9, 8
"""Heights of the colour bar and of what is above it, half a handle: in pixels."""
LIMITS_TIP = "Values that get the first and the last colour: drag the handles."
WIDEST_NUMBER = "0.0000"
"""As wide as the longest number next to the bar, but for a sign."""
STEPS = 500
"""The limits stay apart by one of so many parts of the scale."""


class LegendView(QWidget):
    """Shows one legend: levels, a scale, or the sentence that is its title."""

    limits_changed = Signal(tuple)
    """The (low, high) that a person chose for a scale."""
    picked = Signal(int, bool)
    """Place of the level that was clicked, and whether it is to be added."""

    def __init__(self) -> None:
        super().__init__()
        self.text = Text()
        self.levels = Table(
            *(
                TableColumn("Level", CLICK_TIP),
                TableColumn("Points", "", "{:,}".format),
            ),
            max_rows=MAX_ROWS,
        )
        self.levels.picked.connect(self._on_picked)
        self.scale = _ColorScale(self)
        parts = self.levels, self.scale, self.text
        self.setLayout(vertical_box(*parts, margins=(0, 2, 0, 0)))
        self.set_legend(UNCOLORED)

    def set_legend(self, legend: Coloring) -> None:
        """Show how to read these colours."""
        is_scale = legend.limits is not None
        has_levels = bool(legend.levels)
        self.text.say("" if has_levels else legend.title)
        self.scale.setVisible(is_scale)
        self.levels.setVisible(has_levels)
        if is_scale:
            self.scale.show_limits(legend)
        elif has_levels:
            self.levels.name_first(legend.title)
            frame = pd.DataFrame(legend.levels, columns=["level", "points"])
            self.levels.show_frame(frame, dict(enumerate(hexes(legend.colors))))

    def _on_picked(self, indices: list[int], is_added: bool) -> None:
        self.levels.choose(())  # so that the same row can be clicked again
        for index in indices:
            self.picked.emit(index, is_added)


class _ColorScale(QWidget):
    """A bar from low to high, whose limits can be moved."""

    def __init__(self, view: LegendView) -> None:
        super().__init__()
        self._view = view
        self.low, self.high = QLabel(), QLabel()
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        self.low.setAlignment(right)
        self.slider = QDoubleRangeSlider(Qt.Orientation.Horizontal)
        self.slider.setToolTip(LIMITS_TIP)
        self.slider.setAccessibleName("Limits")
        self.slider.valueChanged.connect(self._on_slider)
        self.bar = bar = QLabel()
        bar.setScaledContents(True)
        bar.setFixedHeight(HISTOGRAM + BAR)
        bar.setMinimumWidth(1)
        bar.setContentsMargins(HANDLE, 0, HANDLE, 0)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(0)
        grid.addWidget(self.low, 0, 0, 2, 1)
        grid.addWidget(bar, 0, 1)
        grid.addWidget(self.slider, 1, 1)
        grid.addWidget(self.high, 0, 2, 2, 1)

    def show_limits(self, legend: Coloring) -> None:
        """Show the limits of a legend within its extent."""
        self._paint(*legend.bar)
        for number, limit in zip((self.low, self.high), legend.limits, strict=True):
            number.setText(WIDEST_NUMBER)  # so that the bar stays where it is dragged
            number.setMinimumWidth(number.sizeHint().width())
            number.setText(number_text(limit))
        if not self.slider.isSliderDown():
            with QSignalBlocker(self.slider):
                self.slider.setRange(*legend.extent)
                self.slider.setSingleStep(np.ptp(legend.extent) / STEPS)
                self.slider.setValue(legend.limits)

    def _paint(self, shades: Colors, counts: NDArray[np.integer]) -> None:
        """Paint the colours, and above them how many points have each."""
        tall = np.sqrt(counts / max(counts.max(), 1)).repeat(SHADES // BINS)
        is_seen = np.arange(HISTOGRAM, -BAR, -1)[:, None] <= np.ceil(HISTOGRAM * tall)
        data = (255 * shades * is_seen[..., None]).astype(np.uint8).tobytes()
        picture = QImage(data, SHADES, len(is_seen), QImage.Format.Format_RGBA8888)
        self.bar.setPixmap(QPixmap.fromImage(picture))

    def _on_slider(self, limits: tuple[float, float]) -> None:
        low, high = limits
        least = low + self.slider.singleStep()
        self._view.limits_changed.emit((low, max(high, least)))
