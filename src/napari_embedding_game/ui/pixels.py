"""Paint points into pixels, as discs or as a density.

Without a graphics card a window takes seconds for a million points, most of the time
for preparing the points one by one.  Here a point costs the few pixels that it covers.

If there are more points than pixels, discs overlap and the last disc hides the others.
In a density a pixel has the mean colour of the points in the pixel, and its opacity
grows with the logarithm of their number, since an eye tells ratios apart rather than
differences.  datashader's ``shade(how="log")`` does the same.
"""

# The compiler infers types and ignores annotations.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.data.palette import Colors

MIN_OPACITY = 0.35
"""Opacity of a pixel with one point."""
MIN_OPACITY_ABOVE = 0.8
"""Opacity of a pixel with one point of ``above``, so that a single point is seen."""
OPAQUE_QUANTILE = 0.995
"""Quantile of the points in a pixel, over pixels with points, that is fully opaque.

With the maximum instead, a few pixels with thousands of points would leave the others
faint.
"""
MIN_OPAQUE_COUNT = 4.0
"""Minimum number of points of a fully opaque pixel, so that few points look few."""
MAX_QUANTILE_PIXELS = 200_000
"""Pixels of which the quantile is computed, at most about twice as many."""
_MAX_MIXED = 1 << 24
"""Points of which a pixel's colour is the mean: sums of more points would overflow."""
_F, _U = np.float32, np.uint32

PixelLines = tuple[tuple[float, float], tuple[float, float]]
"""(slope, offset) of rows and of columns: the pixel is slope * position + offset.

Pixels are counted from the picture's upper left corner.
"""


def paint_discs(
    positions: NDArray[np.floating],
    sizes: NDArray[np.floating],
    colors: Colors,
    lines: PixelLines,
    shape: tuple[int, int],
    rows: NDArray[np.intp] | None = None,
    opacity: float = 1.0,
    background: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint8]:
    """Return a picture of points as discs with smooth edges, painted in order.

    Parameters
    ----------
    positions : (N, 2) floating
        Row and column in any unit; points that are not finite are left out.
    sizes : (N,) floating
        Diameters in the unit of the positions; at least 1 pixel is painted.
    colors : (N, 4), 0 to 1
        Red, green, blue and opacity.
    lines : PixelLines
        Transform of positions to pixels.
    shape : (height, width)
        Of the picture in pixels.
    rows : (m,) int, optional
        Indices of the points to paint, in this order; by default all N in order.
    opacity : float
        Factor of all opacities, 0 to 1.
    background : (height, width, 4) uint8, optional
        A picture as this function returns it, which is painted over in place and
        returned; by default a new transparent picture.

    Returns
    -------
    (height, width, 4) uint8
        Red, green and blue, each multiplied by the opacity, and the opacity.
    """
    pixels = np.zeros((*shape, 4), np.uint8) if background is None else background
    taken = (
        # Gathered here in sequence, so that the loop need not wait for memory.
        each if rows is None else each.take(rows, axis=0)
        for each in (positions[:, 0], positions[:, 1], sizes, colors)
    )
    packed, line_array = pixels.view(np.uint32)[..., 0], np.array(lines, np.float32)
    _paint_discs(packed, line_array, *map(as_readonly_array, taken), _F(opacity))
    return pixels


