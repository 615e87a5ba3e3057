"""Select clusters, points or objects by a click or a lasso on the canvas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from psygnal import Signal
from qtpy.QtWidgets import QWidget

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.mouse import Brush, CanvasClick, Handle, Picker
from napari_embedding_game.ui.canvas.nearest import row_near
from napari_embedding_game.ui.canvas.projection import displayed_axes, projection_of
from napari_embedding_game.ui.images.drawn_objects import DrawnObjects, drawn_objects
from napari_embedding_game.ui.images.linked_layers import LinkedLayers, clicked_row

if TYPE_CHECKING:
    import napari
    from napari.layers import Labels


class ClickSelection:
    """Selects clusters, objects and points where a person points.

    ``picked`` tells of a click that has chosen something.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    layers : MapLayers
    linked : LinkedLayers
    """

    picked = Signal()

    def __init__(
        self,
        viewer: napari.Viewer,
        session: Session,
        layers: MapLayers,
        linked: LinkedLayers,
    ) -> None:
        self._viewer = viewer
        self._session = session
        self._layers = layers
        self._linked = linked
        self._picker = Picker(
            viewer, self._on_click, session.selection.clear, self._on_lasso
        )

    def close(self) -> None:
        """Give mouse and key back."""
        self._picker.close()

    def set_lasso(self, always: bool) -> None:
        """Let every drag on the canvas draw around points, or only with Shift."""
        self._picker.always_lasso = always

    def paint_with(self, brush: Brush) -> None:
        """Let a drag paint while the brush is on."""
        self._picker.brush = brush
        brush.find_objects = self._drawn_objects

    def draw_on(self, find_canvas: Callable[[], QWidget | None]) -> None:
        """Draw the lasso's line on the canvas that is found when it is begun."""
        self._picker.find_canvas = find_canvas

    def drag_by(self, find_handle: Callable[[np.ndarray], Handle | None]) -> None:
        """Let a drag that begins on a handle move it, and not the picture."""
        self._picker.find_handle = find_handle

    def drag_edited_by(
        self, find_handle: Callable[[np.ndarray], Handle | None]
    ) -> None:
        """Let a drag on a handle move it while the active layer has another tool."""
        self._picker.find_edited = find_handle

    def _on_click(self, pointed: CanvasClick, adds: bool) -> None:
        seen = self._session.seen
        if seen is None:
            return
        # Not the nearest landmark: its points may have been split among clusters.
        n_maps = len(seen) // max(len(self._session.clusters.labels), 1)
        hidden = self._session.hiding.of_places(n_maps)
        row = row_near(self._layers, seen, pointed.pixel, hidden)
        if row is None:
            self._on_object(pointed, adds)
            return
        labels = self._session.clusters.labels
        cluster = int(labels[row % len(labels)])
        selection = self._session.selection
        (selection.toggle if adds else selection.select)(cluster)
        self.picked.emit()

    def _on_object(self, pointed: CanvasClick, adds: bool) -> None:
        """Select the point of the object that was clicked in the image."""
        dataset, linked = self._session.dataset, self._linked.current
        if dataset is None or dataset.objects is None or linked is None:
            return
        pointed = self._on_plane(linked.labels, pointed)
        row = clicked_row(linked, dataset.objects, pointed)
        if row is None:
            return
        selection = self._session.selection
        mode = "replace"
        if adds:
            mode = "remove" if selection.points[row] else "add"
        selection.select_points(np.array([row]), mode)
        self.picked.emit()

    def _on_plane(self, labels: Labels, pointed: CanvasClick) -> CanvasClick:
        """Return where a flat image is hit, which may be seen at an angle."""
        drawn = projection_of(self._viewer, labels) if labels.ndim == 2 else None
        places = None if drawn is None else drawn.to_plane(pointed.pixel[None])
        if places is None or self._viewer.dims.ndisplay == 2:
            return pointed
        axes = displayed_axes(self._viewer.dims)
        world = np.asarray(labels.data_to_world(places[0][np.argsort(axes)]))
        return CanvasClick(pointed.pixel, world)

    def _drawn_objects(self) -> DrawnObjects | None:
        dataset, linked = self._session.dataset, self._linked.current
        if dataset is None or dataset.objects is None or linked is None:
            return None
        return drawn_objects(self._viewer, linked, dataset.objects)

    def _on_lasso(self, pixels: np.ndarray, adds: bool) -> None:
        """Select the points, and the objects in the image, that were drawn around."""
        drawn, seen = self._session.drawn, self._session.seen
        if drawn is None or seen is None:
            return
        chosen = np.zeros(len(drawn.embedding), bool)
        is_inside = self._layers.inside(pixels, seen)
        if is_inside is not None:
            chosen |= is_inside.reshape(-1, len(chosen)).any(axis=0)
        hidden = self._session.hiding.mask
        if hidden is not None:
            chosen &= ~hidden
        objects = self._drawn_objects()
        if objects is not None:
            chosen |= objects.surrounded(pixels)
        if chosen.any():
            self._session.selection.select_points(chosen, "add" if adds else "replace")
            self.picked.emit()
