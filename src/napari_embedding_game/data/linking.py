"""Which object of a label image each row of a table is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .dataset import Dataset
from .errors import DataError
from .objects import Objects, find_objects

# Columns under which labels are usually kept; napari's own is "index".
_USUAL = ("label", "index", "label_id", "labels", "instance_id", "object_id")


def link(dataset: Dataset, labels: Any, column: str | None = None) -> Dataset:
    """Return the dataset with the label and bounding box of each row.

    Parameters
    ----------
    dataset : Dataset
    labels : array of integers
        The label image that was measured.
    column : str, optional
        Column of ``obs`` with the label of each row.  By default one of the usual
        names; without such a column, rows are taken in the order of the labels if
        there are as many.

    Raises
    ------
    DataError
        If a row has a label that the image does not have, or labels are unknown.
    """
    found = find_objects(np.asarray(labels))
    ids = _label_ids(dataset, column)
    if ids is None and len(found) == dataset.n_source_rows:
        return replace(dataset, source_objects=found)
    if ids is None:
        raise DataError(
            f"{dataset.name} has {dataset.n_source_rows:,} rows and no column of "
            f"labels, and the image has {len(found):,} objects: add a column called "
            '"label" that says which object a row is.'
        )
    places = np.searchsorted(found.label_ids, ids).clip(max=len(found) - 1)
    unknown = ids[found.label_ids[places] != ids]
    if len(unknown):
        raise DataError(
            f"{dataset.name} has {len(unknown):,} rows whose label the image does not "
            f"have, the first {unknown[0]}: choose the labels that were measured."
        )
    return replace(dataset, source_objects=found.take(places))


def label_column(obs: pd.DataFrame) -> str | None:
    """Name of the column that holds labels, if there is one."""
    return next((name for name in _USUAL if name in obs and _whole(obs[name])), None)


def shows(labels: Any, objects: Objects, n_checked: int = 30) -> bool:
    """Return whether a label image is the one that the objects were found in.

    Looked at are the shape and, of some of the objects, all sides of the box.
    """
    if labels.ndim != objects.ndim or not len(objects):
        return False
    if (objects.boxes[:, objects.ndim :] > np.array(labels.shape)).any():
        return False
    rows = np.linspace(0, len(objects) - 1, min(n_checked, len(objects))).astype(int)
    return all(_fills_box(labels, objects, int(row)) for row in rows)


def _fills_box(labels: Any, objects: Objects, row: int) -> bool:
    mask = np.asarray(labels[objects.slices(row)]) == objects.label_ids[row]
    sides = [(axis, end) for axis in range(mask.ndim) for end in (0, -1)]
    return bool(mask.size) and all(mask.take(end, axis=a).any() for a, end in sides)


def _label_ids(dataset: Dataset, column: str | None) -> NDArray[np.int64] | None:
    """(n_source_rows,) labels, or None where no column holds them."""
    obs = dataset.source_obs
    if obs is None:
        return None
    name = column or label_column(obs)
    if name is None:
        return None
    if name not in obs or not _whole(obs[name]):
        raise DataError(
            f'{dataset.name} has no column "{name}" of whole numbers: choose the '
            "column that says which object a row is."
        )
    return np.asarray(obs[name].astype(np.int64))


def _whole(column: pd.Series) -> bool:
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    return bool(numbers.notna().all() and (numbers % 1 == 0).all())
