"""Write the figure of a reproduction, its maps and curves, by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_embedding_game.data.export.atomic import atomic_write
from napari_embedding_game.data.export.plots import make_figure

_MAX_POINTS = 10_000
_INCHES = 3.6
_WIDE = 100
"""Ratio of the largest to the smallest positive value above which an axis is
logarithmic."""


def write_figure(
    maps: Mapping[str, dict[str, Any]], curves: Mapping[str, pd.DataFrame], path: Path
) -> None:
    """Write a PNG file with a panel for each map and each table of curves, by title.

    ``maps``: dicts of "layout" (N, 2) and "labels" (N,), and optionally "landmarks" (L,
    2), "heights" (N,) for the sizes of points, and "wrong" (N,) for points with a
    cross.  ``curves``: tables whose columns are curves over the index; curves replace a
    map of the same title.  An existing file is replaced.
    """
    panels = {**maps, **curves}
    columns = max(1, min(4, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    figure = make_figure((_INCHES * columns, _INCHES * rows))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    for axes, (title, panel) in zip(grid, panels.items(), strict=False):
        axes.set_title(title, fontsize=8)
        if title in curves:
            _plot_curves(axes, panel)
        else:
            _plot_map(axes, **panel)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _plot_map(
    axes: Any,
    layout: Any,
    labels: Any,
    landmarks: Any = (),
    heights: Any = None,
    wrong: Any = (),
    **more: Any,
) -> None:
    """Plot a map on axes, coloured by label, at most ``_MAX_POINTS`` random points.

    Floats are coloured along a scale, other labels by 10 or 20 colours that repeat.
    Parameters: see :func:`write_figure`; ``more`` is ignored.
    """
    rows = np.random.default_rng(0).permutation(len(layout))[:_MAX_POINTS]
    size: Any = np.clip(8_000 / len(rows), 0.3, 5)
    if heights is not None:
        most = max(float(np.quantile(heights, 0.99)), 1e-9)
        size = 4 + 60 * np.minimum(heights[rows] / most, 1)
    scale = "Spectral"
    if not np.issubdtype(labels.dtype, np.floating):
        labels = pd.factorize(labels, sort=True)[0] % 20
        scale = "tab10" if labels.max() < 10 else "tab20"
    axes.scatter(*layout[rows].T, c=labels[rows], cmap=scale, s=size, linewidths=0)
    if len(landmarks):
        axes.scatter(*landmarks.T, c="black", s=6, linewidths=0)
    if len(wrong):
        axes.plot(*layout[wrong].T, "kx", markersize=3)
    # The axes show a square that contains nearly all points.
    low, high = np.percentile(layout, [0.1, 99.9], axis=0)
    half = max(0.55 * float((high - low).max()), 1e-3)
    x, y = (low + high) / 2
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half), xticks=[], yticks=[])
    axes.set_aspect("equal")


def _plot_curves(axes: Any, values: pd.DataFrame) -> None:
    """Plot the columns of a table over its index.

    An axis is logarithmic where all its values are positive and span more than
    ``_WIDE``.
    """
    x, y = values.index.to_numpy(float), values.to_numpy(float)
    axes.plot(x, y, ".-", label=list(values))
    for name, numbers in (("x", x), ("y", y)):
        least = np.nanmin(numbers)
        if least > 0 and np.nanmax(numbers) > _WIDE * least:
            axes.set(**{f"{name}scale": "log"})
    axes.set_xlabel(values.index.name)
    axes.legend(frameon=False, fontsize=7)
