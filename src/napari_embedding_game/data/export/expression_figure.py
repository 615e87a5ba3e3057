"""Draw dot plot, matrix plot or heat map of genes in groups as a matplotlib figure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import whole_or_nothing

PlotKind = Literal["dots", "matrix", "cells"]
SIZE_EXPONENT = 1.5
"""Power of the share that the area of a dot grows with, as in scanpy."""
TOLD_SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Dots of the legend."""
INCHES = 0.26
"""Width and height of what one gene is in one group."""
_LEGEND_INCHES = 1.6
_MARGIN = 0.4
_BELOW = 0.7
_LETTER = 0.085
_DPI = 300


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpressionPlot:
    """What is drawn: G genes in C groups of points."""

    kind: PlotKind
    genes: tuple[str, ...]
    groups: tuple[str, ...]
    values: NDArray[np.floating]
    """(C, G) what the colours tell of a group."""
    shares: NDArray[np.floating]
    """(C, G) what the sizes of dots tell, 0 to 1."""
    cells: tuple[NDArray[np.floating], ...]
    """For each group (m, G): what the colours of a heat map tell."""
    scale: NDArray[np.floating]
    """(K, 4) colours from the low to the high limit."""
    limits: tuple[float, float]
    title: str
    """What the colours tell, such as "Mean expression"."""


def draw_expression(plot: ExpressionPlot) -> Any:
    """Draw groups as rows and genes as columns.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        If matplotlib is missing.
    """
    figure_class = figure_of_matplotlib()
    layout = ExpressionLayout()
    width, height = layout.size(plot)
    figure = figure_class(figsize=(width, height))
    place_expression(figure, plot, 0.0, height, layout)
    return figure


def figure_of_matplotlib() -> Any:
    """Return the class of figures without a window.

    Raises
    ------
    DataError
        If matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DataError(
            "Figures are drawn by matplotlib, which is not installed: run "
            "`pip install matplotlib`."
        ) from error
    return Figure


@dataclass(frozen=True)
class ExpressionLayout:
    """How large the drawing is, and where its legend stands."""

    cell: float = INCHES
    """Width and height of what one gene is in one group, in inches."""
    letters: float = 1.0
    """Size of the letters to 10 points; borders and legend go with it."""
    is_below: bool = False
    """Whether the legend stands below the genes, not to the right of them."""

    def names(self, plot: ExpressionPlot) -> tuple[float, float]:
        """Return the inches that the names of groups and of genes take."""
        letter = _LETTER * self.letters
        return letter * max(map(len, plot.groups)), letter * max(map(len, plot.genes))

    def size(self, plot: ExpressionPlot) -> tuple[float, float]:
        """Return width and height with the legend, in inches."""
        n_groups, n_genes = plot.values.shape
        names, margin = self.names(plot), _MARGIN * self.letters
        width = self.cell * n_genes + names[0] + 2 * margin
        height = self.cell * n_groups + names[1] + 2 * margin
        if self.is_below:
            legend = _LEGEND_INCHES * (1 + (plot.kind == "dots"))
            return max(width, legend * self.letters), height + _BELOW * self.letters
        width += _LEGEND_INCHES * self.letters + margin
        return width, max(height, 2.6 * self.letters)

    def cell_for(self, plot: ExpressionPlot, width: float) -> float:
        """Return the width of a cell with which the drawing takes this many inches."""
        n_genes = len(plot.genes)
        return self.cell + (width - self.size(plot)[0]) / n_genes


def place_expression(
    figure: Any,
    plot: ExpressionPlot,
    left: float,
    top: float,
    layout: ExpressionLayout,
) -> None:
    """Draw into a figure, with the upper left corner at a place in inches.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    plot : ExpressionPlot
    left, top : float
        Inches from the left, and from below.
    layout : ExpressionLayout
        Letters have the size that matplotlib is set to.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    shades = ScalarMappable(Normalize(*plot.limits), ListedColormap(plot.scale))
    n_groups, n_genes = plot.values.shape
    size = layout.cell * n_genes, layout.cell * n_groups
    names, unit = layout.names(plot), layout.letters
    margin = _MARGIN * unit
    begin, under = left + margin + names[0], top - margin - size[1]
    axes = axes_in_inches(figure, begin, under, *size)
    _paint(axes, plot, shades, layout.cell)
    axes.set_xlim(-0.5, n_genes - 0.5)
    axes.set_ylim(n_groups - 0.5, -0.5)
    axes.set_xticks(range(n_genes), map(_plain, plot.genes), rotation=90)
    axes.set_yticks(range(n_groups), map(_plain, plot.groups))
    axes.tick_params(length=2)
    if layout.is_below:
        corner = left + margin, under - names[1] - 0.55 * unit
        second = corner[0] + _LEGEND_INCHES * unit, corner[1] - 0.18 * unit
    else:
        corner = begin + size[0] + margin, top - margin - 0.62 * unit
        second = corner[0], corner[1] - 1.13 * unit
    wide = (_LEGEND_INCHES - 0.3) * unit
    bar = axes_in_inches(figure, *corner, wide, 0.12 * unit)
    figure.colorbar(shades, cax=bar, orientation="horizontal")
    bar.set_title(_plain(plot.title), fontsize="small", loc="left")
    bar.tick_params(labelsize="small")
    if plot.kind == "dots":
        sizes = axes_in_inches(figure, *second, wide, 0.3 * unit)
        _explain_sizes(sizes, layout.cell)


