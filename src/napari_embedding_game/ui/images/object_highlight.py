"""Highlight the selected objects in the image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Labels
from napari.utils import CyclicLabelColormap
from numpy.typing import NDArray

from napari_embedding_game.data.images.field_stack import FieldStack, LabelStack
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.points_layer import Faded
from napari_embedding_game.ui.compat import draw, in_place
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import Linked, LinkedLayers, finest
from napari_embedding_game.ui.images.measure_panel import OWN
from napari_embedding_game.ui.style.colors import from_hex
from napari_embedding_game.ui.tasks.throttle import throttled

if TYPE_CHECKING:
    import napari

NAME, COLOR = "selected objects", "#ffe14d"
OPACITY = 0.8
FADING = 0.4
"""Share of the opacity of the other objects, while some are selected."""
FOLLOW_MS = 400
"""Between two looks at a running game."""
FEW = 1000
"""Objects that are found faster one by one than by looking at every pixel."""
MOST_COLORS = 1 << 16
"""So many labels napari's colormap can tell apart."""
LARGEST_LABEL = 20_000_000
"""Up to this label a table by label is kept: one byte each."""


def draw_highlight(
    mask: NDArray[np.uint8], labels: Any, objects: Objects, selected: NDArray[np.bool_]
) -> None:
    """Write 1 into the mask where a selected object is, 0 elsewhere.

    Parameters
    ----------
    mask : array of the shape of `labels`, written in place
    selected : (n,) whether each object is selected
    """
    rows = np.flatnonzero(selected & objects.present)
    table = table_of(objects, selected) if len(rows) > FEW else None
    if table is not None:
        # What is beyond the table, or below 0, is no object of the map.
        np.take(table, np.asarray(labels), out=mask, mode="clip")
        return
    mask[...] = 0
    for row in rows:
        box = objects.slices(int(row))
        mask[box][np.asarray(labels[box]) == objects.label_ids[row]] = 1


def table_of(objects: Objects, selected: NDArray[np.bool_]) -> NDArray[np.uint8] | None:
    """Return by label whether it is selected, (largest label + 2,); 0 at the end.

    None where one label is several objects, as in a time series, or where labels
    are too large for a table.
    """
    selected = selected[objects.present]
    ids = objects.label_ids[objects.present]
    # In growing order no label occurs again, as it does in a time series.
    is_growing = bool((np.diff(ids) > 0).all())
    if ids.max(initial=0) > LARGEST_LABEL:
        return None
    if not is_growing and len(np.unique(ids)) < len(ids):
        return None
    table = np.zeros(int(ids.max(initial=0)) + 2, np.uint8)
    table[ids[selected]] = 1
    return table


class HighlightLevel:
    """Mask of one level of a multiscale label image, computed on access.

    Parameters
    ----------
    labels : array
    table : (m,) uint8
        As of :func:`table_of`.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, labels: Any, table: NDArray[np.uint8]) -> None:
        self._labels = labels
        self._table = table
        self.shape: tuple[int, ...] = tuple(labels.shape)
        self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape))

    def __getitem__(self, key: Any) -> NDArray[np.uint8]:
        """Return 1 where a selected object is, 0 elsewhere."""
        # Labels beyond the table, or below 0, come to its ends: no objects.
        return np.take(self._table, np.asarray(self._labels[key]), mode="clip")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        """Return all pixels."""
        return self[...].astype(dtype or self.dtype, copy=False)


class HighlightStack(FieldStack):
    """Mask of the selected objects of a stack of labels, computed on access.

    Parameters
    ----------
    labels : LabelStack
    objects : Objects
        Of as many axes; the first one is the place in the stack.
    """

    def __init__(self, labels: LabelStack, objects: Objects) -> None:
        n, *size = labels.shape
        super().__init__(self._mask, n, size, np.uint8)
        self._labels = labels
        self._objects = objects
        self._selected = np.zeros(len(objects), bool)

    def select(self, objects: Objects, selected: NDArray[np.bool_]) -> None:
        """Take other objects, and which of them are selected, (n,)."""
        self._objects, self._selected = objects, selected.copy()

    def _mask(self, i: int) -> NDArray[np.uint8]:
        objects = self._objects
        of_field = self._selected & objects.present & (objects.boxes[:, 0] == i)
        ids = objects.label_ids[of_field]
        if not len(ids):
            return np.zeros(self.shape[1:], np.uint8)
        return np.isin(self._labels.plane(i), ids).astype(np.uint8)


class HighlightColors:
    """Shows the selected objects by the colormap of their Labels layer.

    Parameters
    ----------
    labels : Labels
    """

    def __init__(self, labels: Labels) -> None:
        self._layer = labels
        self._before = self._own = labels.colormap

    @property
    def layer(self) -> Labels:
        """The layer that holds the objects."""
        return self._layer

    def show(self, table: NDArray[np.uint8]) -> None:
        """Light up the labels for which a table, as of :func:`table_of`, has 1."""
        if self._layer.colormap is not self._own:  # somebody has chosen another one
            self._before = self._layer.colormap
        colors = np.asarray(self._before.map(np.arange(len(table))), np.float32)
        colors[:, 3] *= FADING
        colors[table > 0] = from_hex((COLOR,))[0]
        self._layer.colormap = CyclicLabelColormap(colors=colors)
        self._own = self._layer.colormap

    def end(self) -> None:
        """Bring the layer's own colours back, unless somebody has chosen others."""
        if self._layer.colormap is self._own:
            self._layer.colormap = self._before


