"""The map on the canvas: a Points layer of points and one of landmarks.

The layers hold world positions and are written in place: ``layer.data = x`` and
its like fire events, copy and redraw at each assignment, and a layer's scale or
shift has the viewer slice and draw everything, while writing into the arrays that
the layer already holds and one ``refresh`` redraws once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from napari.layers import Layer, Points
from numpy.typing import NDArray

from napari_embedding_game.core.types import Snapshot
from napari_embedding_game.ui.map_layers import (
    LANDMARK_OPACITY,
    landmarks_layer,
    point_size,
    points_layer,
    write_landmarks,
)
from napari_embedding_game.ui.placement import SIDE, Frame, free_box

if TYPE_CHECKING:
    import napari
    import pandas as pd

NEAR = 2.0
"""Canvas pixels per thousandth of the map, at least, after a flight to a point."""
FADED_OPACITY = 0.2
PLACEHOLDER = {"napari-embedding-game": "placeholder"}
"""Metadata of a layer that only keeps the place until the map is there."""


class _Left(NamedTuple):
    """What a closed dock leaves to the one that is opened next."""

    points: Points | None
    landmarks: Points | None
    frame: Frame
    n_points: int = 0


_left: WeakKeyDictionary[object, _Left] = WeakKeyDictionary()


class MapLayers:
    """Owns the two layers; finds them by identity, never by name.

    Parameters
    ----------
    viewer : napari.Viewer
    on_lost : callable
        Called when the points were deleted or edited by somebody else.
    """

    def __init__(self, viewer: napari.Viewer, on_lost: Callable[[], None]) -> None:
        self._viewer = viewer
        self._on_lost = on_lost
        points, landmarks, self._frame, self._n_points = _left.pop(
            unwrapped(viewer), _Left(None, None, Frame(free_box([])))
        )
        self.points = points if points in viewer.layers else None
        self.landmarks = landmarks if landmarks in viewer.layers else None
        self._is_blank = False
        """Whether the layers are hidden, as nothing was drawn in them so far."""
        self._landmarks_shown = True
        viewer.layers.events.removed.connect(self._on_removed)

    def close(self) -> None:
        """Leave the layers to the viewer."""
        self._viewer.layers.events.removed.disconnect(self._on_removed)
        _left[unwrapped(self._viewer)] = _Left(
            self.points, self.landmarks, self._frame, self._n_points
        )
        self.points = self.landmarks = None

    def expect(self, n_points: int, n_landmarks: int) -> None:
        """Make layers for a map that is still to come, if there are none.

        napari takes a second for the first ones: time in which another thread can
        look for neighbours.
        """
        if self.points is None:
            self._replace(n_points, n_landmarks)

    def discard(self) -> None:
        """Remove layers in which nothing was ever drawn."""
        if self._is_blank:
            self._remove_own()

    def begin(self, snapshot: Snapshot, features: pd.DataFrame) -> None:
        """Prepare for the frames of a run, in new layers where the old do not fit.

        The points are there from the first ``show`` on.
        """
        if self.points is None or len(self.points.data) != len(snapshot.embedding):
            self._replace(len(snapshot.embedding), len(snapshot.landmarks))
        else:
            self._frame.restart()
            self._n_points = len(snapshot.embedding)
        self.set_features(features)

    def show(
        self,
        snapshot: Snapshot,
        colors: NDArray[np.float32],
        magnification: NDArray[np.floating] | float = 1.0,
    ) -> bool:
        """Draw a snapshot; return whether it was drawn.

        A snapshot that is not finite is left out: one NaN breaks the camera.

        Parameters
        ----------
        snapshot : Snapshot
        colors : array, shape (N, 4)
        magnification : float or array of shape (N,)
            Of the size of each point.
        """
        if self.points is None or not _is_finite(snapshot):
            return False
        if self.points.data.shape != snapshot.embedding.shape:
            self._forget()
            self._on_lost()
            return False
        self._frame.follow(snapshot.embedding, settle=snapshot.finished)
        self.points.data[:] = self._frame.to_world(snapshot.embedding)
        self._write_looks(self.points, colors, magnification)
        if self.landmarks is not None:
            world = self._frame.to_world(snapshot.landmarks)
            write_landmarks(self.landmarks, world, self._frame.unit)
        self._draw_both()
        return True

    def recolor(
        self,
        colors: NDArray[np.float32],
        magnification: NDArray[np.floating] | float = 1.0,
    ) -> None:
        """Draw the points where they are in other colours or sizes."""
        points = self._whole_points()
        if points is not None and len(points.data) == len(colors):
            self._write_looks(points, colors, magnification)
            self._draw(points)

    def show_landmarks(self, shown: bool) -> None:
        """Show or hide the landmarks, now and in the layers of later runs."""
        self._landmarks_shown = shown
        if self.landmarks is not None and not self._is_blank:
            _set_visible(self.landmarks, shown)

    def fade_landmarks(self, faded: bool) -> None:
        """Let the landmarks step back while some of the points stand out."""
        if self.landmarks is not None:
            self.landmarks.opacity = FADED_OPACITY if faded else LANDMARK_OPACITY

    def set_features(self, features: pd.DataFrame) -> None:
        """Give the points a table, which napari shows under the mouse."""
        if self.points is not None and len(self.points.data) == len(features):
            self.points.features = features.reset_index(drop=True)

    def finish(self) -> None:
        """Bring thumbnails and extents up to date after a series of frames."""
        for layer in (self.points, self.landmarks):
            if layer is not None:
                layer.refresh(data_displayed=False)

    def to_world(self, positions: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return positions (..., 2) of the embedding as world positions."""
        return self._frame.to_world(positions)

    def to_map(self, world: NDArray[np.floating]) -> NDArray[np.floating] | None:
        """Return a world position in the units of the embedding.

        None where there is no map, or outside of it.
        """
        points = self._whole_points()
        if points is None or not points.visible:
            return None
        place = np.asarray(world)[-self._frame.ndim :]
        return self._frame.to_map(place) if self._frame.contains(place) else None

    def in_map(self, world: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return world positions (V, 2) in units of the embedding, on it or not."""
        return self._frame.to_map(world)

    def fly_to(self, row: int) -> None:
        """Show one point in the middle of the canvas, nearer than the whole map."""
        points = self._whole_points()
        if points is None:
            return
        camera = getattr(self._viewer, "scene", self._viewer).camera
        place = points.data_to_world(points.data[row])
        camera.center = (0.0, *place[-2:]) if len(place) < 3 else place[-3:]
        camera.zoom = max(camera.zoom, NEAR * SIDE / self._frame.box.side)

    def make_room(self, snapshot: Snapshot) -> bool:
        """Lay the map beside the others where one of them has come to lie on it.

        Returns
        -------
        bool
            Whether it was moved: then it has to be begun and shown anew.
        """
        own = (self.points, self.landmarks)
        others = [x for x in self._viewer.layers if all(x is not y for y in own)]
        extents = (x.extent.world[:, -2:] for x in others)
        if self.points is None or not any(map(self._frame.meets, extents)):
            return False
        self._replace(len(snapshot.embedding), len(snapshot.landmarks))
        return True

    # Inside

    def _whole_points(self) -> Points | None:
        """Return the points; those of which somebody deleted some are lost."""
        if self.points is not None and len(self.points.data) != self._n_points:
            self._forget()
            self._on_lost()
        return self.points

    def _replace(self, n_points: int, n_landmarks: int) -> None:
        self._remove_own()
        self._frame = Frame(
            free_box([layer.extent.world[:, -2:] for layer in self._viewer.layers])
        )
        # The camera shows the whole box, which the map is going to fill.
        places = np.resize(self._frame.corners.astype(np.float32), (n_points, 2))
        middle = np.tile(self._frame.box.center, (n_landmarks, 1))
        self.points = points_layer(places, self._frame.unit)
        self.landmarks = landmarks_layer(middle, self._frame.unit)
        self._n_points = n_points
        self._is_blank = True
        for layer in (self.points, self.landmarks):
            layer.visible = False
            self._viewer.add_layer(layer)
        self._viewer.layers.selection.active = self.points
        self._viewer.reset_view()

    def _draw_both(self) -> None:
        for layer, shown in (
            (self.points, True),
            (self.landmarks, self._landmarks_shown),
        ):
            if layer is None:
                continue
            if self._is_blank and shown:
                layer.visible = True  # which draws it
            else:
                self._draw(layer)
        self._is_blank = False

    def _draw(self, layer: Points) -> None:
        draw(self._viewer, layer)

    def _remove_own(self) -> None:
        own = [self.points, self.landmarks]
        kept = [x for x in self._viewer.layers if x.metadata == PLACEHOLDER]
        self._forget()
        for layer in (*own, *kept):
            if layer is not None and layer in self._viewer.layers:
                self._viewer.layers.remove(layer)

    def _forget(self) -> None:
        self.points = self.landmarks = None
        self._is_blank = False

    def _on_removed(self, event: object) -> None:
        layer = getattr(event, "value", None)
        if layer is self.landmarks:
            self.landmarks = None
        elif layer is self.points and layer is not None:
            self.points = None
            self._on_lost()

    def _write_looks(
        self,
        layer: Points,
        colors: NDArray[np.float32],
        magnification: NDArray[np.floating] | float,
    ) -> None:
        layer.face_color[:] = colors
        layer.size[:] = self._frame.unit * point_size(len(layer.data)) * magnification


def draw(viewer: napari.Viewer, layer: Layer) -> None:
    """Draw a layer of which the arrays were written in place, and nothing else.

    napari's list of layers would be drawn anew too, and with it all of the window, as
    it has a canvas in it.
    """
    with viewer.layers.events.blocker():
        layer.refresh(thumbnail=False, highlight=False, extent=False)


def unwrapped(viewer: object) -> object:
    """Return the viewer itself: napari hands plugins a proxy of it."""
    return getattr(viewer, "__wrapped__", viewer)


def _is_finite(snapshot: Snapshot) -> bool:
    both = (snapshot.embedding, snapshot.landmarks)
    return all(bool(np.isfinite(part).all()) for part in both)


def _set_visible(layer: Points, visible: bool) -> None:
    if layer.visible != visible:
        layer.visible = visible  # draws all layers
