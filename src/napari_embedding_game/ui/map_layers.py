"""How the points and the landmarks of a map look on the canvas."""

from __future__ import annotations

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray

POINTS_NAME, LANDMARKS_NAME = "embedding", "landmarks"
LANDMARK_SIZE = 6.0
"""World units, on a map of 1,000."""
LANDMARK_OPACITY = 0.7
SYMBOL = "disc"
SMALLEST = 0.0
"""Canvas pixels.  Points that napari holds above a larger size get an edge of half
of it, whatever their border: all small points would look grey."""
LARGEST = 10_000.0


class MapPoints(Points):
    """A Points layer that napari draws quickly while all points have one symbol.

    napari makes a word, then a number of the symbol of each point for each drawing,
    which takes longer than all else; of one symbol for all it makes one.  A napari
    that asks for symbols in another way than by ``_view_symbol`` is only slower.
    """

    @property
    def _type_string(self) -> str:
        return "points"  # what its files and its icon go by

    @property
    def _view_symbol(self) -> NDArray[np.object_]:
        first = self.symbol[:1]
        is_one = bool((self.symbol == first).all())
        return first if is_one else super()._view_symbol


def point_size(n_points: int) -> float:
    """Return the world size of a point on a map of 1,000 world units.

    2,638 points are 9 across, 70,000 no blob.
    """
    return float(np.clip(400 / np.sqrt(max(n_points, 1)), 2.0, 16.0))


def points_layer(world: NDArray[np.floating], unit: float) -> Points:
    """Return a layer of the points.

    Parameters
    ----------
    world : array, shape (N, 2)
        Taken over: it is written in place later.
    unit : float
        World units per thousandth of the map.
    """
    layer = MapPoints(
        world,
        name=POINTS_NAME,
        size=unit * point_size(len(world)),
        border_width=0.0,
        face_color="gray",
        opacity=0.9,
        blending="translucent",
        canvas_size_limits=(SMALLEST, LARGEST),
    )
    layer.symbol[:] = SYMBOL  # words are quicker to compare than napari's symbols
    return layer


def landmarks_layer(world: NDArray[np.floating], unit: float) -> Points:
    """Return dark discs with a light rim: seen on black, on white, on any point."""
    return Points(
        world,
        name=LANDMARKS_NAME,
        size=unit * LANDMARK_SIZE,
        face_color="#15171c",
        border_color="#f4f4f4",
        border_width=0.2,
        opacity=LANDMARK_OPACITY,
    )


def write_landmarks(layer: Points, world: NDArray[np.floating], unit: float) -> None:
    """Put the landmarks at these world positions (L, 2), however many there were."""
    if len(layer.data) == len(world):
        layer.data[:] = world
    else:
        layer.selected_data = set()
        layer.data = world
        layer.size[:] = unit * LANDMARK_SIZE
