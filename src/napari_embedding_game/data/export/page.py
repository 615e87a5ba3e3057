"""Several plots as one figure for print: maps, dot plot and volcano plot.

All lengths are those on the page.  Maps have the same scale and the same size, so that
places can be compared.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plots import (
    ExpressionPlot,
    MapPlot,
    Points,
    VolcanoPlot,
    key_columns,
    new_figure,
    paint,
    save,
)

WIDTHS = {
    "89 mm, one column": 89.0,
    "120 mm, one and a half": 120.0,
    "183 mm, two columns": 183.0,
}
"""What journals print, such as Nature."""
FONT = 7.0
"""Size of letters in points: journals ask for 5 to 7."""
_FONTS = ("Arial", "Helvetica", "Liberation Sans", "DejaVu Sans")
_NARROWEST, _LINE = 1.5, 0.125
"""Inches of a map, as long as there is room, and of a line of letters."""
_CELL, _LETTER = 0.18, 0.06
"""Inches of a gene in a dot plot, and of a letter."""

Panel = MapPlot | ExpressionPlot | VolcanoPlot


@dataclass(frozen=True, kw_only=True)
class PageSettings:
    """How panels become a figure."""

    width: float = 183.0
    """Millimetres."""
    caption: str = ""
    """Written under the panels."""


def draw_panels(panels: Sequence[Panel], page: PageSettings) -> Any:
    """Return a figure: maps and volcano plots beside each other, dot plots below them.

    Raises DataError if there is no panel, or matplotlib is missing.
    """
    if not panels:
        raise DataError("Choose at least one panel for the figure.")
    width = page.width / 25.4
    new_figure((1.0, 1.0))  # which says where matplotlib is missing
    from matplotlib import rc_context

    with rc_context(_style()):
        corners = _corners([one for one in panels if isinstance(one, MapPlot)])
        plots = [one for one in panels if isinstance(one, ExpressionPlot)]
        cells: list[MapPlot | VolcanoPlot] = []
        for one in panels:
            if isinstance(one, MapPlot):
                cells.append(replace(one, corners=corners, is_key_below=True))
            elif isinstance(one, VolcanoPlot):
                cells.append(one)
        n_rows = -(-len(cells) // max(1, int(width // _NARROWEST)))
        n_columns = max(1, -(-len(cells) // max(n_rows, 1)))
        most = int(0.97 * width * 72 / (0.54 * (FONT - 0.5)))  # letters in a line
        lines = textwrap.wrap(page.caption, most)
        heights = [_height(cells, corners, width / n_columns)] * n_rows
        heights += [plot.size(_CELL, _LETTER)[1] for plot in plots]
        heights += [_LINE * (len(lines) + 0.5)] if lines else []
        figure = new_figure((width, sum(heights)))
        grid = figure.add_gridspec(len(heights), n_columns, height_ratios=heights)
        axes = [
            figure.add_subplot(grid[divmod(place, n_columns)])
            for place in range(len(cells))
        ]
        for place, plot in enumerate(plots):
            part = figure.add_subfigure(grid[n_rows + place, :])
            left = min(plot.size(_CELL, _LETTER)[0], 0.99 * width)
            halves = part.subfigures(1, 2, width_ratios=(left, width - left))
            axes.append(halves[0].subplots())
        if lines:
            words = figure.add_subfigure(grid[-1, :])
            words.text(0.01, 1.0, "\n".join(lines), va="top", size=FONT - 0.5)
        figure.draw_without_rendering()
        for letter, one in zip(ascii_lowercase * 9, axes, strict=False):
            if len(panels) > 1:
                one.set_title(letter, loc="left", weight="bold", size=FONT + 1)
        paint([*cells, *plots], axes)
        figure.draw_without_rendering()  # letters take the sizes of this style
    return figure


def write_panels(panels: Sequence[Panel], page: PageSettings, path: Path) -> None:
    """Write the figure as the ending says: .pdf, .svg or .png.

    Raises DataError if there is no panel, `path` cannot be written, or matplotlib is
    missing.
    """
    save(draw_panels(panels, page), path)


def caption_of(panels: Sequence[Panel]) -> str:
    """Return what each panel shows, in a sentence for each."""
    told = [_told(panel) for panel in panels]
    if len(told) > 1:
        pairs = zip(ascii_lowercase * 9, told, strict=False)
        told = [f"{letter}, {words}" for letter, words in pairs]
    return " ".join(told)


def _told(panel: Panel) -> str:
    if isinstance(panel, VolcanoPlot):
        what = f" ({panel.title})" if panel.title else ""
        return (
            f"Change and adjusted p-value of {len(panel.names):,} genes{what}; dashed: "
            "a change of two times, and 5\N{NO-BREAK SPACE}%."
        )
    if isinstance(panel, ExpressionPlot):
        n_groups, n_genes = panel.values.shape
        return f"{panel.title} of {n_genes} genes in {n_groups} groups."
    n = f"{len(panel.embedding):,} points"
    if panel.colors.scale is not None:
        low, high = panel.colors.limits
        return f"{panel.title} of {n}, colours from {low:.3g} to {high:.3g}."
    return f"{panel.title} ({n})."


def _style() -> Any:
    """Return what differs from matplotlib's own style."""
    from matplotlib.font_manager import get_font_names

    known = set(get_font_names())
    return {
        "font.family": [name for name in _FONTS if name in known] or ["sans-serif"],
        "font.size": FONT,
        "axes.titlesize": FONT,
        "axes.linewidth": 0.5,
        "xtick.major.width": 0.5,
        "ytick.major.width": 0.5,
        "xtick.major.size": 2.0,
        "ytick.major.size": 2.0,
    }


def _corners(maps: Sequence[MapPlot]) -> tuple[Points, Points]:
    """Return the corners that hold the points of all maps, with a border."""
    if not maps:
        return np.zeros(2), np.ones(2)
    every = np.concatenate([one.embedding for one in maps]).astype(float)
    low, high = every.min(axis=0), every.max(axis=0)
    border = 0.03 * max(float((high - low).max()), 1e-9)
    return low - border, high + border


def _height(
    cells: Sequence[Panel], corners: tuple[Points, Points], width: float
) -> float:
    """Return the inches of a row of maps and volcano plots with titles and keys."""
    wide, high = corners[1] - corners[0]
    keys = [cell.key() for cell in cells if isinstance(cell, MapPlot)]
    shape = min(high / wide, 1.5) if keys else 0.9
    lines = [-(-len(key) // key_columns(key, 72 * width)) for key in keys]
    return float(width * shape + _LINE * (3 + max([3, *lines])))
