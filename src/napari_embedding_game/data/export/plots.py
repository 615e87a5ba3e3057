"""Plots, each painted by one method: into a file or into a window.

A plot is a frozen value with ``size()``, its width and height in inches, and
``paint(axes)``, which paints it into empty axes of matplotlib. A figure is laid out
anew where it is painted, so that nothing is positioned by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import NO_LEVEL, make_names_unique
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import atomic_write
from napari_embedding_game.data.wells import ROWS, Well

MAX_VECTOR = 5_000
"""Number of points up to which they are vector shapes in a .pdf or .svg; more are slow
to open."""
DPI = 300
"""Dots per inch of pixels: of a .png, and of many points in other formats."""
_MAX_LEVELS = 40
_GREY, _EDGE = "#999999", "#555555"

Points = NDArray[np.floating]
NamedPosition = tuple[str, NDArray[np.floating]]
"""A text on a map, and its position (d,) among the points."""
_NO_POINTS = np.empty((0, 2))
LegendEntries = Sequence[tuple[str, Any]]
"""Legend entries: names, each with its colour."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Plot:
    """A plot: a title, and the colours of a number."""

    title: str = ""
    scale: Points | None = None
    """(K, 4) colours from the low to the high limit; None if colours show no number."""
    limits: tuple[float, float] = (0.0, 1.0)

    def size(self) -> tuple[float, float]:
        """Return width and height in inches, including legends."""
        return 8.0, 6.0

    def paint(self, axes: Any) -> None:
        """Paint into empty axes, add legends, and lay out the figure."""


def draw(plot: Plot) -> Any:
    """Paint a plot into a new matplotlib figure, and return the figure.

    Notebooks that the window has written import this function by its name.
    """
    figure = make_figure(plot.size())
    plot.paint(figure.add_subplot())
    return figure


def make_figure(size: tuple[float, float]) -> Any:
    """Return an empty figure of `size` in inches, without a window."""
    # This takes 0.3 s, which would delay the window.
    from matplotlib.figure import Figure

    return Figure(size, layout="constrained")


def write_plot(plot: Plot, path: Path) -> None:
    """Write a plot with editable text; the same plot gives the same bytes.

    The ending of `path` gives the format. Raises DataError if `path` cannot be written,
    or does not end in .pdf, .svg or .png.
    """
    from matplotlib import rc_context

    ending = path.suffix.lower()
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": None}
    if ending not in dates:
        raise DataError(
            f"{path.name} is no figure: end its name in .pdf, .svg or .png."
        )
    options: Any = {"pdf.fonttype": 42, "svg.fonttype": "none"}
    options["svg.hashsalt"] = "embedding-game"
    with rc_context(options), atomic_write(path) as temporary:
        draw(plot).savefig(
            temporary, format=ending[1:], dpi=DPI, metadata=dates[ending]
        )


# Maps


@dataclass(frozen=True, eq=False)
class PointColors:
    """The colour of each point, and its legend or scale."""

    rgba: Points
    """(n, 4) colours from 0 to 1."""
    title: str = ""
    """Title of the colours, such as the name of a gene."""
    levels: pd.Categorical | None = None
    """(n,) group of each point, where each group has one colour."""
    scale: Points | None = None
    """(K, 4) colours from the low to the high limit."""
    limits: tuple[float, float] = (0.0, 1.0)

    def take(self, rows: NDArray[Any]) -> PointColors:
        """Return the colours of the points at `rows`."""
        levels = None if self.levels is None else self.levels[rows]
        return replace(self, rgba=self.rgba[rows], levels=levels)


@lru_cache(maxsize=4)
def make_paint_order(n_points: int) -> NDArray[np.intp]:
    """Return a fixed random order of points, (n_points,), read-only.

    In the order of the file the last group would cover all others.
    """
    order = np.random.default_rng(0).permutation(n_points)
    order.flags.writeable = False
    return order


def project_to_plane(
    embedding: Points, facing: Points
) -> tuple[Points, NDArray[np.integer]]:
    """Return coordinates (N, 2) in the plane of view, and row indices as painted.

    The row indices are in the order in which the points are painted.

    For a map (N, 3), ``facing`` (2, 3) is the view: unit vectors to the right and up;
    the nearest points are painted last. A flat map is painted in a random order; a map
    (N, 1) gets 0 as second coordinate.
    """
    n, d = embedding.shape
    if d == 3:
        nearness = embedding @ np.cross(*facing)
        return embedding @ facing.T, np.argsort(nearness, kind="stable")
    flat = np.zeros((n, 2), np.float32)
    flat[:, :d] = embedding[:, :2]
    return flat, make_paint_order(n)


