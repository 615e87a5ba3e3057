"""Check that the values of a session file fit together, after their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import fill_affinity
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.session.clusters.state import ClusterState
from napari_embedding_game.session.clusters.statements import REMOVAL, UNSAID
from napari_embedding_game.session.file.codec import DamageError
from napari_embedding_game.session.file.rows import ROWS
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.run import replay
from napari_embedding_game.session.run.record import Moment

SHAPES = {
    "Snapshot": {
        **{"embedding": "nd", "landmarks": "ld", "neighbors": "nk"},
        **dict.fromkeys(("labels", "pressure", "stretch", "isolation"), "n"),
    },
    "WarmStart": {"embedding": "nd", "landmarks": "ld"},
    "Hold": {"rows": "m", "places": "md"},
    "Spring": {"rows": "m"},
    "MergeTree": {"born": "l", "leader": "l", "levels": "sl"},
    "SavedMap": {"drawn": "n"},
    "ShownComparison": {"inside": "n", "outside": "n"},
    "PlacedOn": {"placed": "nd", "cells": "md"},
    "StoredRows": {"kept": "a", "X": "nf", "sparse_X": "nf"},
    "Objects": {"label_ids": "a", "areas": "a"},
    "Tissue": {"positions": "ad"},
    "RecipeResult": {"kept": "a", "X": "pc", "doublet_scores": "a"},
    "Projection": {"mean": "g", "std": "g", "loadings": "gc", "offset": "c"},
    "ClusterState": {"cluster": "n"},
    "MapNames": {"kept": "a"},
    "Statements": {"numbers": "a"},
}
"""A letter for each axis of an array, by class and field: n points, a source rows, d
coordinates.  Axes of the same letter in one value must have the same size."""
BOUNDS = {
    "Snapshot": {"labels": (0, "l"), "neighbors": (-1, "n")},
    "Hold": {"rows": (0, "n")},
    "Spring": {"rows": (0, "n")},
    "MergeTree": {"leader": (0, "l"), "levels": (0, "l")},
    "ClusterState": {"cluster": (0, "i")},
    "Statements": {"numbers": (0, "i")},
}
"""The smallest allowed number of an array, and the letter of the size that all numbers
are below, by class and field."""
NOT_NEGATIVE = {"stretch", "isolation"}
FINITE = {"embedding", "landmarks", "places", "placed", "cells", "X"}
FINITE |= {"mean", "std", "loadings", "offset"}
MAX_IDS = 1 << 22
"""Ids of clusters must be below this number."""


def validate_session(session: SavedSession) -> None:
    """Raise DamageError unless the maps are a tree, parents first, of valid maps.

    Only errors are checked that could crash the program, hang it, or stay unnoticed.
    """
    keys: set[str | None] = set()
    for saved in session.maps:
        _raise_unless(
            saved.parent in (keys or {None}) and saved.key not in keys, "its maps"
        )
        keys.add(saved.key)
        _validate_map(saved)
    _raise_unless(session.current in keys, "the map that was shown is missing")


def _validate_map(saved: SavedMap) -> None:
    """Raise DamageError unless the arrays, names and annotations of a map are valid.

    The moments of its timeline are checked, too.
    """
    dataset = saved.dataset
    n, n_source, rows = len(dataset.obs), dataset.n_source_rows, dataset.known[ROWS]
    sizes = {"n": n, "a": n_source, "i": MAX_IDS}
    _validate_arrays(replace(saved, dataset=rows), sizes, "its map")
    _raise_unless(len(rows.source_names or rows.kept) == n_source, "its names")
    _raise_unless(rows.prepared is None or rows.prepared.X.shape[1] > 0, "its recipe")
    figures = (*rows.left_out.values(), *rows.quality.values())
    _raise_unless(all(x.shape == (n_source,) for x in figures), "its rows left out")
    sparse = () if rows.sparse_X is None else rows.sparse_X.data
    _raise_unless(bool(np.isfinite(sparse).all()), "its numbers")
    _raise_unless((saved.clusters.n_clusters or 0) >= 0, "its clusters")
    _validate_names(saved.clusters)
    for added in dataset.added.values():
        examples = [row for each in added.examples.values() for row in each]
        _raise_unless(all(0 <= row < n_source for row in examples), "its examples")
    for moment in (saved, *saved.timeline.marks):
        _validate_moment(moment)


def _validate_names(clusters: ClusterState) -> None:
    """Raise DamageError unless all statements are known, and name known groups."""
    names, edits = clusters.names, (*clusters.done, *clusters.undone)
    _raise_unless(0 <= clusters.n_statements < MAX_IDS, "its annotation")
    for own, ids in ((names.own, names.ids), *((x.own, x.ids) for x in edits)):
        used = set(np.flatnonzero(np.bincount(own.numbers)).tolist()) - {UNSAID}
        is_right = used <= own.keys.keys() and all(0 < n < MAX_IDS for n in own.keys)
        is_right &= set(own.keys.values()) - {REMOVAL} <= own.groups.keys()
        is_right &= all(key == group.key for key, group in own.groups.items())
        is_right &= len(set(ids.values())) == len(ids)
        is_right &= all(0 <= number < MAX_IDS for number in ids.values())
        _raise_unless(is_right, "its annotation")


def _validate_arrays(value: Any, sizes: Mapping[str, int], where: str) -> None:
    """Raise DamageError if an array in nested dataclasses has a wrong size or number.

    Arrays are checked by ``SHAPES``, ``BOUNDS``, ``NOT_NEGATIVE`` and ``FINITE``; a
    missing array passes.

    ``sizes``: size of each letter of ``SHAPES`` so far. ``where``: path of the value,
    for the message.
    """
    if isinstance(value, LandmarkMerge):
        n = len(value.tree.leader)
        _raise_unless(value.graph.shape == (n, n), f"{where}.graph")
        _validate_arrays(value.tree, {**sizes, "l": n}, f"{where}.tree")
    elif isinstance(value, tuple) and value and is_dataclass(value[0]):
        for number, part in enumerate(value):
            _validate_arrays(part, sizes, f"{where}[{number}]")
    elif is_dataclass(value):
        kind, lengths = type(value).__name__, dict(sizes)
        kind = "SavedMap" if isinstance(value, SavedMap) else kind
        for name, letters in SHAPES.get(kind, {}).items():
            array, label = getattr(value, name), f"{where}.{name}"
            if array is None:
                continue
            _raise_unless(array.ndim == len(letters), label)
            for letter, size in zip(letters, array.shape, strict=True):
                _raise_unless(lengths.setdefault(letter, size) == size, label)
            if name in FINITE:
                _raise_unless(bool(np.isfinite(array).all()), label)
            if name in NOT_NEGATIVE:
                _raise_unless(bool((array >= 0).all()), label)
            if array.size and name in BOUNDS.get(kind, {}):
                low, below = BOUNDS[kind][name]
                is_within = low <= array.min() and array.max() < lengths[below]
                _raise_unless(bool(is_within), label)
        for part in fields(value):
            _validate_arrays(getattr(value, part.name), sizes, f"{where}.{part.name}")


def _validate_moment(moment: Moment) -> None:
    """Raise DamageError unless a moment's settings, record and merge tree are valid.

    Checked are also that a run has a layout, of 1 to 3 dimensions, and that a warm
    start fits its settings.
    """
    snapshot, record, merging = moment.snapshot, moment.record, moment.merging
    settings = [moment.settings]
    if record is not None:
        settings += [record.settings, *(step.settings for step in record.steered)]
    try:
        for each in settings:  # of a run of enough rows
            fill_affinity(each).validate()
        if record is not None:
            replay.validate_event_order(record)
    except InputError as error:
        raise DamageError(
            "settings that no run can have, or of a later version, for which "
            f"napari-embedding-game has to be updated: {error}"
        ) from error
    except DataError as error:
        raise DamageError(str(error)) from error
    _raise_unless(record is None or snapshot is not None, "its run")
    _raise_unless(
        snapshot is None or snapshot.embedding.shape[1] in (1, 2, 3), "its layout"
    )
    if record is not None and (warm := record.warm_start) is not None:
        is_right = record.is_branch and warm.iterations_left >= 0
        is_right &= warm.embedding.shape[1] == record.settings.n_components
        _raise_unless(is_right, "its branch")
    if merging is not None:
        tree, n = merging.tree, 0 if snapshot is None else len(snapshot.landmarks)
        is_right = len(tree.born) == n and tree.born.min(initial=0) >= 0
        _raise_unless(is_right and tree.born.max(initial=0) <= n, "its merged clusters")
        # Up the tree one arrives: a leader was there before those that it leads.
        led = tree.born > 1
        arrives = bool((tree.born[tree.leader[led]] < tree.born[led]).all())
        _raise_unless(arrives, "its merged clusters")


def _raise_unless(is_sound: bool, part: str) -> None:
    """Raise DamageError unless a part of the file is sound; ``part`` names it."""
    if not is_sound:
        raise DamageError(part)
