"""Highlight the selected objects in the image, in the colours of their own layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Labels
from napari.utils import CyclicLabelColormap
from numpy.typing import NDArray

from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.projection import displayed_axes
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import LinkedLayers
from napari_embedding_game.ui.style.colors import from_hex
from napari_embedding_game.ui.tasks.throttle import throttled

if TYPE_CHECKING:
    import napari

COLOR = "#ffe14d"
FADING = 0.4
"""Share of the opacity of the other objects, while some are selected."""
FOLLOW_MS = 400
"""Between two looks at a running game."""
MOST_COLORS = 1 << 16
"""So many labels napari's colormap can tell apart."""


def lit_labels(
    objects: Objects, selected: NDArray[np.bool_], at: Mapping[int, float]
) -> NDArray[np.uint8] | None:
    """Return by label whether it is selected, (largest label + 2,); 0 at the end.

    Parameters
    ----------
    objects : Objects
    selected : (n,) bool
    at : mapping
        Pixel along each axis that is not displayed: in a time series, or in a stack of
        images, labels occur again, and those of the slice on show are meant.

    Returns
    -------
    array or None
        None where there are more labels than a colormap tells apart.
    """
    first, last = np.split(objects.boxes, 2, axis=1)
    is_here = objects.present.copy()
    for axis, pixel in at.items():
        is_here &= (first[:, axis] <= round(pixel)) & (round(pixel) < last[:, axis])
    ids = objects.label_ids
    largest = int(ids[objects.present].max(initial=0))
    if largest + 2 > MOST_COLORS:
        return None
    table = np.zeros(largest + 2, np.uint8)
    table[ids[selected & is_here]] = 1
    return table


class ObjectHighlight:
    """Lights up selected objects by the colormap of the Labels layer that holds them.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    linked : LinkedLayers
    """

    def __init__(
        self, viewer: napari.Viewer, session: Session, linked: LinkedLayers
    ) -> None:
        self._viewer = viewer
        self._session = session
        self._linked = linked
        self._layer: Labels | None = None
        """The layer whose colours are ours."""
        self._before: Any = None
        self._own: Any = None
        """Its own colormap, and the one that it has meanwhile."""
        self._soon = throttled(FOLLOW_MS, self.update)
        self._connections = Connections()
        changes = (session.selection.changed, session.state_changed, linked.changed)
        dims = viewer.dims.events
        steps = (dims.current_step, dims.order, dims.ndisplay)
        self._connections.connect_all((*changes, *steps), self.update)
        self._connections.connect(session.clusters.changed, self._on_clusters)

    def close(self) -> None:
        """Undo the connections to session and viewer, and the colours."""
        self._soon.cancel()
        self._connections.close()
        self._end()

    def update(self, event: object = None) -> None:
        """Light up what is selected now."""
        linked, dataset = self._linked.current, self._session.dataset
        labels = None if linked is None else linked.labels
        points = self._session.selection.points
        if labels is not self._layer or not points.any():
            self._end()
        if labels is None or labels not in self._viewer.layers or not points.any():
            return
        objects = None if dataset is None else dataset.objects
        if objects is None or len(points) != len(objects):
            return
        dims = self._viewer.dims
        at = np.asarray(labels.world_to_data(dims.point), dtype=float)
        shown = displayed_axes(dims, labels.ndim, min(labels.ndim, dims.ndisplay))
        others = set(range(labels.ndim)).difference(shown)
        table = lit_labels(objects, points, {axis: at[axis] for axis in others})
        if table is not None:
            self._show(labels, table)

    def _show(self, labels: Labels, table: NDArray[np.uint8]) -> None:
        if labels.colormap is not self._own:  # somebody has chosen another one
            self._layer, self._before = labels, labels.colormap
        colors = np.asarray(self._before.map(np.arange(len(table))), np.float32)
        colors[:, 3] *= FADING
        colors[table > 0] = from_hex(COLOR)
        labels.colormap = CyclicLabelColormap(colors=colors)
        self._own = labels.colormap

    def _end(self) -> None:
        """Bring the layer's own colours back, unless somebody has chosen others."""
        layer, self._layer = self._layer, None
        if layer is not None and layer.colormap is self._own:
            layer.colormap = self._before
        self._own = None

    def _on_clusters(self) -> None:
        """Follow points that move from cluster to cluster, now and then."""
        if self._layer is not None and self._session.selection.clusters:
            self._soon.throttle()