@dataclass(frozen=True, eq=False, kw_only=True)
class MapPlot(Plot):
    """A map with coloured points."""

    embedding: Points
    """(n, 2) positions of the points."""
    colors: PointColors
    names: tuple[NamedPosition, ...] = ()
    """Names written on the map."""

    def make_legend_entries(self) -> LegendEntries:
        """Return name, number of points and colour of each group, in the groups' order.

        Groups without a point are left out, and points without a group come last. Empty
        if the colours show no groups.
        """
        if (levels := self.colors.levels) is None:
            return []
        names = make_names_unique(levels.categories.append(pd.Index([NO_LEVEL])))
        codes = np.where(levels.codes < 0, len(names) - 1, levels.codes)
        groups = np.unique(codes, return_index=True, return_counts=True)
        each = zip(*groups, strict=True)
        return [(f"{names[k]} ({n:,})", self.colors.rgba[row]) for k, row, n in each]

    def paint(self, axes: Any) -> None:
        """Paint points, a colour bar or else a legend, and names on the map.

        The points are smaller the more there are. Names move up or down where they
        would cover other names.
        """
        n, box = max(len(self.embedding), 1), axes.get_window_extent()
        room = 0.3 * box.width * box.height / (axes.figure.dpi / 72) ** 2
        axes.scatter(
            *self.embedding.T,
            s=float(np.clip(np.sqrt(room / n), 0.6, 4.5)) ** 2,
            c=self.colors.rgba,
            linewidths=0,
            rasterized=n > MAX_VECTOR,
        )
        axes.set(xticks=[], yticks=[], title=escape_dollars(self.title))
        axes.spines[:].set_visible(False)
        axes.set_aspect("equal", "datalim")
        if self.colors.scale is not None:
            add_colorbar(axes, self.colors)
        elif key := self.make_legend_entries():
            add_legend(axes, key, self.colors.title)
        # Names move up or down where they would cover other names.
        axes.figure.draw_without_rendering()
        lines = [0, *(sign * step for step in range(1, 31) for sign in (1, -1))]
        offsets = [("center", 0.0, 1.25 * line) for line in lines]
        under = {"facecolor": "white", "alpha": 0.65, "linewidth": 0, "pad": 0.6}
        boxes = list[Any]()
        for name in self.names:
            _place_text(axes, name, offsets, boxes, bbox=under, color="black")


# Genes in groups

