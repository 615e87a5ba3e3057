"""A picture of more points than pixels: where many lie, and in which colours.

Discs of so many points lie on one another, and whichever comes last hides the rest.
Here a pixel has the mean colour of the points in it, and is the stronger the more they
are: its opacity grows with the logarithm of their number, as an eye tells ratios apart
rather than differences.  datashader's ``shade(how="log")`` does the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.density_loops import (
    add_points,
    count_inside,
    shade_cells,
)

FAINTEST = 0.35
"""Opacity of a pixel with one point."""
FAINTEST_ABOVE = 0.8
"""The same of points above the others: what was chosen is seen, be it one point."""
BRIGHTEST_SHARE = 0.995
"""Share of the pixels with points that are below the full opacity.

A few spots with thousands of points on each other would leave all else faint.
"""
LEAST_RANGE = 4.0
"""Least number of points of the full opacity: few points are not made to look many."""
SAMPLED = 200_000
"""Pixels of which that number is found."""
_NO_ORDER = np.empty(0, np.intp)


def points_inside(
    positions: NDArray[np.floating],
    rows: tuple[float, float],
    columns: tuple[float, float],
    shape: tuple[int, int],
    *,
    order: NDArray[np.intp] | None = None,
) -> int:
    """Return how many points have their middle on a picture.

    Parameters are those of :func:`paint_density`.
    """
    if order is not None and not len(order):
        return 0
    return int(
        count_inside(
            np.ascontiguousarray(positions, np.float32),
            _NO_ORDER if order is None else np.ascontiguousarray(order, np.intp),
            np.array(rows, np.float32),
            np.array(columns, np.float32),
            *shape,
        )
    )


def paint_density(
    positions: NDArray[np.floating],
    colors: NDArray[np.floating],
    rows: tuple[float, float],
    columns: tuple[float, float],
    shape: tuple[int, int],
    *,
    order: NDArray[np.intp] | None = None,
    n_above: int = 0,
    weights: tuple[float, float] = (1.0, 1.0),
    opacity: float = 1.0,
) -> NDArray[np.uint8]:
    """Return a picture of how many points lie where.

    Parameters
    ----------
    positions : (N, 2) float
        Row and column in any unit.  Points that are not finite are left out.
    colors : (N, 4) float, 0 to 1
        Red, green, blue and opacity.
    rows, columns : (slope, offset)
        From rows and columns to pixels: slope * position + offset, counted from the
        picture's upper left corner.
    shape : (height, width)
        Of the picture in pixels.
    order : (m,) int, optional
        The points that are painted; by default all.
    n_above : int
        The last of them, in that order, that lie above the others: a pixel with some of
        these shows no other points.
    weights : (float, float)
        How many each of the points below, and each of those above, stands for, where
        they are a sample.
    opacity : float
        Of all points, 0 to 1.

    Returns
    -------
    (height, width, 4) uint8
        Red, green, blue, each already multiplied by the opacity, and the opacity.
    """
    positions = np.ascontiguousarray(positions, np.float32)
    colors = np.ascontiguousarray(colors, np.float32)
    lines = np.array(rows, np.float32), np.array(columns, np.float32)
    n_drawn = len(positions) if order is None else len(order)
    n_below = n_drawn - n_above
    pixels = np.zeros((*shape, 4), np.uint8)
    brightest = LEAST_RANGE
    parts = (
        (0, n_below, weights[0], FAINTEST),
        (n_below, n_drawn, weights[1], FAINTEST_ABOVE),
    )
    for first, last, weight, faintest in parts:
        if first == last:
            continue
        cells = np.zeros((*shape, 5), np.uint32)
        if order is None:
            some = positions[first:last], colors[first:last], _NO_ORDER
        else:
            some = positions, colors, np.ascontiguousarray(order[first:last], np.intp)
        add_points(cells, *some, *lines)
        brightest = max(brightest, _brightest(cells[..., 4]) * weight)
        shade_cells(
            pixels,
            cells,
            np.float32(weight),
            np.float32(brightest),
            np.float32(faintest),
            np.float32(opacity),
        )
    return pixels


def _brightest(counts: NDArray[np.uint32]) -> float:
    """Return how many points the fullest pixels hold, a few of these left out."""
    held = counts[counts > 0]
    if not len(held):
        return 1.0
    some = held[:: max(1, len(held) // SAMPLED)]
    place = int(BRIGHTEST_SHARE * (len(some) - 1))
    return float(np.partition(some, place)[place])
