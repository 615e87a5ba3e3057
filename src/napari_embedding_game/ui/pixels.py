"""Points into pixels: as discs, or as how many lie where.

A window without a graphics card takes seconds for a million points, most of it for
preparing them one by one.  Here each costs the few pixels that it covers.

Discs of more points than pixels lie on one another, and whichever comes last hides the
rest.  In a density a pixel has the mean colour of the points in it, and is the stronger
the more they are: its opacity grows with the logarithm of their number, as an eye tells
ratios apart rather than differences.  datashader's ``shade(how="log")`` does the same.
"""

# The compiler infers types and ignores annotations.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.data.palette import Colors

FAINTEST = 0.35
"""Opacity of a pixel with one point."""
FAINTEST_ABOVE = 0.8
"""The same of points above the others: what was chosen is seen, be it one point."""
BRIGHTEST_SHARE = 0.995
"""Share of the pixels with points that are below the full opacity.

A few spots with thousands of points on each other would leave all else faint.
"""
MIN_RANGE = 4.0
"""Least number of points of the full opacity: few points are not made to look many."""
SAMPLED = 200_000
"""Pixels of which that number is found."""
_MAX_MIXED = 1 << 24
"""Points of one pixel that its colour is the mean of: sums of more would overflow."""
_F, _U = np.float32, np.uint32

Lines = tuple[tuple[float, float], tuple[float, float]]
"""From rows, and from columns, to pixels: slope * position + offset, counted from the
picture's upper left corner."""


def paint_discs(
    positions: NDArray[np.floating],
    sizes: NDArray[np.floating],
    colors: Colors,
    lines: Lines,
    shape: tuple[int, int],
    rows: NDArray[np.intp] | None = None,
    opacity: float = 1.0,
    below: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint8]:
    """Return a picture of points as discs with smooth edges, one over another.

    ``positions`` (N, 2): row and column in any unit. ``sizes`` (N,): diameters, which
    on the picture are at least 1 pixel. Points that are not finite are left out.
    ``colors`` (N, 4), 0 to 1: red, green, blue and opacity. ``shape`` (height, width):
    of the picture in pixels. ``rows`` (m,) int: points in the order in which they are
    painted; by default all as they come. ``opacity``: of all points, 0 to 1; times that
    of each. ``below``: the picture that they are painted into, as it is returned.

    Returns (height, width, 4) uint8: red, green, blue, each already multiplied by the
    opacity, and the opacity.
    """
    pixels = np.zeros((*shape, 4), np.uint8) if below is None else below
    taken = (
        each if rows is None else each.take(rows, axis=0)  # none is waited for later
        for each in (positions[:, 0], positions[:, 1], sizes, colors)
    )
    whole, along = pixels.view(np.uint32)[..., 0], np.array(lines, np.float32)
    _add_discs(whole, along, *map(to_read, taken), _F(opacity))
    return pixels