class ObjectHighlight:
    """A Labels layer of its own, above the objects; made at the first selection.

    In napari's grid that layer would have a part of its own, away from the image: there
    the objects' own layer is coloured, as far as a colormap tells its labels apart.
    """

    def __init__(
        self, viewer: napari.Viewer, session: Session, linked: LinkedLayers
    ) -> None:
        self._viewer = viewer
        self._session = session
        self._linked = linked
        self._of: Linked | None = None
        self.layer: Labels | None = None
        self._faded: Faded | None = None
        self._colors: HighlightColors | None = None
        self._soon = throttled(FOLLOW_MS, self.update)
        self._connections = Connections()
        changes = (session.selection.changed, session.state_changed, linked.changed)
        self._connections.connect_all(changes, self.update)
        for signal, slot in (
            (session.clusters.changed, self._on_clusters),
            (viewer.layers.events.removed, self._on_removed),
            (viewer.canvas.grid.events.enabled, self._on_grid),
        ):
            self._connections.connect(signal, slot)

    def close(self) -> None:
        """Undo the connections to session and viewer; the layer goes too."""
        self._soon.cancel()
        self._connections.close()
        self._drop()

    def update(self) -> None:
        """Light up what is selected now."""
        linked, dataset = self._linked.current, self._session.dataset
        if linked is not self._of:
            self._drop()
            self._of = linked
        if linked is None or dataset is None or dataset.objects is None:
            return
        if linked.labels not in self._viewer.layers:
            return
        points = self._session.selection.points
        if len(points) != len(dataset.objects):
            return
        if self._recolor(linked.labels, dataset.objects, points):
            return
        self._light(linked.labels, dataset.objects, points)
        self._fade(linked.labels if points.any() else None)

    def _on_grid(self, event: object = None) -> None:
        """Show the same in the other way."""
        self._drop()
        self.update()

    def _recolor(
        self, labels: Labels, objects: Objects, points: NDArray[np.bool_]
    ) -> bool:
        """Light the objects up in their own layer; return whether that can be done."""
        if not self._viewer.canvas.grid.enabled:
            return False
        table = table_of(objects, points)
        if table is None or len(table) > MOST_COLORS:
            return False
        if not points.any():
            self._drop()
            return True
        if self._colors is None:
            self._colors = HighlightColors(labels)
        self._colors.show(table)
        return True

    def _on_removed(self, event: object = None) -> None:
        """Forget a layer that somebody deleted; the next selection makes another."""
        if self.layer is not None and self.layer not in self._viewer.layers:
            self.layer = None
            self._fade(None)
        if self._colors is not None and self._colors.layer not in self._viewer.layers:
            self._colors = None

    def _on_clusters(self) -> None:
        """Follow points that move from cluster to cluster, now and then."""
        is_shown = self.layer is not None or self._colors is not None
        is_followed = is_shown and bool(self._session.selection.clusters)
        if is_followed:
            self._soon.throttle()

    def _light(
        self, labels: Labels, objects: Objects, points: NDArray[np.bool_]
    ) -> None:
        if self.layer is None and not points.any():
            return
        table = table_of(objects, points) if labels.multiscale else None
        if table is not None:
            levels = [HighlightLevel(level, table) for level in labels.data]
            if self.layer is None:
                self._make(labels, levels)
            else:
                self.layer.data = levels  # napari keeps the coarsest one in memory
            return
        pixels = finest(labels)
        if isinstance(pixels, LabelStack):
            if self.layer is None:
                self._make(labels, HighlightStack(pixels, objects))
            assert self.layer is not None
            self.layer.data.select(objects, points)
            draw(self._viewer, self.layer)
            return
        if self.layer is None:
            self._make(labels, np.zeros(pixels.shape, np.uint8))
        assert self.layer is not None
        with in_place(self.layer, "data") as mask:
            draw_highlight(mask, pixels, objects, points)
        draw(self._viewer, self.layer)

    def _fade(self, labels: Labels | None) -> None:
        """Let the other objects step back, or come forward again."""
        if self._faded is not None and labels is None:
            self._faded.end()
            self._faded = None
        elif self._faded is None and labels is not None:
            self._faded = Faded(labels, FADING)

    def _make(self, labels: Labels, data: Any) -> None:
        active = self._viewer.layers.selection.active
        # A colormap by label would be compiled first, for more than a second.
        colors = np.concatenate([np.zeros((1, 4), np.float32), from_hex((COLOR,))])
        self.layer = Labels(
            data,
            name=NAME,
            multiscale=isinstance(data, list),
            colormap=CyclicLabelColormap(colors=colors),
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
        self._fade(None)
        if self._colors is not None:
            self._colors.end()
            self._colors = None
        if self.layer is not None and self.layer in self._viewer.layers:
            self._viewer.layers.remove(self.layer)
        self.layer = None
