"""Show selected points large in their image or tissue, and go back to the map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, Qt, QTimer
from qtpy.QtGui import QPainter, QPen

from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.ui.canvas.overlay import COLOR, HALO, WIDTH, MapOverlay
from napari_embedding_game.ui.canvas.projection import (
    CanvasProjection,
    layer_projection,
)
from napari_embedding_game.ui.images.linked_layers import (
    LinkedLayers,
    ObjectLayers,
    are_in_slice,
    center_on_objects,
    displayed_axes_and_position,
    find_view_center,
)
from napari_embedding_game.ui.images.visible_objects import find_visible_objects

BACK_KEY = "M"
"""The key that brings the map back into view."""
BACK = f"{BACK_KEY} brings the map back."
CONTEXT = 8.0
"""Sides of an object that the shorter side of the canvas shows at least."""
FILLED = 0.8
"""Share of the canvas that several objects fill at most."""
FLASH_MS, N_FLASHES, MAX_RINGS = 250, 2, 200
"""How long a ring is shown and then hidden; how often; around how many objects."""
RING, LEAST_RING = 1.25, 5.0
"""Radius of a ring in half diagonals of the object's box, or in distances between cells
in tissue; and its least radius there, in pixels."""


class ObjectsView:
    """Zooms to the objects or cells of the selected points, and rings them shortly.

    The camera of the map is remembered, and restored by :meth:`return_to_map`.
    """

    def __init__(self, overlay: MapOverlay, linked_layers: LinkedLayers) -> None:
        self._overlay, self._linked_layers = overlay, linked_layers
        self._scene = overlay.scene
        self._map_camera: tuple[tuple[float, ...], float] | None = None
        """Centre and zoom of the camera before it moved to objects."""
        self._rows: NDArray[np.integer] = np.empty(0, np.intp)
        """The rows whose objects are ringed."""
        self._n_changes_left = 0
        self._timer = QTimer(overlay, interval=FLASH_MS)
        self._timer.timeout.connect(self._toggle_rings)
        self._hide_rings()
        changed = self._scene.session.dataset_changed
        overlay.connections.connect(self._forget_map_camera, changed)

    def show_selected_objects(self) -> None:
        """Zoom to the objects of the selected points, and ring them for a moment.

        Without linked layers it zooms to the cells in tissue, which is shown beside the
        map if need be.  The sliders are moved to the slice of the first object.  A view
        in space is centred, not zoomed.  Does nothing where no selected point has an
        object, or a position in tissue.
        """
        session, viewer = self._scene.session, self._scene.viewer
        linked, dataset = self._linked_layers.current, session.dataset
        if dataset is None:
            return
        rows, camera = session.selection.rows, viewer.scene.camera
        before = tuple(camera.center), float(camera.zoom)
        if linked is None and session.view.has_tissue:
            is_known = dataset.tissue.is_known[rows]
            if not is_known.any():
                return
            rows = rows[is_known]
            self._scene.show_in_tissue(rows)
        elif linked is None or dataset.objects is None:
            return
        else:
            objects = dataset.objects.take(rows)
            if not objects.present.any():
                return
            center_on_objects(viewer, linked.labels, objects)
            zoom = self._find_zoom(linked, objects)
            if zoom is not None:
                camera.zoom = zoom
        self._map_camera = self._map_camera or before
        viewer.status = BACK
        step = max(1, len(rows) // MAX_RINGS)
        self._rows, self._n_changes_left = rows[::step], 2 * N_FLASHES
        self._toggle_rings()
        self._timer.start()

    def return_to_map(self) -> None:
        """Restore the camera of the map, or fit the camera to the map.

        It is fitted where no objects were shown since the map was made.
        """
        if self._map_camera is None:
            self._scene.fit_camera()
            return
        camera = self._scene.viewer.scene.camera
        camera.center, camera.zoom = self._map_camera
        self._map_camera = None

    def _forget_map_camera(self) -> None:
        """Forget the camera of a former dataset, and hide the rings of its objects."""
        self._map_camera = None
        self._n_changes_left = 0
        self._toggle_rings()

    def _find_zoom(self, linked: ObjectLayers, objects: Objects) -> float | None:
        """Return the zoom at which a canvas centred on the objects shows all of them.

        Only objects in the slice on show count.  An object alone is shown with its
        surroundings, of ``CONTEXT`` sides.  None for a view in space.
        """
        viewer, labels = self._scene.viewer, linked.labels
        axes, position = displayed_axes_and_position(viewer.dims, labels)
        projection = layer_projection(viewer, labels, includes_slices=True)
        if projection is None or len(axes) != 2:
            return None
        seen = objects.take(are_in_slice(objects, axes, position))
        corners = seen.box_corners[:, :, axes] - 0.5
        low, high = (projection.to_pixels(corners[:, end]) for end in (0, 1))
        middle = find_view_center(labels, objects)[axes]
        reach = np.abs(np.stack([low, high]) - projection.to_pixels(middle[None]))
        needed = 2 * reach.max(axis=(0, 1)) / FILLED
        side = np.median(np.abs(high - low).max(axis=1))
        room = projection.canvas_box[2:] / np.maximum(needed, CONTEXT * side)
        return float(viewer.scene.camera.zoom * room.min())

    def _toggle_rings(self) -> None:
        """Show the rings or hide them; at last they stay hidden."""
        self._n_changes_left = max(self._n_changes_left - 1, 0)
        if not self._n_changes_left:
            self._timer.stop()
        if self._n_changes_left % 2 == 0:
            self._hide_rings()
        elif self._linked_layers.current is not None:
            self._overlay.set_painter(self._paint_rings, True)
        else:
            layers = self._scene.tissue_layers
            self._overlay.set_painter(self._paint_rings_in_tissue, True, layers)

    def _hide_rings(self) -> None:
        """Hide the rings around objects and cells."""
        for painter in (self._paint_rings, self._paint_rings_in_tissue):
            self._overlay.set_painter(painter, False)

    def _paint_rings_in_tissue(
        self, painter: QPainter, projection: CanvasProjection
    ) -> None:
        """Paint a ring around each cell in tissue."""
        tissue = self._scene.session.view.tissue
        if tissue is not None:
            positions = tissue.positions[self._rows]
            zooms = projection.compute_pixels_per_unit(positions)
            radii = np.maximum(RING * tissue.spacing * zooms, LEAST_RING)
            _paint_rings_at(painter, projection.to_pixels(positions), radii)

    def _paint_rings(self, painter: QPainter, projection: CanvasProjection) -> None:
        """Paint a ring around each object in the slice on show, wherever it lies."""
        visible = find_visible_objects(
            self._scene.viewer, self._scene.session, self._linked_layers
        )
        if visible is None:
            return
        painter.setClipping(False)  # the image may lie in another box of the grid
        centers = visible.compute_center_pixels()[self._rows]
        corners = visible.objects.box_corners[self._rows][:, :, visible.axes]
        ends = [visible.projection.to_pixels(corners[:, end]) for end in (0, 1)]
        radii = RING * np.linalg.norm(ends[1] - ends[0], axis=1) / 2
        _paint_rings_at(painter, centers, radii)


def _paint_rings_at(
    painter: QPainter, centers: NDArray[np.floating], radii: NDArray[np.floating]
) -> None:
    """Paint a ring around each of the pixels (n, 2), with radii (n,) in pixels."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for color, width in ((HALO, 2 * WIDTH), (COLOR, WIDTH)):
        painter.setPen(QPen(color, width))
        for (x, y), radius in zip(centers.tolist(), radii.tolist(), strict=True):
            if np.isfinite(x + y + radius):
                painter.drawEllipse(QPointF(x, y), radius, radius)
