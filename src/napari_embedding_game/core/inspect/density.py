"""A picture of more points than pixels: where many lie, and in which colours.

Discs of so many points lie on one another, and whichever comes last hides the rest.
Here a pixel has the mean colour of the points in it, and is the stronger the more they
are: its opacity grows with the logarithm of their number, as an eye tells ratios apart
rather than differences.  datashader's ``shade(how="log")`` does the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.density_loops import (
    add_points,
    find_near,
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
_NO_CODES = np.empty(0, np.int32)
_NO_MASK = np.empty(0, np.bool_)


@dataclass(frozen=True, eq=False)
class PointPart:
    """Points that are counted together.

    Parameters
    ----------
    positions : (N, 2) float
        Row and column in any unit.  Points that are not finite are left out.
    colors : (N, 4) or (K, 4) float, 0 to 1
        Red, green, blue and opacity, of each point or by its code.
    codes : (N,) int32, optional
        Row of the colours of each point, ``first`` more; a row below 0 is the last.
    first : int
    order : (m,) int, optional
        The points of the part; by default all.
    shown : (N,) bool, optional
        Which of these are counted; by default all.
    """

    positions: NDArray[np.floating]
    colors: NDArray[np.floating]
    codes: NDArray[np.int32] | None = None
    first: int = 0
    order: NDArray[np.intp] | None = None
    shown: NDArray[np.bool_] | None = None


def points_near(
    positions: NDArray[np.floating],
    rows: tuple[float, float],
    columns: tuple[float, float],
    shape: tuple[int, int],
    margin: float,
    *,
    order: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Return the points that have their middle on a picture or little beside it.

    Parameters are those of :class:`PointPart` and :func:`paint_parts`, and

    margin : float
        Pixels around the picture.  With 0 they are those that are counted in it.
    """
    if order is not None and not len(order):
        return order
    n_points = len(positions) if order is None else len(order)
    found = np.empty(n_points + 1, np.intp)
    n_found = find_near(
        found,
        np.ascontiguousarray(positions, np.float32),
        _NO_ORDER if order is None else np.ascontiguousarray(order, np.intp),
        np.array(rows, np.float32),
        np.array(columns, np.float32),
        *shape,
        float(margin),
    )
    return found[:n_found]


def paint_parts(
    below: Iterable[PointPart],
    above: Iterable[PointPart],
    rows: tuple[float, float],
    columns: tuple[float, float],
    shape: tuple[int, int],
    *,
    weights: tuple[float, float] = (1.0, 1.0),
    opacity: float = 1.0,
) -> NDArray[np.uint8]:
    """Return a picture of how many points lie where, part after part.

    Parameters
    ----------
    below, above : iterables of PointPart
        A pixel with some of the points above shows no others.
    rows, columns : (slope, offset)
        From rows and columns to pixels: slope * position + offset, counted from the
        picture's upper left corner.
    shape : (height, width)
        Of the picture in pixels.
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
    lines = np.array(rows, np.float32), np.array(columns, np.float32)
    pixels = np.zeros((*shape, 4), np.uint8)
    brightest = LEAST_RANGE
    levels = (below, weights[0], FAINTEST), (above, weights[1], FAINTEST_ABOVE)
    for parts, weight, faintest in levels:
        cells = None
        for part in parts:
            cells = np.zeros((*shape, 5), np.uint32) if cells is None else cells
            _add(cells, part, lines)
        if cells is None:
            continue
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


def _add(
    cells: NDArray[np.uint32],
    part: PointPart,
    lines: tuple[NDArray[np.float32], NDArray[np.float32]],
) -> None:
    """Add the points of a part to cells."""
    order, shown, codes = part.order, part.shown, part.codes
    if order is not None and not len(order):
        return  # which would be taken for all of them
    add_points(
        cells,
        _given(part.positions, np.float32),
        _given(part.colors, np.float32),
        _given(_NO_CODES if codes is None else codes, np.int32),
        part.first,
        _given(_NO_ORDER if order is None else order, np.intp),
        _given(_NO_MASK if shown is None else shown, np.bool_),
        *lines,
    )


def _given(array: NDArray[Any], dtype: type) -> NDArray[Any]:
    """Return an array as the loop is given it: in order, and not to be written.

    Where some could be written and others not, it would be compiled for each.
    """
    given: NDArray[Any] = np.ascontiguousarray(array, dtype).view()
    given.flags.writeable = False
    return given


def _brightest(counts: NDArray[np.uint32]) -> float:
    """Return how many points the fullest pixels hold, a few of these left out."""
    held = counts[counts > 0]
    if not len(held):
        return 1.0
    some = held[:: max(1, len(held) // SAMPLED)]
    place = int(BRIGHTEST_SHARE * (len(some) - 1))
    return float(np.partition(some, place)[place])
