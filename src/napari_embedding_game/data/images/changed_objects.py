"""Which objects of a label image are others than they were when it was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import listed
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.label_objects import Objects, find_objects_in_time


@dataclass(frozen=True, eq=False)
class Changes:
    """Labels of the objects that differ; of a series a label may occur again."""

    changed: NDArray[np.int64]
    """Of another box or number of pixels."""
    gone: NDArray[np.int64]
    new: NDArray[np.int64]

    def told(self) -> str:
        """Return what differs, as "1 is gone (label 7)"; "" where nothing does."""
        parts = (
            (self.changed, "has another shape or place", "have another shape or place"),
            (self.gone, "is gone", "are gone"),
            (self.new, "is new", "are new"),
        )
        return ", ".join(_told(*part) for part in parts if len(part[0]))


def changes_of(labels: Any, known: Objects, *, are_all: bool) -> Changes:
    """Compare all objects of a label image with those that were measured.

    Parameters
    ----------
    labels : array
        Of as many axes as the objects have.
    known : Objects
    are_all : bool
        Whether the image had no others, so that others are new.
    """
    known = known.take(known.present)
    first, last = np.split(known.boxes, 2, axis=1)
    # Axes along which no object reaches tell pictures apart, which have own labels.
    is_flat = (last - first == 1).all(axis=0)[: known.ndim - 2]
    n_leading = int(np.argmin([*is_flat, False]))
    try:
        found = find_objects_in_time(labels, n_leading)
    except DataError:
        found = known.take(np.empty(0, np.intp))  # only background
    places = _keys(found, n_leading).get_indexer(_keys(known, n_leading))
    is_there = places >= 0
    before, now = known.take(is_there), found.take(places[is_there])
    differs = (before.boxes != now.boxes).any(axis=1)
    if before.areas is not None and now.areas is not None:
        differs |= before.areas != now.areas
    is_new = np.ones(len(found), bool)
    is_new[places[is_there]] = False
    return Changes(
        before.label_ids[differs],
        known.label_ids[~is_there],
        found.label_ids[is_new & are_all],
    )


def _keys(objects: Objects, n_leading: int) -> pd.MultiIndex:
    keys = np.column_stack([objects.boxes[:, :n_leading], objects.label_ids])
    return pd.MultiIndex.from_arrays(list(keys.T))


def _told(labels: NDArray[np.int64], one: str, several: str) -> str:
    names = listed([str(label) for label in labels.tolist()], 3)
    if len(labels) == 1:
        return f"1 {one} (label {names})"
    return f"{len(labels):,} {several} (labels {names})"
