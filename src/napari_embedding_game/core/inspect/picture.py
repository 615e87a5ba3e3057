"""A picture of very many points: discs one over another, as a window draws them.

A window without a graphics card takes seconds for a million points, most of it for
preparing them one by one.  Here each point costs the few pixels that it covers, in
one loop on one core, and points outside of the picture next to nothing.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.picture_loops import paint_discs

_NO_ORDER = np.empty(0, np.intp)


def paint_points(
    positions: NDArray[np.floating],
    sizes: NDArray[np.floating],
    colors: NDArray[np.floating],
    rows: tuple[float, float],
    columns: tuple[float, float],
    shape: tuple[int, int],
    *,
    order: NDArray[np.intp] | None = None,
    opacity: float = 1.0,
) -> NDArray[np.uint8]:
    """Return a picture of points as discs with smooth edges.

    Parameters
    ----------
    positions : (N, 2) float
        Row and column in any unit.  Points that are not finite are left out.
    sizes : (N,) float
        Diameters in the same unit; on the picture at least 1 pixel.
    colors : (N, 4) float, 0 to 1
        Red, green, blue and opacity.
    rows, columns : (slope, offset)
        From rows and columns to pixels: slope * position + offset, counted from the
        picture's upper left corner.
    shape : (height, width)
        Of the picture in pixels.
    order : (m,) int, optional
        Points in the order in which they are painted; by default all as they come.
    opacity : float
        Of all points, 0 to 1; times that of each.

    Returns
    -------
    (height, width, 4) uint8
        Red, green, blue, each already multiplied by the opacity, and the opacity.
    """
    if order is not None and not len(order):
        positions = positions[:0]
    pixels = np.zeros(shape, np.uint32)
    paint_discs(
        pixels,
        np.ascontiguousarray(positions, np.float32),
        np.ascontiguousarray(sizes, np.float32),
        np.ascontiguousarray(colors, np.float32),
        _NO_ORDER if order is None else np.ascontiguousarray(order, np.intp),
        np.array(rows, np.float32),
        np.array(columns, np.float32),
        np.float32(opacity),
    )
    if sys.byteorder == "big":
        pixels.byteswap(inplace=True)
    return pixels.view(np.uint8).reshape(*shape, 4)
