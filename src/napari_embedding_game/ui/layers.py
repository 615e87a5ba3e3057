"""The map on the canvas: a Points layer of points and one of landmarks.

The layers are written in place: ``layer.data = x`` and its like fire events,
copy and redraw at each assignment, while writing into the arrays that the
layer already holds and one ``refresh`` redraws once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray

from napari_embedding_game.core.types import Snapshot
from napari_embedding_game.ui.placement import SIDE, Frame, free_box

if TYPE_CHECKING:
    import napari
    import pandas as pd

POINTS_NAME, LANDMARKS_NAME = "embedding", "landmarks"
LANDMARK_SIZE = 6.0
"""World units, on a map of about 1,000."""
NEAR = 2.0
"""Canvas pixels per thousandth of the map, at least, after a flight to a point."""
LANDMARK_OPACITY, FADED_OPACITY = 0.7, 0.2


def point_size(n_points: int) -> float:
    """Return the world size of a point on a map of 1,000 world units.

    2,638 points are 9 across, 70,000 no blob.
    """
    return float(np.clip(400 / np.sqrt(max(n_points, 1)), 2.0, 16.0))


PLACEHOLDER = {"napari-embedding-game": "placeholder"}
"""Metadata of a layer that only keeps the place until the map is there."""


class _Left(NamedTuple):
    """What a closed dock leaves to the one that is opened next."""

    points: Points | None
    landmarks: Points | None
    frame: Frame


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
        points, landmarks, self._frame = _left.pop(
            unwrapped(viewer), _Left(None, None, Frame(free_box([])))
        )
        self.points = points if points in viewer.layers else None
        self.landmarks = landmarks if landmarks in viewer.layers else None
        viewer.layers.events.removed.connect(self._on_removed)

    def close(self) -> None:
        """Leave the layers to the viewer."""
        self._viewer.layers.events.removed.disconnect(self._on_removed)
        _left[unwrapped(self._viewer)] = _Left(self.points, self.landmarks, self._frame)
        self.points = self.landmarks = None

    def begin(self, snapshot: Snapshot, features: pd.DataFrame) -> None:
        """Show the first snapshot of a run, in new layers where the old do not fit."""
        if self.points is None or len(self.points.data) != len(snapshot.embedding):
            self._replace(snapshot)
        else:
            self._frame.restart()
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
        self.points.data[:] = snapshot.embedding
        self._write_landmarks(snapshot.landmarks)
        self._write_looks(self.points, colors, magnification)
        self._place_and_draw()
        return True

    def recolor(
        self,
        colors: NDArray[np.float32],
        magnification: NDArray[np.floating] | float = 1.0,
    ) -> None:
        """Draw the points where they are in other colours or sizes."""
        if self.points is not None and len(self.points.data) == len(colors):
            self._write_looks(self.points, colors, magnification)
            self.points.refresh(thumbnail=False, highlight=False, extent=False)

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
                layer.refresh()

    def to_map(self, world: NDArray[np.floating]) -> NDArray[np.floating] | None:
        """Return a world position in the units of the embedding.

        None where there is no map, or outside of it.
        """
        if self.points is None or not self.points.visible:
            return None
        place = np.asarray(world)[-self._frame.ndim :]
        return self._frame.to_data(place) if self._frame.contains(place) else None

    def in_map(self, world: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return world positions (V, 2) in units of the embedding, on it or not."""
        return self._frame.to_data(world)

    def fly_to(self, row: int) -> None:
        """Show one point in the middle of the canvas, nearer than the whole map."""
        if self.points is None:
            return
        camera = getattr(self._viewer, "scene", self._viewer).camera
        place = self.points.data_to_world(self.points.data[row])
        camera.center = (0.0, *place[-2:]) if len(place) < 3 else place[-3:]
        camera.zoom = max(camera.zoom, NEAR * SIDE / self._frame.box.side)

    # Inside

    def _replace(self, snapshot: Snapshot) -> None:
        self._remove_own()
        self._frame = Frame(
            free_box([layer.extent.world[:, -2:] for layer in self._viewer.layers])
        )
        self._frame.follow(snapshot.embedding, settle=True)
        self.points = _points_layer(snapshot.embedding)
        self.landmarks = _landmarks_layer(snapshot.landmarks)
        # Sized before they are added: napari draws at once, and points of size 1
        # each cover a tenth of the map, which takes a slow renderer many seconds.
        self.points.size = self._size(point_size(len(self.points.data)))
        self.landmarks.size = self._size(LANDMARK_SIZE)
        for layer in (self.points, self.landmarks):
            self._place(layer)
            self._viewer.add_layer(layer)
        self._viewer.layers.selection.active = self.points
        self._fit_camera(self.points)

    def _size(self, world: float) -> float:
        """Return a size on a map of 1,000 world units in the units of the map."""
        return world * self._frame.unit / self._frame.scale

    def _fit_camera(self, layer: Points) -> None:
        """Show the whole box, which the map is going to fill."""
        present = layer.data.copy()
        corners = np.array([self._frame.box.corner] * 2)
        corners[1] += self._frame.box.side
        layer.data[:] = self._frame.to_data(corners)[np.arange(len(present)) % 2]
        layer.refresh(thumbnail=False, highlight=False)
        self._viewer.reset_view()
        layer.data[:] = present
        layer.refresh()

    def _remove_own(self) -> None:
        own = [self.points, self.landmarks]
        kept = [x for x in self._viewer.layers if x.metadata == PLACEHOLDER]
        self._forget()
        for layer in (*own, *kept):
            if layer is not None and layer in self._viewer.layers:
                self._viewer.layers.remove(layer)

    def _forget(self) -> None:
        self.points = self.landmarks = None

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
        layer.size[:] = self._size(point_size(len(layer.data))) * magnification

    def _write_landmarks(self, positions: NDArray[np.float32]) -> None:
        layer = self.landmarks
        if layer is None:
            return
        if len(layer.data) == len(positions):
            layer.data[:] = positions
        else:
            layer.selected_data = set()
            layer.data = positions
        layer.size[:] = self._size(LANDMARK_SIZE)

    def _place_and_draw(self) -> None:
        """Scale and shift both layers into the frame, and draw each once."""
        layers = [x for x in (self.points, self.landmarks) if x is not None]
        with ExitStack() as undrawn:
            # Each change of a transform would draw all points of both layers.
            for layer in layers:
                undrawn.enter_context(layer.events.set_data.blocker())
            for layer in layers:
                self._place(layer)
        for layer in layers:
            # Placing has told the viewer of the new extent; told once more, it
            # would slice and draw all layers again.
            layer.refresh(thumbnail=False, highlight=False, extent=False)

    def _place(self, layer: Points) -> None:
        if layer.scale[0] != self._frame.scale:
            layer.scale = np.full(layer.ndim, self._frame.scale)
        if not np.array_equal(layer.translate, self._frame.translate):
            layer.translate = self._frame.translate


def unwrapped(viewer: object) -> object:
    """Return the viewer itself: napari hands plugins a proxy of it."""
    return getattr(viewer, "__wrapped__", viewer)


def _is_finite(snapshot: Snapshot) -> bool:
    both = (snapshot.embedding, snapshot.landmarks)
    return all(bool(np.isfinite(part).all()) for part in both)


def _points_layer(positions: NDArray[np.float32]) -> Points:
    return Points(
        positions.copy(),
        name=POINTS_NAME,
        size=1.0,
        border_width=0.0,
        face_color="gray",
        opacity=0.9,
        blending="translucent",
    )


def _landmarks_layer(positions: NDArray[np.float32]) -> Points:
    """Dark discs with a light rim: seen on black, on white and on any point."""
    return Points(
        positions.copy(),
        name=LANDMARKS_NAME,
        size=1.0,
        face_color="#15171c",
        border_color="#f4f4f4",
        border_width=0.2,
        opacity=LANDMARK_OPACITY,
    )