SIZE_EXPONENT, MAX_DIAMETER = 1.5, 0.9
"""Power of a share by which the area of a dot grows, as in scanpy, and the largest
diameter: it just fits into its tile of side 1."""
_MAX_SHARES = 5
"""Number of dots in the legend of sizes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpressionPlot(Plot):
    """G genes, the rows, in C groups of points, the columns: a heatmap of means."""

    genes: tuple[str, ...]
    groups: tuple[str, ...]
    values: Points
    """(C, G) values shown by colours."""
    tile_height_ratio: ClassVar[float] = 1.0
    """Height of a tile divided by its width."""

    def size(self) -> tuple[float, float]:
        """Return width and height in inches, by the number of rows and columns."""
        cell, letter = 0.26, 0.085
        width = cell * len(self.groups) + letter * max(map(len, self.genes))
        height = cell * self.tile_height_ratio * len(self.genes)
        height += letter * max(map(len, self.groups))
        return max(width + 10 * letter, 2.4), height + 14 * letter

    def paint(self, axes: Any) -> None:
        """Paint tiles, one for each gene and group, their names, and the colour bar.

        The first gene is the top row.
        """
        n_groups, n_genes = self.values.shape
        self._paint_tiles(axes, _make_color_mapper(self).to_rgba(self.values.T))
        axes.set(xlim=(-0.5, n_groups - 0.5), ylim=(n_genes - 0.5, -0.5))
        axes.set_aspect(self.tile_height_ratio, anchor="NW")
        axes.set_xticks(range(n_groups), map(escape_dollars, self.groups), rotation=90)
        axes.set_yticks(range(n_genes), map(escape_dollars, self.genes))
        axes.tick_params(length=2)
        axes.xaxis.tick_top()
        add_colorbar(axes, self, location="top")  # visible for any number of groups
        for _ in range(2):  # the legend of sizes is laid out after the tiles
            axes.figure.draw_without_rendering()

    def _paint_tiles(self, axes: Any, colors: Points) -> None:
        """Paint the content of each tile; ``colors`` (G, C, 4)."""
        axes.imshow(colors)


@dataclass(frozen=True, eq=False, kw_only=True)
class DotPlot(ExpressionPlot):
    """Dots, whose areas grow with the share of points above 0."""

    shares: Points
    """(C, G) shares shown by the sizes of dots, 0 to 1."""

    def _paint_tiles(self, axes: Any, colors: Points) -> None:
        """Paint a dot in each tile, and the legend of sizes; ``colors`` (G, C, 4)."""
        down, across = np.indices(colors.shape[:2], float).reshape(2, -1)
        sizes = MAX_DIAMETER * np.nan_to_num(self.shares.T.ravel()) ** (
            SIZE_EXPONENT / 2
        )
        _add_discs(axes, np.column_stack([across, down]), sizes, colors.reshape(-1, 4))
        self._add_size_legend(axes)

    def _add_size_legend(self, axes: Any) -> None:
        """Paint the legend of shares at the right, dots one below another.

        At most five dots, and no more than genes, show shares up to 100 %.
        """
        n_dots = min(len(self.genes), _MAX_SHARES)
        x, shares = len(self.groups) + 0.3, np.arange(1, n_dots + 1) / n_dots
        positions = np.column_stack([np.full(n_dots, x), np.arange(n_dots)])
        sizes = MAX_DIAMETER * shares ** (SIZE_EXPONENT / 2)
        _add_discs(axes, positions, sizes, _GREY).set_clip_on(False)
        for y, share in enumerate(shares):
            axes.text(x + 0.7, y, f"{share:.0%}", va="center", size="small")
        axes.text(x - 0.5, -0.8, "Share\nabove 0", va="bottom", size="small")


@dataclass(frozen=True, eq=False, kw_only=True)
class ViolinPlot(ExpressionPlot):
    """Violins, which are widest at the values that most points of a group have."""

    densities: NDArray[np.floating]
    """(C, G, B) share of the points of a group by value."""
    spans: Points
    """(G, 2) where the values of a gene begin and end in its row, 0 bottom to 1 top."""
    tile_height_ratio: ClassVar[float] = 1.8

    def _paint_tiles(self, axes: Any, colors: Points) -> None:
        """Paint a violin in each tile, and lines between rows; ``colors`` (G, C, 4).

        Each violin is scaled to the width of its tile; tails below 0.5 % of the largest
        density are cut off.
        """
        from matplotlib.collections import PolyCollection

        n_groups, n_genes, n_bins = self.densities.shape
        # The y axis points down.
        ends, outlines, faces = 0.45 - 0.9 * self.spans, [], []
        for gene, group in np.ndindex(n_genes, n_groups):
            widths = self.densities[group, gene]
            are_seen = np.flatnonzero(widths > 0.005 * widths.max())
            if len(are_seen):
                seen = slice(are_seen[0], are_seen[-1] + 1)
                half = 0.45 * widths[seen] / widths.max()
                y = gene + np.linspace(ends[gene, 0], ends[gene, 1], n_bins)[seen]
                across = np.concatenate([group + half, group - half[::-1]])
                outlines.append(np.column_stack([across, np.append(y, y[::-1])]))
                faces.append(colors[gene, group])
        violins = PolyCollection(
            outlines, facecolors=faces, edgecolors=_EDGE, linewidths=0.4
        )
        axes.add_collection(violins)
        for gene in range(1, n_genes):
            axes.axhline(gene - 0.5, color=_GREY, linewidth=0.3)


# Two groups compared

MAX_P, MIN_CHANGE = 0.05, 1.0
"""Adjusted p-value and log2 fold change from which a gene is highlighted."""
MAX_CHANGE, MIN_P = 10.0, 1e-300
"""Limits beyond which a gene is painted at the edge."""
USUAL_SHARE = 0.99
"""Share of the not significant genes that fit into the axis in any case."""
N_NAMED = 10
"""Number of genes on each side that are labelled, where there is room."""


@dataclass(frozen=True, eq=False, kw_only=True)
class VolcanoPlot(Plot):
    """G genes of two groups, by falling score: fold change and adjusted p-value."""

    names: NDArray[np.object_]
    """(G,) names of the genes."""
    changes: Points
    """(G,) log2 fold changes; NaN where undefined."""
    p_values: Points
    """(G,) adjusted p-values."""

    def size(self) -> tuple[float, float]:
        """Return width and height in inches."""
        return 4.0, 3.6

    def compute_gene_positions(self) -> Points:
        """Return the position of each gene, (G, 2): clipped change, -log10 p."""
        x = clip_changes_to_axis(self.changes, self.p_values)
        return np.column_stack([x, -np.log10(np.maximum(self.p_values, MIN_P))])

    def paint(self, axes: Any) -> None:
        """Paint each gene at its fold change, and its -log10 p upwards.

        Significant genes with a large change are coloured by its sign. Of these the
        first and last ten are labelled where there is room. Genes without a change are
        left out.
        """
        positions = self.compute_gene_positions()
        x, y = positions.T
        stands_out = (y > -np.log10(MAX_P)) & (abs(x) > MIN_CHANGE)
        is_finite = np.isfinite(x)
        look: Any = {"s": 6.0, "linewidths": 0, "rasterized": len(x) > MAX_VECTOR}
        axes.scatter(*positions[is_finite & ~stands_out].T, c=_GREY, **look)
        axes.scatter(*positions[stands_out & (x < 0)].T, c="#c45e2b", **look)
        axes.scatter(*positions[stands_out & (x > 0)].T, c="#3f7cb5", **look)
        widest = max(2.0, float(np.abs(x[is_finite]).max(initial=0.0))) * 1.15
        highest = max(3.0, float(y[is_finite].max(initial=0.0))) * 1.08
        axes.set(xlim=(-widest, widest), ylim=(0, highest))
        axes.set_title(escape_dollars(self.title), wrap=True)
        axes.set_xlabel("log2 fold change\n← lower · in the first · higher →")
        axes.set_ylabel("−log10 adjusted p")
        line: Any = {"color": "#888888", "linewidth": 0.5, "linestyle": (0, (4, 3))}
        for change in (-MIN_CHANGE, MIN_CHANGE):
            axes.axvline(change, **line)
        axes.axhline(-np.log10(MAX_P), **line)
        axes.spines[["top", "right"]].set_visible(False)
        axes.figure.draw_without_rendering()
        genes, boxes = np.flatnonzero(stands_out), list[Any]()
        for row in dict.fromkeys([*genes[:N_NAMED], *genes[::-1][:N_NAMED]]):
            offsets = [("left", 0.3, 0.0), ("right", -0.3, 0.0)]
            offsets += [("center", 0.0, up) for up in (0.9, -0.9)]
            # Genes at the upper edge stand in a row: labels go below.
            if self.p_values[row] <= MIN_P:
                side = "right" if positions[row, 0] > 0 else "left"
                offsets = [(side, 0.0, -1.5 * n) for n in range(1, N_NAMED + 1)]
            name = str(self.names[row]), positions[row]
            how: Any = {
                "may_be_left_out": True,
                "avoided_points": positions,
                "size": "small",
            }
            _place_text(axes, name, offsets, boxes, **how)


def clip_changes_to_axis(changes: Points, p_values: Points) -> Points:
    """Return the log2 fold changes (G,) clipped to the ends of the axis; NaN stays NaN.

    ``changes`` (G,) are NaN where undefined, ``p_values`` (G,) are adjusted. The axis
    reaches as far as the significant genes and 99 % of all genes, at least to 2 and at
    most to 10. Genes without a count on one side, whose change is unbounded, would
    squeeze all others.
    """
    size = np.abs(changes)
    is_finite = np.isfinite(changes)
    usual = np.quantile(size[is_finite], USUAL_SHARE) if is_finite.any() else 0.0
    sure = size[is_finite & (p_values < MAX_P)].max(initial=0.0)
    limit = min(max(usual, sure, 2 * MIN_CHANGE), MAX_CHANGE)
    return np.asarray(np.clip(changes, -limit, limit))


# Shares of groups in samples

BAR_HEIGHT, ROW_INCHES = 0.8, 0.2
"""Height of a bar of 1 that a row has, and the height of a row in inches."""
SHARES_INCHES = 3.3
"""Width of the figure: a narrow dock shows it without scrolling to the side."""
DOTS_INCHES = 1.15
"""Height of the plot of dots in inches, with its title and axis."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SharesPlot(Plot):
    """K groups in P samples of two conditions: a bar a sample, and dots of one group.

    The samples of the first condition come first.  The title is that of the dots.
    """

    groups: tuple[str, ...]
    """(K,) names."""
    rgba: Points
    """(K, 4) colours of the groups."""
    shares: Points
    """(P, K) share of each group in each sample, 0 to 1."""
    samples: tuple[str, ...]
    """(P,) names of the samples."""
    is_first: NDArray[np.bool_]
    """(P,) samples of the first condition."""
    levels: tuple[str, str]
    """Names of the two conditions."""
    chosen: int | None = None
    """The group whose shares are dots; None for none."""
    is_paired: bool = False
    """Whether lines connect the dots of a sample in both conditions."""

    @property
    def row_positions(self) -> Points:
        """(P,) position of the bar of each sample from the top; headings have rows."""
        at = np.arange(1.0, len(self.samples) + 1)
        return np.where(self.is_first, at, at + 1)

    def size(self) -> tuple[float, float]:
        """Return width and height in inches, by the number of samples and groups."""
        n_legend = -(-len(self.groups) // self._n_legend_columns)
        return SHARES_INCHES, (
            ROW_INCHES * (len(self.samples) + 4) + DOTS_INCHES + 0.16 * n_legend
        )

    @property
    def _n_legend_columns(self) -> int:
        """Number of columns of the legend, so that the longest name fits."""
        letters = 5 + max(map(len, self.groups), default=0)
        return max(1, min(6, int(SHARES_INCHES / 0.075 / letters)))

    def find_group(self, x: float, y: float) -> int | None:
        """Return the index of the group at a position of the bars; None for none."""
        near = np.flatnonzero(np.abs(self.row_positions - y) <= BAR_HEIGHT / 2)
        if not len(near) or not 0 <= x <= 1:
            return None
        ends = np.cumsum(self.shares[near[0]])
        return min(int(np.searchsorted(ends, x)), len(self.groups) - 1)

    def paint(self, axes: Any) -> None:
        """Paint a bar of parts for each sample, the legend, and the dots below.

        The axes that are given get the bars.
        """
        from matplotlib.patches import Patch

        rows = ROW_INCHES * (len(self.samples) + 4)
        grid = axes.get_subplotspec().subgridspec(
            2, 1, height_ratios=(rows, DOTS_INCHES)
        )
        axes.set_subplotspec(grid[0])
        self._paint_bars(axes)
        if self.chosen is not None:
            self._paint_dots(axes.figure.add_subplot(grid[1]), self.chosen)
        n, n_columns = len(self.groups), self._n_legend_columns
        # matplotlib fills column by column; a person reads row by row.
        order = [x for column in range(n_columns) for x in range(column, n, n_columns)]
        axes.figure.legend(
            [Patch(color=self.rgba[x]) for x in order],
            # matplotlib hides labels that begin with "_".
            [escape_dollars(f" {self.groups[x]}") for x in order],
            loc="outside lower left",
            ncols=n_columns,
            frameon=False,
            fontsize="small",
            handlelength=0.8,
            handletextpad=0.2,
            columnspacing=0.8,
            labelspacing=0.3,
        )
        axes.figure.draw_without_rendering()

    def _paint_bars(self, axes: Any) -> None:
        """Paint the bars, the names of samples, and the headings of the conditions."""
        rows = self.row_positions
        begins = np.zeros(len(rows))
        for group, color in enumerate(self.rgba):
            widths = self.shares[:, group]
            axes.barh(rows, widths, BAR_HEIGHT, begins, color=color, linewidth=0)
            begins = begins + widths
        for level, is_of in zip(
            self.levels, (self.is_first, ~self.is_first), strict=True
        ):
            if is_of.any():
                top = rows[is_of].min() - 0.55
                axes.text(0, top, escape_dollars(level), va="bottom", weight="bold")
        axes.set_yticks(rows, map(escape_dollars, self.samples))
        axes.set(xlim=(0, 1), ylim=(rows.max(initial=1.0) + 0.6, -0.5))
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g}%")
        axes.tick_params(length=2)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)

    def _paint_dots(self, axes: Any, group: int) -> None:
        """Paint the share of a group in each sample as a dot, and means as lines."""
        shares = self.shares[:, group]
        heights = np.where(self.is_first, 0.0, 1.0)
        line: Any = {"color": axes.xaxis.label.get_color(), "linewidth": 1.2}
        if self.is_paired:
            # Both conditions have the samples in the same order.
            pairs = shares[self.is_first], shares[~self.is_first]
            axes.plot(np.array(pairs), [[0.0], [1.0]], color=_GREY, linewidth=0.6)
        for height in (0.0, 1.0):
            of_level = shares[heights == height]
            if len(of_level):
                axes.plot([of_level.mean()] * 2, [height - 0.3, height + 0.3], **line)
        axes.scatter(shares, heights, 22, [self.rgba[group]], linewidths=0, zorder=3)
        title = escape_dollars(f"Share of {self.title}")
        axes.set_title(title, loc="left", size="medium")
        axes.set_yticks((0, 1), map(escape_dollars, self.levels))
        largest = max(shares.max(initial=0.0), 1e-3)
        axes.set(ylim=(1.6, -0.6), xlim=(-0.03 * largest, 1.08 * largest))
        axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:g}%")
        axes.tick_params(length=2)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)


