"""Find the point of the map that is nearest to a pixel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.ui.canvas.map_layers import MapLayers, MapPosition
from napari_embedding_game.ui.canvas.projection import Projection

BESIDE = 0.08
"""How far beside the points of a map in space is still on it, a share of its side."""
AT_ONCE = 1 << 16
"""Points that are looked at together: they fit into a processor's cache."""


def row_near(
    layers: MapLayers,
    embedding: NDArray[np.floating],
    pixel: NDArray[np.floating],
    hidden: NDArray[np.bool_] | None = None,
) -> int | None:
    """Return the row of (m N, d) that is drawn nearest to a pixel; None off the map.

    Of points in space that are drawn one behind the other, the foremost.

    Parameters
    ----------
    layers : MapLayers
    embedding : array, shape (m N, d)
        Of the map, or of m maps side by side.
    pixel : array, shape (2,)
    hidden : array of bool, shape (m N,), optional
        Points that are not drawn, and so cannot be pointed at.
    """
    space = layers.space_at(pixel)
    if space is not None:
        sizes = np.zeros(1) if layers.points is None else layers.points.size
        sizes = np.resize(sizes, len(embedding))  # maps side by side: the same points
        places, reach = layers.to_world(embedding), layers.side * BESIDE
        return _in_space(space, places, pixel, reach, 0.0, sizes, hidden)
    place = layers.place_at(pixel)
    rows, embedding = _shown(embedding, hidden)
    if place is None or not len(embedding):
        return None
    found = nearest(layers.as_drawn(embedding), place)
    return found if rows is None else int(rows[found])


def row_under(
    layers: MapLayers,
    embedding: NDArray[np.floating],
    pixel: NDArray[np.floating],
    pixels: float,
    sizes: NDArray[np.floating] | float = 0.0,
    hidden: NDArray[np.bool_] | None = None,
) -> int | None:
    """Return the row of (N, d) that is drawn at a pixel, or None.

    Parameters
    ----------
    layers : MapLayers
    embedding : array, shape (N, d)
    pixel : array, shape (2,)
    pixels : float
        How far from its middle a small point can be pointed at, on the canvas.
    sizes : array, shape (N,)
        Of the points in the world: larger ones can be pointed at anywhere.
    hidden : array of bool, shape (N,), optional
        Points that are not drawn, and so cannot be pointed at.
    """
    space = layers.space_at(pixel)
    if space is not None:
        places = layers.to_world(embedding)
        return _in_space(space, places, pixel, 0.0, pixels, sizes, hidden)
    place = layers.place_at(pixel)
    if place is None:
        return None
    zoom = float(np.linalg.svd(place.stretch, compute_uv=False)[-1]) / layers.scale
    reach = max(pixels, float(np.max(sizes)) * zoom / 2)
    rows, shown = _shown(embedding, hidden)
    point = nearest_within(layers.as_drawn(shown), place, reach)
    if point is None:
        return None
    row, away = point
    row = row if rows is None else int(rows[row])
    radius = float(np.broadcast_to(sizes, len(embedding))[row]) * zoom / 2
    return row if away <= max(pixels, radius) else None


def _shown(
    embedding: NDArray[np.floating], hidden: NDArray[np.bool_] | None
) -> tuple[NDArray[np.intp] | None, NDArray[np.floating]]:
    """Return the rows that are drawn, None for all, and their places."""
    if hidden is None:
        return None, embedding
    rows = np.flatnonzero(~hidden)
    return rows, embedding[rows]


def _in_space(
    space: Projection,
    places: NDArray[np.floating],
    pixel: NDArray[np.floating],
    reach: float,
    pixels: float,
    sizes: NDArray[np.floating] | float,
    hidden: NDArray[np.bool_] | None = None,
) -> int | None:
    """Return the foremost of places (N, 3) that are drawn at a pixel.

    That is within so many pixels of it, or half the size of its point.  Or else the one
    that is drawn nearest to it, within a reach in the world; None beyond.
    """
    away = np.hypot(*(space.to_pixels(places) - pixel).T)
    away[np.isnan(away)] = np.inf  # behind the camera
    if hidden is not None:
        away[hidden] = np.inf
    first = int(np.argmin(away))
    if not np.isfinite(away[first]):
        return None
    zoom = space.zoom_at(places[first])
    radii = np.maximum(np.asarray(sizes) * zoom / 2, pixels)
    on = np.flatnonzero(away <= radii)
    if len(on):
        assert space.ahead is not None
        first = int(on[np.argmin(places[on] @ space.ahead)])
    elif away[first] > reach * zoom:
        return None
    return first


def nearest(embedding: NDArray[np.floating], place: MapPosition) -> int:
    """Return the row of (N, 2) that is drawn nearest to a place."""
    best, least = 0, np.inf
    for begin in range(0, len(embedding), AT_ONCE):
        apart = _apart(embedding[begin : begin + AT_ONCE], place)
        first = int(np.argmin(apart))
        if apart[first] < least:
            best, least = begin + first, float(apart[first])
    return best


def nearest_within(
    embedding: NDArray[np.floating], place: MapPosition, pixels: float
) -> tuple[int, float] | None:
    """Return the row drawn nearest to a place and how far off; None beyond a reach.

    Parameters
    ----------
    embedding : array, shape (N, 2)
    place : MapPosition
    pixels : float
        The reach, on the canvas.
    """
    least = float(np.linalg.svd(place.stretch, compute_uv=False)[-1])
    if not least > 0:
        return None
    # Most points are passed over by one coordinate.
    reach = pixels / least
    x, low, high = embedding[:, 0], *(place.position[0] + np.array([-reach, reach]))
    near = np.flatnonzero((x >= np.float32(low)) & (x <= np.float32(high)))
    if not len(near):
        return None
    apart = _apart(embedding[near], place)
    first = int(np.argmin(apart))
    away = float(np.sqrt(apart[first]))
    return (int(near[first]), away) if away <= pixels else None


def _apart(embedding: NDArray[np.floating], place: MapPosition) -> NDArray[np.floating]:
    """Return the squared distances (N,) on the canvas."""
    # By coordinate: over (N, 2) a sum along rows takes ten times as long.
    x = embedding[:, 0] - np.float32(place.position[0])
    y = embedding[:, 1] - np.float32(place.position[1])
    (across, across_y), (down_x, down) = place.stretch.astype(np.float32)
    return (across * x + across_y * y) ** 2 + (down_x * x + down * y) ** 2
