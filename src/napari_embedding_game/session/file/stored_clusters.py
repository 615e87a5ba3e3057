"""The clusters of a map as a session file stores them, and as former versions did.

A file holds the map's own statements: those of other maps are joined again when all
maps are read.  Up to version 4 a file held the annotation that each map showed, with
that of its child maps copied into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.session.clusters.annotation import NONE, Annotation
from napari_embedding_game.session.clusters.state import (
    UNDECIDED,
    ClusterState,
    Edit,
)
from napari_embedding_game.session.clusters.statements import (
    REMOVAL,
    MapNames,
    Statements,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class _StoredNames:
    """What was said on a map of n rows."""

    own: Statements | None = None
    """The map's own statements; None up to version 4."""
    ids: Mapping[str, int] = field(default_factory=dict)
    """Ids of groups, by key."""
    annotation: Annotation | None = None
    """(n,) the annotation on show; None from version 5 on."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _StoredEdit(_StoredNames):
    """What a step of undo restores."""

    label: str


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredClusters(_StoredNames):
    """Cluster numbers, own statements and steps of undo of a map of n rows."""

    cluster: NDArray[np.int32]
    n_clusters: int | None = UNDECIDED
    n_statements: int = 0
    done: tuple[_StoredEdit, ...] = ()
    undone: tuple[_StoredEdit, ...] = ()


def to_stored_clusters(
    state: ClusterState, max_undo_bytes: int, is_shared: bool
) -> StoredClusters:
    """Convert a state of the clusters to the form in which a file stores it.

    ``max_undo_bytes``: of the arrays of undo steps. ``is_shared``: whether undo steps,
    and names that do not hold any more, are left out.
    """
    limited = state.limit_undo_history(max_undo_bytes)
    own = state.names.own.without_unused_keys()
    if is_shared:
        limited = replace(limited, done=(), undone=())
        own = state.names.own_without_former_texts

    def to_stored_edit(edit: Edit) -> _StoredEdit:
        return _StoredEdit(label=edit.label, own=edit.own, ids=edit.ids)

    return StoredClusters(
        cluster=state.cluster,
        n_clusters=state.n_clusters,
        own=own,
        ids=state.names.ids,
        n_statements=state.n_statements,
        done=tuple(map(to_stored_edit, limited.done)),
        undone=tuple(map(to_stored_edit, limited.undone)),
    )


def to_cluster_states(
    stored: Sequence[tuple[StoredClusters, NDArray[np.bool_]]],
) -> list[ClusterState]:
    """Convert the stored clusters of all maps, without the statements of other maps.

    ``stored``: clusters and ``kept`` of each map, parents first. The maps of former
    versions get later statements than their children, so that each map shows what it
    showed.

    Raises ValueError or LookupError: parts are missing or do not fit together.
    """
    numbers, states = count(1), list[ClusterState]()
    for one, kept in reversed(stored):
        undone, done = (
            tuple(Edit(x.label, *_to_statements(x, kept, numbers)) for x in steps)
            for steps in (one.undone, one.done)
        )
        own, ids = _to_statements(one, kept, numbers)
        columns = own, *(edit.own for edit in (*undone, *done))
        used = [number for column in columns for number in column.keys]
        state = ClusterState(
            cluster=one.cluster,
            names=MapNames(kept, own, Statements.make_empty(len(kept)), ids),
            n_clusters=one.n_clusters,
            done=done,
            undone=undone,
            n_statements=max([one.n_statements, *used]),
        )
        states.append(state)
    return states[::-1]


def _to_statements(
    stored: _StoredNames, kept: NDArray[np.bool_], numbers: Iterator[int]
) -> tuple[Statements, Mapping[str, int]]:
    """Return a map's own statements and the ids of its groups.

    ``numbers``: yields numbers of statements, for files of former versions.
    """
    if stored.own is not None:
        return stored.own, stored.ids
    if stored.annotation is None:
        raise ValueError("no annotation")
    return _convert_annotation(stored.annotation, kept, numbers)


def _convert_annotation(
    annotation: Annotation, kept: NDArray[np.bool_], numbers: Iterator[int]
) -> tuple[Statements, Mapping[str, int]]:
    """Return an annotation as statements on all rows of a map, and the groups' ids.

    Rows in no group get a removal: a child map may have a name for them.

    ``numbers``: yields numbers of statements.
    """
    said, keys = np.zeros(len(kept), np.int32), dict[int, str]()
    codes, indices = np.unique(annotation.codes, return_inverse=True)
    number_by_code = [next(numbers) for _ in codes]
    said[kept] = np.array(number_by_code, np.int32)[indices]
    groups = {}
    for code, number in zip(codes.tolist(), number_by_code, strict=True):
        keys[number] = REMOVAL
        if code != NONE:
            group = replace(annotation.groups[code], edited=number)
            keys[number], groups[group.key] = group.key, group
    ids = {group.key: code for code, group in annotation.groups.items()}
    return Statements(said, keys, groups), ids
