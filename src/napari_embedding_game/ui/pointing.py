"""What a click or a line on the canvas selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.lasso import inside
from napari_embedding_game.ui.layers import MapLayers
from napari_embedding_game.ui.linked import LinkedLayers, clicked_row
from napari_embedding_game.ui.picking import Picker

if TYPE_CHECKING:
    import napari


class Pointing:
    """Selects clusters, objects and points where a person points.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    layers : MapLayers
    linked : LinkedLayers
    """

    def __init__(
        self,
        viewer: napari.Viewer,
        session: Session,
        layers: MapLayers,
        linked: LinkedLayers,
    ) -> None:
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

    def _on_click(self, world: np.ndarray, adds: bool) -> None:
        snapshot, place = self._session.snapshot, self._layers.to_map(world)
        if snapshot is None:
            return
        if place is None:
            self._on_object(world, adds)
            return
        # Not the nearest landmark: its points may have been split among clusters.
        # By coordinate: over (N, 2) a sum along rows takes ten times as long.
        coordinates = zip(snapshot.embedding.T, place, strict=True)
        nearest = int(np.argmin(sum((own - at) ** 2 for own, at in coordinates)))
        cluster = int(self._session.clusters.labels[nearest])
        selection = self._session.selection
        (selection.toggle if adds else selection.select)(cluster)

    def _on_object(self, world: np.ndarray, adds: bool) -> None:
        """Select the point of the object that was clicked in the image."""
        dataset, linked = self._session.dataset, self._linked.current
        if dataset is None or dataset.objects is None or linked is None:
            return
        row = clicked_row(linked, dataset.objects, world)
        if row is None:
            return
        selection = self._session.selection
        mode = "replace"
        if adds:
            mode = "remove" if selection.points[row] else "add"
        selection.select_points(np.array([row]), mode)

    def _on_lasso(self, world: np.ndarray, adds: bool) -> None:
        """Select the points that were drawn around."""
        snapshot, points = self._session.snapshot, self._layers.points
        if snapshot is None or points is None or snapshot.embedding.shape[1] != 2:
            return
        found = inside(self._layers.in_map(world), snapshot.embedding)
        if found.any():
            mode = "add" if adds else "replace"
            self._session.selection.select_points(found, mode)
