"""Panels of the figures: maps, curves, pictures and texts, drawn by matplotlib."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.export.atomic import whole_or_nothing
from napari_embedding_game.data.export.expression_figure import figure_of_matplotlib

Panel = Callable[[Any], None]
"""Draws on empty matplotlib axes."""
_MOST_POINTS = 10_000
_INCHES = 3.6


def write_figure(panels: Sequence[Panel], columns: int, path: Path) -> None:
    """Draw the panels row by row into a PNG file, without a window.

    Raises
    ------
    DataError
        matplotlib is not installed.
    """
    rows = max(1, -(-len(panels) // columns))
    size = _INCHES * columns, _INCHES * rows
    figure = figure_of_matplotlib()(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, panel in zip_longest(grid.ravel(), panels):
        if panel is None:
            axes.set_axis_off()
        else:
            panel(axes)
    with whole_or_nothing(path) as temporary:
        figure.savefig(temporary, dpi=150)


def scatter(
    title: str,
    layout: NDArray[Any],
    colors: NDArray[Any],
    *,
    landmarks: NDArray[Any] | None = None,
    heights: NDArray[Any] | None = None,
    marked: NDArray[Any] | None = None,
) -> Panel:
    """Draw (N, 2) points, at most 10,000 of them.

    Parameters
    ----------
    title : str
    layout : (N, 2) array
    colors : (N,) array
        Floating-point numbers make a colour scale, anything else are labels.
    landmarks : (L, 2) array, optional
        Drawn in black.
    heights : (N,) array, optional
        Pressures: the larger, the larger the point.
    marked : (N,) bool array, optional
        Points with a cross.
    """

    def draw(axes: Any) -> None:
        rows = np.random.default_rng(0).permutation(len(layout))[:_MOST_POINTS]
        size: Any = np.clip(8_000 / len(rows), 0.3, 5)
        if heights is not None:
            most = max(float(np.quantile(heights, 0.99)), 1e-9)
            size = 4 + 60 * np.minimum(heights[rows] / most, 1)
        values, scale = colors, "Spectral"
        if not np.issubdtype(colors.dtype, np.floating):
            values = np.unique(colors, return_inverse=True)[1] % 20
            scale = "tab10" if values.max() < 10 else "tab20"
        x, y = layout.T
        axes.scatter(x[rows], y[rows], c=values[rows], cmap=scale, s=size, linewidths=0)
        if landmarks is not None:
            axes.scatter(*landmarks.T, c="black", s=6, linewidths=0)
        if marked is not None:
            axes.plot(x[marked], y[marked], "kx", markersize=3)
        middle, reach = view(layout)
        axes.set(xlim=middle[0] + reach, ylim=middle[1] + reach, xticks=[], yticks=[])
        axes.set_aspect("equal")
        axes.set_title(title, fontsize=8)

    return draw


def view(layout: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the middle of a square with nearly all points, and its two ends."""
    low, high = np.percentile(layout, [0.1, 99.9], axis=0)
    reach = max(0.55 * float((high - low).max()), 1e-3)
    return (low + high) / 2, np.array([-reach, reach])


def curves(
    title: str,
    lines: Mapping[str, tuple[Any, Any]],
    x: str,
    *,
    log: str = "",
    level: float | None = None,
) -> Panel:
    """Draw lines by their names, (x, y) each; those of the paper and bounds dashed.

    Parameters
    ----------
    title : str
    lines : dict
    x : str
        What runs along the axis.
    log : str
        The axes that are logarithmic: "", "x", "y" or "xy".
    level : float, optional
        Where a dotted line lies.
    """

    def draw(axes: Any) -> None:
        for name, (xs, ys) in lines.items():
            is_reference = name.endswith(("paper", "bound"))
            axes.plot(xs, ys, "x--" if is_reference else ".-", label=name)
        if level is not None:
            axes.axhline(level, color="grey", linestyle=":")
        for axis in log:
            getattr(axes, f"set_{axis}scale")("log")
        axes.set_xlabel(x)
        axes.set_title(title, fontsize=8)
        axes.legend(frameon=False, fontsize=7)

    return draw


def pictures(title: str, images: NDArray[Any]) -> Panel:
    """Draw (n, h, w) pictures side by side in a square."""

    def draw(axes: Any) -> None:
        axes.imshow(mosaic(images), cmap="gray_r")
        axes.set_axis_off()
        axes.set_title(title, fontsize=8)

    return draw


def mosaic(images: NDArray[Any]) -> NDArray[Any]:
    """Put (n, h, w) pictures side by side in a square, what is left over empty."""
    n, height, width = images.shape
    side = max(1, int(np.ceil(np.sqrt(n))))
    whole = np.zeros((side * side, height, width), images.dtype)
    whole[:n] = images
    rows = whole.reshape(side, side, height, width).transpose(0, 2, 1, 3)
    return rows.reshape(side * height, side * width)


def texts(title: str, lines: Sequence[str]) -> Panel:
    """Write the first eight lines, shortened."""

    def draw(axes: Any) -> None:
        shown = [textwrap.shorten(line, 62, placeholder="") for line in lines[:8]]
        axes.text(0, 1, "\n".join(shown), va="top", fontsize=6.5)
        axes.set_axis_off()
        axes.set_title(title, fontsize=8)

    return draw
