"""What a run was started with and steered by, for the record in the file."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from napari_embedding_game.core.types import GameSettings, Snapshot
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.result import EmbeddingResult
from napari_embedding_game.session.clustering import Clustering
from napari_embedding_game.session.codec import dumps
from napari_embedding_game.session.record import RunRecord
from napari_embedding_game.session.settings import paper_lambda


def changed(before: GameSettings, after: GameSettings) -> dict[str, Any]:
    """Return the settings that differ, with their new values."""
    old, new = asdict(before), asdict(after)
    return {name: value for name, value in new.items() if value != old[name]}


def parameters(
    dataset: Dataset, played: RunRecord, snapshot: Snapshot
) -> dict[str, Any]:
    """Return every setting of a run, flat, by the engine's names.

    ``steering`` is a JSON list of [iteration, {setting: value}], in the order
    of the changes; the other values are those in force at the end.  ``record`` is
    the JSON of the :class:`~.record.RunRecord`, which is enough for a replay.
    """
    game = played.steered[-1].game if played.steered else played.game
    return {
        **asdict(played.start),
        **asdict(game),
        "repulsion": paper_lambda(game.strength, len(snapshot.embedding)),
        "steering": json.dumps(_steering(played)),
        "record": dumps(played).decode(),
        "n_iter": snapshot.iteration,
        "space": dataset.space,
    }


def _steering(played: RunRecord) -> list[tuple[int, dict[str, Any]]]:
    before, steering = played.game, []
    for step in played.steered:
        steering.append((step.iteration, changed(before, step.game)))
        before = step.game
    return steering


def result(
    dataset: Dataset, played: RunRecord, snapshot: Snapshot, clustering: Clustering
) -> EmbeddingResult:
    """Return the snapshot and its clusters as a result that a writer can store."""
    clusters = clustering.clusters
    return EmbeddingResult(
        embedding=snapshot.embedding,
        landmarks=snapshot.landmarks,
        labels=snapshot.labels,
        pressure=snapshot.pressure,
        energy=snapshot.energy,
        parameters=parameters(dataset, played, snapshot),
        clusters=clustering.labels,
        cluster_names={c.id: c.name for c in clusters},
        cluster_colors={c.id: c.color for c in clusters if c.color},
        cluster_notes={c.id: c.note for c in clusters if c.note},
    )
