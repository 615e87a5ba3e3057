"""Compiled loops of :mod:`density`: points into pixels, and counts into brightness."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

_F = np.float32
_HALF, _ZERO, _ONE = np.float32(0.5), np.float32(0), np.float32(1)
_MOST = np.float32(255)
MOST_MIXED = 1 << 24
"""Points of one pixel that its colour is the mean of: sums of more would overflow."""


@numba.njit(nogil=True, cache=True, fastmath=True)
def find_near(
    found: NDArray[np.intp],
    positions: NDArray[np.float32],
    order: NDArray[np.intp],
    rows: NDArray[np.float32],
    columns: NDArray[np.float32],
    height: int,
    width: int,
    margin: float,
) -> int:
    """Write the points on a picture, or little beside it; return how many they are.

    Parameters are those of :func:`density.points_near`, and

    found : (m,) int, written in place
        As many as there may be.
    """
    n_ordered, n_found = len(order), 0
    low, high, right = _F(-margin), _F(height + margin), _F(width + margin)
    for place in range(n_ordered if n_ordered else len(positions)):
        i = order[place] if n_ordered else place
        y = rows[0] * positions[i, 0] + rows[1]
        x = columns[0] * positions[i, 1] + columns[1]
        found[n_found] = i
        n_found += (y >= low) & (y < high) & (x >= low) & (x < right)
    return n_found


@numba.njit(nogil=True, cache=True, fastmath=True)
def add_points(
    cells: NDArray[np.uint32],
    positions: NDArray[np.float32],
    colors: NDArray[np.float32],
    codes: NDArray[np.int32],
    first: int,
    order: NDArray[np.intp],
    shown: NDArray[np.bool_],
    rows: NDArray[np.float32],
    columns: NDArray[np.float32],
) -> None:
    """Add each point to the pixel that its middle lies in.

    Parameters
    ----------
    cells : (height, width, 5) uint32, written in place
        Red, green and blue times the opacity, the opacity, each 0 to 255, and the
        points, all summed.
    colors : (N, 4), or (K, 4) where there are codes
    codes : (N,) or (0,)
        Row of the colours of each point, ``first`` more; a row below 0 is the last.
    order : (m,) or (0,)
        The points; none: all as they come.
    shown : (N,) or (0,)
        Whether a point is added; none: all are.
    """
    height, width = _F(cells.shape[0]), _F(cells.shape[1])
    n_ordered, is_coded, is_chosen = len(order), len(codes) > 0, len(shown) > 0
    for place in range(n_ordered if n_ordered else len(positions)):
        i = order[place] if n_ordered else place
        if is_chosen and not shown[i]:
            continue
        y = rows[0] * positions[i, 0] + rows[1]
        x = columns[0] * positions[i, 1] + columns[1]
        # Written so that NaN is outside.
        if not (y >= _ZERO and y < height and x >= _ZERO and x < width):
            continue
        row, column = int(y), int(x)
        cells[row, column, 4] += np.uint32(1)
        if cells[row, column, 4] >= MOST_MIXED:
            continue
        c = i
        if is_coded:
            c = codes[i] - first
            if c < 0:
                c = len(colors) - 1
        strength = _MOST * colors[c, 3]
        for channel in range(3):
            cells[row, column, channel] += np.uint32(
                strength * colors[c, channel] + _HALF
            )
        cells[row, column, 3] += np.uint32(strength + _HALF)


@numba.njit(nogil=True, cache=True, fastmath=True)
def shade_cells(
    pixels: NDArray[np.uint8],
    cells: NDArray[np.uint32],
    weight: np.float32,
    brightest: np.float32,
    faintest: np.float32,
    opacity: np.float32,
) -> None:
    """Write the mean colours of cells that hold points, the stronger the more.

    Parameters
    ----------
    pixels : (height, width, 4) uint8, written in place
        Red, green and blue times the opacity, and the opacity.
    cells : (height, width, 5) uint32
        See :func:`add_points`.
    weight : float
        Points that each counted one stands for.
    brightest : float
        Points from which a pixel has the full opacity; above 1.
    faintest : float
        Opacity of a pixel with one point.
    """
    steepness = (_ONE - faintest) / np.log(brightest)
    for row in range(cells.shape[0]):
        for column in range(cells.shape[1]):
            n_points = cells[row, column, 4]
            if not n_points:
                continue
            level = faintest + steepness * np.log(max(_ONE, _F(n_points) * weight))
            mixed = _F(min(n_points, np.uint32(MOST_MIXED - 1)))
            share = min(_ONE, level) * opacity / mixed
            for channel in range(4):
                value = share * _F(cells[row, column, channel]) + _HALF
                pixels[row, column, channel] = np.uint8(min(_MOST, value))
