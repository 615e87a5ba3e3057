"""Link Tracks and Points layers of an image with the rows of its objects."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import napari
import numpy as np
from napari.layers import Labels, Layer, Points, Tracks
from napari.utils import Colormap
from numpy.typing import NDArray
from qtpy.QtCore import QObject
from superqt.utils import qdebounced

from napari_embedding_game.data.columns import count_text, parse_integers, share_text
from napari_embedding_game.data.label_objects import (
    Objects,
    find_rows_with_labels,
    read_labels_at,
)
from napari_embedding_game.session.session import error_text
from napari_embedding_game.session.tracks import (
    TRACK_ID,
    add_track_ids,
    find_frames_of_rows,
)
from napari_embedding_game.session.view import are_same_objects
from napari_embedding_game.ui.canvas.pick import REACH
from napari_embedding_game.ui.canvas.projection import layer_projection
from napari_embedding_game.ui.canvas.scene import MapScene
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.alignment import compute_world_matrix_and_origin
from napari_embedding_game.ui.images.linked_layers import (
    MAP_KEY,
    LinkedLayers,
    displayed_axes_and_position,
    finest_pixels,
)
from napari_embedding_game.ui.images.object_features import SELECTED
from napari_embedding_game.ui.tasks.worker import JobRunner

MOSTLY = 0.5
"""Share of a layer's points that lie in objects, from which on it is linked."""
LABEL = "label"
"""The feature of a layer that has the label of each point's object."""
LIGHTS = Colormap(
    [[0.5, 0.5, 0.5, 0.15], [1.0, 0.88, 0.3, 1.0]], name="embedding game selection"
)
"""Colours of other tracks, and of selected ones."""
FOUND = "Tracks of '{layer}': {n_found:,} of {n_rows:,} objects are on {n_tracks}."
NONE_FOUND = "{n} found no track."
IN_SEVERAL = "{n} lie on several tracks, of which the lowest id counts."
OTHERS = (
    "Only {share} of the moments of '{layer}' lie in objects of '{labels}', so these "
    "tracks are not linked."
)


