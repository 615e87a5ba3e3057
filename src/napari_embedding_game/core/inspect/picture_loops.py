"""Compiled loop of :mod:`picture`: discs, one over another, into packed pixels."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

_F = np.float32
_HALF, _ONE = np.float32(0.5), np.float32(1)
_LOW = np.uint32(0x00FF00FF)
_HIGH = np.uint32(0xFF00FF00)
_SHIFT = np.uint32(8)
_WHOLE = np.uint32(256)
_OPAQUE = np.uint32(255 << 16)


@numba.njit(nogil=True, cache=True, fastmath=True)
def paint_discs(
    pixels: NDArray[np.uint32],
    positions: NDArray[np.float32],
    sizes: NDArray[np.float32],
    colors: NDArray[np.float32],
    order: NDArray[np.intp],
    rows: NDArray[np.float32],
    columns: NDArray[np.float32],
    opacity: np.float32,
) -> None:
    """Paint discs into pixels, see :func:`picture.paint_points`.

    A pixel holds red, green, blue and opacity in its bytes, the lowest first.  Two of
    them are mixed with one multiplication.

    Parameters
    ----------
    pixels : (height, width) uint32, written in place
    """
    height, width = pixels.shape
    radius_scale = _HALF * np.sqrt(abs(rows[0] * columns[0]))
    n_ordered = len(order)
    for place in range(n_ordered if n_ordered else len(positions)):
        i = order[place] if n_ordered else place
        y = rows[0] * positions[i, 0] + rows[1]
        x = columns[0] * positions[i, 1] + columns[1]
        radius = max(_HALF, radius_scale * sizes[i])
        reach = radius + _HALF
        # Written so that NaN is outside.
        inside_x = -reach < x and x < _F(width) + reach
        inside_y = -reach < y and y < _F(height) + reach
        if not (inside_x and inside_y):
            continue
        strength = _F(256) * colors[i, 3] * opacity
        red_blue = np.uint32(colors[i, 0] * _F(255) + _HALF)
        red_blue |= np.uint32(colors[i, 2] * _F(255) + _HALF) << np.uint32(16)
        green_opacity = np.uint32(colors[i, 1] * _F(255) + _HALF) | _OPAQUE
        top = max(0, int(np.floor(y - reach + _HALF)))
        bottom = min(height, int(np.floor(y + reach + _HALF)))
        left = max(0, int(np.floor(x - reach + _HALF)))
        right = min(width, int(np.floor(x + reach + _HALF)))
        whole, none = max(radius - _HALF, _F(0)) ** 2, reach * reach
        for row in range(top, bottom):
            dy = _F(row) + _HALF - y
            for column in range(left, right):
                dx = _F(column) + _HALF - x
                squared = dx * dx + dy * dy
                if squared >= none:
                    continue
                if squared <= whole:
                    share = np.uint32(strength)
                else:
                    share = np.uint32(strength * min(_ONE, reach - np.sqrt(squared)))
                rest = _WHOLE - share
                under = pixels[row, column]
                low = ((under & _LOW) * rest + red_blue * share) >> _SHIFT & _LOW
                high = (under >> _SHIFT & _LOW) * rest + green_opacity * share & _HIGH
                pixels[row, column] = low | high
