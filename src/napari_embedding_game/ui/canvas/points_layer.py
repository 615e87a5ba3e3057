"""The napari Points layers of the map: sizes, symbols, fading."""

from __future__ import annotations

import numpy as np
from napari.layers import Layer, Points
from numpy.typing import NDArray

from napari_embedding_game.ui.compat import (
    ALIKE_FROM,
    LandmarkPoints,
    alike_points,
    in_place,
    leave_out,
    points_class,
)

POINTS_NAME, LANDMARKS_NAME = "embedding", "landmarks"
LANDMARK_SIZE = 6.0
"""World units, on a map of 1,000."""
LANDMARK_OPACITY = 0.7
LANDMARK_FACE, LANDMARK_RIM = "#15171c", "#f4f4f4"
"""On a dark canvas; on a light one the other way round."""
SYMBOL = "disc"
MOST_BALLS = 15_000
SMALL_FROM = 100_000
"""Points from which on their size keeps the share of the map that they cover."""
SMALLEST = 0.0
"""Canvas pixels.  Points that napari holds above a larger size get an edge of half
of it, whatever their border: all small points would look grey."""
LARGEST = 10_000.0


def point_size(n_points: int) -> float:
    """Return the world size of a point on a map of 1,000 world units.

    2,638 points are 9 across, 70,000 no blob.  Millions are so small that they lie
    beside one another once a person has come near enough.
    """
    least = 2.0 * min(1.0, np.sqrt(SMALL_FROM / max(n_points, 1)))
    return float(np.clip(400 / np.sqrt(max(n_points, 1)), least, 16.0))


def is_of_balls(n_axes: int, n_points: int) -> bool:
    """Return whether points are drawn as balls: in space, if they are few.

    More are too small for it to be seen, and take much longer than discs.
    """
    return n_axes == 3 and n_points <= MOST_BALLS


def points_layer(
    world: NDArray[np.floating], unit: float, n_points: int | None = None
) -> Points:
    """Return a layer of the points.

    Parameters
    ----------
    world : array, shape (N, 2) or (N, 3)
        Taken over: it is written in place later.
    unit : float
        World units per thousandth of the map.
    n_points : int, optional
        Of one map, where the layer holds several: as N they decide on the looks.
    """
    n_points = len(world) if n_points is None else n_points
    layer = alike_points(
        world,
        name=POINTS_NAME,
        size=unit * point_size(n_points),
        border_width=0.0,
        face_color="gray",
        opacity=0.9,
        blending="translucent",
        canvas_size_limits=(SMALLEST, LARGEST),
        shading="spherical" if is_of_balls(world.shape[1], n_points) else "none",
    )
    leave_out(layer, len(world) >= ALIKE_FROM)  # the first drawing is a picture
    if len(world) < ALIKE_FROM:
        with in_place(layer, "symbol") as symbols:
            symbols[:] = SYMBOL  # words are quicker to compare than napari's symbols
    return layer


LANDMARKS_HELP = (
    "drag a landmark to move it while the game runs, <A> adds one under the mouse, "
    "<Delete> takes it away; napari's tools to select and to add points do the same"
)
"""What napari tells below the canvas while the layer is the selected one."""


def landmarks_layer(
    world: NDArray[np.floating], unit: float, *, on_light: bool = False
) -> Points:
    """Return dark discs with a light rim, on a light canvas light with a dark one."""
    layer = points_class(LandmarkPoints)(
        world,
        name=LANDMARKS_NAME,
        size=unit * LANDMARK_SIZE,
        border_width=0.2,
        opacity=LANDMARK_OPACITY,
    )
    color_landmarks(layer, on_light=on_light)
    return layer


def color_landmarks(layer: Points, *, on_light: bool) -> None:
    """Give the landmarks a rim that is seen on the canvas, and a face on points."""
    colors = LANDMARK_FACE, LANDMARK_RIM
    layer.face_color, layer.border_color = colors[::-1] if on_light else colors


def write_landmarks(
    layer: Points, places: NDArray[np.floating], axes: list[int], unit: float
) -> None:
    """Put the landmarks at these places (L, 2) or (L, 3), however many there were.

    Parameters
    ----------
    axes : list of int
        Axes of the layer along [depth,] rows and columns of the places.
    unit : float
        World units per thousandth of the map.
    """
    if len(layer.data) != len(places):
        layer.selected_data = set()
        layer.data = np.zeros_like(places)
        with in_place(layer, "size") as sizes:
            sizes[:] = unit * LANDMARK_SIZE
        if not layer.visible:
            # napari slices no hidden layer, and its next thumbnail, as with another
            # opacity, would look for rows that there are no more.
            layer.set_view_slice()
    with in_place(layer, "data") as data:
        data[:, axes] = places


class Faded:
    """Lets a layer step back for a while; what its owner changes meanwhile stays.

    Parameters
    ----------
    layer : Layer
    share : float
        Of its present opacity.
    """

    def __init__(self, layer: Layer, share: float) -> None:
        self._layer = layer
        self._before = layer.opacity
        layer.opacity *= share
        self._faded = layer.opacity

    @property
    def layer(self) -> Layer:
        """The layer that has stepped back."""
        return self._layer

    def end(self) -> None:
        """Bring the layer back."""
        if self._layer.opacity == self._faded:
            self._layer.opacity = self._before
