"""The layers that show the objects which are the rows of the map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from napari.layers import Image, Labels, Layer
from psygnal import Signal

from napari_embedding_game.data.annotation import KEY
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.linking import label_column
from napari_embedding_game.data.writers import features
from napari_embedding_game.session.sources import Loaded

if TYPE_CHECKING:
    import napari
    from numpy.typing import NDArray

    from napari_embedding_game.data.dataset import Dataset
    from napari_embedding_game.data.objects import Objects
    from napari_embedding_game.data.result import EmbeddingResult
    from napari_embedding_game.session.session import Session

PICTURE_NAME, OBJECTS_NAME = "nuclei (image)", "nuclei (labels)"
OBJECTS_OPACITY = 0.35
SAMPLE = "napari-embedding-game sample"
"""Metadata that names the sample whose picture a layer shows."""


@dataclass(frozen=True, eq=False)
class Linked:
    """The label image of the objects, and the images they were measured in."""

    labels: Labels
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, eq=False)
class Table:
    """A layer whose features table the rows of the source are."""

    layer: Layer
    features: pd.DataFrame
    """As it was when it was taken."""


class LinkedLayers:
    """Which layers belong to the dataset of a session; None where none does.

    ``changed`` brings the present :class:`Linked`.
    """

    changed = Signal(object)

    def __init__(self) -> None:
        self.current: Linked | None = None
        self.table: Table | None = None
        self.missed: Mapping[str, Any] = {}
        """What a session file tells of layers that are not there, as `describe`."""

    def describe(self) -> Mapping[str, Any]:
        """Return the layers by name and file, for a session file; {} without any."""
        return self.missed if self.current is None else describe(self.current)

    def set(self, linked: Linked | None, table: Table | None = None) -> None:
        """Take up layers, or none."""
        self.missed = {}
        self.table = table
        if linked is not self.current:
            self.current = linked
            self.changed.emit(linked)


def describe(linked: Linked) -> dict[str, Any]:
    """Return names and files of linked layers, in values for JSON."""
    labels = _described(linked.labels)
    return {"labels": labels, "images": [_described(x) for x in linked.images]}


def _described(layer: Layer) -> dict[str, str]:
    path = layer.source.path
    is_sample = layer.metadata.get(SAMPLE)
    return {
        "name": layer.name,
        "path": path if isinstance(path, str) else "",
        "sample": is_sample if isinstance(is_sample, str) else "",
    }


_known: WeakKeyDictionary[Session, LinkedLayers] = WeakKeyDictionary()


def linked_layers(session: Session) -> LinkedLayers:
    """Return the one record of linked layers of a session, shared by its docks."""
    return _known.setdefault(session, LinkedLayers())


def finest(layer: Layer) -> Any:
    """Return the pixels of a layer; of a multiscale one, its finest level."""
    return layer.data[0] if layer.multiscale else layer.data


def show_pictures(viewer: napari.Viewer, loaded: Loaded) -> Linked:
    """Add the source's own picture and objects as layers."""
    sample = {SAMPLE: "nuclei"}
    image = viewer.add_image(loaded.image, name=PICTURE_NAME, metadata=dict(sample))
    labels = viewer.add_labels(
        loaded.labels,
        name=OBJECTS_NAME,
        opacity=OBJECTS_OPACITY,
        metadata=dict(sample),
    )
    return Linked(labels, (image,))


def with_features(
    present: pd.DataFrame, dataset: Dataset, result: EmbeddingResult
) -> pd.DataFrame:
    """Return the table of a Labels layer with position, cluster and pressure.

    Which label a row is about goes by the rule of
    :func:`~napari_embedding_game.data.linking.link`; where that tells nothing,
    napari's row i is about label i.

    Raises
    ------
    DataError
        If the rows of the dataset are no objects, or one label is several rows.
    """
    labels = _labels_of(present, dataset)
    found = features(dataset, result, labels)
    kept = present.drop(columns=[c for c in found if c in present])
    return pd.concat([found, kept.reset_index(drop=True)], axis=1)


def _labels_of(present: pd.DataFrame, dataset: Dataset) -> NDArray[np.integer]:
    """Return the label of each row; of an empty table, of each object."""
    column, objects = label_column(present), dataset.source_objects
    if column is not None and len(present):
        return np.asarray(present[column].astype(np.int64))
    is_in_order = objects is not None and len(present) in (0, len(objects))
    return objects.label_ids if is_in_order else np.arange(len(present))


def with_rows(table: Table, dataset: Dataset, result: EmbeddingResult) -> pd.DataFrame:
    """Return the table of a layer with position, cluster and pressure of its rows.

    Raises
    ------
    DataError
        If it no longer holds what was taken: its rows may be others.
    """
    present, taken = table.layer.features, table.features
    same = [column for column in taken if not str(column).startswith(KEY)]
    if not set(same) <= set(present) or not taken[same].equals(present[same]):
        raise DataError(
            f"The table of '{table.layer.name}' was changed since it was taken, its "
            "rows may be others now: take it again, or save the map as .csv."
        )
    found = features(dataset, result)
    kept = present.drop(columns=[c for c in found if c in present])
    return pd.concat([kept.reset_index(drop=True), found], axis=1)


def row_at(objects: Objects, label: int, place: NDArray[np.floating]) -> int | None:
    """Return the row of the object with this label at a place of the label image.

    Of a time series, in which labels occur again, it is the one whose bounding box
    holds the place (ndim,), in pixels; None if no row is about that object.
    """
    rows = np.flatnonzero(objects.label_ids == label)
    if len(rows) < 2:
        return int(rows[0]) if len(rows) else None
    first, last = np.split(objects.boxes[rows], 2, axis=1)
    pixel = np.round(place)
    inside = ((first <= pixel) & (pixel < last)).all(axis=1)
    return int(rows[inside][0]) if inside.any() else None


def clicked_row(
    linked: Linked, objects: Objects, world: NDArray[np.floating]
) -> int | None:
    """Return the row of the object at a world position, None where there is none."""
    layer = linked.labels
    if not layer.visible:
        return None
    value = layer.get_value(world, world=True)
    label = value[1] if isinstance(value, tuple) else value
    if not label:
        return None
    return row_at(objects, int(label), np.asarray(layer.world_to_data(world)))


def go_to(viewer: napari.Viewer, labels: Labels, objects: Objects) -> None:
    """Centre the camera on objects of a layer, in the slice of the first of them."""
    middle = np.asarray(labels.data_to_world(objects.centers[0]))
    if labels.ndim == 2:
        middle = np.asarray(labels.data_to_world(objects.centers.mean(axis=0)))
    for axis in range(labels.ndim - 2):
        place = viewer.dims.ndim - labels.ndim + axis
        viewer.dims.set_point(place, middle[axis])
    camera = getattr(viewer, "scene", viewer).camera
    camera.center = (0.0, *middle[-2:])
