"""The map on the canvas: a Points layer of points and one of landmarks.

A map of three dimensions has layers of three axes while napari displays three, which it
is asked to do when such a map comes, and flat ones of its first two coordinates while a
person looks at two.

The layers hold world positions and are written in place: ``layer.data = x`` fires
events, copies and redraws, and a layer's scale has the viewer slice everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from napari.layers import Layer, Points
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.ui.canvas.beside_layer import BEHIND, BesideLayer
from napari_embedding_game.ui.canvas.map_picture import Looks, MapPicture
from napari_embedding_game.ui.canvas.overlays.lasso_overlay import inside
from napari_embedding_game.ui.canvas.placement import SIDE, Frame, free_box
from napari_embedding_game.ui.canvas.points_layer import (
    LANDMARK_SIZE,
    LANDMARKS_HELP,
    Faded,
    color_landmarks,
    landmarks_layer,
    point_size,
    points_layer,
    write_landmarks,
)
from napari_embedding_game.ui.canvas.projection import (
    Projection,
    displayed_axes,
    projection_of,
)
from napari_embedding_game.ui.compat import camera_of, draw, in_place
from napari_embedding_game.ui.connections import Connections

if TYPE_CHECKING:
    import napari
    import pandas as pd

NEAR = 2.0
"""Canvas pixels per thousandth of the map, at least, after going to a point."""
FILLED = 0.95
"""Share of the canvas that the camera is fitted to."""
FADED = 0.3
"""Of the landmarks' opacity, while some of the points stand out."""
TILTED = (-15.0, 25.0, 0.0)
"""Angles of a camera that looked straight, so that depth is seen."""
PLACEHOLDER = {"napari-embedding-game": "placeholder"}
"""Metadata of a layer that only keeps the place until the map is there."""


class MapPosition(NamedTuple):
    """A place of the map under the mouse."""

    position: NDArray[np.floating]
    """(2,) in units of the embedding."""
    stretch: NDArray[np.floating]
    """(2, 2) from a small step on the map to pixels (x, y)."""


class KeptMap(NamedTuple):
    """The map that a closed dock leaves to the one that is opened next."""

    points: Points | None
    landmarks: Points | None
    frame: Frame
    n_points: int = 0
    faded: Faded | None = None
    n_components: int = 2