class TrackLayers(QObject):
    """Finds the rows of Tracks and Points layers, and lights up selected tracks.

    A layer is linked if most of its points lie in objects of the linked labels.  The
    objects of a movie get the ids of a Tracks layer, unless they have tracks already.
    """

    def __init__(self, scene: MapScene, dock: QObject) -> None:
        super().__init__(dock)
        self._viewer, self._scene = scene.viewer, scene
        self._session, self._linked = scene.session, scene.workspace.linked_layers
        self._found_for: tuple[object, ...] = ()
        """The objects and layers' data that rows were last looked for."""
        self._color_by: WeakKeyDictionary[Tracks, str] = WeakKeyDictionary()
        """What each layer was coloured by before tracks were lit."""
        self._written: WeakKeyDictionary[Layer, Any] = WeakKeyDictionary()
        """The marks of selected tracks, (V,), that were written last."""
        self._jobs = JobRunner(self, self._on_rows_found, self._on_search_failed)
        self._of_layers, always = Connections(self), Connections(self)
        turn = qdebounced(self._find_rows, 0, parent=self)
        self._find_rows_soon = lambda *event: turn.throttle()
        session, layers = self._session, self._viewer.layers.events
        always.connect(
            self._find_rows_soon,
            self._linked.changed,
            session.columns_changed,
            layers.inserted,
            layers.removed,
        )
        always.connect(self._on_dataset_changed, session.dataset_changed)
        always.connect(self._light_up_selection, session.selection.changed)
        always.add_cleanup(self._put_out_lights)
        self._find_rows_soon()

    # Rows

    def _on_dataset_changed(self, event: object = None) -> None:
        """End the links to the rows of the former data, and look for new ones soon."""
        self._found_for = ()
        self._set_rows({})
        self._find_rows_soon()

    def _find_rows(self) -> None:
        """Look for the rows of all layers that may belong to the linked labels.

        Nothing is done for the same objects and layers as before.  Without labels the
        links end.
        """
        linked, dataset = self._linked.current, self._session.dataset
        objects = None if dataset is None else dataset.source_objects
        layers = (
            [] if linked is None else list_vertex_layers(self._viewer, linked.labels)
        )
        self._of_layers.close()
        for layer in layers:
            self._of_layers.connect(self._find_rows_soon, layer.events.data)
            if isinstance(layer, Tracks):
                notice = partial(self._on_features_changed, layer)
                self._of_layers.connect(notice, layer.events.properties)
        of = objects, linked, *(part for x in layers for part in (x, x.data))
        if are_same_objects(of, self._found_for):
            return
        self._found_for = of
        self._jobs.stop()
        self._set_rows({})
        if objects is None or linked is None or not layers:
            return
        vertices = {x: find_vertices_in_labels(x, linked.labels) for x in layers}
        job = partial(
            find_rows_of_layers, finest_pixels(linked.labels), objects, vertices
        )
        self._jobs.submit(job)

    def _on_rows_found(self, found: Mapping[Layer, NDArray[np.intp]]) -> None:
        """Link the layers whose points mostly have rows, and note their tracks."""
        dataset, linked = self._session.dataset, self._linked.current
        if dataset is None or linked is None:
            return
        shares = {x: float((rows >= 0).mean()) for x, rows in found.items()}
        # Rows of the source become those of the map; others are on no map.
        on_map = np.where(dataset.kept, np.cumsum(dataset.kept) - 1, -1)
        on_map = np.append(on_map, -1)
        self._set_rows(
            {x: on_map[rows] for x, rows in found.items() if shares[x] >= MOSTLY}
        )
        tracks = [x for x in found if isinstance(x, Tracks)]
        if not tracks:
            return
        best = max(tracks, key=shares.__getitem__)
        if best in self._linked.rows_by_layer:
            self._note_tracks(best)
        else:
            names = {"layer": best.name, "labels": linked.labels.name}
            text = OTHERS.format(share=share_text(shares[best]), **names)
            self._session.show_message(text)

    def _note_tracks(self, layer: Tracks) -> None:
        """Give objects of a movie the ids of a layer's tracks, and say how many.

        Nothing is done where other columns have tracks, or the same ids are known.
        """
        dataset = self._session.dataset
        assert dataset is not None
        others = set(dataset.find_columns_of_roles("tracks")) - set(dataset.added)
        if others or find_frames_of_rows(dataset) is None:
            return
        rows = self._linked.rows_by_layer[layer]
        vertices = np.flatnonzero(rows >= 0)[::-1]  # the first vertex of a row counts
        ids = np.full(len(dataset.obs), np.nan)
        ids[rows[vertices]] = layer.data[vertices, 0]
        known = dataset.obs.get(TRACK_ID)
        if known is not None and TRACK_ID in dataset.added:
            former = known.to_numpy(np.float64, na_value=np.nan)
            if np.array_equal(former, ids, equal_nan=True):
                return
        self._session.add_columns(add_track_ids, ids)
        is_found = np.isfinite(ids)
        n_several = len(vertices) - int(is_found.sum())
        n_none = len(ids) - int(is_found.sum())
        texts = [
            FOUND.format(
                layer=layer.name,
                n_found=is_found.sum(),
                n_rows=len(ids),
                n_tracks=count_text(len(np.unique(ids[is_found])), "track"),
            )
        ]
        texts += [NONE_FOUND.format(n=f"{n_none:,}")] if n_none else []
        texts += [IN_SEVERAL.format(n=f"{n_several:,}")] if n_several else []
        self._session.show_message(" ".join(texts))

    def _set_rows(self, rows_by_layer: dict[Layer, NDArray[np.intp]]) -> None:
        """Replace the linked layers with their rows, and light up the selection."""
        self._linked.rows_by_layer = rows_by_layer
        self._linked.rows_changed.emit()
        self._light_up_selection()

    def _on_search_failed(self, error: BaseException) -> None:
        """Show the error as a message, without a link."""
        self._set_rows({})
        self._session.show_message(error_text(error))

    # Lights

    def _light_up_selection(self, event: object = None) -> None:
        """Colour the tracks with selected moments, and grey out the others.

        Without a selection each layer is coloured as before.
        """
        points = self._session.selection.points
        if not points.any():
            self._put_out_lights()
            return
        for layer, rows in self._linked.rows_by_layer.items():
            if not isinstance(layer, Tracks) or rows.max(initial=-1) >= len(points):
                continue
            is_chosen = (rows >= 0) & points[rows]
            ids = layer.data[:, 0]
            is_new = SELECTED not in layer.features
            self._write_marks(layer, np.isin(ids, ids[is_chosen]))
            if is_new:
                layer.events.properties()  # napari lists the column
            if layer.color_by != SELECTED:
                self._color_by[layer] = layer.color_by
            layer.colormaps_dict = {**layer.colormaps_dict, SELECTED: LIGHTS}
            layer.color_by = SELECTED

    def _write_marks(self, layer: Tracks, is_lit: NDArray[np.bool_]) -> None:
        """Write which vertices (V,) are of selected tracks into the layer's features.

        The table is changed in place: napari would sort a table that is set once more.
        """
        self._written[layer] = layer.features[SELECTED] = is_lit.astype(np.float32)

    def _put_out_lights(self) -> None:
        """Colour each layer as before, unless a person has chosen another feature."""
        former, self._color_by = self._color_by, WeakKeyDictionary()
        for layer, name in former.items():
            if layer.color_by == SELECTED and name in layer.features:
                self._write_marks(layer, np.zeros(len(layer.data), bool))
                layer.color_by = name

    def _on_features_changed(self, layer: Tracks, event: object = None) -> None:
        """Select the tracks that a script has marked in the features of a layer."""
        rows = self._linked.rows_by_layer.get(layer)
        if rows is None or SELECTED not in layer.features:
            return
        marks = layer.features[SELECTED].to_numpy(np.float32, na_value=0.0)
        if not np.array_equal(marks, self._written.get(layer, np.zeros(len(marks)))):
            self._session.selection.select_points(rows[(marks > 0) & (rows >= 0)])


