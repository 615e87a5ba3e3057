"""The layers of the map in napari: points, landmarks, and further points.

A map of three dimensions has layers of three axes while napari displays three, as it is
asked to for such a map, and flat layers of the first two coordinates while a
person displays two.

The layers hold world positions, which are written in place: ``layer.data = x`` fires
events, copies and renders, and a change of a layer's scale slices all layers.
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
from napari_embedding_game.session.settings import DisplaySettings
from napari_embedding_game.ui.canvas.frame import GAP, SIDE, Frame
from napari_embedding_game.ui.canvas.picture import (
    MapPicture,
    PointStyle,
    are_rendered_as_balls,
)
from napari_embedding_game.ui.canvas.point_look import PointLook
from napari_embedding_game.ui.canvas.projection import (
    CanvasProjection,
    displayed_axes,
    layer_projection,
)
from napari_embedding_game.ui.compat import refresh_layer
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import MAP_KEY, finest_pixels
from napari_embedding_game.ui.style.theme import (
    is_canvas_light,
    list_canvas_color_events,
)

POINTS_NAME, LANDMARKS_NAME = "embedding", "landmarks"
COMPARED, REFERENCE = "compared maps", "cells of the reference"
"""Names of the layers of points next to the map, and behind it."""
LANDMARK_SIZE, LANDMARK_OPACITY = 6.0, 0.7
"""Size of a landmark in world units on a map of 1,000 units, and its opacity."""
LANDMARK_COLORS = "#15171c", "#f4f4f4"
"""Face and border on a dark canvas; they are swapped on a light canvas."""
SMALL_FROM_POINTS = 100_000
"""From so many points on their total area stays constant."""
CANVAS_SIZES = (0.0, 10_000.0)
"""Limits of a point's size in pixels: a larger minimum gives points a grey edge."""
LOCKED = (
    "Positions come from the data: points cannot be moved or deleted one by one. To "
    "move a cluster, drag it by its name; to leave points out, select others and click "
    "'Map these'; to hide the layer, click its eye."
)
LANDMARKS_HELP = "landmarks push points apart and make clusters; drag one in a game"
"""Help that napari shows below the canvas while the layer is selected."""
NEAR = 2.0
"""Least zoom, in canvas pixels per thousandth of the map, after going to a point."""
FILLED = 0.95
"""Share of the canvas that the camera is fitted to."""
TILTED = (-15.0, 25.0, 0.0)
"""Camera angles for a new map in space, at which its depth is visible."""


