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
    """A Points layer that napari draws quickly, as nothing is copied needlessly.

    For each drawing napari copies positions and colours of the points in view, and
    makes a word, then a number of each symbol, which takes longer than the drawing.
    Here all points are in view and, as a rule, of one symbol without a border.  A
    napari that asks for its views by other names is only slower.
    """

    _compared: tuple[NDArray[np.object_], bool] | None = None
    """The symbols that were compared last, and whether they are all the same."""

    @property
    def _type_string(self) -> str:
        return "points"  # what its files and its icon go by

    @property
    def _shows_all(self) -> bool:
        """Whether all points are in view, their coordinates in order."""
        in_order = list(self._slice_input.displayed) == list(range(self.ndim))
        return in_order and len(self._view_indices) == len(self.data)

    @property
    def _view_data(self) -> NDArray[np.floating]:
        return self.data if self._shows_all else super()._view_data

    @property
    def _view_face_color(self) -> NDArray[np.floating]:
        return self.face_color if self._shows_all else super()._view_face_color

    @property
    def _view_border_color(self) -> NDArray[np.floating]:
        # Of borders without a width no colour is seen.
        has_borders = bool(self.border_width.any()) or not len(self.data)
        return super()._view_border_color if has_borders else self.border_color[:1]

    @property
    def _view_symbol(self) -> NDArray[np.object_]:
        symbols = self.symbol  # another array whenever one of them changes
        if self._compared is None or self._compared[0] is not symbols:
            self._compared = symbols, bool((symbols == symbols[:1]).all())
        return symbols[:1] if self._compared[1] else super()._view_symbol


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