class MapLayers:
    """Owns the two layers; finds them by identity, never by name.

    Parameters
    ----------
    viewer : napari.Viewer
    on_lost : callable
        Called when the points were deleted or edited by somebody else.
    kept : KeptMap, optional
        The map of a former dock, as it was ``kept``; none by default.
    on_beside_removed : callable, optional
        Called when somebody deleted the maps beside this one.
    on_behind_removed : callable, optional
        Called when somebody deleted the cells of a reference behind it.
    on_kind : callable, optional
        Called when ``is_density`` has changed.
    """

    def __init__(
        self,
        viewer: napari.Viewer,
        on_lost: Callable[[], None],
        kept: KeptMap | None = None,
        on_beside_removed: Callable[[], None] = lambda: None,
        on_behind_removed: Callable[[], None] = lambda: None,
        on_kind: Callable[[], None] = lambda: None,
    ) -> None:
        self._viewer = viewer
        self._on_kind = on_kind
        self._on_lost = on_lost
        kept = kept or KeptMap(None, None, Frame(free_box([])))
        self._frame, self._n_points, self._faded = kept.frame, kept.n_points, kept.faded
        self.points = kept.points if kept.points in viewer.layers else None
        self.landmarks = kept.landmarks if kept.landmarks in viewer.layers else None
        self._n_components = kept.n_components
        """Dimensions of the map, whatever is displayed of it."""
        self._ndisplay_before = 2
        """Axes that napari displayed before a map of three dimensions came."""
        self._is_switching = False
        self._picture: MapPicture | None = None
        """Draws the points."""
        self.beside = BesideLayer(viewer, on_beside_removed)
        """Other maps side by side with this one."""
        self.behind = BesideLayer(viewer, on_behind_removed, BEHIND)
        """The cells of a reference that the points were placed among."""
        self._is_blank = False
        """Whether the layers are hidden, as nothing was drawn in them so far."""
        self._landmarks_shown = True
        self._given_up: list[Layer] = []
        """Layers that somebody edited, until a new map takes their place."""
        self._seen_axes = self._displayed()
        self._connections = Connections()
        self._connections.connect(viewer.layers.events.removed, self._on_removed)

    def close(self) -> None:
        """Leave the layers to the viewer."""
        self.beside.close()
        self.behind.close()
        self._end_picture()
        self._connections.close()
        self.points = self.landmarks = None

    def kept(self) -> KeptMap:
        """Return the map for the dock that is opened next, before closing."""
        return KeptMap(
            self.points,
            self.landmarks,
            self._frame,
            self._n_points,
            self._faded,
            self._n_components,
        )

    def expect(self, n_points: int, n_landmarks: int, n_components: int = 2) -> None:
        """Make layers for a map that is still to come, if there are none.

        napari takes a second for the first ones: time in which another thread can
        look for neighbours.
        """
        if self.points is None:
            self._switch_display(n_components)
            self._replace(n_points, n_landmarks)

    def discard(self) -> None:
        """Remove layers in which nothing was ever drawn."""
        if self._is_blank:
            self._remove_own()

    def clear(self) -> None:
        """Remove the layers: the data that they show are gone."""
        self._remove_own()

    def begin(self, snapshot: Snapshot, features: pd.DataFrame) -> None:
        """Prepare for the frames of a run, in new layers where the old do not fit.

        The points are there from the first ``show`` on.
        """
        n_points, n_components = snapshot.embedding.shape
        self._switch_display(n_components)
        if self.points is None or self.points.data.shape != (n_points, self._n_shown):
            self._replace(n_points, len(snapshot.landmarks))
        else:
            self._frame.restart()
            self._n_points = len(snapshot.embedding)
            if self.landmarks is None:  # somebody deleted them
                self._add_landmarks(len(snapshot.landmarks))
        self.set_features(features)

    def show(
        self,
        snapshot: Snapshot,
        looks: Looks,
        *,
        follows: bool = True,
        settles: bool = False,
        within: NDArray[np.floating] | None = None,
    ) -> bool:
        """Draw a snapshot; return whether it was drawn.

        A snapshot that is not finite is left out: one NaN breaks the camera.

        Parameters
        ----------
        snapshot : Snapshot
        looks : Looks
            With sizes that are times the usual one of so many points.
        follows : bool
            Whether the scale follows the extent of the map.
        settles : bool
            Whether it does so all the way at once, as at the end of a game.
        within : (2, d) array, optional
            Corners of what is to be seen, where that is more than the points.
        """
        if self.points is None or not _is_finite(snapshot):
            return False
        n_points, n_components = snapshot.embedding.shape
        if len(self.points.data) != n_points:
            self._give_up()
            return False
        self._switch_display(n_components)
        if self.points.ndim != self._n_shown:
            self._reshape(self.points)
        embedding = self.as_drawn(snapshot.embedding)
        if follows or not self._frame.is_fitted:
            seen = embedding if within is None else self.as_drawn(within)
            settles = settles or snapshot.finished or within is not None
            self._frame.follow(seen, settle=settles)
        self._write_places(self.points, embedding, snapshot.landmarks)
        self._draw_both(self._sized(looks))
        return True

    def show_beside(self, places: NDArray[np.floating] | None, looks: Looks) -> None:
        """Draw other maps beside this one, each (N, d) of (m, N, d); None for none."""
        if places is None or self.points is None:
            self.beside.clear()
            return
        world = self.to_world(places.reshape(-1, places.shape[-1]))
        self.beside.show(world, self._axes, self._sized(looks, len(places)))

    def show_behind(
        self, places: NDArray[np.floating] | None, colors: NDArray[np.float32]
    ) -> None:
        """Draw other points, (M, d), behind those of the map; None for none.

        Parameters
        ----------
        places : (M, d) array or None
            In units of the embedding.
        colors : (M, 4) array
        """
        if places is None or self.points is None:
            self.behind.clear()
            return
        looks = Looks(colors, np.ones(len(colors), np.float32))
        world = self.to_world(places)
        self.behind.show(world, self._axes, self._sized(looks), self.points)

    def recolor(self, looks: Looks) -> None:
        """Draw the points where they are in other looks, as of :meth:`show`."""
        points, beside = self._whole_points(), self.beside.layer
        if points is not None and len(points.data) == len(looks.sizes):
            self._picture_of(points).show(self._sized(looks))
            if beside is not None:
                n_maps = len(beside.data) // len(points.data)
                self.beside.recolor(self._sized(looks, n_maps))

    @property
    def is_density(self) -> bool:
        """Whether what is drawn tells how many points lie where, and shows none."""
        return self._picture is not None and self._picture.is_density

    def show_landmarks(self, shown: bool) -> None:
        """Show or hide the landmarks, now and in the layers of later runs."""
        self._landmarks_shown = shown
        if self.landmarks is not None and not self._is_blank:
            _set_visible(self.landmarks, shown)

    def show_landmarks_of(self, snapshot: Snapshot | None) -> None:
        """Draw the landmarks where the game has them."""
        if self.landmarks is not None and snapshot is not None:
            places, unit = self.to_world(snapshot.landmarks), self._frame.unit
            write_landmarks(self.landmarks, places, self._axes, unit)
            draw(self._viewer, self.landmarks)

    def follow_theme(self) -> None:
        """Draw the landmarks so that they are seen on the canvas of another theme."""
        if self.landmarks is not None:
            color_landmarks(self.landmarks, on_light=self._viewer.theme == "light")

    def fade_landmarks(self, faded: bool) -> None:
        """Let the landmarks step back while some of the points stand out."""
        former = self._faded
        if former is not None and (not faded or former.layer is not self.landmarks):
            former.end()
            self._faded = None
        if faded and self._faded is None and self.landmarks is not None:
            self._faded = Faded(self.landmarks, FADED)

    def set_features(self, features: pd.DataFrame) -> None:
        """Give the points a table, which napari shows under the mouse."""
        if self.points is not None and len(self.points.data) == len(features):
            self.points.features = features.reset_index(drop=True)

    def finish(self) -> None:
        """Bring thumbnails and extents up to date after a series of frames."""
        for layer in (self.points, self.landmarks):
            if layer is not None:
                layer.refresh(data_displayed=False)
        self.beside.finish()

    def as_drawn(self, positions: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return positions (..., d) of the embedding with the axes that are drawn.

        (..., 3) of a map in space; (..., 2) of a flat one, of one on a line, which is
        drawn as a row, and of one in space while napari displays two axes.
        """
        # Of points that somebody deleted there may be landmarks left, in space as well.
        n_axes = self._frame.n_axes if self.points is None else self.points.ndim
        lacking = n_axes - positions.shape[-1]
        if lacking <= 0:
            return positions[..., :n_axes]
        widths = [(0, 0)] * (positions.ndim - 1) + [(0, lacking)]
        return np.pad(positions, widths)

    def to_world(self, positions: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return positions (..., d) of the embedding as displayed.

        (row, column) of a flat map, (depth, row, column) of one in space.  These are
        the coordinates of the points' layer in the order of its displayed axes, as in
        :func:`~napari_embedding_game.ui.canvas.projection.projection_of`.
        """
        return self._frame.to_world(self.as_drawn(positions))

    @property
    def is_deep(self) -> bool:
        """Whether a map in space is drawn as such."""
        return self._n_shown == 3

    def to_position(self, data: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return coordinates (d,) of the layers' data in units of the embedding."""
        return self._frame.to_map(np.asarray(data)[self._axes])

    @property
    def scale(self) -> float:
        """World units per unit of the embedding."""
        return self._frame.scale

    @property
    def unit(self) -> float:
        """World units per thousandth of the map."""
        return self._frame.unit

    @property
    def side(self) -> float:
        """World units that the map takes along each axis."""
        return self._frame.box.side

    def to_map(self, place: NDArray[np.floating]) -> NDArray[np.floating] | None:
        """Return a displayed (row, column) in the units of the embedding.

        None where there is no map, or outside of it.
        """
        points = self._whole_points()
        if points is None or not points.visible or not self._frame.contains(place):
            return None
        return self._frame.to_map(np.asarray(place))

    def projection(self) -> Projection | None:
        """Return how the map is drawn on the canvas; None where it is not seen."""
        points = self._whole_points()
        if points is None or self._is_blank:
            return None
        return projection_of(self._viewer, points)

    def place_at(self, pixel: NDArray[np.floating]) -> MapPosition | None:
        """Return the place of the map under a pixel (x, y) of the canvas.

        None beside the map, in the other parts of napari's grid, and in space, where a
        pixel is no place.
        """
        for drawn in self._drawn_at(pixel):
            places = drawn.to_plane(np.asarray(pixel)[None])
            position = None if places is None else self.to_map(places[0])
            if places is not None and position is not None:
                stretch = drawn.stretch(places[0]) @ self._frame.jacobian
                return MapPosition(position, stretch)
        return None

    def space_at(self, pixel: NDArray[np.floating]) -> Projection | None:
        """Return how a map in space is drawn at a pixel (x, y); None of a flat one.

        And where another part of napari's grid is.
        """
        spaces = (drawn for drawn in self._drawn_at(pixel) if drawn.ahead is not None)
        return next(spaces, None)

    def point_under(
        self, pixel: NDArray[np.floating], through: NDArray[np.floating]
    ) -> NDArray[np.floating] | None:
        """Return the place under a pixel (x, y), in units of the embedding: (d,).

        On the plane of a flat map, whether on the map or not.  In space on the plane
        through another place that is parallel to the canvas.

        Parameters
        ----------
        pixel : array, shape (2,)
        through : array, shape (d,)
            The other place.  Coordinates that are not drawn are taken from it.

        Returns
        -------
        array, shape (d,)
            None where there is no map, or not under this pixel.
        """
        drawn = self.projection()
        if drawn is None or not self._frame.is_fitted:
            return None
        if drawn.ahead is None:
            plane = drawn.to_plane(np.asarray(pixel)[None])
            world = None if plane is None else plane[0]
        else:
            world = drawn.beside(self.to_world(through), pixel)
        if world is None:
            return None
        place = np.array(through, dtype=float)
        shown = self._frame.to_map(world)[: len(place)]
        place[: len(shown)] = shown
        return place

    def outline_at(self, pixels: NDArray[np.floating]) -> NDArray[np.floating] | None:
        """Return a line of pixels (V, 2) in units of the embedding, on it or not.

        None where there is no map, or not under all of the line.
        """
        drawn = self.projection()
        places = None if drawn is None else drawn.to_plane(pixels)
        if places is None or not self._frame.is_fitted:
            return None
        return self._frame.to_map(places)

    def inside(
        self, pixels: NDArray[np.floating], embedding: NDArray[np.floating]
    ) -> NDArray[np.bool_] | None:
        """Return which points (N, d) are drawn inside of a line of pixels (V, 2).

        In space whatever lies behind one another.  None where there is no map, or not
        under all of the line.
        """
        drawn = self.projection()
        if drawn is not None and drawn.ahead is not None:
            return inside(pixels, drawn.to_pixels(self.to_world(embedding)))
        outline = self.outline_at(pixels)
        return None if outline is None else inside(outline, self.as_drawn(embedding))

    def fly_to(self, row: int) -> None:
        """Show one point in the middle of the canvas, nearer than the whole map."""
        points = self._whole_points()
        if points is None or self._is_blank:
            return
        camera = camera_of(self._viewer)
        place = np.asarray(points.data_to_world(points.data[row]))
        center = place[self._axes].tolist()
        camera.center = tuple([0.0, *center][-3:])
        camera.zoom = max(camera.zoom, NEAR * SIDE / self._frame.box.side)

    def make_room(self) -> bool:
        """Lay the map beside the others where one of them has come to lie on it.

        Returns
        -------
        bool
            Whether it was moved: then it has to be shown anew.
        """
        if self.points is None or not any(map(self._frame.meets, self._extents())):
            return False
        self._move_beside()
        self._show_box(self.points)
        self._viewer.reset_view()
        return True

    def turn(self) -> bool:
        """Take up other displayed axes: the map stands upright, beside the images.

        Returns
        -------
        bool
            Whether it was moved: then it has to be shown anew.
        """
        axes = self._displayed()
        if axes == self._seen_axes:
            return False
        self._seen_axes = axes
        if self.points is None:
            return False
        self._move_beside()
        return True

    def is_flattened_otherwise(self) -> bool:
        """Return whether napari displays another number of axes than are drawn.

        A map of three dimensions has then to be shown anew.
        """
        is_drawn = self.points is not None and not self._is_switching
        return is_drawn and self.points.ndim != self._n_shown

    def fit_camera(self) -> None:
        """Show the map and the other layers as large as they fit on the canvas.

        napari's own way takes the axes of a flat layer for the last ones, also where
        it draws them along others.
        """
        drawn = self.projection()
        if drawn is None:
            return
        if drawn.ahead is not None:  # napari fits all of what is turned
            self._viewer.reset_view(reset_camera_angle=False)
            return
        extents = [self._frame.corners, *self._extents()]
        corners = np.concatenate([e for e in extents if np.isfinite(e).all()])
        low, high = corners.min(axis=0), corners.max(axis=0)
        width, height = drawn.cell[2:]
        camera = camera_of(self._viewer)
        camera.center = (camera.center[0], *(low + high) / 2)
        room = np.array([height, width]) * FILLED
        camera.zoom = float((room / np.maximum(high - low, 1.0)).min())

    # Inside

    def _whole_points(self) -> Points | None:
        """Return the points; those of which somebody deleted some are lost."""
        if self.points is not None and len(self.points.data) != self._n_points:
            self._give_up()
        return self.points

    def _give_up(self) -> None:
        """Leave layers that somebody edited alone, until the next map comes."""
        map_layers = (self.points, self.landmarks)
        self._given_up += [layer for layer in map_layers if layer is not None]
        self._forget()
        self._on_lost()

    @property
    def _n_shown(self) -> int:
        """Axes that the layers are to have."""
        is_deep = self._n_components == 3 and self._viewer.dims.ndisplay == 3
        return 3 if is_deep else 2

    @property
    def _axes(self) -> list[int]:
        """The layers' axes along [depth,] rows and columns."""
        n_axes = self._n_shown if self.points is None else self.points.ndim
        if self._viewer.dims.ndim < n_axes:  # there are no layers yet
            return list(range(n_axes))
        return displayed_axes(self._viewer.dims, n_axes, n_axes)

    def _drawn_at(self, pixel: NDArray[np.floating]) -> Iterator[Projection]:
        """Yield how those of the two layers are drawn that may be seen at a pixel."""
        for layer in (self._whole_points(), self.landmarks):
            drawn = None if layer is None else projection_of(self._viewer, layer)
            if drawn is not None and drawn.holds(pixel):
                yield drawn

    def _switch_display(self, n_components: int) -> None:
        """Have napari display three axes of a map in space, and as before after it."""
        was_deep, is_deep = self._n_components == 3, n_components == 3
        self._n_components = n_components
        if is_deep == was_deep:
            return
        dims, self._is_switching = self._viewer.dims, True
        try:
            if is_deep:
                self._ndisplay_before = dims.ndisplay
            dims.ndisplay = 3 if is_deep else self._ndisplay_before
        finally:
            self._is_switching = False

    def _reshape(self, points: Points) -> None:
        """Make layers of another number of axes in the place of the present ones."""
        features, was_faded = points.features, self._faded is not None
        self._replace(len(points.data), 0)
        assert self.points is not None
        self.points.features = features
        self.fade_landmarks(was_faded)

    def _displayed(self) -> list[int]:
        """Return the displayed axes, counted from the last one."""
        dims = self._viewer.dims
        return [axis - dims.ndim for axis in dims.order][-2:]

    def _others(self) -> list[Layer]:
        """Return the layers that have something to show and are not the map's."""
        map_layers = (
            self.points,
            self.landmarks,
            self.beside.layer,
            self.behind.layer,
            *self._given_up,
        )
        others = [x for x in self._viewer.layers if all(x is not y for y in map_layers)]
        return [layer for layer in others if layer.ndim > 1]

    def _extents(self) -> list[NDArray[np.floating]]:
        """Return where the other layers are displayed, each (2, 2)."""
        dims = self._viewer.dims
        return [
            np.asarray(layer.extent.world)[:, displayed_axes(dims, layer.ndim)]
            for layer in self._others()
        ]

    def _move_beside(self) -> None:
        """Go beside the other layers; the next map is fitted there."""
        n_axes = 2 if self.points is None else self.points.ndim
        self._frame = Frame(free_box(self._extents()), n_axes)
        if self.landmarks is not None:
            with in_place(self.landmarks, "size") as sizes:
                sizes[:] = self._frame.unit * LANDMARK_SIZE

    def _show_box(self, points: Points) -> None:
        """Have the extent of the points be the whole box, which the map is to fill."""
        with in_place(points, "data") as data:
            data[::2], data[1::2] = self._box_corners()
        points.refresh(thumbnail=False, highlight=False)

    def _replace(self, n_points: int, n_landmarks: int) -> None:
        self._remove_own()
        self._seen_axes = self._displayed()
        n_axes = self._n_shown
        self._frame = Frame(free_box(self._extents()), n_axes)
        # The camera shows the whole box, which the map is going to fill.
        places = np.empty((n_points, n_axes), np.float32)
        places[::2], places[1::2] = self._box_corners()
        self.points = points_layer(places)
        self._n_points = n_points
        self._is_blank = True
        self.points.visible = False
        self._viewer.add_layer(self.points)
        self._add_landmarks(n_landmarks)
        self._viewer.layers.selection.active = self.points
        camera = camera_of(self._viewer)
        if n_axes == 3 and not np.any(camera.angles):
            camera.angles = TILTED
        self._viewer.reset_view(reset_camera_angle=n_axes == 2)

    def _box_corners(self) -> NDArray[np.float32]:
        """Return first and last corner of the box in the layers' own axes, (2, d)."""
        axes, half = self._axes, self._frame.box.side / 2
        corners = np.empty((2, len(axes)), np.float32)
        depth = np.array([[-half], [half]])
        corners[:, axes] = np.hstack([depth, self._frame.corners])[:, -len(axes) :]
        return corners

    def _add_landmarks(self, n_landmarks: int) -> None:
        """Add a layer of landmarks, which the next snapshot puts into place."""
        active = self._viewer.layers.selection.active
        middle = self._box_corners().mean(axis=0)
        layer = landmarks_layer(
            np.tile(middle, (n_landmarks, 1)),
            self._frame.unit,
            on_light=self._viewer.theme == "light",
        )
        layer.visible = self._landmarks_shown and not self._is_blank
        self._viewer.add_layer(layer)
        layer.help = LANDMARKS_HELP  # napari takes it away from a layer that comes
        self.landmarks = layer
        self._viewer.layers.selection.active = active

    def _write_places(
        self,
        points: Points,
        embedding: NDArray[np.floating],
        landmarks: NDArray[np.floating],
    ) -> None:
        """Write where points, (N, d) as drawn, and landmarks (L, d) are."""
        axes = self._axes
        with in_place(points, "data") as data:
            self._frame.write_world(embedding, data, axes)
        if self.landmarks is not None:
            places = self.to_world(landmarks)
            write_landmarks(self.landmarks, places, axes, self._frame.unit)

    def _draw_both(self, looks: Looks) -> None:
        assert self.points is not None
        picture, landmarks = self._picture_of(self.points), self.landmarks
        was_blank, self._is_blank = self._is_blank, False
        if was_blank:
            picture.appear(looks)
        else:
            picture.show(looks)
        if landmarks is not None and was_blank and self._landmarks_shown:
            landmarks.visible = True  # which draws it
        elif landmarks is not None:
            draw(self._viewer, landmarks)

    def _sized(self, looks: Looks, n_maps: int = 1) -> Looks:
        return looks.times(self._frame.unit * point_size(len(looks.sizes)), n_maps)

    def _picture_of(self, points: Points) -> MapPicture:
        if self._picture is None or self._picture.layer is not points:
            self._end_picture()
            self._picture = MapPicture(self._viewer, points)
            self._picture.kind_changed.connect(lambda: self._on_kind())
        return self._picture

    def _end_picture(self) -> None:
        if self._picture is not None:
            self._picture.close()
            self._picture = None

    def _remove_own(self) -> None:
        self.beside.clear()
        self.behind.clear()
        map_layers = [self.points, self.landmarks, *self._given_up]
        kept = [x for x in self._viewer.layers if x.metadata == PLACEHOLDER]
        self._forget()
        self._given_up = []
        for layer in (*map_layers, *kept):
            if layer is not None and layer in self._viewer.layers:
                self._viewer.layers.remove(layer)

    def _forget(self) -> None:
        self._end_picture()
        self.points = self.landmarks = self._faded = None
        self._is_blank = False

    def _on_removed(self, event: object) -> None:
        layer = getattr(event, "value", None)
        if layer is self.landmarks:
            self.landmarks = self._faded = None
        elif layer is self.points and layer is not None:
            self._end_picture()
            self.points = None
            self._on_lost()


def remove_placeholders(viewer: napari.Viewer) -> None:
    """Remove the layers that kept the place of maps which do not come."""
    for layer in [x for x in viewer.layers if x.metadata == PLACEHOLDER]:
        viewer.layers.remove(layer)


def _is_finite(snapshot: Snapshot) -> bool:
    both = (snapshot.embedding, snapshot.landmarks)
    return all(bool(np.isfinite(part).all()) for part in both)


def _set_visible(layer: Points, visible: bool) -> None:
    if layer.visible != visible:
        layer.visible = visible  # draws all layers