def list_vertex_layers(viewer: napari.Viewer, labels: Labels) -> list[Points | Tracks]:
    """Return the Points and Tracks layers with points and the axes of the labels."""
    layers = [x for x in viewer.layers if isinstance(x, Points | Tracks)]
    return [
        x
        for x in layers
        if MAP_KEY not in x.metadata and x.ndim == labels.ndim and len(x.data)
    ]


def find_vertices_in_labels(
    layer: Points | Tracks, labels: Labels
) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    """Return a layer's points in pixels of labels, (V, ndim), and their labels (V,).

    Labels are those of the feature "label"; None where it has no whole numbers.
    """
    points = np.asarray(layer.data, float)[:, -labels.ndim :]
    (matrix, origin), (our_matrix, our_origin) = map(
        compute_world_matrix_and_origin, (layer, labels)
    )
    world = points @ matrix.T + origin
    positions = np.linalg.solve(our_matrix, (world - our_origin).T).T
    known = layer.features.get(LABEL)
    return positions, None if known is None else parse_integers(known)


def find_rows_of_layers(
    pixels: Any,
    objects: Objects,
    vertices: Mapping[Layer, tuple[NDArray[np.float64], NDArray[np.int64] | None]],
) -> dict[Layer, NDArray[np.intp]]:
    """Return the row of each point's object, (V,), by layer; -1 for none.

    An object is found by the point's label, else by its position inside the object.
    """
    return {
        layer: find_rows_with_labels(
            objects,
            read_labels_at(pixels, positions) if labels is None else labels,
            positions,
        )
        for layer, (positions, labels) in vertices.items()
    }


def find_track_row_at_pixel(
    viewer: napari.Viewer, linked: LinkedLayers, pixel: NDArray[np.floating]
) -> int | None:
    """Return the row of the nearest moment that a Tracks layer shows at a pixel (x, y).

    Moments in the tails and heads of the displayed tracks count, within ``REACH``
    pixels.  None without any.
    """
    for layer, rows in linked.rows_by_layer.items():
        projection = layer_projection(viewer, layer, includes_slices=True)
        if not isinstance(layer, Tracks) or projection is None:
            continue
        axes, position = displayed_axes_and_position(viewer.dims, layer)
        age = position[0] - layer.data[:, 1]
        is_shown = (age <= layer.tail_length) & (-age <= layer.head_length)
        shown = np.flatnonzero(is_shown & (rows >= 0))
        places = np.asarray(layer.data, float)[shown][:, 1:][:, axes]
        distances = np.hypot(*(projection.to_pixels(places) - pixel).T)
        if len(shown) and np.nanmin(distances, initial=np.inf) <= REACH:
            return int(rows[shown[np.nanargmin(distances)]])
    return None