# Plates


@dataclass(frozen=True, eq=False, kw_only=True)
class PlatePlot(Plot):
    """W wells of a plate; wells that were not measured are empty."""

    shape: tuple[int, int]
    """Rows and columns of the plate."""
    wells: tuple[Well, ...]
    """(W,) measured wells."""
    rgba: Points
    """(W, 4) colours of the wells."""
    plate: str = ""
    is_share: bool = False
    """Whether the number is a share, written in percent."""
    chosen: tuple[Well, ...] = ()
    """Wells with a ring."""

    def size(self) -> tuple[float, float]:
        """Return width and height in inches, by the format of the plate."""
        n_rows, n_columns = self.shape
        side = 0.34 if n_columns <= 24 else 0.16
        return max(side * n_columns + 0.5, 2.2), side * n_rows + 1.4

    def paint(self, axes: Any) -> None:
        """Paint wells as discs, row A at the top, with names of rows and columns.

        Wells that were not measured are empty rings, chosen wells have a ring around
        them. The title is the plate; a colour bar is above.
        """
        n_rows, n_columns = self.shape
        every = np.indices(self.shape, float)[::-1].reshape(2, -1).T
        _add_discs(axes, every, 0.78, "none", edges=_GREY)
        measured = np.array(self.wells, float).reshape(-1, 2)[:, ::-1]
        _add_discs(axes, measured, 0.78, self.rgba)
        axes.set(xlim=(-0.6, n_columns - 0.4), ylim=(n_rows - 0.4, -0.6))
        axes.set_aspect("equal", anchor="NW")
        step = 1 if n_columns <= 24 else 2
        axes.set_xticks(range(0, n_columns, step), range(1, n_columns + 1, step))
        axes.set_yticks(range(0, n_rows, step), ROWS[:n_rows:step])
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(escape_dollars(self.plate), size="medium", loc="left")
        # The dock is too narrow for a bar at the right.
        add_colorbar(axes, self, self.is_share, location="top")
        chosen = np.array(self.chosen, float).reshape(-1, 2)[:, ::-1]
        color = axes.xaxis.label.get_color()
        _add_discs(axes, chosen, 0.92, "none", edges=color).set_linewidth(1.5)
        axes.figure.draw_without_rendering()


