"""Write a map into the features table of a layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from napari.layers import Labels, Layer

from napari_embedding_game.data.columns import KEY, is_of_a_map
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.data.export.writers import features
from napari_embedding_game.data.images.join import label_column, numbers_of
from napari_embedding_game.ui.images.linked_layers import Table

WRITTEN = "napari-embedding-game columns"
"""Metadata of a layer: the columns of its table that a map was written into."""


def write_columns(
    layer: Layer, table: Table | None, dataset: Dataset, result: EmbeddingResult
) -> None:
    """Write position, cluster, pressure and measures into the table of a layer.

    Row by row into the table that was taken, else by label into that of a Labels
    layer, which gets a row for each object where it has none.  What the person has
    there stays.

    Raises
    ------
    DataError
        If it cannot be told which row of the table is which.
    """
    written = set(layer.metadata.get(WRITTEN, ()))
    present, objects = layer.features.reset_index(drop=True), dataset.source_objects
    if table is not None and table.layer is layer and _is_as_taken(table, written):
        added = features(dataset, result)
        if isinstance(layer, Labels) and objects is not None:
            # napari itself finds the row of an object by this column.
            added.insert(0, "index", np.where(objects.present, objects.label_ids, -1))
    elif isinstance(layer, Labels):
        added = features(dataset, result, _labels_of(present, dataset, layer.name))
    else:
        raise DataError(
            f"The table of '{layer.name}' was changed since it was taken, its rows may "
            "be others now: take it again, or save the map as .csv."
        )
    if "index" in present:
        added = added.drop(
            columns="index", errors="ignore"
        )  # the person's, or the same
    names = {
        column: f"{KEY}_{column}"
        for column in added
        if column in present and column not in written and not is_of_a_map(column)
    }
    added = added.rename(columns=names)
    kept = present.drop(columns=[c for c in added if c in present])
    first = [added.pop("index")] if "index" in added else []
    whole = pd.concat([*first, kept, added], axis=1)
    layer.features = whole
    layer.metadata[WRITTEN] = [
        str(c) for c in whole if c not in present or c in written
    ]


def _is_as_taken(table: Table, written: set[str]) -> bool:
    """Return whether the table still holds what was taken, in the same rows."""
    present, taken = table.layer.features, table.features
    same = [c for c in taken if not is_of_a_map(c) and c not in written]
    return set(same) <= set(present) and bool(taken[same].equals(present[same]))


def _labels_of(present: pd.DataFrame, dataset: Dataset, name: str) -> np.ndarray:
    """Return the label of each row; of an empty table, of each object."""
    objects = dataset.source_objects
    if objects is not None and not len(present):
        return objects.label_ids[objects.present]
    linked = dataset.provenance.get("linked")
    column = linked.get("column") if isinstance(linked, Mapping) else None
    column = column if column in present else label_column(present)
    ids = None if column is None else numbers_of(present[column])
    if ids is None:
        raise DataError(
            f"The table of '{name}' has {len(present):,} rows and no column that says "
            'which label a row is: add a column "label" to it, or save the map as .csv.'
        )
    return np.maximum(ids, 0)
