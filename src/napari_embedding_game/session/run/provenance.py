"""Parameters and steering of a run, as they are written into result files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.session.clusters.clustering import Clustering
from napari_embedding_game.session.run.record import RunRecord


def changed(before: Settings, after: Settings) -> dict[str, Any]:
    """Return the settings that differ, with their new values, by their names."""
    old, new = asdict(before), asdict(after)
    return {name: value for name, value in new.items() if value != old[name]}


def parameters(
    dataset: Dataset, played: RunRecord, snapshot: Snapshot
) -> dict[str, Any]:
    """Return every setting of a run, flat, by the names of the estimator's.

    ``steering`` is a JSON list of [iteration, {setting: value}], in the order
    of the changes; the other values are those in force at the end.  ``record`` is
    the JSON of the :class:`~.record.RunRecord`, which is enough for a replay of a run
    that did not go on from another map and was not steered by hand.
    """
    return {
        **asdict(played.last),
        "steering": json.dumps(steps(played)),
        "record": played.as_json(),
        "steered_by_hand": bool(played.forced),
        "n_iter": snapshot.iteration,
        "interrupted": not snapshot.finished,
        "space": dataset.space,
    }


def steps(played: RunRecord) -> list[tuple[int, dict[str, Any]]]:
    """Return what changed at which iteration."""
    before, found = played.settings, []
    for step in played.steered:
        found.append((step.iteration, changed(before, step.settings)))
        before = step.settings
    return found


def result(
    dataset: Dataset, played: RunRecord, snapshot: Snapshot, clustering: Clustering
) -> EmbeddingResult:
    """Return the snapshot and its clusters as a result that a writer can store."""
    settings = parameters(dataset, played, snapshot)
    return result_of(snapshot, settings, clustering)


def result_of(
    snapshot: Snapshot, parameters: Mapping[str, Any], clustering: Clustering
) -> EmbeddingResult:
    """Return the snapshot as a result, with what is known of its clusters."""
    clusters = clustering.clusters
    return EmbeddingResult(
        embedding=snapshot.embedding,
        landmarks=snapshot.landmarks,
        labels=snapshot.labels,
        pressure=snapshot.pressure,
        stretch=snapshot.stretch,
        isolation=snapshot.isolation,
        energy=snapshot.energy,
        map_hash=snapshot.map_hash,
        parameters=parameters,
        clusters=clustering.labels,
        cluster_names={c.id: c.name for c in clusters},
        cluster_colors={c.id: c.color for c in clusters if c.color},
        cluster_notes={c.id: c.note for c in clusters if c.note},
    )
