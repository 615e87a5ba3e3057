"""The napari Points layers of the map: sizes, colours, fading."""

from __future__ import annotations

import numpy as np
from napari.layers import Layer, Points
from napari.utils.notifications import show_info
from numpy.typing import NDArray

from napari_embedding_game.ui.compat import in_place

POINTS_NAME, LANDMARKS_NAME = "embedding", "landmarks"
LANDMARK_SIZE = 6.0
"""World units, on a map of 1,000."""
LANDMARK_OPACITY = 0.7
LANDMARK_FACE, LANDMARK_RIM = "#15171c", "#f4f4f4"
"""On a dark canvas; on a light one the other way round."""
MOST_BALLS = 15_000
SMALL_FROM = 100_000
"""Points from which on their size keeps the share of the map that they cover."""
CANVAS_SIZES = (0.0, 10_000.0)
"""Pixels.  Points that napari holds above a larger least size get a grey edge."""
LOCKED = (
    "The places of points come from the data: they cannot be moved or deleted one by "
    "one. To move a cluster, drag it by its name; to leave points out, select others "
    "and click 'Map of its own'; to hide the layer, click its eye."
)
LANDMARKS_HELP = (
    "drag a landmark to move it while the game runs, <A> adds one under the mouse, "
    "<Delete> takes it away; napari's tools to select and to add points do the same"
)
"""What napari tells below the canvas while the layer is the selected one."""


def point_size(n_points: int) -> float:
    """Return the world size of a point on a map of 1,000 world units.

    2,638 points are 9 across, 70,000 no blob.  Millions are so small that they lie
    beside one another once a person has come near enough.
    """
    least = 2.0 * min(1.0, np.sqrt(SMALL_FROM / max(n_points, 1)))
    return float(np.clip(400 / np.sqrt(max(n_points, 1)), least, 16.0))


def is_of_balls(n_axes: int, n_points: int) -> bool:
    """Return whether points are drawn as balls: in space, if they are few."""
    return n_axes == 3 and n_points <= MOST_BALLS


def points_layer(world: NDArray[np.floating], name: str = POINTS_NAME) -> Points:
    """Return a layer of points (N, d), which nobody edits one by one.

    Their places come from the data: a point that was dragged would be shown in one
    place and meant in another.
    """
    is_round = is_of_balls(world.shape[1], len(world))
    layer = Points(
        world,
        name=name,
        border_width=0.0,
        face_color="gray",
        opacity=0.9,
        blending="translucent",
        canvas_size_limits=CANVAS_SIZES,
        shading="spherical" if is_round else "none",
    )
    layer.editable = False
    layer.events.editable.connect(_lock)  # napari lets it be edited in another view
    for key in ("Delete", "Backspace"):
        layer.bind_key(key, lambda _: show_info(LOCKED), overwrite=True)
    return layer


def _lock(event: object) -> None:
    layer = event.source  # type: ignore[attr-defined]
    if layer.editable:
        layer.editable = False


def landmarks_layer(
    world: NDArray[np.floating], unit: float, *, on_light: bool = False
) -> Points:
    """Return dark discs with a light rim, on a light canvas light with a dark one."""
    layer = Points(
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
    """Put the landmarks at places (L, d), however many there were.

    Parameters
    ----------
    axes : list of int
        Axes of the layer along [depth,] rows and columns of the places.
    unit : float
        World units per thousandth of the map.
    """
    if len(layer.data) != len(places):
        layer.selected_data = set()
        with layer.events.data.blocker():
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
        self.layer = layer
        self._before = layer.opacity
        layer.opacity *= share
        self._faded = layer.opacity

    def end(self) -> None:
        """Bring the layer back."""
        if self.layer.opacity == self._faded:
            self.layer.opacity = self._before
