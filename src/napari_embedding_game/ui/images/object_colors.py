"""Colour the objects of a Labels layer like their points; light up selected ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from napari.layers import Labels
from napari.utils import CyclicLabelColormap
from napari.utils.colormaps.standardize_color import transform_color
from numpy.typing import NDArray
from qtpy.QtCore import QObject
from superqt.utils import qthrottled

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.ui.canvas.scene import MapScene
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import (
    are_in_slice,
    displayed_axes_and_position,
    finest_pixels,
)

COLOR = "#ffe14d"
FADING = 0.2
"""Factor for the opacity of unselected objects, while objects are selected."""
UPDATE_MS = 400
"""Least time between two updates in a running game."""
MAX_COLORS = (1 << 16) - 1
"""The labels that napari's cyclic colormap can tell apart, in 16 bits.

A colormap by a dictionary takes 1.6 s for 20,000 objects, this one 16 ms.
"""
TOO_MANY = (
    f"Objects are not highlighted, as labels exceed {MAX_COLORS - 1:,}. Renumber them "
    "from 1 (skimage: segmentation.relabel_sequential)."
)


class ObjectColors(QObject):
    """Sets the colormap of the linked Labels layer by the map and the selection.

    With ``look.color_objects`` objects have the colours of their points.  Unselected
    objects fade while objects are selected.
    """

    def __init__(self, scene: MapScene, dock: QObject) -> None:
        super().__init__(dock)
        self._viewer, self._scene = scene.viewer, scene
        self._session, self._linked = scene.session, scene.workspace.linked_layers
        self._layer: Labels | None = None
        """The layer whose colormap was replaced."""
        self._previous_colormap: Any = None
        self._our_colormap: Any = None
        """The layer's original colormap, and the colormap that replaced it."""
        self._lit_labels: NDArray[np.int64] | None = None
        """The labels that are lit in that colormap; None with the map's colours."""
        self._counted: tuple[Any, Any] = None, None
        """The pixels and the label numbers that were last compared with the maximum."""
        self._has_room = True
        """Whether those have at most ``MAX_COLORS`` labels."""
        self._update_throttler = qthrottled(
            self.update_colors, UPDATE_MS, leading=False, parent=self
        )
        self._heard, connections = Connections(self), Connections(self)
        connections.connect(self._on_linked_layers_changed, self._linked.changed)
        connections.add_cleanup(self._restore_colormap)
        self._on_linked_layers_changed()

    def _on_linked_layers_changed(self, event: object = None) -> None:
        """Subscribe to map, selection and sliders while layers are linked; recolour."""
        linked = self._linked.current
        self._heard.close()
        self._on_labels_painted()
        if linked is not None:
            session, dims = self._session, self._viewer.dims.events
            look, slices = session.look.events, (dims.current_step, dims.order)
            now = session.selection.changed, look.color_objects, look.color_by
            now += (look.limits, *slices, dims.ndisplay)
            self._heard.connect(self.update_colors, *now)
            later = self._scene.map_rendered, session.columns_changed
            self._heard.connect(lambda *_: self._update_throttler.throttle(), *later)
            self._heard.connect(self._on_labels_painted, linked.labels.events.paint)
        self.update_colors()

    def update_colors(self, event: object = None) -> None:
        """Set the colormap by map and selection, or restore the original.

        The original is restored without linked labels in the viewer, without a
        selection while objects do not have the map's colours, and where label numbers
        are too large.
        """
        self._update_throttler.cancel()
        linked, session = self._linked.current, self._session
        labels = None if linked is None else linked.labels
        points, dataset = session.selection.points, session.dataset
        objects = None if dataset is None else dataset.objects
        is_mapped = session.look.color_objects and session.snapshot is not None
        is_there = labels is not None and labels in self._viewer.layers
        is_colored = is_there and objects is not None and (is_mapped or points.any())
        mapped = self._scene.coloring.rgba
        if is_colored:
            sizes = {len(points), len(mapped)} if is_mapped else {len(points)}
            ids = objects.label_ids
            is_colored = sizes == {len(ids)} and self._has_enough_colors(
                labels, dataset
            )
        if not is_colored or labels is not self._layer:
            self._restore_colormap()
        if not is_colored:
            return
        if labels.colormap is not self._our_colormap:  # a person has chosen a colormap
            self._layer, self._previous_colormap = labels, labels.colormap
        # Other slices may have other objects with the same labels.  Without the map's
        # colours only selected objects count: of a movie they are few.
        rows = np.arange(len(ids)) if is_mapped else np.flatnonzero(points)
        visible = rows[
            are_in_slice(
                objects.take(rows),
                *displayed_axes_and_position(self._viewer.dims, labels),
            )
        ]
        chosen, lit = ids[visible[points[visible]]], transform_color(COLOR)
        is_same = np.array_equal(chosen, self._lit_labels)
        if is_same and not is_mapped and labels.colormap is self._our_colormap:
            return  # as in the frame before
        previous = self._previous_colormap.map(np.arange(MAX_COLORS))
        colors = np.array(previous, np.float32)
        if is_mapped:
            # Objects that were left out vanish; labels painted since keep their colour.
            colors[dataset.source_objects.label_ids] = 0.0
            colors[ids[visible]] = mapped[visible]
            lit = colors[chosen]
        if points.any():
            colors[:, 3] *= FADING
            colors[chosen] = lit
        labels.colormap = CyclicLabelColormap(colors=colors)
        self._our_colormap = labels.colormap
        self._lit_labels = None if is_mapped else chosen

    def _restore_colormap(self) -> None:
        """Restore the layer's colormap, unless a person has chosen another.

        The layer is forgotten.
        """
        layer, self._layer = self._layer, None
        if layer is not None and layer.colormap is self._our_colormap:
            layer.colormap = self._previous_colormap
        self._our_colormap = None

    def _on_labels_painted(self, event: object = None) -> None:
        """Forget the largest label, so that it is found again."""
        self._counted = None, None

    def _has_enough_colors(self, labels: Labels, dataset: Dataset) -> bool:
        """Return whether labels are below ``MAX_COLORS``; else show a message once.

        Labels of the layer and of the dataset's objects count; pixels in a file do not.
        """
        counted = finest_pixels(labels), dataset.source_objects.label_ids
        if any(a is not b for a, b in zip(counted, self._counted, strict=True)):
            # Labels that are no array are in a file, and read in pieces.
            held = [some for some in counted if isinstance(some, np.ndarray)]
            largest = max(int(some.max(initial=0)) for some in held)
            self._counted, self._has_room = counted, largest < MAX_COLORS
            if not self._has_room:
                self._session.show_message(TOO_MANY)
        return self._has_room
