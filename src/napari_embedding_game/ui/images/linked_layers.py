"""The napari layers whose objects are the rows of the map."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from napari.layers import Image, Labels, Layer
from psygnal import Signal

from napari_embedding_game.data.columns import KEY, is_of_a_map
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.writers import features
from napari_embedding_game.data.images.label_column import (
    is_napari_table,
    label_column,
    label_ids,
)
from napari_embedding_game.session.sources import LoadResult
from napari_embedding_game.ui.compat import camera_of

if TYPE_CHECKING:
    import napari
    from numpy.typing import NDArray

    from napari_embedding_game.data.dataset import Dataset
    from napari_embedding_game.data.export.result import EmbeddingResult
    from napari_embedding_game.data.label_objects import Objects
    from napari_embedding_game.data.spatial_table import SpatialTable

PICTURE_NAME, OBJECTS_NAME = "nuclei (image)", "nuclei (labels)"
OBJECTS_OPACITY = 0.35
FILE = "napari-embedding-game file"
"""Metadata of a layer: the file or folder it is of, where napari knows none."""
SAMPLE = "napari-embedding-game sample"
"""Metadata that names the sample whose picture a layer shows."""
WRITTEN = "napari-embedding-game columns"
"""Metadata of a layer: the columns of its table that a map was written into."""


@dataclass(frozen=True)
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
        self.annotation: SpatialTable | None = None
        """The AnnData of a layer that the rows are of, which results go back into."""
        self.missed: Mapping[str, Any] | None = None
        """What a session file tells of layers of which one is not there, as `describe`;
        None where none is missing."""

    def describe(self) -> Mapping[str, Any]:
        """Return the layers by name and file, for a session file; {} without any."""
        if self.missed is not None:
            return self.missed
        return {} if self.current is None else describe(self.current)

    def set(
        self,
        linked: Linked | None,
        table: Table | None = None,
        annotation: SpatialTable | None = None,
        missed: Mapping[str, Any] | None = None,
    ) -> None:
        """Take up layers, or none."""
        self.missed = missed
        self.table, self.annotation = table, annotation
        if linked != self.current:
            self.current = linked
            self.changed.emit(linked)


def describe(linked: Linked) -> dict[str, Any]:
    """Return names and files of linked layers, in values for JSON."""
    labels = record_of(linked.labels)
    return {"labels": labels, "images": [record_of(x) for x in linked.images]}


def record_of(layer: Layer) -> dict[str, str]:
    """Return name, file and sample of a layer, in values for JSON."""
    path = layer.metadata.get(FILE) or layer.source.path
    is_sample = layer.metadata.get(SAMPLE)
    return {
        "name": layer.name,
        "path": path if isinstance(path, str) else "",
        "sample": is_sample if isinstance(is_sample, str) else "",
    }


def finest(layer: Layer) -> Any:
    """Return the pixels of a layer; of a multiscale one, its finest level."""
    return layer.data[0] if layer.multiscale else layer.data


def show_pictures(viewer: napari.Viewer, loaded: LoadResult) -> Linked:
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


def write_columns(
    layer: Layer, table: Table | None, dataset: Dataset, result: EmbeddingResult
) -> None:
    """Write position, cluster, pressure and measures into the table of a layer.

    Row by row into the table that was taken, else by label into that of a Labels
    layer.  What the person has there stays.

    Raises
    ------
    DataError
        If it cannot be told which row of the table is which.
    """
    written = set(layer.metadata.get(WRITTEN, ()))
    present = layer.features.reset_index(drop=True)
    is_taken = table is not None and table.layer is layer
    if is_taken and (not isinstance(layer, Labels) or _is_as_taken(table, written)):
        table_with_result = with_rows(table, dataset, result, written)
    else:
        table_with_result = with_features(present, dataset, result, written, layer.name)
    layer.features = table_with_result
    layer.metadata[WRITTEN] = [
        str(c) for c in table_with_result if c not in present or c in written
    ]


def with_features(
    present: pd.DataFrame,
    dataset: Dataset,
    result: EmbeddingResult,
    written: Collection[str] = (),
    name: str = "labels",
) -> pd.DataFrame:
    """Return the table of a Labels layer with position, cluster and pressure.

    Which label a row is about goes by the rule of
    :func:`~napari_embedding_game.data.images.label_column.match_rows`; an empty table
    gets a row for each object.

    Parameters
    ----------
    written : collection of str
        Columns of the present table that an earlier map was written into.

    Raises
    ------
    DataError
        If the rows of the dataset are no objects, one label is several rows, or
        the table does not tell which label a row is.
    """
    added = features(dataset, result, _labels_of(present, dataset, name))
    if "index" in present:
        added = added.drop(columns="index")  # it is the person's, or the same
    added = _told_apart(added, present, written)
    kept = present.drop(columns=[c for c in added if c in present])
    ours = [c for c in added if c != "index"]
    first = [added["index"]] if "index" in added else []
    return pd.concat([*first, kept.reset_index(drop=True), added[ours]], axis=1)


def _labels_of(
    present: pd.DataFrame, dataset: Dataset, name: str
) -> NDArray[np.integer]:
    """Return the label of each row; of an empty table, of each object."""
    objects = dataset.source_objects
    if objects is not None and not len(present):
        return objects.label_ids[objects.present]
    linked = dataset.provenance.get("linked")
    told = linked.get("column") if isinstance(linked, Mapping) else None
    column = told if told in present else label_column(present)
    largest = 0 if objects is None else int(objects.label_ids.max(initial=0))
    if column is not None or is_napari_table(present, largest):
        return label_ids(present, column)
    raise DataError(
        f"The table of '{name}' has {len(present):,} rows and no column that says "
        'which label a row is: add a column "label" to it, or save the map as .csv.'
    )


def _told_apart(
    added: pd.DataFrame, present: pd.DataFrame, written: Collection[str]
) -> pd.DataFrame:
    """Return our columns under names that no column of the person has."""
    names = {
        column: f"{KEY}_{column}"
        for column in added
        if column in present and column not in written and not is_of_a_map(column)
    }
    return added.rename(columns=names)


def _is_as_taken(table: Table, written: Collection[str]) -> bool:
    """Return whether the table still holds what was taken, in the same rows."""
    present, taken = table.layer.features, table.features
    same = [c for c in taken if not is_of_a_map(c) and c not in written]
    return set(same) <= set(present) and bool(taken[same].equals(present[same]))


def with_rows(
    table: Table,
    dataset: Dataset,
    result: EmbeddingResult,
    written: Collection[str] = (),
) -> pd.DataFrame:
    """Return the table of a layer with position, cluster and pressure of its rows.

    That of a Labels layer gets a column ``index``, too, which tells napari the label
    of each row; -1 where a row is no object.

    Raises
    ------
    DataError
        If it no longer holds what was taken: its rows may be others.
    """
    if not _is_as_taken(table, written):
        raise DataError(
            f"The table of '{table.layer.name}' was changed since it was taken, its "
            "rows may be others now: take it again, or save the map as .csv."
        )
    present = table.layer.features.reset_index(drop=True)
    added = _told_apart(features(dataset, result), present, written)
    kept = present.drop(columns=[c for c in added if c in present])
    objects = dataset.source_objects
    if objects is not None and "index" not in kept:
        ids = np.where(objects.present, objects.label_ids, -1)
        kept.insert(0, "index", ids)
    return pd.concat([kept, added], axis=1)


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


def clicked_row(linked: Linked, objects: Objects, event: Any) -> int | None:
    """Return the row of the object at an event of napari's mouse, None without one."""
    layer, world = linked.labels, np.array(event.position, dtype=float)
    value = layer.get_value(
        world,
        view_direction=event.view_direction,
        dims_displayed=list(event.dims_displayed),
        world=True,
    )
    label = value[1] if isinstance(value, tuple) else value
    if not label:
        return None
    return row_at(objects, int(label), np.asarray(layer.world_to_data(world)))


def go_to(
    viewer: napari.Viewer,
    labels: Labels,
    objects: Objects,
    *,
    moves_camera: bool = True,
) -> None:
    """Centre the camera on objects of a layer, in the slice of the first of them.

    Rows that are no object have no place; without any other the camera stays.  Without
    ``moves_camera`` the slice alone is shown.
    """
    objects = objects.take(objects.present)
    if not len(objects):
        return
    middle = np.asarray(labels.data_to_world(objects.centers[0]))
    if labels.ndim == 2:
        middle = np.asarray(labels.data_to_world(objects.centers.mean(axis=0)))
    for axis in range(labels.ndim - 2):
        place = viewer.dims.ndim - labels.ndim + axis
        viewer.dims.set_point(place, middle[axis])
    if moves_camera:
        camera_of(viewer).center = (0.0, *middle[-2:])
