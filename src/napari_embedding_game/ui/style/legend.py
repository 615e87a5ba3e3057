"""The legend of the map's colours: a table of levels or a colour scale."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from qtpy.QtCore import QSignalBlocker, Qt, Signal
from qtpy.QtGui import QImage, QKeyEvent, QPixmap
from qtpy.QtWidgets import QGridLayout, QLabel, QWidget
from superqt import QDoubleRangeSlider

from napari_embedding_game.data.columns import number_text
from napari_embedding_game.data.palette import Colors, to_hex_colors
from napari_embedding_game.ui.style.coloring import BINS, SHADES, UNCOLORED, Coloring
from napari_embedding_game.ui.style.form_widgets import CLICK_TIP, TextLabel
from napari_embedding_game.ui.style.layouts import vertical_box
from napari_embedding_game.ui.style.table import Table, TableColumn

MAX_ROWS = 12
"""Levels that are seen without scrolling."""
HISTOGRAM, BAR, HANDLE = 26, 9, 8
"""Height of the histogram, height of the colour bar below it, and half the width of a
handle, in pixels."""
LIMITS_TIP = (
    "Values that get the first and the last colour: drag the handles. Arrow keys move "
    "the last, with Shift the first."
)
WIDEST_NUMBER = "0.0000"
"""A number as wide as any next to the bar, apart from a sign."""
STEPS = 500
"""The limits stay apart by at least the extent divided by this number."""
STEPS_A_KEY = 10
"""Such steps that an arrow key moves a limit by."""
KEYS = {
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Down: -1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Up: 1,
}
"""Directions of the arrow keys."""


class LegendView(QWidget):
    """Shows the legend of a coloring: its levels, its scale, or its title alone."""

    limits_changed = Signal(tuple)
    """The limits (low, high) that a person chose on the scale."""
    level_picked = Signal(int, bool)
    """Index of the clicked level, and whether the click adds to the selection."""

    def __init__(self) -> None:
        super().__init__()
        self.text = TextLabel()
        self.level_table = Table(
            *(
                TableColumn("Level", CLICK_TIP),
                TableColumn("Points", "", "{:,}".format),
            ),
            max_rows=MAX_ROWS,
        )
        self.level_table.rows_picked.connect(self._on_level_rows_picked)
        self.color_scale = _ColorScale(self)
        parts = self.level_table, self.color_scale, self.text
        self.setLayout(vertical_box(*parts, margins=(0, 2, 0, 0)))
        self.show_coloring(UNCOLORED)

    def show_coloring(self, coloring: Coloring) -> None:
        """Show levels under the coloring's title, or a scale, or the title alone.

        A scale has the title below it.
        """
        is_scale = coloring.limits is not None
        has_levels = bool(coloring.levels)
        self.text.show_text("" if has_levels else coloring.title)
        self.color_scale.setVisible(is_scale)
        self.level_table.setVisible(has_levels)
        if is_scale:
            self.color_scale.show_scale(coloring)
        elif has_levels:
            self.level_table.set_heading(0, coloring.title)
            frame = pd.DataFrame(coloring.levels, columns=["level", "points"])
            self.level_table.show_frame(
                frame, dict(enumerate(to_hex_colors(coloring.colors)))
            )

    def _on_level_rows_picked(self, indices: list[int], is_added: bool) -> None:
        """Deselect the rows in the table, and emit :attr:`level_picked` for each."""
        self.level_table.select_keys(())  # the same row can be clicked again
        for index in indices:
            self.level_picked.emit(index, is_added)


class _LimitsSlider(QDoubleRangeSlider):
    """A slider of two limits that takes keys, which superqt's does not."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the higher limit on an arrow key, the lower one with Shift."""
        direction = KEYS.get(Qt.Key(event.key()))
        if direction is None:
            event.ignore()
            return
        low, high = self.value()
        step = STEPS_A_KEY * self.singleStep() * direction
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            low = min(max(low + step, self.minimum()), high)
        else:
            high = max(min(high + step, self.maximum()), low)
        self.setValue((low, high))


class _ColorScale(QWidget):
    """A colour bar below a histogram, with a slider for the two limits."""

    def __init__(self, view: LegendView) -> None:
        super().__init__()
        self._view = view
        self.low, self.high = QLabel(), QLabel()
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        self.low.setAlignment(right)
        self.slider = _LimitsSlider(Qt.Orientation.Horizontal)
        self.slider.setToolTip(LIMITS_TIP)
        self.slider.setAccessibleName("Limits")
        self.slider.valueChanged.connect(self._on_slider_moved)
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

    def show_scale(self, coloring: Coloring) -> None:
        """Show bar, histogram and limits of a coloring with a scale.

        The slider gets the coloring's extent and limits, unless it is being dragged.
        """
        self._paint_color_bar(*coloring.bar)
        for label, limit in zip((self.low, self.high), coloring.limits, strict=True):
            label.setText(WIDEST_NUMBER)  # the bar keeps its width during a drag
            label.setMinimumWidth(label.sizeHint().width())
            label.setText(number_text(limit))
        if not self.slider.isSliderDown():
            with QSignalBlocker(self.slider):
                self.slider.setRange(*coloring.extent)
                self.slider.setSingleStep(np.ptp(coloring.extent) / STEPS)
                self.slider.setValue(coloring.limits)

    def _paint_color_bar(self, shades: Colors, counts: NDArray[np.integer]) -> None:
        """Paint the colours (SHADES, 4) below a histogram of the counts (BINS,).

        The histogram's bars have the colours of the scale, and are as high as the
        square roots of the counts relative to the largest count.
        """
        heights = np.sqrt(counts / max(counts.max(), 1)).repeat(SHADES // BINS)
        levels = np.arange(HISTOGRAM, -BAR, -1)[:, None]
        is_painted = levels <= np.ceil(HISTOGRAM * heights)
        data = (255 * shades * is_painted[..., None]).astype(np.uint8).tobytes()
        image = QImage(data, SHADES, len(is_painted), QImage.Format.Format_RGBA8888)
        self.bar.setPixmap(QPixmap.fromImage(image))

    def _on_slider_moved(self, limits: tuple[float, float]) -> None:
        """Emit the chosen limits, the high one at least a step above the low one."""
        low, high = limits
        least = low + self.slider.singleStep()
        self._view.limits_changed.emit((low, max(high, least)))
