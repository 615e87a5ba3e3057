"""Find the point of the map that is drawn at a pixel of the canvas."""

# The compiler infers types and ignores annotations.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.ui.canvas.layers import MapLayers
from napari_embedding_game.ui.pixels import to_read

REACH = 7.0
"""Canvas pixels around the middle of a small point that still count as on it."""
CLICK_MARGIN = 0.08
"""How far off its points a click is still on the map, as a share of its side."""


def row_at(
    layers: MapLayers,
    positions: NDArray[np.floating],
    pixel: NDArray[np.floating],
    *,
    reach: float = REACH,
    margin: float = 0.0,
    is_sized: bool = True,
) -> int | None:
    """Return the row of positions (m N, d) that is drawn at a pixel, or None.

    The nearest of a plane, the foremost in space.

    ``positions``: in units of the map, of m maps side by side. ``reach``: pixels from a
    position that count as on it. ``margin``: else the nearest is meant up to this share
    of the map's side. ``is_sized``: whether points have the sizes of the layer.
    """
    projection, offset, first = layers.projection(), layers.grid_offset(), 0
    if projection is None:
        return None
    if is_sized and offset.any():  # two maps: each in its cell of napari's grid
        n_points = len(positions) // 2
        if projection.contains(pixel - offset):
            first, pixel = n_points, pixel - offset
        positions = positions[first : first + n_points]
    if not (len(positions) and projection.contains(pixel)):
        return None
    zoom = projection.zoom
    sizes = layers.points.size if is_sized and layers.points is not None else [0.0]
    if len(sizes) != len(positions):  # maps side by side: the same points
        sizes = np.resize(sizes, len(positions))
    row, distance, is_on = _nearest(
        to_read(positions),
        projection.matrix,
        np.zeros(3) if projection.sight is None else projection.sight,
        projection.sight is None,
        np.asarray(pixel, np.float64),
        to_read(sizes, np.float64),
        zoom / layers.frame.scale / 2,
        reach,
    )
    limit = margin * layers.frame.side * zoom / layers.frame.scale
    return first + int(row) if is_on or (row >= 0 and distance <= limit) else None


def compile_loop() -> None:
    """Compile the loop, or read it from numba's cache."""
    zeros = np.zeros(3)
    positions, size = to_read(np.zeros((1, 2))), to_read([0.0], np.float64)
    _nearest(positions, np.eye(3), zeros, True, zeros[:2], size, 1.0, 1.0)


@njit(nogil=True, cache=True)
def _nearest(positions, matrix, sight, is_flat, pixel, sizes, half, reach):
    """Return the row at a pixel, how far it is drawn from it, and if it is on it."""
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
            depth += sight[axis] * value
        if not w > 0:  # behind the camera
            continue
        squared = (x / w - pixel[0]) ** 2 + (y / w - pixel[1]) ** 2
        if squared <= max(reach, half * sizes[row] / w) ** 2:
            rank = squared if is_flat else depth
            if rank < first:
                best, first, least, is_on = row, rank, squared, True
        elif not is_on and squared < least:
            best, least = row, squared
    return best, math.sqrt(least), is_on