def paint_density(
    positions: NDArray[np.floating],
    colors: Colors,
    lines: PixelLines,
    shape: tuple[int, int],
    above: NDArray[np.bool_] | None = None,
    opacity: float = 1.0,
    max_hidden: float = -1,
) -> NDArray[np.uint8] | None:
    """Return a picture of the number of points in each pixel, in their mean colour.

    The other parameters and the picture are as for :func:`paint_discs`.

    Parameters
    ----------
    above : (N,) bool, optional
        A pixel with some of these points shows these points only.
    max_hidden : float
        None is returned where at most this many points are in the picture.
    """
    pixels, opaque_count, n_seen = np.zeros((*shape, 4), np.uint8), MIN_OPAQUE_COUNT, 0
    line_array, axes = np.array(lines, np.float32), map(as_readonly_array, positions.T)
    points = line_array, *axes, as_readonly_array(colors)
    is_above = np.zeros(len(positions), bool) if above is None else above
    for counts_above, min_opacity in (
        (False, MIN_OPACITY),
        (True, MIN_OPACITY_ABOVE),
    ):
        if counts_above and not is_above.any():
            break
        counts, sums = np.zeros(shape, np.uint32), np.zeros((*shape, 4), np.uint32)
        _count_points(
            counts, sums, *points, as_readonly_array(is_above, bool), counts_above
        )
        occupied = counts[counts > 0]
        if len(occupied):
            n_seen += int(occupied.sum(dtype=np.int64))
            sampled = occupied[:: max(1, len(occupied) // MAX_QUANTILE_PIXELS)]
            quantile = float(np.quantile(sampled, OPAQUE_QUANTILE, method="lower"))
            opaque_count = max(opaque_count, quantile)
            limits = _F(opaque_count), _F(min_opacity), _F(opacity)
            _shade_pixels(pixels, counts, sums, *limits)
    return pixels if n_seen > max_hidden else None


def compile_loops() -> None:
    """Compile the loops of this module, or load the loops from numba's cache."""
    rows, lines = np.zeros((1, 4), np.float32), ((1.0, 0.0), (1.0, 0.0))
    paint_discs(rows[:, :2], rows[:, 0], rows, lines, (1, 1))
    paint_density(rows[:, :2], rows, lines, (1, 1))


def find_last_loop() -> Any:
    """Return the loop that :func:`compile_loops` compiles last."""
    return _shade_pixels


def as_readonly_array(array: Any, dtype: type = np.float32) -> NDArray[Any]:
    """Return a contiguous read-only array of this dtype, a view where possible.

    The loops are compiled for such arrays only.
    """
    readonly: NDArray[Any] = np.ascontiguousarray(array, dtype).view()
    readonly.flags.writeable = False
    return readonly


# Loops


@njit(nogil=True, cache=True, fastmath=True)
def _count_points(counts, sums, lines, rows, columns, colors, is_above, counts_above):
    """Count in each pixel the points whose ``is_above`` equals ``counts_above``.

    Point i is at (``rows[i]``, ``columns[i]``) and has ``colors[i]`` (RGBA, 0 to 1);
    ``lines`` (2, 2) transforms positions to pixels.  Points outside of the picture and
    NaN are left out.  Changed in place: ``counts`` (height, width) uint32, the number
    of points, and ``sums`` (height, width, 4) uint32, red, green and blue times the
    opacity, and the opacity, each 0 to 255 for a point.  Of the points in a pixel at
    most ``_MAX_MIXED`` - 1 are summed.
    """
    zero, height, width = _F(0), _F(counts.shape[0]), _F(counts.shape[1])
    for i in range(len(rows)):
        if is_above[i] != counts_above:
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
        pixel_sums, strength = sums[row, column], _F(255) * colors[i, 3]
        for channel in range(3):
            pixel_sums[channel] += _U(strength * colors[i, channel] + _F(0.5))
        pixel_sums[3] += _U(strength + _F(0.5))


@njit(nogil=True, cache=True, fastmath=True)
def _shade_pixels(pixels, counts, sums, opaque_count, min_opacity, opacity):
    """Write the mean colour of each pixel's points into ``pixels``, in place.

    ``counts`` (height, width) and ``sums`` (height, width, 4) are as
    :func:`_count_points` leaves them; pixels without points are not changed.  The
    opacity grows with the logarithm of the count from ``min_opacity`` at 1 point to 1
    at ``opaque_count`` points, which is above 1; red, green, blue and opacity are
    multiplied by ``opacity``.
    """
    steepness = (_F(1) - min_opacity) / np.log(opaque_count)
    for row in range(counts.shape[0]):
        for column in range(counts.shape[1]):
            n_points = counts[row, column]
            if not n_points:
                continue
            level = min_opacity + steepness * np.log(_F(n_points))
            mixed = _F(min(n_points, _U(_MAX_MIXED - 1)))
            share = min(_F(1), level) * opacity / mixed
            for channel in range(4):
                value = share * _F(sums[row, column, channel]) + _F(0.5)
                pixels[row, column, channel] = np.uint8(min(_F(255), value))


@njit(nogil=True, cache=True, fastmath=True)
def _paint_discs(pixels, lines, rows, columns, sizes, colors, opacity):
    """Paint discs in order over ``pixels`` (height, width) uint32, in place.

    Disc i has its middle at (``rows[i]``, ``columns[i]``), the diameter ``sizes[i]`` in
    the same unit, at least 1 pixel, and the colour ``colors[i]`` (RGBA, 0 to 1).
    ``lines`` (2, 2): scale and offset of rows, then of columns;
    pixel = scale * position + offset.  ``opacity`` multiplies all opacities.  NaN
    positions are left out.  From the lowest byte on a pixel holds red, green, blue and
    opacity; two bytes are mixed with one multiplication.
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
        opaque, transparent = max(radius - _F(0.5), _F(0)) ** 2, reach * reach
        for row in range(top, bottom):
            dy = _F(row) + _F(0.5) - y
            for column in range(left, right):
                dx = _F(column) + _F(0.5) - x
                squared = dx * dx + dy * dy
                if squared >= transparent:
                    continue
                if squared <= opaque:
                    share = _U(strength)
                else:
                    share = _U(strength * min(_F(1), reach - np.sqrt(squared)))
                rest, under = _U(256) - share, pixels[row, column]
                low = ((under & even) * rest + red_blue * share) >> eight & even
                high = (under >> eight & even) * rest + green_opacity * share & odd
                pixels[row, column] = low | high
