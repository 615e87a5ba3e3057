"""The layers of the map on the canvas: points, landmarks, and other points.

A map of three dimensions has layers of three axes while napari displays three, which it
is asked to do when such a map comes, and flat ones of its first two coordinates while a
person looks at two.

The layers hold world positions and are written in place: ``layer.data = x`` fires
events, copies and redraws, and a layer's scale has the viewer slice everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any
from weakref import WeakSet

import napari
import numpy as np
from napari.layers import Image, Labels, Layer, Points
from napari.utils.notifications import show_info
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.palette import Colors
from napari_embedding_game.ui.canvas.frame import GAP, SIDE, Frame
from napari_embedding_game.ui.canvas.picture import Looks, MapPicture, is_of_balls
from napari_embedding_game.ui.canvas.projection import (
    Projection,
    displayed_axes,
    projection_of,
)
from napari_embedding_game.ui.compat import draw
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import OF_MAP, finest
from napari_embedding_game.ui.style.theme import canvas_color_events, is_canvas_light

POINTS_NAME, LANDMARKS_NAME = "embedding", "landmarks"
COMPARED, REFERENCE = "compared maps", "cells of the reference"
"""Names of the layers next to the map, and behind it."""
LANDMARK_SIZE, LANDMARK_OPACITY = 6.0, 0.7
"""Size in world units, on a map of 1,000."""
LANDMARK_COLORS = "#15171c", "#f4f4f4"
"""Face and border on a dark canvas; the other way round on a light one."""
SMALL_FROM = 100_000
"""Points from which on their size keeps the share of the map that they cover."""
CANVAS_SIZES = (0.0, 10_000.0)
"""Pixels.  Points that napari holds above a larger least size get a grey edge."""
LOCKED = (
    "Positions come from the data: points cannot be moved or deleted one by one. To "
    "move a cluster, drag it by its name; to leave points out, select others and click "
    "'Map these'; to hide the layer, click its eye."
)
LANDMARKS_HELP = "landmarks push points apart and make clusters; drag one in a game"
"""Help that napari shows below the canvas while the layer is selected."""
NEAR = 2.0
"""Canvas pixels per thousandth of the map, at least, after going to a point."""
FILLED = 0.95
"""Share of the canvas that the camera is fitted to."""
TILTED = (-15.0, 25.0, 0.0)
"""Angles of a camera that looked straight, so that depth is seen."""


class MapLayers:
    """The layers, by identity and not by name.

    ``on_removed`` receives the name of points that a person deleted or edited,
    ``on_colored`` the colours (N, 4) that somebody has set in the layer of the map.
    """

    def __init__(
        self,
        viewer: napari.Viewer,
        on_removed: Callable[[str], None],
        on_colored: Callable[[Colors], object] = lambda colors: None,
    ) -> None:
        self._viewer, self._on_removed = viewer, on_removed
        self._on_colored = on_colored
        self.frame, self._n_components = Frame(), 2
        self.landmarks: Points | None = None
        self._pictures: dict[str, MapPicture] = {}
        """Draw the points, and others by the names of their layers."""
        self._shows_landmarks = True
        self._snapshot: Snapshot | None = None
        self._corners: NDArray[np.floating] | None = None
        """The snapshot whose positions are drawn, and what else is to be seen."""
        self._displayed_axes = self._displayed()
        self._connections = Connections()
        self._beside: WeakSet[Layer] = WeakSet()
        """Layers that held something when they came."""
        self._of_others = Connections()
        """To the units of the layers that are not of the map."""
        hear, layers = self._connections.connect, viewer.layers.events
        hear(self._on_layer_removed, layers.removed)
        hear(self._follow_units, layers.inserted, layers.removed)
        hear(self._update_landmark_colors, *canvas_color_events(viewer))
        self._canvas_size = viewer.canvas.size
        hear(self.keep_in_view, viewer.canvas.events.size)

    def close(self) -> None:
        """Leave points and landmarks to the viewer."""
        self._release(POINTS_NAME)
        for name in (COMPARED, REFERENCE):
            self._remove(name)
        self._of_others.close()
        self._connections.close()

    def _follow_units(self, event: object = None) -> None:
        """Give the layers of the map the units of the others, now and as they change.

        Where units differ napari leaves them out, also of its scale bar, and warns.
        """
        self._of_others.close()
        for layer in self._other_layers():
            self._of_others.connect(self._update_units, layer.events.units)
        self._update_units()

    def _update_units(self, event: object = None) -> None:
        for layer in self._of_map():
            units = self._world_units(layer.ndim)
            if units is not None and layer in self._list:
                layer.units = units

    def _world_units(self, n_axes: int) -> tuple[Any, ...] | None:
        """Return the units in which napari draws the other layers, for n axes.

        None where there are no others, or these have no units in common.
        """
        others = self._other_layers()
        units = self._list.get_extent(others).units if others else None
        if units is None:
            return None
        return (units[-1],) * (n_axes - len(units)) + tuple(units)[-n_axes:]

    @property
    def points(self) -> Points | None:
        """The layer of the points."""
        return self.other(POINTS_NAME)

    def add_empty(self, n_points: int, n_landmarks: int, n_components: int = 2) -> None:
        """Add layers for the map of a run that begins: napari takes a second for it."""
        if self.points is None:
            self._switch_display(n_components)
            self._replace(n_points, n_landmarks)

    def discard(self) -> None:
        """Remove layers in which nothing was ever drawn."""
        if self._is_blank:
            self.clear()

    def begin(self, snapshot: Snapshot) -> None:
        """Prepare for another map; ``show`` then draws it."""
        n_points, n_components = snapshot.embedding.shape
        self._switch_display(n_components)
        if self.points is None or self.points.data.shape != (n_points, self._n_axes):
            self._replace(n_points, len(snapshot.landmarks))
        self.frame.restart()
        self._snapshot = None
        if self.landmarks is None:  # somebody deleted them
            self._add_landmarks(len(snapshot.landmarks))

    def show(
        self,
        snapshot: Snapshot,
        looks: Looks,
        *,
        follows: bool = True,
        settles: bool = False,
        corners: NDArray[np.floating] | None = None,
    ) -> bool:
        """Draw a snapshot; return whether it was drawn: NaN would break the camera.

        ``follows``: whether the scale follows the extent of the map, or ``corners``
        (2, d); ``settles``: at once.
        """
        n_points, n_components = snapshot.embedding.shape
        if self.points is None or len(self.points.data) != n_points:
            return False
        self._switch_display(n_components)
        if self.points.ndim != self._n_axes:  # other axes are displayed by now
            self._replace(n_points, 0)
        is_same = np.array_equal(corners, self._corners)
        is_new = snapshot is not self._snapshot or not is_same
        if is_new:
            both = snapshot.embedding, snapshot.landmarks
            if not all(np.isfinite(part).all() for part in both):
                return False
            self._snapshot, self._corners = snapshot, corners
            embedding = self._as_drawn(snapshot.embedding)
            if follows or not self.frame.is_fitted:
                seen = embedding if corners is None else self._as_drawn(corners)
                settles = settles or snapshot.finished or corners is not None
                self.frame.follow(seen, settle=settles)
            self.frame.write_world(embedding, self.points.data, self._axes)
        was_blank = self._is_blank
        self._pictures[POINTS_NAME].show(looks, self._point_size, is_moved=is_new)
        if is_new:
            self._show_landmarks_of(snapshot)
        if was_blank and self.landmarks is not None:
            self.landmarks.visible = self._shows_landmarks
        return True

    def show_extra(
        self, name: str, positions: NDArray[np.floating] | None, looks: Looks
    ) -> None:
        """Draw the layer ``COMPARED`` or ``REFERENCE``: points (M, d); None for none.

        In units of the map; each with the looks of the point of its number.
        """
        if positions is None or self.points is None:
            self._remove(name)
            return
        world = self.to_world(positions)
        picture = self._pictures.get(name)
        if picture is None or picture.layer.data.shape != world.shape:
            self._remove(name)
            layer = points_layer(np.array(world, np.float32), name)
            layer.units = self.points.units
            self._insert(layer, self.points if name == REFERENCE else None)
            picture = self._pictures[name] = MapPicture(self._viewer, layer)
        picture.layer.data[:, self._axes] = world
        picture.show(looks, self._point_size)

    def other(self, name: str) -> Points | None:
        """Return the layer of points of this name, if there is one."""
        picture = self._pictures.get(name)
        return None if picture is None else picture.layer

    def show_landmarks(self, visible: bool) -> None:
        """Show or hide the landmarks from now on, until a person does by the eye."""
        has_changed, self._shows_landmarks = visible != self._shows_landmarks, visible
        if has_changed and self.landmarks is not None and not self._is_blank:
            self.landmarks.visible = visible  # draws all layers

    def _show_landmarks_of(self, snapshot: Snapshot) -> None:
        """Draw the landmarks where the game has them, however many there were."""
        layer = self.landmarks
        if layer is None:
            return
        positions = self.to_world(snapshot.landmarks)
        if len(layer.data) != len(positions):
            layer.selected_data = set()
            with layer.events.data.blocker():
                layer.data = np.zeros_like(positions)
            layer.size[:] = self.frame.unit * LANDMARK_SIZE
            if not layer.visible:
                # napari slices no hidden layer, and its next thumbnail would look for
                # rows that there are no more.
                layer.set_view_slice()
        layer.data[:, self._axes] = positions
        draw(self._viewer, layer)

    def _update_landmark_colors(self, event: object = None) -> None:
        """Draw the landmarks in colours that are seen on the canvas."""
        if self.landmarks is not None:
            colors = LANDMARK_COLORS[:: -1 if is_canvas_light(self._viewer) else 1]
            self.landmarks.face_color, self.landmarks.border_color = colors

    def finish(self) -> None:
        """Bring thumbnails and extents up to date after a series of frames."""
        for layer in (self.points, self.landmarks, self.other(COMPARED)):
            if layer is not None:
                layer.refresh(data_displayed=False)
                if not layer.visible:  # of which napari keeps the extent
                    layer._clear_extent()

    # Positions

    def to_world(self, positions: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return positions (..., d) of the embedding as displayed.

        (row, column) of a flat map, (depth, row, column) of one in space: coordinates
        of the points' layer in the order of its displayed axes.
        """
        return self.frame.to_world(self._as_drawn(positions))

    @property
    def is_deep(self) -> bool:
        """Whether a map in space is drawn as such."""
        return self._n_components == 3 and bool(self._viewer.dims.ndisplay == 3)

    def projection(self, name: str = POINTS_NAME) -> Projection | None:
        """Return how a layer of points is drawn, in units of the embedding.

        None where it is not seen.
        """
        layer = self.other(name)
        if layer is None or not self.frame.is_fitted:
            return None
        projection = projection_of(self._viewer, layer)
        return projection and projection.compose(self.frame.step, self.frame.origin)

    def is_at(self, pixel: NDArray[np.floating]) -> bool:
        """Return whether a pixel (x, y) is in the map's box, or in that of another map.

        The box has the margin that keeps it from other layers, and reaches as far as
        its points do; of a map that is alone it is all of its part of the canvas.
        """
        layer, projection = self.points, self.projection()
        if layer is None or projection is None:
            return False
        here = [pixel, pixel - self.grid_offset()]
        is_in_cell = projection.contains(np.array(here)).any()
        is_beside = any(other.visible for other in self._other_layers())
        if not (is_in_cell and is_beside) or self._viewer.canvas.grid.enabled:
            return bool(is_in_cell)
        margin = GAP / 2 * self.frame.side
        box = self._box_corners() + np.array([[-margin], [margin]], np.float32)
        ends = layer.data.min(axis=0), layer.data.max(axis=0)
        pixels = self._corner_pixels(np.vstack([box, *ends]))
        if np.isnan(pixels).any():  # the eye is in the box
            return True
        low, high = pixels.min(axis=0), pixels.max(axis=0)
        return any(((low <= x) & (x <= high)).all() for x in here)

    def keep_in_view(self, event: object = None) -> None:
        """Zoom out where a smaller canvas would cut a map that was seen as a whole."""
        before, self._canvas_size = self._canvas_size, self._viewer.canvas.size
        if self.projection() is None or self._viewer.canvas.grid.enabled:
            return
        pixels = self._corner_pixels(self._box_corners())
        then, now = np.array([before[::-1], self._canvas_size[::-1]])  # x and y
        reach = np.abs(pixels - now / 2).max(axis=0)  # NaN behind the camera
        if (reach <= then / 2 + 1).all() and (reach > now / 2).any():
            self._viewer.scene.camera.zoom *= float((now / then).min())

    def grid_offset(self) -> NDArray[np.float64]:
        """Return by how many pixels (x, y) napari's grid offsets the other map."""
        seen = filter(None, map(self.projection, (POINTS_NAME, COMPARED)))
        corners = [drawn.cell[:2] for drawn in seen] or [(0.0, 0.0)]
        return np.subtract(corners[-1], corners[0])

    def point_under(
        self, pixel: NDArray[np.floating], through: NDArray[np.floating]
    ) -> NDArray[np.floating] | None:
        """Return the position (d,) under a pixel (x, y), in units of the embedding.

        In space it is on the plane through ``through`` (d,), parallel to the canvas,
        which also has the coordinates that are not drawn.  None beyond the map's plane.
        """
        projection, near = self.projection(), self._as_drawn(through)
        position = None if projection is None else projection.under(pixel, near)
        if position is None:
            return None
        return np.append(position, through[len(position) :])[: len(through)]

    # The camera, and the space next to images

    def center_on(self, row: int) -> None:
        """Show one point in the middle of the canvas, nearer than the whole map."""
        if self.points is not None:
            camera = self._viewer.scene.camera
            position = np.asarray(self.points.data_to_world(self.points.data[row]))
            camera.center = tuple([0.0, *position[self._axes].tolist()][-3:])
            camera.zoom = max(camera.zoom, NEAR * SIDE / self.frame.side)

    def note_added(self, layer: Layer) -> bool:
        """Return whether the map makes room for a layer: it holds something already.

        Layers that are to be painted or drawn in are empty, and may cover all there is.
        """
        if layer.ndim < 2 or not any(layer is one for one in self._other_layers()):
            return False
        if isinstance(layer, Labels):
            pixels = finest(layer)  # others than arrays are in files
            holds = not isinstance(pixels, np.ndarray) or bool(pixels.any())
        else:
            holds = bool(len(layer.data) and np.isfinite(layer.extent.world).all())
        if holds:
            self._beside.add(layer)
        return holds

    def make_room(self) -> bool:
        """Move the map next to the other layers; return whether to draw it again."""
        before, self._displayed_axes = self._displayed_axes, self._displayed()
        is_turned = before != self._displayed_axes
        # What was empty when it came may have been drawn on the map itself.
        beside = [
            layer
            for layer in self._other_layers()
            if isinstance(layer, Image | Labels) or layer in self._beside
        ]
        is_met = any(map(self.frame.meets, self._find_extents(beside)))
        if self.points is None or not (is_turned or is_met):
            return self.points is not None and self.points.ndim != self._n_axes
        self.frame = Frame(self._find_extents(), self.points.ndim)
        self._snapshot = None
        if self.landmarks is not None:
            self.landmarks.size[:] = self.frame.unit * LANDMARK_SIZE
        return True

    def fit_camera(self) -> None:
        """Show the map and the other layers as large as they fit on the canvas.

        napari's own way takes the axes of a flat layer for the last ones, also where
        it draws them along others.
        """
        projection = self.projection()
        if projection is None:
            return
        if projection.sight is not None:  # napari fits all of what is turned
            self._viewer.reset_view(reset_camera_angle=False)
            return
        extents = [self.frame.corners, *self._find_extents()]
        corners = np.concatenate([e for e in extents if np.isfinite(e).all()])
        low, high = corners.min(axis=0), corners.max(axis=0)
        width, height = projection.cell[2:]
        camera = self._viewer.scene.camera
        camera.center = (camera.center[0], *(low + high) / 2)
        room = np.array([height, width]) * FILLED
        camera.zoom = float((room / np.maximum(high - low, 1.0)).min())

    def clear(self) -> None:
        """Remove the layers: the data that they show are gone."""
        if self._pictures or self.landmarks is not None:
            with self._list.batched_update():  # after which napari cleans up, once
                for name in tuple(self._pictures):
                    self._remove(name)
                if self.landmarks is not None:
                    self._list.remove(self.landmarks)

    # Inside

    def _corner_pixels(self, ends: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return where the corners of a box around points (m, d) are drawn, (2^d, 2).

        The points are in the axes of the map's layer.
        """
        drawn = projection_of(self._viewer, self.points)
        assert drawn is not None
        ends = ends[:, self._axes]
        sides = zip(ends.min(axis=0), ends.max(axis=0), strict=True)
        return drawn.to_pixels(np.array(list(product(*sides))))

    @property
    def _list(self) -> napari.components.LayerList:
        return self._viewer.layers

    @property
    def _is_blank(self) -> bool:
        """Whether the points are hidden, as nothing was drawn so far."""
        picture = self._pictures.get(POINTS_NAME)
        return picture is not None and picture.is_blank

    @property
    def _n_axes(self) -> int:
        """Axes that the layers are to have."""
        return 3 if self.is_deep else 2

    @property
    def _axes(self) -> list[int]:
        """The layers' axes along [depth,] rows and columns."""
        n_axes = self._n_axes if self.points is None else self.points.ndim
        if self._viewer.dims.ndim < n_axes:  # there are no layers yet
            return list(range(n_axes))
        return displayed_axes(self._viewer.dims, n_axes, n_axes)

    def _as_drawn(self, positions: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return positions (..., d) with the axes that are drawn: (..., 2 or 3).

        One on a line is drawn as a row, one in space flat while two are displayed.
        """
        n_axes = self.frame.n_axes
        lacking = n_axes - positions.shape[-1]
        if lacking <= 0:
            return positions[..., :n_axes]
        return np.pad(positions, [(0, 0)] * (positions.ndim - 1) + [(0, lacking)])

    @property
    def _point_size(self) -> float:
        """Usual size of a point in world units."""
        return self.frame.unit * point_size(self._n_points)

    def _switch_display(self, n_components: int) -> None:
        """Have napari display three axes of a map in space, and two after it."""
        was_deep, is_deep = self._n_components == 3, n_components == 3
        self._n_components = n_components
        if was_deep != is_deep:
            self._viewer.dims.ndisplay = 3 if is_deep else 2

    def _displayed(self) -> list[int]:
        """Return the displayed axes, counted from the last one."""
        dims = self._viewer.dims
        return [axis - dims.ndim for axis in dims.order][-2:]

    def _find_extents(
        self, layers: Sequence[Layer] | None = None
    ) -> list[NDArray[np.floating]]:
        """Return where layers are displayed, each (2, 2): by default all others."""
        dims = self._viewer.dims
        return [
            np.asarray(layer.extent.world)[:, displayed_axes(dims, layer.ndim)]
            for layer in (self._other_layers() if layers is None else layers)
            if layer.ndim > 1
        ]

    def _of_map(self) -> list[Points]:
        """Return the layers of the map that there are."""
        points = map(self.other, (POINTS_NAME, COMPARED, REFERENCE))
        return [layer for layer in (*points, self.landmarks) if layer is not None]

    def _other_layers(self) -> list[Layer]:
        """Return the layers that are not of the map."""
        of_map = self._of_map()
        return [x for x in self._list if not any(x is mine for mine in of_map)]

    def _box_corners(self) -> NDArray[np.float32]:
        """Return first and last corner of the box in the axes of the layers, (2, d)."""
        axes, half = self._axes, self.frame.side / 2
        corners = np.empty((2, len(axes)), np.float32)
        depth = np.array([[-half], [half]])
        corners[:, axes] = np.hstack([depth, self.frame.corners])[:, -len(axes) :]
        return corners

    def _replace(self, n_points: int, n_landmarks: int) -> None:
        self.clear()
        self._displayed_axes, self._snapshot = self._displayed(), None
        n_axes = self._n_axes
        self.frame = Frame(self._find_extents(), n_axes)
        # The camera shows the whole box, which the map is going to fill.
        # Axis by axis in memory: napari asks for their extents often.
        corners = np.resize(self._box_corners(), (n_points, n_axes))
        positions = np.asfortranarray(corners)
        layer, self._n_points = points_layer(positions), n_points
        layer.units = self._world_units(n_axes)
        picture = MapPicture(self._viewer, layer, self._on_colored)
        self._pictures[POINTS_NAME] = picture
        layer.events.data.connect(self._on_edited)
        self._list.append(layer)
        self._add_landmarks(n_landmarks)
        self._list.selection.active = layer
        camera = self._viewer.scene.camera
        if n_axes == 3 and not np.any(camera.angles):
            camera.angles = TILTED
        self._viewer.reset_view(reset_camera_angle=n_axes == 2)

    def _add_landmarks(self, n_landmarks: int) -> None:
        """Add a layer of landmarks, which the next snapshot positions."""
        layer = Points(
            np.tile(self._box_corners().mean(axis=0), (n_landmarks, 1)),
            name=LANDMARKS_NAME,
            metadata={OF_MAP: True},
            size=self.frame.unit * LANDMARK_SIZE,
            border_width=0.2,
            opacity=LANDMARK_OPACITY,
            visible=self._shows_landmarks and not self._is_blank,
            units=None if self.points is None else self.points.units,
        )
        self.landmarks = layer
        self._update_landmark_colors()
        _keep_locked(layer)
        self._insert(layer)
        layer.help = LANDMARKS_HELP  # napari takes it away from a layer that comes

    def _insert(self, layer: Points, below: Points | None = None) -> None:
        """Add a layer; the one that is active stays so."""
        active, at = self._list.selection.active, len(self._list)
        self._list.insert(at if below is None else self._list.index(below), layer)
        self._list.selection.active = active

    def _release(self, name: str, *, is_left: bool = True) -> Points | None:
        """Leave points to whoever has them, and return their layer."""
        picture = self._pictures.pop(name, None)
        if picture is None:
            return None
        picture.close(is_left=is_left)
        return picture.layer

    def _remove(self, name: str) -> None:
        layer = self._release(name, is_left=False)
        if layer is not None and layer in self._list:
            self._list.remove(layer)

    def _on_edited(self, event: Any) -> None:
        """Leave points to whoever added or deleted some."""
        if event.source is self.points and len(event.source.data) != self._n_points:
            self._release(POINTS_NAME)
            if self.landmarks is not None:
                self._list.remove(self.landmarks)
            self._on_removed(POINTS_NAME)

    def _on_layer_removed(self, event: Any) -> None:
        if event.value is self.landmarks:
            self.landmarks = None
        for name in (POINTS_NAME, COMPARED, REFERENCE):
            if event.value is self.other(name):
                self._release(name)
                self._on_removed(name)


def point_size(n_points: int) -> float:
    """Return the world size of a point on a map of 1,000 world units.

    2,638 points are 8 across, 70,000 no blob.  Millions are so small that they lie
    beside one another once a person has come near enough.
    """
    n = max(n_points, 1)
    return float(min(16.0, 108 / np.cbrt(n), 2.3 * np.sqrt(SMALL_FROM / n)))


def points_layer(world: NDArray[np.floating], name: str = POINTS_NAME) -> Points:
    """Return a hidden layer of points (N, d), which nobody edits one by one.

    Their positions come from the data.
    """
    is_round = is_of_balls(world.shape[1], len(world))
    layer = Points(
        world,
        name=name,
        metadata={OF_MAP: True},
        size=1.0,  # floats: sizes are written in place
        border_width=0.0,
        face_color="gray",
        opacity=0.9,
        blending="translucent",
        canvas_size_limits=CANVAS_SIZES,
        visible=False,  # or napari makes markers, of which nobody sees any
        shading="spherical" if is_round else "none",
    )
    _keep_locked(layer)
    for key in ("Delete", "Backspace"):
        layer.bind_key(key, lambda _: show_info(LOCKED), overwrite=True)
    return layer


def _keep_locked(layer: Points) -> None:
    """Have nobody edit points one by one; napari would let them in another view."""

    def lock(event: object) -> None:
        layer = event.source  # type: ignore[attr-defined]
        if layer.editable:
            layer.editable = False

    layer.editable = False
    layer.events.editable.connect(lock)
