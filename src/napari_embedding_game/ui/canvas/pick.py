"""Find the point of the map that is rendered at a pixel of the canvas.

Rows inside a lasso are found by :mod:`overlay`, those below a brush by :mod:`mouse`.
"""

# The compiler infers types and ignores annotations.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.ui.canvas.layers import MapLayers
from napari_embedding_game.ui.canvas.tissue_layers import TissueLayers
from napari_embedding_game.ui.pixels import as_readonly_array

AnyLayers = MapLayers | TissueLayers
"""Layers whose points are rows: of the map, or of the tissue."""
REACH = 7.0
"""Canvas pixels around the center of a small point that still count as on it."""
CLICK_MARGIN = 0.08
"""Distance from all points up to which a click is on the map, as a share of its side.
"""


def find_row_at_pixel(
    layers: AnyLayers,
    positions: NDArray[np.floating],
    pixel: NDArray[np.floating],
    *,
    reach_pixels: float = REACH,
    margin_share: float = 0.0,
    uses_point_sizes: bool = True,
) -> int | None:
    """Return the row of positions (m N, d) that is rendered at a pixel (x, y), or None.

    Where several points are at the pixel it is the nearest on a plane, and the foremost
    in space.

    Parameters
    ----------
    positions : array
        Positions in units of the map, of m maps side by side.
    reach_pixels : float
        Pixels from a position that count as on it, also where a point is smaller.
    margin_share : float
        Where no point is at the pixel, the nearest point is returned if its distance is
        at most this share of the map's side.
    uses_point_sizes : bool
        Whether points have the sizes of the layer, rather than ``reach_pixels`` alone.
    """
    projection, offset, first = layers.projection(), layers.find_grid_offset(), 0
    if projection is None:
        return None
    if uses_point_sizes and offset.any():  # two maps: each has a box in napari's grid
        n_points = len(positions) // 2
        if projection.contains(pixel - offset):
            first, pixel = n_points, pixel - offset
        positions = positions[first : first + n_points]
    if not (len(positions) and projection.contains(pixel)):
        return None
    zoom = projection.pixels_per_unit
    sizes = (
        layers.points.size if uses_point_sizes and layers.points is not None else [0.0]
    )
    if len(sizes) != len(positions):  # panels repeat the same points
        sizes = np.resize(sizes, len(positions))
    row, distance, is_on = _pick_row_and_distance(
        as_readonly_array(positions),
        projection.matrix,
        np.zeros(3) if projection.view_direction is None else projection.view_direction,
        projection.view_direction is None,
        np.asarray(pixel, np.float64),
        as_readonly_array(sizes, np.float64),
        zoom / layers.frame.scale / 2,
        reach_pixels,
    )
    limit = margin_share * layers.frame.side * zoom / layers.frame.scale
    return first + int(row) if is_on or (row >= 0 and distance <= limit) else None


def compile_pick_loop() -> None:
    """Compile :func:`_pick_row_and_distance`, or load it from numba's cache."""
    zeros = np.zeros(3)
    positions, size = (
        as_readonly_array(np.zeros((1, 2))),
        as_readonly_array([0.0], np.float64),
    )
    _pick_row_and_distance(positions, np.eye(3), zeros, True, zeros[:2], size, 1.0, 1.0)


@njit(nogil=True, cache=True)
def _pick_row_and_distance(
    positions,
    matrix,
    view_direction,
    is_flat,
    pixel,
    sizes,
    half_size_factor,
    reach_pixels,
):
    """Return the row at a pixel, its distance in pixels, and whether it is hit.

    Of several rows that are hit it is the nearest on the canvas if ``is_flat``, else
    the foremost.  Without a hit it is the nearest row; -1 where all rows are behind the
    camera.

    ``positions`` are (n, d).  ``matrix`` (3, k + 1) is that of a projection from k
    axes, and ``view_direction`` (3,) its increase of depth.  A row is hit within
    ``reach_pixels`` of ``pixel`` (2,), or within ``half_size_factor * sizes / w``, with
    ``sizes`` (n,) of the layer and the w of the projection.
    """
    best, least, first, is_on = -1, math.inf, math.inf, False
    n_axes = min(positions.shape[1], matrix.shape[1] - 1)
    for row in range(len(positions)):
        x, y, w = matrix[0, -1], matrix[1, -1], matrix[2, -1]
        depth = 0.0
        for axis in range(n_axes):
            value = positions[row, axis]
            x += matrix[0, axis] * value
            y += matrix[1, axis] * value
            w += matrix[2, axis] * value
            depth += view_direction[axis] * value
        if not w > 0:  # behind the camera
            continue
        squared = (x / w - pixel[0]) ** 2 + (y / w - pixel[1]) ** 2
        if squared <= max(reach_pixels, half_size_factor * sizes[row] / w) ** 2:
            rank = squared if is_flat else depth
            if rank < first:
                best, first, least, is_on = row, rank, squared, True
        elif not is_on and squared < least:
            best, least = row, squared
    return best, math.sqrt(least), is_on
