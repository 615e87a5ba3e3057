"""The colours of objects in the image: those of the map, and of what is selected."""

from __future__ import annotations

from typing import Any

import napari
import numpy as np
from napari.layers import Labels
from napari.utils import CyclicLabelColormap
from napari.utils.colormaps.standardize_color import transform_color
from qtpy.QtCore import QObject

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import (
    axes_and_place,
    finest,
    is_in_slice,
)
from napari_embedding_game.ui.style.coloring import colored
from napari_embedding_game.ui.tasks.throttle import throttled
from napari_embedding_game.ui.workspace import Workspace

COLOR = "#ffe14d"
FADING = 0.4
"""Share of the opacity of the other objects, while some are selected."""
FOLLOW_MS = 400
"""Between two looks at a running game."""
MOST_COLORS = (1 << 16) - 1
"""So many labels napari's colormap by number tells apart, in 16 bits; one by a
dictionary takes 1.6 s for 20,000 objects, this one 16 ms."""
TOO_MANY = (
    f"Objects are not lit, as labels go beyond {MOST_COLORS - 2:,}: number them anew "
    "from 1 (skimage: segmentation.relabel_sequential)."
)


class ObjectColors(QObject):
    """Gives a Labels layer a colormap that follows the map and the selection.

    Without ``look.color_objects`` the objects have the colours that a person gave the
    layer, and selected ones are lit; with it, those of their points on the map, and the
    others than the selected ones fade.
    """

    def __init__(
        self, viewer: napari.Viewer, workspace: Workspace, dock: QObject
    ) -> None:
        super().__init__(dock)
        self._viewer = viewer
        self._session, self._linked = workspace.session, workspace.linked
        self._layer: Labels | None = None
        """The layer whose colours are ours."""
        self._before: Any = None
        self._own: Any = None
        """Its own colormap, and the one that it has meanwhile."""
        self._soon = throttled(FOLLOW_MS, self.update, self)
        self._heard = Connections(self)
        connections = Connections(self)
        connections.connect(self._linked.changed, self._on_linked)
        connections.call(self._end)
        self._on_linked()

    def _on_linked(self, event: object = None) -> None:
        """Hear of the map while there are objects of it."""
        session, heard, linked = self._session, self._heard, self._linked.current
        heard.close()
        if linked is not None:
            dims, look = self._viewer.dims.events, session.look.events
            now = (session.selection.changed, session.state_changed, session.restored)
            now += (dims.current_step, dims.order, dims.ndisplay)
            now += (session.objects_changed,)
            now += (look.color_objects, look.color_by, look.limits)
            heard.connect_all(now, self.update)
            later = (session.clusters.changed, session.columns_changed)
            later += (session.looked_back, linked.labels.events.paint)
            heard.connect_all(later, self._on_moved)
        self.update()

    def update(self, event: object = None) -> None:
        """Give the objects the colours that they have now."""
        linked, session = self._linked.current, self._session
        labels = None if linked is None else linked.labels
        dataset, snapshot = session.dataset, session.snapshot
        points, look = session.selection.points, session.look
        objects = None if dataset is None else dataset.objects
        is_mapped = look.color_objects and snapshot is not None
        is_there = labels is not None and labels in self._viewer.layers
        is_wanted = is_there and objects is not None and (is_mapped or points.any())
        if not is_wanted or labels is not self._layer:
            self._end()
        if labels is None or objects is None or not is_wanted:
            return
        ids, pixels = objects.label_ids, finest(labels)
        n = MOST_COLORS
        largest = int(dataset.source_objects.label_ids.max(initial=0))
        if isinstance(pixels, np.ndarray):  # others are read from files, part by part
            largest = max(int(pixels.max(initial=0)), largest)
            n = largest + 2  # one may be painted
        if n > MOST_COLORS or largest >= n:
            session.say(TOO_MANY)
            return
        if len(points) != len(ids):
            return
        if labels.colormap is not self._own:  # somebody has chosen another one
            self._layer, self._before = labels, labels.colormap
        # Labels may occur again in other slices.
        here = is_in_slice(objects, *axes_and_place(self._viewer.dims, labels))
        colors = np.zeros((n, 4), np.float32)  # of no point: nothing
        if is_mapped:
            try:
                mapped = colored(look.color_by, session, snapshot, look.limits)
            except DataError:  # the map says it
                return
            colors[ids[here]] = mapped.rgba[here]
        else:
            colors[:] = self._before.map(np.arange(n))
        if points.any():
            chosen = ids[here & points]
            lit = colors[chosen] if is_mapped else transform_color(COLOR)
            colors[:, 3] *= FADING
            colors[chosen] = lit
        labels.colormap = CyclicLabelColormap(colors=colors)
        self._own = labels.colormap

    def _end(self) -> None:
        """Bring the layer's own colours back, unless somebody has chosen others."""
        layer, self._layer = self._layer, None
        if layer is not None and layer.colormap is self._own:
            layer.colormap = self._before
        self._own = None

    def _on_moved(self, event: object = None) -> None:
        """Follow a running game, now and then."""
        if self._layer is not None:
            self._soon.throttle()