def paint_density(
    positions: NDArray[np.floating],
    colors: Colors,
    lines: Lines,
    shape: tuple[int, int],
    above: NDArray[np.bool_] | None = None,
    opacity: float = 1.0,
    fewest: float = -1,
) -> NDArray[np.uint8] | None:
    """Return a picture, as of :func:`paint_discs`, of how many points lie where.

    A pixel with some of those above, (N,) bool, shows no others.  None where no more
    than the fewest are in the picture.
    """
    pixels, brightest, n_seen = np.zeros((*shape, 4), np.uint8), MIN_RANGE, 0
    along, axes = np.array(lines, np.float32), map(to_read, positions.T)
    points = along, *axes, to_read(colors)
    is_above = np.zeros(len(positions), bool) if above is None else above
    for part, faintest in ((False, FAINTEST), (True, FAINTEST_ABOVE)):
        if part and not is_above.any():
            break
        counts, sums = np.zeros(shape, np.uint32), np.zeros((*shape, 4), np.uint32)
        _count(counts, sums, *points, to_read(is_above, bool), part)
        held = counts[counts > 0]
        if len(held):
            n_seen += int(held.sum(dtype=np.int64))
            some = held[:: max(1, len(held) // SAMPLED)]
            most = float(np.quantile(some, BRIGHTEST_SHARE, method="lower"))
            brightest = max(brightest, most)
            _shade(pixels, counts, sums, _F(brightest), _F(faintest), _F(opacity))
    return pixels if n_seen > fewest else None


def compile_loops() -> None:
    """Compile the loops, or read them from numba's cache."""
    rows, lines = np.zeros((1, 4), np.float32), ((1.0, 0.0), (1.0, 0.0))
    paint_discs(rows[:, :2], rows[:, 0], rows, lines, (1, 1))
    paint_density(rows[:, :2], rows, lines, (1, 1))


def find_last_loop() -> Any:
    """Return the loop that :func:`compile_loops` compiles last."""
    return _shade


def to_read(array: Any, dtype: type = np.float32) -> NDArray[Any]:
    """Return an array for loops to read, which are compiled for one kind."""
    given: NDArray[Any] = np.ascontiguousarray(array, dtype).view()
    given.flags.writeable = False
    return given


# Loops


@njit(nogil=True, cache=True, fastmath=True)
def _count(counts, sums, lines, rows, columns, colors, is_above, part):
    """Add the points that are above, or those that are not, to their middles' pixels.

    ``counts`` (height, width) uint32: how many there are; ``sums`` (height, width, 4):
    red, green and blue times the opacity, and the opacity, each 0 to 255.
    """
    zero, height, width = _F(0), _F(counts.shape[0]), _F(counts.shape[1])
    for i in range(len(rows)):
        if is_above[i] != part:
            continue
        y = lines[0, 0] * rows[i] + lines[0, 1]
        x = lines[1, 0] * columns[i] + lines[1, 1]
        # Written so that NaN is outside.
        if not (y >= zero and y < height and x >= zero and x < width):
            continue
        row, column = int(y), int(x)
        counts[row, column] += _U(1)
        if counts[row, column] >= _MAX_MIXED:
            continue
        cell, strength = sums[row, column], _F(255) * colors[i, 3]
        for channel in range(3):
            cell[channel] += _U(strength * colors[i, channel] + _F(0.5))
        cell[3] += _U(strength + _F(0.5))


@njit(nogil=True, cache=True, fastmath=True)
def _shade(pixels, counts, sums, brightest, faintest, opacity):
    """Write the mean colours of pixels that hold points, the stronger the more.

    ``brightest``: points from which a pixel has the full opacity; above 1.
    """
    steepness = (_F(1) - faintest) / np.log(brightest)
    for row in range(counts.shape[0]):
        for column in range(counts.shape[1]):
            n_points = counts[row, column]
            if not n_points:
                continue
            level = faintest + steepness * np.log(_F(n_points))
            mixed = _F(min(n_points, _U(_MAX_MIXED - 1)))
            share = min(_F(1), level) * opacity / mixed
            for channel in range(4):
                value = share * _F(sums[row, column, channel]) + _F(0.5)
                pixels[row, column, channel] = np.uint8(min(_F(255), value))


@njit(nogil=True, cache=True, fastmath=True)
def _add_discs(pixels, lines, rows, columns, sizes, colors, opacity):
    """Paint discs into pixels, which hold red, green, blue and opacity in their bytes.

    The lowest byte is the first; two of them are mixed with one multiplication.
    """
    even, odd, eight = _U(0x00FF00FF), _U(0xFF00FF00), _U(8)
    height, width = pixels.shape
    scale = _F(0.5) * np.sqrt(abs(lines[0, 0] * lines[1, 0]))
    for i in range(len(rows)):
        y = lines[0, 0] * rows[i] + lines[0, 1]
        x = lines[1, 0] * columns[i] + lines[1, 1]
        radius = max(_F(0.5), scale * sizes[i])
        reach = radius + _F(0.5)
        # Written so that NaN is outside.
        inside_x = -reach < x and x < _F(width) + reach
        inside_y = -reach < y and y < _F(height) + reach
        if not (inside_x and inside_y):
            continue
        strength = _F(256) * colors[i, 3] * opacity
        red_blue = _U(colors[i, 0] * _F(255) + _F(0.5))
        red_blue |= _U(colors[i, 2] * _F(255) + _F(0.5)) << _U(16)
        green_opacity = _U(colors[i, 1] * _F(255) + _F(0.5)) | _U(255 << 16)
        top = max(0, int(np.floor(y - reach + _F(0.5))))
        bottom = min(height, int(np.floor(y + reach + _F(0.5))))
        left = max(0, int(np.floor(x - reach + _F(0.5))))
        right = min(width, int(np.floor(x + reach + _F(0.5))))
        whole, none = max(radius - _F(0.5), _F(0)) ** 2, reach * reach
        for row in range(top, bottom):
            dy = _F(row) + _F(0.5) - y
            for column in range(left, right):
                dx = _F(column) + _F(0.5) - x
                squared = dx * dx + dy * dy
                if squared >= none:
                    continue
                if squared <= whole:
                    share = _U(strength)
                else:
                    share = _U(strength * min(_F(1), reach - np.sqrt(squared)))
                rest, under = _U(256) - share, pixels[row, column]
                low = ((under & even) * rest + red_blue * share) >> eight & even
                high = (under >> eight & even) * rest + green_opacity * share & odd
                pixels[row, column] = low | high
