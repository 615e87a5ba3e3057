"""Lights up the selected objects in the image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Labels
from napari.utils import DirectLabelColormap
from numpy.typing import NDArray

from napari_embedding_game.data.objects import Objects
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.linked import Linked, LinkedLayers
from napari_embedding_game.ui.measure_panel import OWN

if TYPE_CHECKING:
    import napari

NAME, COLOR = "selected objects", "#ffe14d"
OPACITY = 0.65
FEW = 1000
"""Objects that are found faster one by one than by looking at every pixel."""
LARGEST_LABEL = 20_000_000
"""Up to this label a table by label is kept: one byte each."""


def light(
    mask: NDArray[np.uint8], labels: Any, objects: Objects, lit: NDArray[np.bool_]
) -> None:
    """Write 1 into the mask where a lit object is, 0 elsewhere.

    Parameters
    ----------
    mask : array of the shape of `labels`, written in place
    lit : (n,) whether each object is selected
    """
    rows = np.flatnonzero(lit)
    ids = objects.label_ids
    # In growing order no label occurs again, as it does in a time series.
    is_growing = bool((np.diff(ids) > 0).all())
    repeats = not is_growing and len(np.unique(ids)) < len(ids)
    if repeats or len(rows) <= FEW or ids.max(initial=0) > LARGEST_LABEL:
        mask[...] = 0
        for row in rows:
            box = objects.slices(int(row))
            mask[box][np.asarray(labels[box]) == ids[row]] = 1
        return
    table = np.zeros(int(ids.max()) + 2, np.uint8)
    table[ids[rows]] = 1
    # What is beyond the table, or below 0, is no object of the map: the last 0.
    np.take(table, np.asarray(labels), out=mask, mode="clip")


class LitObjects:
    """A Labels layer of its own, above the objects; made at the first selection."""

    def __init__(
        self, viewer: napari.Viewer, session: Session, linked: LinkedLayers
    ) -> None:
        self._viewer = viewer
        self._session = session
        self._linked = linked
        self._of: Linked | None = None
        self.layer: Labels | None = None
        session.selection.changed.connect(self.update)
        session.state_changed.connect(self.update)
        linked.changed.connect(self.update)

    def close(self) -> None:
        """Let go of the session; the layer goes too."""
        self._session.selection.changed.disconnect(self.update)
        self._session.state_changed.disconnect(self.update)
        self._linked.changed.disconnect(self.update)
        self._drop()

    def update(self) -> None:
        """Light up what is selected now."""
        linked, dataset = self._linked.current, self._session.dataset
        if linked is not self._of:
            self._drop()
            self._of = linked
        if linked is None or dataset is None or dataset.objects is None:
            return
        if linked.labels not in self._viewer.layers or linked.labels.multiscale:
            return
        points = self._session.selection.points
        if len(points) != len(dataset.objects):
            return
        if self.layer is None and points.any():
            self._make(linked.labels)
        if self.layer is not None:
            light(self.layer.data, linked.labels.data, dataset.objects, points)
            self.layer.refresh(thumbnail=False, highlight=False, extent=False)

    def _make(self, labels: Labels) -> None:
        active = self._viewer.layers.selection.active
        colors = {0: "transparent", 1: COLOR, None: "transparent"}
        self.layer = Labels(
            np.zeros(labels.data.shape, np.uint8),
            name=NAME,
            colormap=DirectLabelColormap(color_dict=colors),
            opacity=OPACITY,
            scale=labels.scale,
            translate=labels.translate,
            rotate=labels.rotate,
            shear=labels.shear,
            affine=labels.affine,
            metadata=dict(OWN),
        )
        self._viewer.add_layer(self.layer)
        self._viewer.layers.selection.active = active

    def _drop(self) -> None:
        if self.layer is not None and self.layer in self._viewer.layers:
            self._viewer.layers.remove(self.layer)
        self.layer = None
