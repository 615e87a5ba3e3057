"""Quality control of cells: plots by sample, limits set by dragging, doublet scores."""

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
from napari_embedding_game.ui.style.form_widgets import ChoiceBox, TextLabel
from napari_embedding_game.ui.style.layouts import vertical_box
from napari_embedding_game.ui.style.plot_canvas import PlotCanvas
from napari_embedding_game.ui.tasks.worker import PaneJobRunner

DRAG_TIP = "Drag over the cells that are to stay: that sets the limits."
HEIGHT, N_BARS = 210, 50
"""Height of the plot in pixels, and number of bars of a histogram."""
SHORT = 14
"""Letters of a sample's name up to which the legend has two columns."""
MAX_SAMPLES, MAX_DOTS = 8, 20_000
"""Samples that have separate histograms, and cells that are painted as dots."""
COUNTS, GENES, MITO = "Counts per cell", "Genes per cell", "Mitochondrial %"
GENES_AGAINST_COUNTS, DOUBLETS = "Genes against counts", "Doublet scores"
METRIC_COLUMNS = {
    COUNTS: "total_counts",
    GENES: "n_genes_by_counts",
    MITO: "pct_counts_mt",
}
"""Columns of the table of :func:`~.cell_quality`, by the titles of the metrics."""
LOGARITHMIC = COUNTS, GENES
VIEWS = {
    COUNTS: (COUNTS,),
    GENES: (GENES,),
    MITO: (MITO,),
    GENES_AGAINST_COUNTS: (COUNTS, GENES),
}
"""Metrics of a cell on the horizontal, and if there is one the vertical axis."""
LIMITS = {
    COUNTS: ("min_counts", "max_counts"),
    GENES: ("min_genes", "max_genes"),
    MITO: ("", "max_mito"),
}
"""Fields of :class:`Recipe` with the lower and upper limit of each metric, or ""."""
Limits = Mapping[str, float]
"""Limits by their field of :class:`Recipe`; 0 is no limit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class QualityPlot(Plot):
    """A histogram of a metric of the cells for each sample, or a scatter of two."""

    axes: tuple[str, ...]
    values: Mapping[str, NDArray[np.floating]]
    """(n,) values of each metric, by its title."""
    bounds: Limits
    samples: pd.Series | None = None
    """(n,) sample of each cell."""

    def paint(self, axes: Any) -> None:
        """Paint a histogram or scatter into matplotlib axes; shade beyond limits."""
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
            for outside in ((ends[0], low), (high or ends[1], ends[1])):
                if outside[0] < outside[1]:
                    span(*outside, color="0.5", alpha=0.45, linewidth=0)
        axes.figure.draw_without_rendering()

    def _paint_histogram(self, axes: Any, name: str) -> None:
        """Paint the histogram of a metric from 0 on, or on a logarithmic axis.

        For 2 to MAX_SAMPLES samples an outline of each is painted, with a legend;
        otherwise a histogram of all cells.
        """
        values = self.values[name]
        bars = np.linspace(0, max(float(np.nanmax(values)), 1e-3), N_BARS + 1)
        if name in LOGARITHMIC:
            values = np.maximum(values, 1)
            bars = np.geomspace(values.min(), values.max() + 1, N_BARS + 1)
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
            level_values = values[(samples == level).to_numpy()]
            axes.hist(
                level_values, bars, histtype="step", label=escape_dollars(str(level))
            )
        look: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
        look |= {"frameon": False, "fontsize": "small", "borderpad": 0}
        is_short = max(len(str(level)) for level in levels) <= SHORT
        axes.legend(ncols=1 + is_short, handlelength=1, columnspacing=1, **look)

    def _paint_scatter(self, axes: Any, x_metric: str, y_metric: str) -> None:
        """Paint at most MAX_DOTS cells, drawn at random, as dots on logarithmic axes.

        The colour is the mitochondrial share where it is known.  Values below 1 are
        painted at 1.
        """
        x, y = (np.maximum(self.values[name], 1) for name in (x_metric, y_metric))
        rows = np.random.default_rng(0).permutation(len(x))[:MAX_DOTS]
        share = self.values.get(MITO)
        dots = axes.scatter(x[rows], y[rows], 3, None if share is None else share[rows])
        if share is not None:
            axes.figure.colorbar(dots, ax=axes, label=MITO)
        axes.set(xscale="log", yscale="log", ylabel=y_metric)
        for axis in (axes.xaxis, axes.yaxis):
            _format_log_ticks(axis)


def _format_log_ticks(axis: Any) -> None:
    """Write the tick labels of a logarithmic axis in full, without powers of ten.

    Where the axis spans many decades, fewer ticks have labels.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    low, high = axis.get_view_interval()
    decades = np.log10(high / low)  # over many decades fewer labels fit
    subs = (1, 2, 5) if decades < 1.1 else (1, 3) if decades < 1.8 else (1,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


class CellQualityView(QWidget):
    """Shows a chosen plot of the cells' quality; a drag over the plot sets limits.

    Parameters
    ----------
    apply_limits : callable
        Receives the dragged limits by their field of :class:`Recipe`.
    """

    def __init__(self, apply_limits: Callable[[Limits], None]) -> None:
        super().__init__()
        self._apply_limits = apply_limits
        self._values: dict[str, NDArray[np.floating]] = {}
        self._limits: Limits = {}
        self._dataset: Dataset | None = None
        self._sample_column, self._batch_column = "", None
        self.view = ChoiceBox(
            "What is drawn; each sample has a line.", self._update_plot
        )
        self.state = TextLabel()
        words, show = "Scoring doublets …", self.state.show_text
        self._doublet_jobs = PaneJobRunner(self, words, self._on_doublets_scored, show)
        self.canvas = PlotCanvas(lambda x, y: DRAG_TIP, can_drag=True)
        self.canvas.setFixedHeight(HEIGHT)
        self.canvas.dragged.connect(self._on_plot_dragged)
        self.setLayout(vertical_box(self.view, self.state, self.canvas))

    def show_cells(self, quality: pd.DataFrame, dataset: Dataset) -> None:
        """Show the metrics of other cells; offer the views that they allow.

        ``quality`` is the table of :func:`~.cell_quality`; ``dataset`` has the doublet
        scores, or the counts from which doublets are scored.  Scoring that runs is
        stopped.
        """
        self._doublet_jobs.stop()
        self.state.show_text()
        self._dataset = dataset
        columns = {
            title: name for title, name in METRIC_COLUMNS.items() if name in quality
        }
        self._values = {
            title: quality[name].to_numpy() for title, name in columns.items()
        }
        views = [view for view, axes in VIEWS.items() if {*axes} <= {*columns}]
        if "doublet_score" in dataset.quality:
            self._values[DOUBLETS] = dataset.quality["doublet_score"]
        if DOUBLETS in self._values or "recipe" not in dataset.provenance:
            views.append(DOUBLETS)  # prepared data hold no counts of all cells
        self.view.set_choices(zip(views, views, strict=True))
        self._update_plot()

    def show_limits(
        self, limits: Limits, sample_column: str, batch_column: str | None
    ) -> None:
        """Show other limits, and a histogram for each level of a column of samples.

        Doublet scores that were made here are dropped when ``batch_column`` changes.

        Parameters
        ----------
        limits : mapping of str to float
            Limits by their field of :class:`Recipe`; 0 is no limit.
        sample_column : str
            The column with the sample of each cell; "" for a single histogram.
        batch_column : str, optional
            The column in whose levels doublets are scored separately, as the recipe
            does; None for all together.
        """
        dataset, self._limits = self._dataset, limits
        self._sample_column = sample_column
        if (
            batch_column != self._batch_column
            and dataset
            and "doublet_score" not in dataset.quality
        ):
            self._doublet_jobs.stop()
            self.state.show_text()
            self._values.pop(DOUBLETS, None)
        self._batch_column = batch_column
        self._update_plot()

    # Inside

    def _update_plot(self, *event: object) -> None:
        """Show the chosen plot; start scoring where it needs missing doublet scores.

        All cells are scored, before any is left out.  Samples are taken from the table
        of the dataset that has a row for each plotted cell.
        """
        name, dataset = self.view.value, self._dataset
        if dataset is None:
            return
        if name == DOUBLETS and name not in self._values:
            self.canvas.show_plot(None)
            # All cells are scored, before any is left out.
            samples = dataset.obs.get(self._batch_column)
            self._doublet_jobs.submit(
                lambda: find_doublets(dataset.profile, samples)[0]
            )
            return
        axes = VIEWS.get(name, (name,))
        n_cells = len(
            self._values[axes[0]]
        )  # all cells of the source, or the kept rows
        tables = dataset.obs, dataset.source_obs
        columns = (obs for obs in tables if obs is not None and len(obs) == n_cells)
        samples = next((obs.get(self._sample_column) for obs in columns), None)
        plot = QualityPlot(
            axes=axes, values=self._values, bounds=self._limits, samples=samples
        )
        self.canvas.show_plot(plot)

    def _on_doublets_scored(self, scores: NDArray[np.floating]) -> None:
        """Store the doublet scores (n,) and show the plot."""
        self.state.show_text()
        self._values[DOUBLETS] = scores
        self._update_plot()

    def _on_plot_dragged(
        self, x: float, y: float, to_x: float, to_y: float, is_added: bool
    ) -> None:
        """Apply limits around the dragged rectangle, rounded to two significant digits.

        ``x``, ``y``, ``to_x`` and ``to_y`` are values of the plotted metrics.  An end
        beyond all cells sets no limit (0); a rectangle without cells sets nothing.
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
