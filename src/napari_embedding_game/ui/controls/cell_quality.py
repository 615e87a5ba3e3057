"""Quality control of cells: plots by sample, limits dragged on them, doublet scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from qtpy.QtWidgets import QWidget

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import Plot, escape_dollars
from napari_embedding_game.data.quality_control import find_doublets
from napari_embedding_game.ui.style.form_widgets import ChoiceBox, Text
from napari_embedding_game.ui.style.layouts import vertical_box
from napari_embedding_game.ui.style.plot_canvas import PlotCanvas
from napari_embedding_game.ui.tasks.worker import PaneJobRunner

DRAG_TIP = "Drag over the cells that are to stay: that sets the limits."
HEIGHT, N_BARS = 210, 50
"""Pixels of the plot, and bars of a histogram."""
SHORT = 14
"""Letters of names of samples, two of which have room beside one another."""
MAX_SAMPLES, MAX_DOTS = 8, 20_000
"""Samples with a line of their own, and cells that are drawn as dots."""
COUNTS, GENES, MITO = "Counts per cell", "Genes per cell", "Mitochondrial %"
AGAINST, DOUBLETS = "Genes against counts", "Doublet scores"
FIGURES = {COUNTS: "total_counts", GENES: "n_genes_by_counts", MITO: "pct_counts_mt"}
"""Where :func:`~.cell_quality` has them."""
LOGARITHMIC = COUNTS, GENES
VIEWS = {COUNTS: (COUNTS,), GENES: (GENES,), MITO: (MITO,), AGAINST: (COUNTS, GENES)}
"""Figures of a cell that each plot shows: across, and up."""
LIMITS = {
    COUNTS: ("min_counts", "max_counts"),
    GENES: ("min_genes", "max_genes"),
    MITO: ("", "max_mito"),
}
"""Lower and upper limit of each figure."""
Limits = Mapping[str, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class QualityPlot(Plot):
    """Cells by one of their figures, a line for each sample, or by two of them."""

    axes: tuple[str, ...]
    values: Mapping[str, NDArray[np.floating]]
    """(n,) of each figure."""
    bounds: Limits
    samples: pd.Series | None = None

    def paint(self, axes: Any) -> None:
        """Draw the cells, and grey over those that the limits leave out."""
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel(self.axes[0])
        if len(self.axes) == 1:
            self._paint_histogram(axes, self.axes[0])
        else:
            self._paint_scatter(axes, *self.axes)
        for name, span in zip(self.axes, (axes.axvspan, axes.axhspan), strict=False):
            ends = axes.get_xlim() if span == axes.axvspan else axes.get_ylim()
            low, high = (
                self.bounds.get(limit, 0) for limit in LIMITS.get(name, ("", ""))
            )
            for beyond in ((ends[0], low), (high or ends[1], ends[1])):
                if beyond[0] < beyond[1]:
                    span(*beyond, color="0.5", alpha=0.45, linewidth=0)
        axes.figure.draw_without_rendering()

    def _paint_histogram(self, axes: Any, name: str) -> None:
        values = self.values[name]
        bars = np.linspace(0, max(float(np.nanmax(values)), 1e-3), N_BARS)
        if name in LOGARITHMIC:
            values = np.maximum(values, 1)
            bars = np.geomspace(values.min(), values.max() + 1, N_BARS)
            axes.set_xscale("log")
        axes.set(xlim=bars[[0, -1]], ylabel="Cells")
        if name in LOGARITHMIC:
            _format_log_ticks(axes.xaxis)
        samples = pd.Series() if self.samples is None else self.samples
        levels = sorted(samples.dropna().unique(), key=str)
        if not 1 < len(levels) <= MAX_SAMPLES:
            axes.hist(values, bars)
            return
        for level in levels:
            of_it = values[(samples == level).to_numpy()]
            axes.hist(of_it, bars, histtype="step", label=escape_dollars(str(level)))
        look: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
        look |= {"frameon": False, "fontsize": "small", "borderpad": 0}
        is_short = max(len(str(level)) for level in levels) <= SHORT
        axes.legend(ncols=1 + is_short, handlelength=1, columnspacing=1, **look)

    def _paint_scatter(self, axes: Any, across: str, up: str) -> None:
        x, y = (np.maximum(self.values[name], 1) for name in (across, up))
        rows = np.random.default_rng(0).permutation(len(x))[:MAX_DOTS]
        share = self.values.get(MITO)
        dots = axes.scatter(x[rows], y[rows], 3, None if share is None else share[rows])
        if share is not None:
            axes.figure.colorbar(dots, ax=axes, label=MITO)
        axes.set(xscale="log", yscale="log", ylabel=up)
        for axis in (axes.xaxis, axes.yaxis):
            _format_log_ticks(axis)


def _format_log_ticks(axis: Any) -> None:
    """Write the numbers of a logarithmic axis without powers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = axis.get_view_interval()
    decades = np.log10(high / low)  # of many, fewer numbers have room beside each other
    subs = (1, 2, 5) if decades < 1.1 else (1, 3) if decades < 1.8 else (1,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


class CellQualityView(QWidget):
    """A choice of plots of the cells; a drag over one sets the limits.

    Parameters
    ----------
    limit : callable
        Receives limits by their names that were dragged.
    """

    def __init__(self, limit: Callable[[Limits], None]) -> None:
        super().__init__()
        self._apply_limits = limit
        self._values: dict[str, NDArray[np.floating]] = {}
        self._limits: Limits = {}
        self._dataset: Dataset | None = None
        self._column, self._batch = "", None
        self.view = ChoiceBox(
            "What is drawn; each sample has a line.", self._update_plot
        )
        self.state = Text()
        words, show = "Scoring doublets …", self.state.show_text
        self._doublet_jobs = PaneJobRunner(self, words, self._on_doublets_scored, show)
        self.canvas = PlotCanvas(lambda x, y: DRAG_TIP, can_drag=True)
        self.canvas.setFixedHeight(HEIGHT)
        self.canvas.dragged.connect(self._on_plot_dragged)
        self.setLayout(vertical_box(self.view, self.state, self.canvas))

    def show_cells(self, quality: pd.DataFrame, dataset: Dataset) -> None:
        """Show the figures of these cells; ``dataset`` has their counts or scores."""
        self._doublet_jobs.stop()
        self.state.show_text()
        self._dataset = dataset
        columns = {title: name for title, name in FIGURES.items() if name in quality}
        self._values = {
            title: quality[name].to_numpy() for title, name in columns.items()
        }
        views = [view for view, axes in VIEWS.items() if {*axes} <= {*columns}]
        if "doublet_score" in dataset.quality:
            self._values[DOUBLETS] = dataset.quality["doublet_score"]
        if DOUBLETS in self._values or "recipe" not in dataset.provenance:
            views.append(DOUBLETS)  # prepared numbers are no counts, of fewer cells
        self.view.set_choices(zip(views, views, strict=True))
        self._update_plot()

    def show_limits(self, limits: Limits, column: str, batch: str | None) -> None:
        """Show other limits, and a line for each level of a column; "" for one line.

        Doublets are scored in each level of ``batch``, as the recipe finds them.
        """
        dataset, self._limits, self._column = self._dataset, limits, column
        if batch != self._batch and dataset and "doublet_score" not in dataset.quality:
            self._doublet_jobs.stop()
            self.state.show_text()
            self._values.pop(DOUBLETS, None)
        self._batch = batch
        self._update_plot()

    # Inside

    def _update_plot(self, *event: object) -> None:
        name, dataset = self.view.value, self._dataset
        if dataset is None:
            return
        if name == DOUBLETS and name not in self._values:
            self.canvas.show_plot(None)
            # As the cells are before any is left out; former data had other samples.
            samples = dataset.obs.get(self._batch)
            self._doublet_jobs.submit(
                lambda: find_doublets(dataset.profile, samples)[0]
            )
            return
        axes = VIEWS.get(name, (name,))
        n_cells = len(self._values[axes[0]])  # of the source, or those that were read
        tables = dataset.obs, dataset.source_obs
        columns = (obs for obs in tables if obs is not None and len(obs) == n_cells)
        samples = next((obs.get(self._column) for obs in columns), None)
        plot = QualityPlot(
            axes=axes, values=self._values, bounds=self._limits, samples=samples
        )
        self.canvas.show_plot(plot)

    def _on_doublets_scored(self, scores: NDArray[np.floating]) -> None:
        self.state.show_text()
        self._values[DOUBLETS] = scores
        self._update_plot()

    def _on_plot_dragged(
        self, x: float, y: float, to_x: float, to_y: float, _: bool
    ) -> None:
        """Set the limits of what was dragged over; beyond all cells is no limit.

        A drag that meets no cell sets none.
        """
        limits = {}
        names = VIEWS.get(self.view.value, ())
        for name, ends in zip(names, ((x, to_x), (y, to_y)), strict=False):
            values, (least, most) = self._values[name], LIMITS[name]
            low, high = sorted(ends)
            if high < values.min() or low > values.max():
                return
            limits[least] = float(f"{low:.2g}") if low > values.min() else 0.0
            limits[most] = float(f"{high:.2g}") if high < values.max() else 0.0
        limits.pop("", None)
        self._apply_limits(limits)