def write_expression(plot: ExpressionPlot, path: Path) -> None:
    """Write the drawing as the ending says: .pdf, .svg or .png; its text stays text.

    Raises
    ------
    DataError
        `path` cannot be written, or matplotlib is missing.
    """
    figure = draw_expression(plot)
    save_with_text(figure, path)


def save_with_text(
    figure: Any, path: Path, *, dpi: int = _DPI, is_cropped: bool = True
) -> None:
    """Write a figure whose letters can be edited; the same one gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : Path
    dpi : int
        Dots per inch of what is a picture: a .png, and many points in the others.
    is_cropped : bool
        Whether empty borders are left out.

    Raises
    ------
    DataError
        `path` cannot be written, or has another ending than .pdf, .svg or .png.
    """
    from matplotlib import rc_context

    ending = path.suffix.lower()
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": None}
    if ending not in dates:
        raise DataError(
            f"{path.name} is no figure: end its name in .pdf, .svg or .png."
        )
    options: Any = {
        "pdf.fonttype": 42,
        "svg.fonttype": "none",
        "svg.hashsalt": "embedding-game",
    }
    with rc_context(options), whole_or_nothing(path) as temporary:
        figure.savefig(
            temporary,
            format=ending[1:],
            dpi=dpi,
            metadata=dates[ending],
            bbox_inches="tight" if is_cropped else None,
        )


def axes_in_inches(
    figure: Any, left: float, bottom: float, width: float, height: float
) -> Any:
    """Return axes at a place of a figure in inches, counted from below."""
    wide, high = figure.get_size_inches()
    return figure.add_axes((left / wide, bottom / high, width / wide, height / high))


def _paint(axes: Any, plot: ExpressionPlot, shades: Any, cell: float) -> None:
    n_groups, n_genes = plot.values.shape
    if plot.kind == "dots":
        columns, rows = np.meshgrid(np.arange(n_genes), np.arange(n_groups))
        axes.scatter(
            columns.ravel(),
            rows.ravel(),
            s=_area(np.nan_to_num(plot.shares).ravel(), cell),
            c=shades.to_rgba(plot.values.ravel()),
            edgecolors="#555555",
            linewidths=0.3,
        )
        return
    if plot.kind == "matrix":
        parts: list[NDArray[np.floating]] = [row[None] for row in plot.values]
    else:
        parts = [part for part in plot.cells if len(part)]
    for row, part in enumerate(parts):
        axes.imshow(
            shades.to_rgba(part),
            extent=(-0.5, n_genes - 0.5, row + 0.46, row - 0.46),
            aspect="auto",
            interpolation="nearest",
        )


def _area(shares: NDArray[np.floating], cell: float) -> NDArray[np.floating]:
    """Return the area of dots in square points; the largest just fits."""
    widest = 72 * cell * 0.9
    area: NDArray[np.floating] = widest**2 * shares**SIZE_EXPONENT
    return area


def _explain_sizes(axes: Any, cell: float) -> None:
    shares = np.array(TOLD_SHARES)
    axes.scatter(
        np.arange(len(shares)),
        np.zeros(len(shares)),
        s=_area(shares, cell),
        c="#999999",
        edgecolors="#555555",
        linewidths=0.3,
    )
    axes.set_xlim(-0.6, len(shares) - 0.4)
    axes.set_xticks(range(len(shares)), [f"{100 * share:.0f}" for share in shares])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize="small")
    axes.set_title("Share above 0 (%)", fontsize="small", loc="left")


def _plain(text: str) -> str:
    """Text that matplotlib takes for no formula."""
    return text.replace("$", r"\$")
