"""Check that the parts of a session file fit together; their types are right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import Settings, resolve
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.clusters.annotation import Annotation, is_color
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.session.file.codec import DamageError
from napari_embedding_game.session.file.rows import ROWS
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.moment import Moment
from napari_embedding_game.session.run import replay
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.timeline import TimelineState

SHAPES = {
    "Snapshot": {
        "embedding": "nd",
        "landmarks": "ld",
        "labels": "n",
        "pressure": "n",
        "stretch": "n",
        "isolation": "n",
        "neighbors": "nk",
    },
    "WarmStart": {"embedding": "nd", "landmarks": "ld"},
    "Hold": {"rows": "m", "places": "md"},
    "Spring": {"rows": "m"},
    "MergeTree": {"born": "l", "leader": "l", "levels": "sl"},
    "SavedMap": {"drawn": "n"},
    "ShownComparison": {"inside": "n", "outside": "n"},
    "PlacedOn": {"placed": "nd", "cells": "md", "codes": "m"},
    "Rows": {"kept": "a", "background": "a"},
    "Objects": {"label_ids": "a", "areas": "a"},
    "PredictedLabels": dict.fromkeys(
        ("codes", "confidence", "likeness", "distance", "unlike"), "n"
    ),
    "Prepared": {"kept": "a", "X": "pc", "doublet_scores": "a"},
    "Projection": {"mean": "g", "std": "g", "loadings": "gc", "offset": "c"},
    "ClusterState": {"cluster": "n"},
    "Annotation": {"codes": "m"},
}
"""By class and field a letter for each axis: n points, a rows of the source, d
coordinates; what else has the same letter in a value has the same size."""
BOUNDS = {
    "Snapshot": {"labels": (0, "l"), "neighbors": (-1, "n")},
    "Hold": {"rows": (0, "n")},
    "Spring": {"rows": (0, "n")},
    "MergeTree": {"leader": (0, "l"), "levels": (0, "l")},
    "ClusterState": {"cluster": (0, "i")},
    "Annotation": {"codes": (-1, "i")},
}
"""By class and field the least number, and the letter that all are below."""
NOT_NEGATIVE = {"stretch", "isolation"}
FINITE = {"embedding", "landmarks", "places", "placed", "cells", "X"}
FINITE |= {"mean", "std", "loadings", "offset"}
MOST_IDS = 1 << 22
"""Above the ids of clusters."""


def check_session(session: SavedSession) -> None:
    """Raise DamageError unless the maps are one tree, parents first, and each is whole.

    Raises
    ------
    DamageError
        It says what does not fit.
    """
    seen: set[str] = set()
    for one in session.maps:
        _expect(one.parent is None if not seen else one.parent in seen, "its maps")
        _expect(one.key not in seen, "its maps")
        seen.add(one.key)
        _check_map(one)
    _expect(session.current in seen, "the map that was shown is missing")


def _check_map(one: SavedMap) -> None:
    dataset, limits = one.dataset, one.look.limits
    sizes = {"n": len(dataset.obs), "a": dataset.n_source_rows, "i": MOST_IDS}
    rows = dataset.known[ROWS]
    _check_arrays(replace(one, dataset=rows), sizes, "its map")
    _expect(bool(np.isfinite(dataset.X).all()), "its numbers")
    _expect(len(rows.source_names or rows.kept) == len(rows.kept), "its names")
    if rows.prepared is not None:
        _expect(rows.prepared.X.shape[1] > 0, "its recipe")
    n_clusters, said = one.clusters.n_clusters, one.clusters.annotation
    _expect(n_clusters is None or n_clusters >= 0, "its clusters")
    _expect(said.codes.shape == (len(dataset.obs),), "its annotation")
    for each in filter(None, (said, one.overlaid)):
        _check_annotation(each)
    _expect(limits is None or limits[0] < limits[1], "its colours")
    for examples in dataset.taught.values():
        found = [row for each in examples.values() for row in each]
        is_right = len(set(found)) == len(found)
        is_right &= all(0 <= row < dataset.n_source_rows for row in found)
        _expect(is_right, "its examples")
    if (on := one.placed_on) is not None:
        is_right = on.codes.min(initial=-1) >= -1 and len(on.cells) > 0
        is_right &= bool(on.codes.max(initial=-1) < len(on.names))
        _expect(is_right, "the map of its reference")
    for moment in (one, *(one.timeline.marks if one.timeline else ())):
        _check_moment(moment)
    if one.timeline is not None:
        _check_timeline(one.timeline)


def _check_arrays(value: Any, sizes: Mapping[str, int], where: str) -> None:
    """Check sizes, bounds and numbers of all arrays in a value of dataclasses."""
    if isinstance(value, Merging):
        n = len(value.tree.leader)
        _expect(value.graph.shape == (n, n), f"{where}.graph")
        _check_arrays(value.tree, {**sizes, "l": n}, f"{where}.tree")
    elif isinstance(value, tuple) and value and is_dataclass(value[0]):
        for number, part in enumerate(value):
            _check_arrays(part, sizes, f"{where}[{number}]")
    elif is_dataclass(value):
        kind, known = type(value).__name__, dict(sizes)
        kind = "SavedMap" if isinstance(value, SavedMap) else kind
        for name, letters in SHAPES.get(kind, {}).items():
            array, place = getattr(value, name), f"{where}.{name}"
            if array is None:
                continue
            _expect(array.ndim == len(letters), place)
            for letter, size in zip(letters, array.shape, strict=True):
                _expect(known.setdefault(letter, size) == size, place)
            if name in FINITE:
                _expect(bool(np.isfinite(array).all()), place)
            if name in NOT_NEGATIVE:
                _expect(bool((array >= 0).all()), place)
            if array.size and name in BOUNDS.get(kind, {}):
                low, below = BOUNDS[kind][name]
                is_within = low <= array.min() and array.max() < known[below]
                _expect(bool(is_within), place)
        for part in fields(value):
            _check_arrays(getattr(value, part.name), sizes, f"{where}.{part.name}")


def _check_moment(one: Moment) -> None:
    """Check the settings, the run and the merge tree of a moment, and what fits."""
    _check_settings(one.settings)
    shot, record, merging = one.snapshot, one.record, one.merging
    _expect(record is None or shot is not None, "its run")
    if record is not None:
        _check_record(record)
    if shot is not None:
        _expect(shot.embedding.shape[1] in (1, 2, 3), "its layout")
        names = {each.name for each in fields(Settings)}
        _expect(names >= set(shot.remedy), "its remedy")
        try:
            _check_settings(replace(one.settings, **shot.remedy))
        except (DamageError, TypeError) as error:
            raise DamageError("its remedy") from error
    if merging is not None:
        tree, n = merging.tree, 0 if shot is None else len(shot.landmarks)
        is_right = len(tree.born) == n and tree.born.min(initial=0) >= 0
        _expect(is_right and tree.born.max(initial=0) <= n, "its merged clusters")
        # Up the tree one arrives: a leader was there before those that it leads.
        led = tree.born > 1
        arrives = bool((tree.born[tree.leader[led]] < tree.born[led]).all())
        _expect(arrives, "its merged clusters")
    _expect(all(np.isfinite(energy) for _, energy in one.energies), "its energies")


def _check_settings(settings: Settings) -> None:
    """Ask the engine whether a run of enough rows can have these settings."""
    try:
        resolve(settings).validate()
    except InputError as error:
        raise DamageError(
            "settings that no run can have, or of a later version, for which "
            f"napari-embedding-game has to be updated: {error}"
        ) from error


def _check_record(record: RunRecord) -> None:
    for settings in (record.settings, *(step.settings for step in record.steered)):
        _check_settings(settings)
    try:
        replay.check(record)
    except DataError as error:
        raise DamageError(str(error)) from error
    d, warm = record.settings.n_components, record.warm_start
    if warm is not None:
        is_right = record.is_branch and warm.iterations_left >= 0
        _expect(is_right and warm.embedding.shape[1] == d, "its branch")
    for each in record.forced:
        forces = each.forces
        places = [one.place for one in forces.springs]
        places += [one.place for one in forces.landmarks]
        places += [place for edit in forces.edits for place in edit.added]
        held = [one.places.shape[1] for one in forces.holds] + list(map(len, places))
        _expect(all(one == d for one in held), "its moves by hand")


def _check_annotation(one: Annotation) -> None:
    is_right = set(np.unique(one.codes).tolist()) - {-1} == one.groups.keys()
    _expect(is_right, "its annotation")
    names = [group.name for group in one.groups.values()]
    _expect(len({"", *names}) == len(names) + 1, "its names")
    colors = [group.color for group in one.groups.values()]
    _expect(all(not color or is_color(color) for color in colors), "its colours")


def _check_timeline(timeline: TimelineState) -> None:
    numbers = [mark.number for mark in timeline.marks]
    is_right = numbers == sorted(set(numbers))
    is_right &= all(1 <= number <= timeline.n_made for number in numbers)
    is_right &= timeline.branch >= 0 <= timeline.n_thinned
    shown = (timeline.head, timeline.shown)
    is_right &= all(number is None or number in numbers for number in shown)
    earlier: set[int | None] = {None}
    for mark in timeline.marks:
        is_right &= mark.parent in earlier
        earlier.add(mark.number)
    _expect(is_right, "its timeline")


def _expect(is_so: bool, what: str) -> None:
    if not is_so:
        raise DamageError(what)
