"""Names that the search box searches, and what a chosen result does."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.search import Hit
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.inspector import search_box
from napari_embedding_game.ui.style.coloring import (
    COLUMN,
    choice_of_column,
    choice_of_value,
    metadata_columns,
)
from napari_embedding_game.ui.workspace import Workspace

MANY_NAMES = 200_000
"""Rows whose names are prepared in a thread of their own."""


def names_in(session: Session) -> dict[str, Sequence[str]]:
    """Return all that can be searched, by what it is called."""
    dataset = session.dataset
    if dataset is None:
        return {}
    names: dict[str, Sequence[str]] = {
        search_box.CLUSTER: [cluster.name for cluster in session.clusters.clusters]
    }
    return names | _names_of_data(dataset)


def are_many_names(session: Session) -> bool:
    """Return whether it takes long to prepare the names for a search."""
    dataset = session.dataset
    return dataset is not None and len(dataset.obs) > MANY_NAMES


_known: WeakKeyDictionary[Dataset, tuple[object, dict[str, Sequence[str]]]] = (
    WeakKeyDictionary()
)
"""By dataset: its metadata, of which each change makes another frame, and the names."""


def _names_of_data(dataset: Dataset) -> dict[str, Sequence[str]]:
    """Return what clusters do not change; the same lists while the data are the same.

    A million names of rows take longer to look at than anything else here.
    """
    if dataset not in _known or _known[dataset][0] is not dataset.obs:
        _known[dataset] = dataset.obs, _find_names(dataset)
    return _known[dataset][1]


def _find_names(dataset: Dataset) -> dict[str, Sequence[str]]:
    columns, word = metadata_columns(dataset), dataset.word
    values = dataset.profile_names if dataset.images is None else ()  # else pixels
    names: dict[str, Sequence[str]]
    if word == COLUMN:
        names = {COLUMN: [*columns, *values]}
    else:
        names = {word: values, COLUMN: columns}
    index = dataset.obs.index
    rows = index.tolist()
    # A million of them take a while to be asked one by one.
    is_text = index.inferred_type == "string"
    names[search_box.CELL] = rows if is_text else list(map(str, rows))
    return names


def show_search_result(workspace: Workspace, hit: Hit) -> None:
    """Select a cluster, reveal a cell, or colour by anything else."""
    session = workspace.session
    if hit.kind == search_box.CLUSTER:
        clusters = session.clusters.clusters
        session.selection.replace([c.id for c in clusters if c.name == hit.name])
    elif hit.kind == search_box.CELL:
        session.selection.select_points(np.array([hit.index]))
        workspace.reveal.emit(hit.index)
    elif session.dataset is not None:
        columns = metadata_columns(session.dataset)
        is_column = hit.kind == COLUMN and hit.index < len(columns)
        choice_of = choice_of_column if is_column else choice_of_value
        session.look.color_by = choice_of(hit.name, session.dataset)
