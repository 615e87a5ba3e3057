"""The colours of objects in the image: those of the map, and of what is selected."""

from __future__ import annotations

from typing import Any

import napari
import numpy as np
from napari.layers import Labels
from napari.utils import CyclicLabelColormap
from napari.utils.colormaps.standardize_color import transform_color
from qtpy.QtCore import QObject
from superqt.utils import qthrottled

from napari_embedding_game.ui.canvas.scene import Scene
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import (
    axes_and_place,
    finest,
    is_in_slice,
)
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
    f"Objects are not lit, as labels go beyond {MOST_COLORS - 1:,}: number them anew "
    "from 1 (skimage: segmentation.relabel_sequential)."
)


class ObjectColors(QObject):
    """Gives a Labels layer a colormap that follows the map and the selection.

    Without ``look.color_objects`` the objects have the colours that a person gave the
    layer, and selected ones are lit; with it, those of their points on the map, and the
    others than the selected ones fade.
    """

    def __init__(
        self, viewer: napari.Viewer, workspace: Workspace, scene: Scene, dock: QObject
    ) -> None:
        super().__init__(dock)
        self._viewer, self._scene = viewer, scene
        self._session, self._linked = workspace.session, workspace.linked
        self._layer: Labels | None = None
        """The layer whose colours are ours."""
        self._before: Any = None
        self._own: Any = None
        """Its own colormap, and the one that it has meanwhile."""
        self._soon = qthrottled(self.update, FOLLOW_MS, leading=False, parent=self)
        self._heard, connections = Connections(self), Connections(self)
        connections.connect(self._linked.changed, self._on_linked)
        connections.call(self._end)
        self._on_linked()

    def _on_linked(self, event: object = None) -> None:
        """Hear of the map while there are objects of it."""
        self._heard.close()
        if self._linked.current is not None:
            dims = self._viewer.dims.events
            changes = self._scene.drawn, self._session.columns_changed
            slices = dims.current_step, dims.order, dims.ndisplay
            self._heard.connect_all((*changes, *slices), self._on_change)
        self.update()

    def update(self) -> None:
        """Give the objects the colours that they have now."""
        linked, session = self._linked.current, self._session
        labels = None if linked is None else linked.labels
        points, dataset = session.selection.points, session.dataset
        objects = None if dataset is None else dataset.objects
        is_mapped = session.look.color_objects and session.snapshot is not None
        is_there = labels is not None and labels in self._viewer.layers
        is_wanted = is_there and objects is not None and (is_mapped or points.any())
        if not is_wanted or labels is not self._layer:
            self._end()
        if not is_wanted:
            return
        ids, pixels = objects.label_ids, finest(labels)
        mapped, known = self._scene.colored.rgba, [dataset.source_objects.label_ids]
        if isinstance(pixels, np.ndarray):  # others are read from files, part by part
            known.append(pixels)
        if max(int(some.max(initial=0)) for some in known) >= MOST_COLORS:
            session.say(TOO_MANY)
            return
        if len(points) != len(ids) or (is_mapped and len(mapped) != len(ids)):
            return
        if labels.colormap is not self._own:  # somebody has chosen another one
            self._layer, self._before = labels, labels.colormap
        # Labels may occur again in other slices.
        here = is_in_slice(objects, *axes_and_place(self._viewer.dims, labels))
        chosen, lit = ids[here & points], transform_color(COLOR)
        if is_mapped:
            colors = np.zeros((MOST_COLORS, 4), np.float32)  # of no point: nothing
            colors[ids[here]] = mapped[here]
            lit = colors[chosen]
        else:
            colors = np.array(self._before.map(np.arange(MOST_COLORS)), np.float32)
        if points.any():
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

    def _on_change(self, event: object = None) -> None:
        """Follow at once, and a running game now and then."""
        if self._session.is_moving:
            self._soon.throttle()
        else:
            self.update()
