"""Draw a volcano plot as a matplotlib figure: what differs, and how surely."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.export.expression_figure import (
    figure_of_matplotlib,
    save_with_text,
)

_INCHES = (4.0, 3.6)
SURE, LARGE = 0.05, 1.0
"""Adjusted p-value and log2 fold change from which a gene stands out."""
MOST_CHANGE, LEAST_P = 10.0, 1e-300
"""Beyond these a gene is drawn at the edge."""
USUAL = 0.99
"""Share of the genes that are not sure which the axis has room for in any case."""
N_NAMED = 10
"""Genes on each side whose names are written, where there is room."""
_HIGHER, _LOWER, _OTHER, _LINE = "#3f7cb5", "#d9804f", "#b8b8b8", "#888888"
MOST_VECTOR = 5_000
"""Points above which they are a picture in a .pdf or .svg."""


@dataclass(frozen=True, eq=False, kw_only=True)
class VolcanoPlot:
    """What is drawn: G genes of two groups, by falling score."""

    names: NDArray[np.object_]
    """(G,)"""
    changes: NDArray[np.floating]
    """(G,) log2 fold changes; NaN where there is none."""
    p_values: NDArray[np.floating]
    """(G,) adjusted."""
    title: str = ""
    """What is compared."""


def draw_volcano(plot: VolcanoPlot) -> Any:
    """Draw each gene: its change to the right or left, its certainty upwards.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        If matplotlib is missing.
    """
    figure = figure_of_matplotlib()(figsize=_INCHES, layout="constrained")
    axes: Any = figure.add_subplot()
    paint_volcano(axes, plot, most_vector=MOST_VECTOR)
    axes.set_title(plot.title.replace("$", r"\$"), fontsize="medium")
    return figure


def drawn_changes(
    changes: NDArray[np.floating], p_values: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Return the changes that are drawn: those beyond the axis lie at its end.

    The axis reaches as far as the genes that are sure and nearly all others. Genes
    without a count on one side, whose change has no bound, would squeeze the others.

    Parameters
    ----------
    changes : ndarray of shape (G,)
        log2 fold changes; NaN where there is none.
    p_values : ndarray of shape (G,)
        Adjusted.

    Returns
    -------
    ndarray of shape (G,)
        NaN where there is none.
    """
    known = np.isfinite(changes)
    if not known.any():
        return changes
    size = np.abs(changes)
    usual = np.quantile(size[known], USUAL)
    sure = size[known & (p_values < SURE)].max(initial=0.0)
    limit = min(max(usual, sure, 2 * LARGE), MOST_CHANGE)
    drawn: NDArray[np.floating] = np.clip(changes, -limit, limit)
    return drawn


def write_volcano(plot: VolcanoPlot, path: Path) -> None:
    """Write the drawing as the ending says: .pdf, .svg or .png; its text stays text.

    Raises
    ------
    DataError
        `path` cannot be written, or matplotlib is missing.
    """
    save_with_text(draw_volcano(plot), path)


def paint_volcano(
    axes: Any, plot: VolcanoPlot, *, most_vector: int, diameter: float = 3.0
) -> None:
    """Draw into axes.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    plot : VolcanoPlot
    most_vector : int
        Points above which they are a picture.
    diameter : float
        Of a gene, in points.
    """
    x = drawn_changes(plot.changes, plot.p_values)
    y = -np.log10(np.maximum(plot.p_values, LEAST_P))
    is_known = np.isfinite(x + y)
    stands_out = is_known & (y > -np.log10(SURE)) & (abs(x) > LARGE)
    for rows, color in (
        (is_known & ~stands_out, _OTHER),
        (stands_out & (x < 0), _LOWER),
        (stands_out & (x > 0), _HIGHER),
    ):
        axes.scatter(
            x[rows],
            y[rows],
            s=diameter**2,
            c=color,
            linewidths=0,
            rasterized=len(x) > most_vector,
        )
    widest = max(2.0, float(np.abs(x[is_known]).max(initial=0.0))) * 1.15
    highest = max(3.0, float(y[is_known].max(initial=0.0))) * 1.08
    axes.set_xlim(-widest, widest)
    axes.set_ylim(0, highest)
    for place in (-LARGE, LARGE):
        axes.axvline(place, color=_LINE, linewidth=0.5, linestyle=(0, (4, 3)))
    axes.axhline(-np.log10(SURE), color=_LINE, linewidth=0.5, linestyle=(0, (4, 3)))
    axes.set_xlabel("log2 fold change")
    axes.set_ylabel("−log10 adjusted p")
    axes.spines[["top", "right"]].set_visible(False)
    _write_names(axes, plot.names, x, y, stands_out, diameter)


def _write_names(
    axes: Any,
    names: NDArray[np.object_],
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    stands_out: NDArray[np.bool_],
    diameter: float,
) -> None:
    """Write the names of the first and last genes that cover no other name."""
    from matplotlib import rcParams

    size = 0.85 * rcParams["font.size"]
    box = axes.get_position()
    inches = axes.figure.get_size_inches() * [box.width, box.height] * 72
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    units = np.array([right - left, top - bottom]) / inches
    """Of the axes, for a point of the page."""
    rows = np.flatnonzero(stands_out)
    taken: list[tuple[float, float, float, float]] = []
    for row in [*rows[:N_NAMED], *rows[::-1][:N_NAMED]]:
        name = str(names[row])
        width, height = units * [0.7 * size * len(name), 1.1 * size]
        away = units[0] * (diameter / 2 + 1.5)
        is_right = x[row] >= 0 and x[row] + away + width < right
        is_right |= x[row] - away - width < left
        begin = x[row] + away if is_right else x[row] - away - width
        place = (begin, y[row] - height / 2, begin + width, y[row] + height / 2)
        if any(_overlap(place, other) for other in taken):
            continue
        taken.append(place)
        axes.annotate(
            name.replace("$", r"\$"),
            (x[row], y[row]),
            xytext=((1 if is_right else -1) * (diameter / 2 + 1.5), 0),
            textcoords="offset points",
            ha="left" if is_right else "right",
            va="center",
            fontsize=size,
        )


def _overlap(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    return (
        one[0] < other[2]
        and other[0] < one[2]
        and one[1] < other[3]
        and other[1] < one[3]
    )
