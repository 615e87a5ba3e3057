"""Quality of cells before the recipe: histograms with limits, and doublets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QSignalBlocker, Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.columns import counted
from napari_embedding_game.data.quality_control import (
    NEEDS_SKIMAGE,
    CellLimits,
    CellQuality,
    has_scrublet,
)
from napari_embedding_game.ui.controls.limits_histogram import LimitsHistogram
from napari_embedding_game.ui.style.form_widgets import Fold, show_text, text_label
from napari_embedding_game.ui.style.theme import ThemeColors

NO_LIMIT = "no limit"
NO_MITOCHONDRIA = "No mitochondrial genes: no name begins with MT- or mt-."
DOUBLETS_TIP = (
    "Leave out cells that scrublet takes for two in one droplet, in each batch by "
    "itself. It takes some seconds for each thousand cells."
)
MOST = 100_000_000


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
        self.mito = LimitsRow(
            "Mitochondrial counts, %", is_log=False, has_low=False, digits=1
        )
        self.doublets = QCheckBox("Leave out doublets (scrublet)")
        self.no_mito = text_label(NO_MITOCHONDRIA)
        self.state = text_label()
        self.fold = Fold("Quality of cells", self._inside())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.fold)
        for row in (self.counts, self.genes, self.mito):
            row.changed.connect(self._on_changed)
        self.doublets.toggled.connect(self._tell)
        self.set_quality(None)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        for row in (self.counts, self.genes, self.mito):
            row.histogram.set_theme(colors)

    def set_quality(self, quality: CellQuality | None) -> None:
        """Show the figures of these cells; of other cells there are no limits yet."""
        is_same = _are_same(quality, self._quality)
        self._quality = quality
        self.setVisible(quality is not None)
        if quality is None or is_same:
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

        Parameters
        ----------
        limits : CellLimits
        n_doublets : int or None
            None where none were looked for.
        """
        self.doublets.setChecked(n_doublets is not None)
        self.set_limits(limits)
        self._found = None if n_doublets is None else (self.limits(), n_doublets)
        self._tell()

    # Inside

    def _inside(self) -> QWidget:
        self.doublets.setToolTip(DOUBLETS_TIP)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for widget in (self.counts, self.genes, self.mito, self.no_mito, self.doublets):
            column.addWidget(widget)
        if not has_scrublet():
            self.doublets.setEnabled(False)
            column.addWidget(text_label(NEEDS_SKIMAGE))
        column.addWidget(self.state)
        return inside

    def _on_changed(self) -> None:
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
        show_text(self.state, text, "note")


class LimitsRow(QWidget):
    """A histogram with its limits, to be dragged or typed.

    Parameters
    ----------
    title : str
    is_log, has_low, digits
        As of :class:`LimitsHistogram`.
    """

    changed = Signal()

    def __init__(
        self, title: str, *, is_log: bool, has_low: bool = True, digits: int = 0
    ) -> None:
        super().__init__()
        self.histogram = LimitsHistogram(
            title, is_log=is_log, has_low=has_low, digits=digits
        )
        self.low, self.high = QDoubleSpinBox(), QDoubleSpinBox()
        for box, words in ((self.low, "at least"), (self.high, "at most")):
            box.setDecimals(digits)
            box.setRange(0, MOST)
            box.setSpecialValueText(NO_LIMIT)
            box.setKeyboardTracking(False)
            box.setAccessibleName(f"{title}, {words}")
            box.setToolTip(f"{title}, {words}; 0 for no limit.")
            box.setMinimumWidth(60)
            box.valueChanged.connect(self._on_typed)
        head = QHBoxLayout()
        head.setSpacing(4)
        head.addWidget(self.low, 1)
        head.addWidget(QLabel("to" if has_low else "at most"))
        head.addWidget(self.high, 1)
        self.low.setVisible(has_low)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(text_label(title, wraps=False))
        column.addWidget(self.histogram)
        column.addLayout(head)
        self.histogram.limits_changed.connect(self._on_dragged)

    @property
    def limits(self) -> tuple[float, float]:
        """The lower and the upper limit; 0 is none."""
        return self.low.value(), self.high.value()

    def set_values(self, values: NDArray[np.floating]) -> None:
        """Show these figures of cells."""
        self.histogram.set_values(values)

    def set_limits(self, low: float, high: float) -> None:
        """Show other limits."""
        for box, value in ((self.low, low), (self.high, high)):
            with QSignalBlocker(box):
                box.setValue(value)
        self.histogram.set_limits(*self.limits)

    def _on_typed(self) -> None:
        self.histogram.set_limits(*self.limits)
        self.changed.emit()

    def _on_dragged(self, low: float, high: float) -> None:
        self.set_limits(low, high)
        self.changed.emit()


def _are_same(one: CellQuality | None, other: CellQuality | None) -> bool:
    if one is None or other is None:
        return False
    return np.array_equal(one.counts, other.counts) and np.array_equal(
        one.genes, other.genes
    )