class MapLayers:
    """Makes, fills and removes the layers of the map, which it knows by identity.

    ``on_points_removed`` is called with the name of a layer of points that a person
    deleted or edited, ``on_points_colored`` with colours (N, 4) that a person or plugin
    has set in the layer of the map.  ``look``: what opacity, blending and symbol of the
    points are kept in; by default they begin anew.
    """

    def __init__(
        self,
        viewer: napari.Viewer,
        on_points_removed: Callable[[str], None],
        on_points_colored: Callable[[Colors], object] = lambda colors: None,
        look: DisplaySettings | None = None,
    ) -> None:
        self._viewer, self._points_removed = viewer, on_points_removed
        self._points_colored = on_points_colored
        self._point_look = PointLook(look or DisplaySettings())
        self.frame, self._n_components = Frame(), 2
        self.landmarks: Points | None = None
        self._pictures: dict[str, MapPicture] = {}
        """The pictures of the layers of points, by the names of the layers."""
        self._shows_landmarks = True
        self._visibility: tuple[Points | None, bool] = None, True
        """A layer, and the visibility that :meth:`set_points_visible` gave it."""
        self._snapshot: Snapshot | None = None
        """The snapshot whose positions are shown."""
        self._corners: NDArray[np.floating] | None = None
        """The corners (2, d) that the frame follows instead of the snapshot."""
        self._displayed_axes = self._find_displayed_axes()
        self._connections = Connections()
        self._beside: WeakSet[Layer] = WeakSet()
        """Other layers that were not empty when they were added."""
        self._unit_connections = Connections()
        """Connections to the units of the other layers."""
        hear, layers = self._connections.connect, viewer.layers.events
        hear(self._on_layer_removed, layers.removed)
        hear(self._watch_other_units, layers.inserted, layers.removed)
        hear(self._update_landmark_colors, *list_canvas_color_events(viewer))
        self._canvas_size = viewer.canvas.size
        hear(self.zoom_out_to_keep_map, viewer.canvas.events.size)

    def close(self) -> None:
        """Leave points and landmarks to napari, and remove further points."""
        self._release_points(POINTS_NAME)
        for name in (COMPARED, REFERENCE):
            self._remove_points(name)
        self._unit_connections.close()
        self._connections.close()
        self._point_look.close()

    def _watch_other_units(self, event: object = None) -> None:
        """Subscribe to the units of other layers, and give them to the map's layers.

        Former subscriptions end.  Where units differ napari warns and ignores units,
        also in its scale bar.
        """
        self._unit_connections.close()
        for layer in self._list_other_layers():
            self._unit_connections.connect(self._update_units, layer.events.units)
        self._update_units()

    def _update_units(self, event: object = None) -> None:
        """Give the map's layers the units that all other layers share, if any."""
        for layer in self._list_map_layers():
            units = self._find_world_units(layer.ndim)
            if units is not None and layer in self._layer_list:
                layer.units = units

    def _find_world_units(self, n_axes: int) -> tuple[Any, ...] | None:
        """Return the units of the last ``n_axes`` axes of the other layers.

        Axes that the other layers lack have the unit of their last axis.  None where
        there are no other layers, or they have no units in common.
        """
        others = self._list_other_layers()
        units = self._layer_list.get_extent(others).units if others else None
        if units is None:
            return None
        return (units[-1],) * (n_axes - len(units)) + tuple(units)[-n_axes:]

    @property
    def points(self) -> Points | None:
        """The layer of the map's points; None while there is none."""
        return self.find_points_layer(POINTS_NAME)

    def add_blank_layers(
        self, n_points: int, n_landmarks: int, n_components: int = 2
    ) -> None:
        """Add hidden layers for a run that begins, since napari takes a second for it.

        napari is set to display 3 axes for 3 components.  Nothing is done where a layer
        of points exists.
        """
        if self.points is None:
            self._set_displayed_dimensions(n_components)
            self._replace_layers(n_points, n_landmarks)

    def remove_if_blank(self) -> None:
        """Remove all layers if no snapshot was ever shown in them."""
        if self._is_blank:
            self.remove_layers()

    def prepare_layers(self, snapshot: Snapshot) -> None:
        """Make or keep layers of the snapshot's shape, and forget the map's scale.

        A layer of landmarks that a person deleted is added again, and napari is set to
        display 3 axes for a map in space.  :meth:`show_snapshot` then fills the layers.
        """
        n_points, n_components = snapshot.embedding.shape
        self._set_displayed_dimensions(n_components)
        if self.points is None or self.points.data.shape != (n_points, self._n_axes):
            self._replace_layers(n_points, len(snapshot.landmarks))
        self.frame.reset_fit()
        self._snapshot = None
        if self.landmarks is None:  # a person deleted the layer
            self._add_landmarks_layer(len(snapshot.landmarks))

    def show_snapshot(
        self,
        snapshot: Snapshot,
        style: PointStyle,
        *,
        follows_extent: bool = True,
        is_immediate: bool = False,
        corners: NDArray[np.floating] | None = None,
    ) -> bool:
        """Show the points and landmarks of a snapshot; return whether it was possible.

        It is not possible where the layer is missing or has another number of points,
        or where a position is not finite, which would break the camera.  Layers are
        replaced where napari displays another number of axes.  The first snapshot makes
        blank layers visible.

        Parameters
        ----------
        follows_extent : bool
            Whether the frame follows the extent of the map.  A frame without a scale
            does so anyway.
        is_immediate : bool
            Whether the frame follows at once, as for a finished snapshot and corners.
        corners : array of shape (2, d), optional
            Corners that the frame follows instead of the extent of the map.
        """
        n_points, n_components = snapshot.embedding.shape
        if self.points is None or len(self.points.data) != n_points:
            return False
        self._set_displayed_dimensions(n_components)
        if self.points.ndim != self._n_axes:  # napari displays 2 axes instead of 3
            self._replace_layers(n_points, 0)
        is_same = np.array_equal(corners, self._corners)
        is_new = snapshot is not self._snapshot or not is_same
        if is_new:
            positions = snapshot.embedding, snapshot.landmarks
            if not all(np.isfinite(players).all() for players in positions):
                return False
            self._snapshot, self._corners = snapshot, corners
            embedding = self._to_displayed_coordinates(snapshot.embedding)
            if follows_extent or not self.frame.is_fitted:
                seen = (
                    embedding
                    if corners is None
                    else self._to_displayed_coordinates(corners)
                )
                is_immediate = is_immediate or snapshot.finished or corners is not None
                self.frame.follow_extent(seen, is_immediate=is_immediate)
            self.frame.write_world_positions(
                embedding, self.points.data, self._layer_axes
            )
        was_blank = self._is_blank
        self._pictures[POINTS_NAME].show_points(
            style, self._world_point_size, is_moved=is_new
        )
        if is_new:
            self._move_landmarks(snapshot)
        if was_blank and self.landmarks is not None:
            self.landmarks.visible = self._shows_landmarks
        return True

    def show_extra_points(
        self, name: str, positions: NDArray[np.floating] | None, style: PointStyle
    ) -> None:
        """Show positions (M, d) in the layer ``COMPARED`` or ``REFERENCE``.

        Positions are in units of the map and have the looks of ``style``, row by row.
        The layer is on top, or below the points for ``REFERENCE``.  None removes the
        layer, as does a map without points.
        """
        if positions is None or self.points is None:
            self._remove_points(name)
            return
        world = self.to_world(positions)
        picture = self._pictures.get(name)
        if picture is None or picture.layer.data.shape != world.shape:
            self._remove_points(name)
            layer = make_points_layer(np.array(world, np.float32), name)
            layer.units = self.points.units
            self._insert_layer(layer, self.points if name == REFERENCE else None)
            picture = self._pictures[name] = MapPicture(self._viewer, layer)
        picture.layer.data[:, self._layer_axes] = world
        picture.show_points(style, self._world_point_size)

    def find_points_layer(self, name: str) -> Points | None:
        """Return the layer of points with this name, or None."""
        picture = self._pictures.get(name)
        return None if picture is None else picture.layer

    def set_landmarks_visible(self, visible: bool) -> None:
        """Show or hide the landmarks; a repeated call keeps a person's choice.

        Blank layers stay hidden, and show the landmarks with the first snapshot.
        """
        has_changed, self._shows_landmarks = visible != self._shows_landmarks, visible
        if has_changed and self.landmarks is not None and not self._is_blank:
            self.landmarks.visible = visible  # renders all layers

    def set_points_visible(self, visible: bool) -> None:
        """Show or hide the map's points; a repeated call keeps a person's choice."""
        layer = self.points
        if layer is not None and (layer, visible) != self._visibility:
            if self._visibility[0] is layer or not visible:
                layer.visible = visible
            self._visibility = layer, visible

    def _move_landmarks(self, snapshot: Snapshot) -> None:
        """Move the landmarks to their places in a snapshot, and change their number.

        Positions are written in place while the number stays; another number deselects
        all landmarks.  Nothing is done without their layer.
        """
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
                # napari slices no hidden layer, and its next thumbnail would read rows
                # that are gone.
                layer.set_view_slice()
        layer.data[:, self._layer_axes] = positions
        refresh_layer(self._viewer, layer)

    def _update_landmark_colors(self, event: object = None) -> None:
        """Give the landmarks the colours for a dark or a light canvas."""
        if self.landmarks is not None:
            colors = LANDMARK_COLORS[:: -1 if is_canvas_light(self._viewer) else 1]
            self.landmarks.face_color, self.landmarks.border_color = colors

    def refresh_thumbnails_and_extents(self) -> None:
        """Refresh thumbnails and extents after positions were written in place.

        The layers are those of points, landmarks and compared maps, also hidden ones.
        """
        for layer in (self.points, self.landmarks, self.find_points_layer(COMPARED)):
            if layer is not None:
                layer.refresh(data_displayed=False)
                if not layer.visible:  # napari caches the extent of a hidden layer
                    layer._clear_extent()

    # Positions

    def to_world(self, positions: NDArray[np.floating]) -> NDArray[np.floating]:
        """Convert positions (..., d) of the embedding to world coordinates.

        They are (row, column), or (depth, row, column) in space: coordinates of the
        points' layer in the order of its displayed axes.
        """
        return self.frame.to_world(self._to_displayed_coordinates(positions))

    @property
    def is_shown_in_3d(self) -> bool:
        """Whether the map has three dimensions and napari displays three."""
        return self._n_components == 3 and bool(self._viewer.dims.ndisplay == 3)

    def projection(self, name: str = POINTS_NAME) -> CanvasProjection | None:
        """Return the projection of a layer of points from units of the embedding.

        None where the layer is hidden or missing, or nothing was shown so far.
        """
        layer = self.find_points_layer(name)
        if layer is None or not self.frame.is_fitted:
            return None
        projection = layer_projection(self._viewer, layer)
        return projection and projection.compose_affine(
            self.frame.step_matrix, self.frame.origin
        )

    def is_map_at(self, pixel: NDArray[np.floating]) -> bool:
        """Return whether a pixel (x, y) is in the box of the map or of a compared map.

        The box includes all points and half the gap to other layers.  Without visible
        other layers, and in napari's grid, it is the layer's whole rectangle of the
        canvas.  False while the map is hidden or missing.
        """
        layer, projection = self.points, self.projection()
        if layer is None or projection is None:
            return False
        here = [pixel, pixel - self.find_grid_offset()]
        is_in_canvas_box = projection.contains(np.array(here)).any()
        is_beside = any(other.visible for other in self._list_other_layers())
        if not (is_in_canvas_box and is_beside) or self._viewer.canvas.grid.enabled:
            return bool(is_in_canvas_box)
        margin = GAP / 2 * self.frame.side
        box = self._compute_box_corners() + np.array([[-margin], [margin]], np.float32)
        ends = layer.data.min(axis=0), layer.data.max(axis=0)
        pixels = self._compute_box_corner_pixels(np.vstack([box, *ends]))
        if np.isnan(pixels).any():  # the eye is in the box
            return True
        low, high = pixels.min(axis=0), pixels.max(axis=0)
        return any(((low <= x) & (x <= high)).all() for x in here)

    def zoom_out_to_keep_map(self, event: object = None) -> None:
        """Zoom out where a smaller canvas would cut a map that was all visible.

        Nothing is done in napari's grid, or without a visible map.
        """
        before, self._canvas_size = self._canvas_size, self._viewer.canvas.size
        if self.projection() is None or self._viewer.canvas.grid.enabled:
            return
        pixels = self._compute_box_corner_pixels(self._compute_box_corners())
        then, now = np.array([before[::-1], self._canvas_size[::-1]])  # x and y
        reach = np.abs(pixels - now / 2).max(axis=0)  # NaN behind the camera
        if (reach <= then / 2 + 1).all() and (reach > now / 2).any():
            self._viewer.scene.camera.zoom *= float((now / then).min())

    def find_grid_offset(self) -> NDArray[np.float64]:
        """Return the shift in pixels (x, y) of the compared map in napari's grid.

        It is 0 without a grid or without a compared map.
        """
        seen = filter(None, map(self.projection, (POINTS_NAME, COMPARED)))
        corners = [drawn.canvas_box[:2] for drawn in seen] or [(0.0, 0.0)]
        return np.subtract(corners[-1], corners[0])

    def position_at_pixel(
        self, pixel: NDArray[np.floating], same_depth_as: NDArray[np.floating]
    ) -> NDArray[np.floating] | None:
        """Return the position (d,) at a pixel (x, y), in units of the embedding.

        In space it has the depth of ``same_depth_as`` (d,), from which coordinates that
        are not displayed are taken, too.  None where the pixel shows no part of the
        plane.
        """
        projection = self.projection()
        near = self._to_displayed_coordinates(same_depth_as)
        position = (
            None if projection is None else projection.position_at_pixel(pixel, near)
        )
        if position is None:
            return None
        return np.append(position, same_depth_as[len(position) :])[: len(same_depth_as)]

    # The camera, and the space next to images

    def center_on_point(self, row: int) -> None:
        """Center the camera on the point of a row, and zoom in to at least ``NEAR``."""
        if self.points is not None:
            camera = self._viewer.scene.camera
            position = np.asarray(self.points.data_to_world(self.points.data[row]))
            camera.center = tuple([0.0, *position[self._layer_axes].tolist()][-3:])
            camera.zoom = max(camera.zoom, NEAR * SIDE / self.frame.side)

    def note_layer_with_data(self, layer: Layer) -> bool:
        """Note an added layer that holds data, and return whether it does.

        The map makes room for such a layer.  An empty layer is added to be painted in,
        and may be meant for the map itself.  False also for layers of the map and for
        layers of one axis.
        """
        if layer.ndim < 2 or not any(
            layer is other for other in self._list_other_layers()
        ):
            return False
        if isinstance(layer, Labels):
            pixels = finest_pixels(layer)  # pixels that are no array come from a file
            holds = not isinstance(pixels, np.ndarray) or bool(pixels.any())
        else:
            holds = bool(len(layer.data) and np.isfinite(layer.extent.world).all())
        if holds:
            self._beside.add(layer)
        return holds

    def move_beside_other_layers(self, *, is_forced: bool = False) -> bool:
        """Give the map a new frame next to the other layers where it overlaps them.

        The frame is also new after other axes are displayed, and if ``is_forced``.  It
        is among the other layers while the tissue is shown instead of the map.  Layers
        that were empty when added count only if they are images or labels.  Return
        whether the map must be rendered again.
        """
        before, self._displayed_axes = self._displayed_axes, self._find_displayed_axes()
        is_turned = before != self._displayed_axes
        # A layer that was empty when added may have been painted on the map itself.
        beside = [
            layer
            for layer in self._list_other_layers()
            if isinstance(layer, Image | Labels) or layer in self._beside
        ]
        is_shown = self._visibility[1]
        is_met = is_shown and any(
            map(self.frame.overlaps_box, self._compute_displayed_extents(beside))
        )
        if self.points is None or not (is_turned or is_met or is_forced):
            return self.points is not None and self.points.ndim != self._n_axes
        make_frame = Frame if is_shown else Frame.of_hidden_map
        self.frame = make_frame(self._compute_displayed_extents(), self.points.ndim)
        self._snapshot = None
        if self.landmarks is not None:
            self.landmarks.size[:] = self.frame.unit * LANDMARK_SIZE
        return True

    def fit_camera(self) -> None:
        """Fit the camera to the map's box and all other layers.

        napari fits a map in space, with the same camera angles.  For a flat map its own
        method is not used, as it assumes that the axes of a flat layer are the last
        ones, also where it renders the layer along other axes.  Nothing is done without
        a visible map.
        """
        projection = self.projection()
        if projection is None:
            return
        if projection.view_direction is not None:  # napari itself fits a map in space
            self._viewer.reset_view(reset_camera_angle=False)
            return
        extents = [self.frame.corners, *self._compute_displayed_extents()]
        corners = np.concatenate([e for e in extents if np.isfinite(e).all()])
        low, high = corners.min(axis=0), corners.max(axis=0)
        width, height = projection.canvas_box[2:]
        camera = self._viewer.scene.camera
        camera.center = (camera.center[0], *(low + high) / 2)
        room = np.array([height, width]) * FILLED
        camera.zoom = float((room / np.maximum(high - low, 1.0)).min())

    def remove_layers(self) -> None:
        """Remove all layers of the map."""
        if self._pictures or self.landmarks is not None:
            with self._layer_list.batched_update():  # napari cleans up only once
                for name in tuple(self._pictures):
                    self._remove_points(name)
                if self.landmarks is not None:
                    self._layer_list.remove(self.landmarks)

    def _compute_box_corner_pixels(
        self, ends: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Return the pixels (2^d, 2) of the corners of a box around points (m, d).

        The points have the coordinates of the map's layer.
        """
        drawn = layer_projection(self._viewer, self.points)
        assert drawn is not None
        ends = ends[:, self._layer_axes]
        sides = zip(ends.min(axis=0), ends.max(axis=0), strict=True)
        return drawn.to_pixels(np.array(list(product(*sides))))

    @property
    def _layer_list(self) -> napari.components.LayerList:
        return self._viewer.layers

    @property
    def _is_blank(self) -> bool:
        """Whether no snapshot was shown so far, so that the points are hidden."""
        picture = self._pictures.get(POINTS_NAME)
        return picture is not None and picture.is_blank

    @property
    def _n_axes(self) -> int:
        """Number of axes that the map's layers must have."""
        return 3 if self.is_shown_in_3d else 2

    @property
    def _layer_axes(self) -> list[int]:
        """The axes of the map's layers along [depth,] rows and columns."""
        n_axes = self._n_axes if self.points is None else self.points.ndim
        if self._viewer.dims.ndim < n_axes:  # there are no layers yet
            return list(range(n_axes))
        return displayed_axes(self._viewer.dims, n_axes, n_axes)

    def _to_displayed_coordinates(
        self, positions: NDArray[np.floating]
    ) -> NDArray[np.floating]:
        """Return the displayed coordinates (..., 2 or 3) of positions (..., d).

        A map on a line gets a second coordinate 0; a map in space loses its third
        coordinate while two axes are displayed.
        """
        n_axes = self.frame.n_axes
        lacking = n_axes - positions.shape[-1]
        if lacking <= 0:
            return positions[..., :n_axes]
        return np.pad(positions, [(0, 0)] * (positions.ndim - 1) + [(0, lacking)])

    @property
    def _world_point_size(self) -> float:
        """Diameter of an unmagnified point in world units."""
        return self.frame.unit * compute_world_point_size(self._n_points)

    def _set_displayed_dimensions(self, n_components: int) -> None:
        """Let napari display three axes for a map in space, and two after it.

        Between two maps in space, or two flat maps, a person's choice is kept.
        """
        was_in_space, is_shown_in_3d = self._n_components == 3, n_components == 3
        self._n_components = n_components
        if was_in_space != is_shown_in_3d:
            self._viewer.dims.ndisplay = 3 if is_shown_in_3d else 2

    def _find_displayed_axes(self) -> list[int]:
        """Return the last two displayed axes as negative numbers."""
        dims = self._viewer.dims
        return [axis - dims.ndim for axis in dims.order][-2:]

    def _compute_displayed_extents(
        self, layers: Sequence[Layer] | None = None
    ) -> list[NDArray[np.floating]]:
        """Return the extents (2, 2) of layers along the displayed axes.

        By default the layers are all other layers; layers of one axis are left out.
        """
        dims = self._viewer.dims
        return [
            np.asarray(layer.extent.world)[:, displayed_axes(dims, layer.ndim)]
            for layer in (self._list_other_layers() if layers is None else layers)
            if layer.ndim > 1
        ]

    def _list_map_layers(self) -> list[Points]:
        """Return the existing layers of the map, the landmarks last."""
        points = map(self.find_points_layer, (POINTS_NAME, COMPARED, REFERENCE))
        return [layer for layer in (*points, self.landmarks) if layer is not None]

    def _list_other_layers(self) -> list[Layer]:
        """Return the layers that do not belong to the map."""
        own = self._list_map_layers()
        return [x for x in self._layer_list if not any(x is layer for layer in own)]

    def _compute_box_corners(self) -> NDArray[np.float32]:
        """Return first and last corner (2, d) of the box in the layers' coordinates."""
        axes, half = self._layer_axes, self.frame.side / 2
        corners = np.empty((2, len(axes)), np.float32)
        depth = np.array([[-half], [half]])
        corners[:, axes] = np.hstack([depth, self.frame.corners])[:, -len(axes) :]
        return corners

    def _replace_layers(self, n_points: int, n_landmarks: int) -> None:
        """Replace the layers by hidden ones, with a new frame, and fit the camera.

        The layer of points becomes the active layer.  In space a camera without angles
        is tilted, and one with angles keeps them.
        """
        self.remove_layers()
        self._displayed_axes, self._snapshot = self._find_displayed_axes(), None
        n_axes = self._n_axes
        self.frame = Frame(self._compute_displayed_extents(), n_axes)
        # The positions span the box, so that the camera shows all of it.  In column
        # order napari finds their extents quickly.
        corners = np.resize(self._compute_box_corners(), (n_points, n_axes))
        positions = np.asfortranarray(corners)
        layer, self._n_points = make_points_layer(positions), n_points
        layer.units = self._find_world_units(n_axes)
        picture = MapPicture(self._viewer, layer, self._points_colored)
        self._pictures[POINTS_NAME] = picture
        layer.events.data.connect(self._on_points_edited)
        self._point_look.follow_layer(layer)
        self._layer_list.append(layer)
        self._add_landmarks_layer(n_landmarks)
        self._layer_list.selection.active = layer
        camera = self._viewer.scene.camera
        if n_axes == 3 and not np.any(camera.angles):
            camera.angles = TILTED
        self._viewer.reset_view(reset_camera_angle=n_axes == 2)

    def _add_landmarks_layer(self, n_landmarks: int) -> None:
        """Add a layer of landmarks in the middle of the box, to be moved later.

        It is hidden beside blank points, and while landmarks are not to be shown.
        """
        layer = Points(
            np.tile(self._compute_box_corners().mean(axis=0), (n_landmarks, 1)),
            name=LANDMARKS_NAME,
            metadata={MAP_KEY: True},
            size=self.frame.unit * LANDMARK_SIZE,
            border_width=0.2,
            opacity=LANDMARK_OPACITY,
            visible=self._shows_landmarks and not self._is_blank,
            units=None if self.points is None else self.points.units,
        )
        self.landmarks = layer
        self._update_landmark_colors()
        _prevent_editing(layer)
        self._insert_layer(layer)
        layer.help = LANDMARKS_HELP  # napari clears the help of an added layer

    def _insert_layer(self, layer: Points, below: Points | None = None) -> None:
        """Insert a layer below another, or on top, and keep the active layer."""
        active, at = self._layer_list.selection.active, len(self._layer_list)
        self._layer_list.insert(
            at if below is None else self._layer_list.index(below), layer
        )
        self._layer_list.selection.active = active

    def _release_points(
        self, name: str, *, shows_markers: bool = True
    ) -> Points | None:
        """Forget a layer of points, and return the layer; it stays in napari.

        ``shows_markers``: whether napari must render its points from now on.
        """
        picture = self._pictures.pop(name, None)
        if picture is None:
            return None
        picture.close(shows_markers=shows_markers)
        return picture.layer

    def _remove_points(self, name: str) -> None:
        """Forget a layer of points, and remove it from the viewer if it is there."""
        layer = self._release_points(name, shows_markers=False)
        if layer is not None and layer in self._layer_list:
            self._layer_list.remove(layer)

    def _on_points_edited(self, event: Any) -> None:
        """Leave the points to a person who has added or deleted points.

        The landmarks are removed, and ``on_points_removed`` is called.
        """
        if event.source is self.points and len(event.source.data) != self._n_points:
            self._release_points(POINTS_NAME)
            if self.landmarks is not None:
                self._layer_list.remove(self.landmarks)
            self._points_removed(POINTS_NAME)

    def _on_layer_removed(self, event: Any) -> None:
        """Forget a removed layer of the map, and report a layer of points."""
        if event.value is self.landmarks:
            self.landmarks = None
        for name in (POINTS_NAME, COMPARED, REFERENCE):
            if event.value is self.find_points_layer(name):
                self._release_points(name)
                self._points_removed(name)


def compute_world_point_size(n_points: int) -> float:
    """Return the diameter of one of n points on a map of 1,000 world units.

    2,638 points have a diameter of 8, and 70,000 points form no blob.  Millions of
    points are so small that a person can zoom in until they lie apart.
    """
    n = max(n_points, 1)
    return float(min(16.0, 108 / np.cbrt(n), 2.3 * np.sqrt(SMALL_FROM_POINTS / n)))


def make_points_layer(world: NDArray[np.floating], name: str = POINTS_NAME) -> Points:
    """Return a hidden layer of points (N, d) that cannot be edited.

    Keys to delete points explain instead that positions come from the data.
    """
    is_round = are_rendered_as_balls(world.shape[1], len(world))
    layer = Points(
        world,
        name=name,
        metadata={MAP_KEY: True},
        size=1.0,  # a float array: sizes are written in place
        border_width=0.0,
        face_color="gray",
        opacity=0.9,
        blending="translucent",
        canvas_size_limits=CANVAS_SIZES,
        visible=False,  # napari would make markers that are never shown
        shading="spherical" if is_round else "none",
    )
    _prevent_editing(layer)
    for key in ("Delete", "Backspace"):
        layer.bind_key(key, lambda _: show_info(LOCKED), overwrite=True)
    return layer


def _prevent_editing(layer: Points) -> None:
    """Keep a layer from being edited, also after napari enables that in a new view."""

    def lock(event: object) -> None:
        """Switch editing off again; the switch calls this once more."""
        layer = event.source  # type: ignore[attr-defined]
        if layer.editable:
            layer.editable = False

    layer.editable = False
    layer.events.editable.connect(lock)
