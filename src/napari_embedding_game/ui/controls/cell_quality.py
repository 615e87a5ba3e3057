"""Quality control before the recipe: limits on histograms of cells, and doublets."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QSignalBlocker, Qt, Signal
from qtpy.QtGui import QColor, QImage, QPixmap
from qtpy.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)
from superqt import QDoubleRangeSlider

from napari_embedding_game.data.columns import counted
from napari_embedding_game.data.quality_control import (
    NEEDS_SKIMAGE,
    CellLimits,
    CellQuality,
    has_scrublet,
)
from napari_embedding_game.ui.style.form_widgets import Fold, show_text, text_label
from napari_embedding_game.ui.style.theme import ThemeColors

NO_MITOCHONDRIA = "No mitochondrial genes: no name begins with MT- or mt-."
DOUBLETS_TIP = (
    "Leave out cells that scrublet takes for two in one droplet, in each batch by "
    "itself. It takes some seconds for each thousand cells."
)
MOST = 100_000_000
N_BARS, HEIGHT = 60, 40
"""Of a histogram: bars, and pixels from the lowest to the highest."""


class LimitsRow(QWidget):
    """A histogram of cells with limits, to be dragged or typed; 0 is no limit.

    Parameters
    ----------
    title : str
    is_log : bool
        Whether the axis is logarithmic, as suits counts.
    digits : int
        Of a limit.
    """

    changed = Signal()

    def __init__(self, title: str, *, is_log: bool, digits: int = 0) -> None:
        super().__init__()
        self._is_log, self._digits = is_log, digits
        self._placed: NDArray[np.floating] = np.zeros(1)
        """The figures on the axis."""
        self._colors: ThemeColors | None = None
        self.picture = QLabel()
        self.picture.setScaledContents(True)
        self.picture.setMinimumWidth(1)
        self.picture.setFixedHeight(HEIGHT)
        self.slider = QDoubleRangeSlider(Qt.Orientation.Horizontal)
        self.slider.setToolTip("Drag the handles: cells beyond them are left out.")
        self.low, self.high = QDoubleSpinBox(), QDoubleSpinBox()
        ends = QHBoxLayout()
        for box, words in ((self.low, "at least"), (self.high, "at most")):
            box.setDecimals(digits)
            box.setRange(0, MOST)
            box.setSpecialValueText("no limit")
            box.setKeyboardTracking(False)
            box.setAccessibleName(f"{title}, {words}")
            box.setToolTip(f"{title}, {words}; 0 for no limit.")
            box.setMinimumWidth(60)
            box.valueChanged.connect(self._on_typed)
            ends.addWidget(box, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(text_label(title, wraps=False))
        column.addWidget(self.picture)
        column.addWidget(self.slider)
        column.addLayout(ends)
        self.slider.valueChanged.connect(self._on_dragged)

    @property
    def limits(self) -> tuple[float, float]:
        """The lower and the upper limit; 0 is none."""
        return self.low.value(), self.high.value()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._colors = colors
        self._draw()

    def set_values(self, values: NDArray[np.floating]) -> None:
        """Show these figures of cells, (n,), n > 0."""
        self._placed = self._scaled(values)
        low, high = float(self._placed.min()), float(self._placed.max())
        with QSignalBlocker(self.slider):
            self.slider.setRange(low, max(high, low + 1e-3))
        self.set_limits(*self.limits)

    def set_limits(self, low: float, high: float) -> None:
        """Show other limits."""
        for box, value in ((self.low, low), (self.high, high)):
            with QSignalBlocker(box):
                box.setValue(value)
        least, most = self.slider.minimum(), self.slider.maximum()
        low, high = self._scaled(np.array(self.limits))
        ends = (low if self.limits[0] else least, high if self.limits[1] else most)
        with QSignalBlocker(self.slider):
            self.slider.setValue(tuple(float(np.clip(e, least, most)) for e in ends))
        self._draw()

    # Inside

    def _scaled(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.log10(1 + values) if self._is_log else np.asarray(values, float)

    def _on_typed(self) -> None:
        self.set_limits(*self.limits)
        self.changed.emit()

    def _on_dragged(self, ends: tuple[float, float]) -> None:
        bounds = self.slider.minimum(), self.slider.maximum()
        limits = [
            0.0 if end == bound else self._rounded(end)
            for end, bound in zip(ends, bounds, strict=True)
        ]
        self.set_limits(*limits)
        self.changed.emit()

    def _rounded(self, end: float) -> float:
        """Return the number at a place on the axis, as a person would choose it."""
        if not self._is_log:
            return round(end, self._digits)
        value = 10**end - 1
        return 0.0 if value < 1 else round(value, 1 - math.floor(math.log10(value)))

    def _draw(self) -> None:
        """Draw the bars, those beyond the limits in grey."""
        if self._colors is None:
            return
        low, high = self.slider.minimum(), self.slider.maximum()
        counts, edges = np.histogram(self._placed, N_BARS, (low, high))
        # The root: a few cells far off are what one looks for.
        heights = np.sqrt(counts / max(counts.max(), 1)) * HEIGHT
        least, most = self.slider.value()
        is_in = (edges[1:] >= least) & (edges[:-1] <= most)
        is_bar = np.arange(HEIGHT)[::-1, None] < heights
        pixels = np.empty((HEIGHT, N_BARS, 4), np.uint8)
        pixels[:] = self._colors.foreground.getRgb()
        for part, color in ((is_in, self._colors.line), (~is_in, self._colors.dim)):
            pixels[is_bar & part] = QColor(color).getRgb()
        form = QImage.Format.Format_RGBA8888
        image = QImage(pixels.tobytes(), N_BARS, HEIGHT, 4 * N_BARS, form)
        self.picture.setPixmap(QPixmap.fromImage(image))


class CellQualityPanel(QWidget):
    """A fold with a histogram for each figure; ``changed`` tells of other limits."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._quality: CellQuality | None = None
        self._found: tuple[CellLimits, int] | None = None
        """How many doublets were found within which limits."""
        self.counts = LimitsRow("Counts per cell", is_log=True)
        self.genes = LimitsRow("Genes per cell", is_log=True)
        self.mito = LimitsRow("Mitochondrial counts, %", is_log=False, digits=1)
        self.rows = (self.counts, self.genes, self.mito)
        self.doublets = QCheckBox("Leave out doublets (scrublet)")
        self.doublets.setToolTip(DOUBLETS_TIP)
        self.doublets.setEnabled(has_scrublet())
        self.no_mito, self.state = text_label(NO_MITOCHONDRIA), text_label()
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        for widget in (*self.rows, self.no_mito, self.doublets):
            column.addWidget(widget)
        if not has_scrublet():
            column.addWidget(text_label(NEEDS_SKIMAGE))
        column.addWidget(self.state)
        self.fold = Fold("Quality control", inside)
        outside = QVBoxLayout(self)
        outside.setContentsMargins(0, 0, 0, 0)
        outside.addWidget(self.fold)
        for row in self.rows:
            row.changed.connect(self._on_changed)
        self.doublets.toggled.connect(self._tell)
        self.set_quality(None)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        for row in self.rows:
            row.set_theme(colors)

    def set_quality(self, quality: CellQuality | None) -> None:
        """Show the figures of these cells; of other cells there are no limits yet."""
        former, self._quality = self._quality, quality
        self.setVisible(quality is not None)
        if quality is None or (former is not None and _are_same(quality, former)):
            return
        self.counts.set_values(quality.counts)
        self.genes.set_values(quality.genes)
        share = quality.mitochondrial
        self.mito.setVisible(share is not None)
        self.no_mito.setVisible(share is None)
        if share is not None:
            self.mito.set_values(share)
        self._found = None
        self.doublets.setChecked(False)
        self.set_limits(CellLimits(min_genes=self.limits().min_genes))

    def limits(self) -> CellLimits:
        """Return the limits as they stand."""
        return CellLimits(
            min_genes=round(self.genes.limits[0]),
            max_genes=round(self.genes.limits[1]),
            min_counts=round(self.counts.limits[0]),
            max_counts=round(self.counts.limits[1]),
            max_mito=self.mito.limits[1],
        )

    def set_limits(self, limits: CellLimits) -> None:
        """Show other limits, and how many cells stay."""
        self.genes.set_limits(limits.min_genes, limits.max_genes)
        self.counts.set_limits(limits.min_counts, limits.max_counts)
        self.mito.set_limits(0, limits.max_mito)
        self._tell()

    def set_applied(self, limits: CellLimits, n_doublets: int | None) -> None:
        """Show the limits that cells were left out by, and how many were doublets.

        ``n_doublets`` is None where none were looked for.
        """
        self.doublets.setChecked(n_doublets is not None)
        self.set_limits(limits)
        self._found = None if n_doublets is None else (self.limits(), n_doublets)
        self._tell()

    # Inside

    def _on_changed(self) -> None:
        self.mito.set_limits(0, self.mito.limits[1])  # it has no lower limit
        self._tell()
        self.changed.emit()

    def _tell(self) -> None:
        """Tell how many cells stay within the limits, and why others do not."""
        if self._quality is None:
            return
        reasons = self.limits().left_out(self._quality).values()
        n = len(self._quality.genes)
        told = [
            f"{np.count_nonzero(rows):,} with {why}"
            for rows, why in reasons
            if rows.any()
        ]
        n_out = sum(int(np.count_nonzero(rows)) for rows, _ in reasons)
        is_found = self._found is not None and self._found[0] == self.limits()
        if self.doublets.isChecked() and self._found is not None and is_found:
            n_out += self._found[1]
            told.append(counted(self._found[1], "doublet"))
        text = f"{n - n_out:,} of {n:,} cells stay."
        if told:
            text += " Left out are " + ", ".join(told) + "."
        if self.doublets.isChecked() and not is_found:
            text += " Doublets are found among those that stay."
        show_text(self.state, text)
        self.fold.set_title(f"Quality control  ·  {n_out:,} of {n:,} left out")


def _are_same(one: CellQuality, other: CellQuality) -> bool:
    return np.array_equal(one.counts, other.counts) and np.array_equal(
        one.genes, other.genes
    )