# Helpers of all plots


def escape_dollars(text: str) -> str:
    """Escape dollar signs, so that matplotlib takes the text for no formula."""
    return text.replace("$", r"\$")


def _make_color_mapper(plot: Any) -> Any:
    """Return matplotlib's mapping of numbers to the colours of a plot."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    return ScalarMappable(Normalize(*plot.limits), ListedColormap(plot.scale))


MAX_BAR_INCHES = 2.0
"""Inches of a colour bar that stay visible where a figure is scrolled."""


def add_colorbar(
    axes: Any, plot: Any, is_share: bool = False, location: str = "right"
) -> None:
    """Paint the colour bar of a plot next to its axes, with the plot's title.

    ``is_share``: whether numbers are written in percent. ``location``: "top" or
    "right"; at the top at most two inches long.
    """
    from matplotlib.ticker import PercentFormatter

    is_above = location == "top"
    bar = axes.figure.colorbar(
        _make_color_mapper(plot),
        ax=axes,
        pad=0.01 if is_above else 0.05,
        panchor=False,
        shrink=min(0.7, MAX_BAR_INCHES / axes.figure.get_figwidth())
        if is_above
        else 0.7,
        anchor=(0.0, 0.5),
        location=location,
        format=PercentFormatter(1.0) if is_share else None,
    )
    bar.set_label(escape_dollars(plot.title), loc="left" if is_above else "center")


def add_legend(axes: Any, entries: LegendEntries, title: str) -> None:
    """List names and colours next to the axes, in two columns from 21 entries on.

    Above 40 entries only their number is written, below the axes.
    """
    from matplotlib.lines import Line2D

    if len(entries) > _MAX_LEVELS:
        axes.set_xlabel(
            escape_dollars(f"{title}: {len(entries)} colours, too many to list")
        )
        return
    look: Any = {"linestyle": "", "marker": "o", "markersize": 5}
    # matplotlib hides labels that begin with "_".
    texts = [
        escape_dollars(f" {name}" if name.startswith("_") else name)
        for name, _ in entries
    ]
    axes.legend(
        [Line2D([], [], color=color, **look) for _, color in entries],
        texts,
        title=escape_dollars(title),
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        ncols=1 + (len(texts) > _MAX_LEVELS // 2),
        frameon=False,
        fontsize="small",
        handletextpad=0.1,
        columnspacing=0.8,
        labelspacing=0.3,
    )


def _place_text(
    axes: Any,
    name_and_position: NamedPosition,
    offsets: Sequence[tuple[str, float, float]],
    boxes: list[Any],
    *,
    may_be_left_out: bool = False,
    avoided_points: Points = _NO_POINTS,
    **style: Any,
) -> None:
    """Write a name on axes of final size, so that it covers no other name.

    ``name_and_position``: the name, and its position in data units. ``offsets`` are
    tried in turn: the end of the text ("left", "center" or "right") and its distance to
    the right of the position and up, in heights of a letter. ``boxes``: boxes of the
    names written so far; the new one is appended in place. ``**style``: options of the
    text.

    The offset that covers no name and the fewest of the ``avoided_points`` (n, 2) is
    taken. Without room the name is left out if it `may_be_left_out`, else written over
    other names. A text that leaves the page is moved to the side.
    """
    look = {"textcoords": "offset points", "va": "center", "in_layout": False, **style}
    text = axes.annotate(
        escape_dollars(name_and_position[0]), name_and_position[1], (0, 0), **look
    )
    inside, height = axes.get_window_extent(), text.get_size()
    pixels = axes.transData.transform(avoided_points)

    def covers(offset: tuple[str, float, float]) -> tuple[bool, int]:
        """Move the text; return whether it has no room, and the points it hides."""
        side, right, up = offset
        text.set(ha=side, position=(right * height, up * height))
        box = text.get_window_extent()
        is_in = not may_be_left_out or inside.x0 <= box.x0 <= box.x1 <= inside.x1
        has_layout_of = (box.min < pixels) & (pixels < box.max)
        return not is_in or any(map(box.overlaps, boxes)), has_layout_of.all(
            axis=1
        ).sum()

    tried = dict[Any, tuple[str, float, float]]()
    for offset in offsets:
        tried.setdefault(covers(offset), offset)
        if (False, 0) in tried:
            break
    covers(tried[min(tried)])
    if min(tried)[0] and may_be_left_out:
        text.remove()
        return
    box, page = text.get_window_extent(), axes.figure.canvas.figure.bbox
    boxes.append(box.padded(0.15 * height))
    beyond = max(page.x0 - box.x0, 0.0) - max(box.x1 - page.x1, 0.0)
    right, up = text.get_position()
    text.set_position((right + beyond * 72 / axes.figure.dpi, up))


def _add_discs(
    axes: Any, positions: Points, sides: Any, colors: Any, edges: str = _EDGE
) -> Any:
    """Paint discs into axes, and return matplotlib's collection.

    ``positions`` (n, 2) and ``sides``, the diameters (n,) or one for all, are in data
    units. ``colors`` fill the discs, ``edges`` is the colour of the rims.
    """
    from matplotlib.collections import EllipseCollection

    sides = np.broadcast_to(sides, len(positions))
    discs = EllipseCollection(
        *(sides, sides, 0 * sides),
        units="xy",
        offsets=positions,
        offset_transform=axes.transData,
        facecolors=colors,
        edgecolors=edges,
        linewidths=0.4,
    )
    return axes.add_collection(discs)
