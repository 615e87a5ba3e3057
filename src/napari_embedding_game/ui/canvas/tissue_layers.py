"""The layers of the map's points in tissue, and of the tissue's pictures.

They lie where the tissue lies, in its own unit: napari's scale bar holds, images of the
same tissue are below, and the map lies beside them as it lies beside images.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import napari
import numpy as np
from napari.layers import Image, Layer, Points
from numpy.typing import NDArray

from napari_embedding_game.data.palette import Colors
from napari_embedding_game.data.tissue import Unit
from napari_embedding_game.session.tissue import TissueLayout
from napari_embedding_game.ui.canvas.frame import GAP, Frame
from napari_embedding_game.ui.canvas.layers import FILLED, make_points_layer
from napari_embedding_game.ui.canvas.picture import MapPicture, PointStyle
from napari_embedding_game.ui.canvas.projection import (
    CanvasProjection,
    displayed_axes,
    layer_projection,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import MAP_KEY

TISSUE_NAME = "tissue"
"""Name of the layer of points."""
NAPARI_UNITS = {"µm": "micrometer", "pixel": "pixel", "": "pixel"}
CELL_SIZE = 0.85
"""Diameter of a cell, relative to the usual distance between cells."""
CONTEXT = 30.0
"""Least number of cells across the canvas after going to some of them."""


class TissueLayers:
    """Makes, fills and removes the layers of a tissue.

    ``on_points_removed`` is called when a person removes the points or changes their
    number, ``on_points_colored`` with colours (N, 4) that are set in their layer.
    """

    def __init__(
        self,
        viewer: napari.Viewer,
        on_points_removed: Callable[[], None],
        on_points_colored: Callable[[Colors], object],
    ) -> None:
        self._viewer, self._points_removed = viewer, on_points_removed
        self._points_colored = on_points_colored
        self.frame = Frame.of_world(1.0)
        self._picture: MapPicture | None = None
        self._images: list[Image] = []
        self._layout: TissueLayout | None = None
        self._corners = np.zeros((1, 2))
        """Corners (m, d) of the box of all positions, as (x, y[, z]), and in a plane of
        all pictures."""
        self._has_shown_bar = False
        """Whether the scale bar was hidden before the tissue was shown."""
        self._connections = Connections()
        removed = viewer.layers.events.removed
        self._connections.connect(self._on_layer_removed, removed)

    def close(self) -> None:
        """Remove the layers, and listen to the viewer no more."""
        self._connections.close()
        self.hide()

    @property
    def points(self) -> Points | None:
        """The layer of the points; None while no tissue is shown."""
        return None if self._picture is None else self._picture.layer

    @property
    def has_other_axes(self) -> bool:
        """Whether the points must be shown again, along the axes displayed now."""
        layer, layout = self.points, self._layout
        if layer is None or layout is None:
            return False
        n_axes = min(layout.positions.shape[1], self._viewer.dims.ndisplay)
        return bool(layer.ndim != n_axes)

    def show(
        self, layout: TissueLayout, style: PointStyle, map_points: Points | None
    ) -> None:
        """Show the points of a tissue below those of the map, and pictures below both.

        In a flat view points in space are seen from above.  Only new positions move
        layers or make new layers.
        """
        n_points, n_axes = layout.positions.shape
        shape = n_points, min(n_axes, self._viewer.dims.ndisplay)
        is_kept = self.points is not None and self.points.data.shape == shape
        is_kept &= (
            self._layout is None or self._layout.tissue.unit == layout.tissue.unit
        )
        is_moved = not is_kept or layout is not self._layout
        if is_moved:
            world, is_known = self._to_world(layout, shape[1])
            if not is_kept:
                self.hide()
                self._add_points(layout.tissue.unit, world, map_points)
            self._layout = layout
            assert self.points is not None
            self.points.data[:] = world
            if not np.array_equal(self.points.shown, is_known):
                self.points.shown = is_known
            self.points.refresh(data_displayed=False)
            self._show_images(layout, self.points)
            for image in self._images if shape[1] == 2 else ():
                ends = image.extent.world[:, ::-1] * [1, -1]
                self._corners = np.vstack([self._corners, ends])
        if self._picture is not None:
            size = CELL_SIZE * layout.spacing
            self._picture.show_points(style, size, is_moved=is_moved)

    def hide(self) -> None:
        """Remove the layers from the viewer, and hide a scale bar that they showed."""
        picture, self._picture, self._layout = self._picture, None, None
        ours, self._images = list[Layer](self._images), []
        if picture is not None:
            picture.close(shows_markers=False)
            ours.append(picture.layer)
        layers = self._viewer.layers
        if ours:
            with layers.batched_update():  # napari cleans up only once
                for layer in filter(layers.__contains__, ours):
                    layers.remove(layer)
        if ours and not self._list_other_layers():
            self._set_map_units("pixel")  # those of a map alone mean nothing
        if self._has_shown_bar:
            self._viewer.canvas.overlays.scale_bar.visible = False
            self._has_shown_bar = False

    def projection(self) -> CanvasProjection | None:
        """Return the projection of positions in tissue; None while they are hidden."""
        if self.points is None:
            return None
        projection = layer_projection(self._viewer, self.points)
        axes = self._displayed_axes
        return projection and projection.compose_affine(
            self.frame.step_matrix[axes], self.frame.origin[axes]
        )

    def find_grid_offset(self) -> NDArray[np.float64]:
        """Return (0, 0): the tissue is one picture in napari's grid, too."""
        return np.zeros(2)

    def is_map_at(self, pixel: NDArray[np.floating]) -> bool:
        """Return whether a pixel (x, y) is in the box of tissue and pictures, or near.

        Without other visible layers, and in napari's grid, it is the whole rectangle of
        the canvas.  False while the tissue is hidden.
        """
        layer, projection = self.points, self.projection()
        if layer is None or projection is None or not projection.contains(pixel):
            return False
        others = (other for other in self._viewer.layers if other is not layer)
        if self._viewer.canvas.grid.enabled or not any(x.visible for x in others):
            return True
        reach = projection.to_pixels(self._corners)
        margin = GAP / 2 * self.frame.side * projection.pixels_per_unit
        low, high = reach.min(axis=0) - margin, reach.max(axis=0) + margin
        # Corners behind the camera are NaN: the eye is in the tissue.
        return not np.isfinite(reach).all() or bool(
            ((low <= pixel) & (pixel <= high)).all()
        )

    def move_camera(self, rows: NDArray[np.integer] | None = None) -> None:
        """Fit the camera to the tissue with its pictures, or go to the cells of rows.

        Rows without a position are left out; without any other nothing is done.
        """
        projection, layout = self.projection(), self._layout
        if projection is None or layout is None or self.points is None:
            return
        extents = [layer.extent.world[:, -2:] for layer in self._images]
        world, least = self.points.data[self.points.shown], 0.0
        if rows is not None:
            is_known = np.isfinite(layout.positions[rows, 0])
            world, least = self.points.data[rows[is_known]], CONTEXT * layout.spacing
            extents = []
        if not len(world):
            return
        low, high = world.min(axis=0), world.max(axis=0)
        for extent in extents:
            low[-2:] = np.minimum(low[-2:], extent[0])
            high[-2:] = np.maximum(high[-2:], extent[1])
        camera, axes = self._viewer.scene.camera, self._displayed_axes
        camera.center = (0.0, *((low + high) / 2)[axes].tolist())[-3:]
        sides = np.maximum((high - low)[axes][-2:], least)
        if len(axes) == 3:  # seen from any side
            sides = np.full(2, max(float(np.linalg.norm(high - low)), least))
        width, height = projection.canvas_box[2:]
        room = FILLED * np.array([height, width]) / np.maximum(sides, 1e-9)
        camera.zoom = float(room.min())

    @property
    def _displayed_axes(self) -> list[int]:
        """The axes of the points' layer in the order in which they are displayed."""
        n_axes = 2 if self.points is None else self.points.ndim
        return displayed_axes(self._viewer.dims, n_axes, n_axes)

    def _to_world(
        self, layout: TissueLayout, n_axes: int
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return world positions (N, n_axes), and which are known; set frame and box.

        A point without a position is at the mean of the others: napari's camera needs
        finite positions.
        """
        positions = layout.positions[:, :n_axes]
        is_known = np.isfinite(positions[:, 0])
        known = positions if is_known.all() else positions[is_known]
        ends = np.stack([known.min(axis=0), known.max(axis=0)]).astype(float)
        self._corners = np.array(list(product(*ends.T)))
        side = float((ends[1] - ends[0]).max()) or layout.spacing
        self.frame = Frame.of_world(side, n_axes)
        world = np.asfortranarray(self.frame.to_world(positions), np.float32)
        if not is_known.all():
            world[~is_known] = world[is_known].mean(axis=0, dtype=float)
        return world, is_known

    def _add_points(
        self, unit: Unit, world: NDArray[np.float32], map_points: Points | None
    ) -> None:
        """Add a layer of points below the map's, and show a scale bar for micrometres.

        Where other layers share another unit the points get that one: napari ignores
        units that differ.
        """
        layers, units = self._viewer.layers, NAPARI_UNITS[unit]
        layer = make_points_layer(world, TISSUE_NAME)
        others = self._list_other_layers()
        shared = layers.get_extent(others).units if others else None
        layer.units = (units,) * layer.ndim if shared is None else shared[-layer.ndim :]
        if shared is None:
            self._set_map_units(units)  # before napari compares them
        self._picture = MapPicture(self._viewer, layer, self._points_colored)
        layer.events.data.connect(self._on_points_edited)
        active = layers.selection.active
        place = layers.index(map_points) if map_points in layers else len(layers)
        layers.insert(place, layer)
        layers.selection.active = active
        bar = self._viewer.canvas.overlays.scale_bar
        if unit == "µm" and shared is None and not bar.visible:
            bar.visible = self._has_shown_bar = True

    def _list_other_layers(self) -> list[Layer]:
        """Return the layers that belong neither to the map nor to the tissue."""
        return [x for x in self._viewer.layers if MAP_KEY not in x.metadata]

    def _set_map_units(self, unit: str) -> None:
        """Give the layers of the map a unit along all axes."""
        for layer in self._viewer.layers:
            if MAP_KEY in layer.metadata:
                layer.units = (unit,) * layer.ndim

    def _show_images(self, layout: TissueLayout, points: Points) -> None:
        """Show the layout's pictures below the points, instead of the former ones."""
        layers, former, self._images = self._viewer.layers, self._images, []
        for layer in former:
            layers.remove(layer)
        active = layers.selection.active
        for name, shift in layout.image_shifts.items():
            image = layout.tissue.images[name]
            layer = Image(
                image.pixels,
                rgb=image.pixels.ndim == 3,
                name=f"{TISSUE_NAME} {name}".strip() + " (image)",
                scale=image.step[::-1],
                translate=(image.origin + shift * [1, -1])[::-1],
                units=points.units[-2:],
                metadata={MAP_KEY: True},
            )
            self._images.append(layer)
            layers.insert(layers.index(points), layer)
        layers.selection.active = active

    def _on_points_edited(self, event: Any) -> None:
        """Release the points layer after a person has added or deleted points."""
        layout = self._layout
        if layout is not None and len(event.source.data) != len(layout.positions):
            self._release_points()

    def _on_layer_removed(self, event: Any) -> None:
        """Forget a layer that a person has removed."""
        if event.value in self._images:
            self._images.remove(event.value)
        elif self.points is not None and event.value is self.points:
            self._release_points()

    def _release_points(self) -> None:
        """Leave the points layer to napari, remove the pictures, and report that."""
        picture, self._picture = self._picture, None
        if picture is not None:
            picture.close()
        self.hide()
        self._points_removed()
