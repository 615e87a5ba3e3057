"""Replay a recorded run: the same layout, bit for bit.

With the same versions the result is identical to the last bit on any processor and any
number of threads: ``docs/reproducibility.md`` lists known exceptions.  A GPU adds
numbers in any order; the game then makes another map, of the same quality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.live_run import Run
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot, Steer
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.data.clustering import make_clustering_from_labels
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.session.run import engine
from napari_embedding_game.session.run.record import RunRecord, flatten_parameters


def replay_frames(
    X: Any, record: RunRecord, n_frames: int | None = None, second_X: Any = None
) -> Iterator[Snapshot]:
    """Replay a record on the rows of ``X``, and yield snapshots, the last at the end.

    A snapshot is yielded wherever the run was steered, and at about ``n_frames`` equal
    steps; None for no further snapshots.

    ``X`` (n, D) array or sparse matrix, and ``second_X`` (n, E), None without a second
    space: the same rows as in the recorded run.

    Raises DataError: the record is damaged (steered after its end or out of order), or
    the run continued from a map that the record does not hold. Raises InputError: a
    setting is out of its range for these data.
    """
    every = None if n_frames is None else max(1, record.n_iter // n_frames)
    yield from iter_replay_frames(*prepare_replay(X, record, second_X), record, every)


def prepare_replay(
    X: Any, record: RunRecord, second_X: Any = None
) -> tuple[Any, NDArray[np.float32]]:
    """Return the edges of a recorded run and its start layout, (n, d).

    Raises DataError: the record is damaged, the run continued from a map that the
    record does not hold, or its second space is missing.
    """
    validate_event_order(record)
    if record.settings.second_space and second_X is None:
        raise DataError(
            f"This run mixes two spaces: give the second, "
            f"{record.settings.second_space}, as second_rep."
        )
    if record.is_branch and record.warm_start is None:
        raise DataError(
            "This run went on from another map, which is not kept here: replay the "
            "session file that it was saved in."
        )
    settings = record.settings
    with COMPUTING:
        graph = engine.find_neighbors(X, settings)
        return engine.make_edges_and_layout(
            graph, X, settings, record.warm_start, second_X
        )


def iter_replay_frames(
    edges: Any, layout: NDArray[np.float32], record: RunRecord, every: int | None = None
) -> Iterator[Snapshot]:
    """Yield the snapshots of :func:`replay_frames` from given edges and start layout.

    ``every``: iterations between two snapshots; None for those of steering only.

    Raises DataError: the game ends before the last iteration of the record.
    """
    from napari_embedding_game.core.dynamics.play import play

    def begin_game(settings: Settings, until_next: Callable[[int], int]) -> Any:
        """Begin a game; its frames end at ``every`` iterations, and before steering."""

        def count_iterations(done: int) -> int:
            """Return the iterations of the next frame; 0 for no limit."""
            return min((n for n in (every or 0, until_next(done)) if n), default=0)

        warm = record.warm_start
        return play(
            edges, layout, settings, frame_iterations=count_iterations, warm_start=warm
        )

    script = {each.iteration: Steer(settings=each.settings) for each in record.steered}
    for each in record.forced:
        steer = script.get(each.iteration, Steer())
        script[each.iteration] = replace(steer, forces=each.forces)
    run = Run(begin_game, record.settings, script=script, stop_at=record.n_iter)
    try:
        while True:
            with COMPUTING:
                snapshot = run.advance()
            if snapshot is None:
                break
            yield snapshot
    finally:
        run.close()
    if run.snapshot is None or run.snapshot.iteration < record.n_iter:
        raise DataError(
            f"The record says {record.n_iter} iterations, but the game ended before: "
            "it is damaged."
        )


def replay_to_result(
    X: Any,
    record: RunRecord,
    where: Mapping[str, str],
    n_clusters: int | None = None,
    second_X: Any = None,
) -> EmbeddingResult:
    """Replay a record, and return the map with its clusters as a result.

    ``X``, ``second_X`` and ``record``: as for :func:`replay_frames`, with its
    errors. ``where``: facts about the origin of ``X``, added to the parameters of the
    result. ``n_clusters``: number of clusters; None for one per landmark.
    """
    edges, layout = prepare_replay(X, record, second_X)
    *_, last = iter_replay_frames(edges, layout, record)
    facts = {**flatten_parameters(record, last, ""), **where, "n_clusters": n_clusters}
    if n_clusters is None:
        return EmbeddingResult(last, facts)
    edges = edges.mix_by_share(record.last_settings.second_share)
    merging = LandmarkMerge.from_edges(edges, last.labels, len(last.landmarks))
    clusters = merging.cut_into_clusters(n_clusters)[last.labels]
    return EmbeddingResult(last, facts, make_clustering_from_labels(clusters))


def is_same_layout(first: Snapshot, second: Snapshot) -> bool:
    """Return whether two snapshots have the same layout and iteration, bit for bit.

    Clusters and pressure are not compared: they are computed as time allows.
    """
    arrays = ((first.embedding, second.embedding), (first.landmarks, second.landmarks))
    is_as_long = first.iteration == second.iteration
    return is_as_long and all(np.array_equal(*pair) for pair in arrays)


def validate_event_order(record: RunRecord) -> None:
    """Raise DataError if changes of a record are out of order or after its end."""
    for events in (record.steered, record.forced):
        iterations = [event.iteration for event in events]
        in_order = all(a < b for a, b in pairwise(iterations))
        inside = all(0 <= iteration < record.n_iter for iteration in iterations)
        if not (in_order and inside and record.n_iter >= 0):
            raise DataError(
                "The record of this run is damaged: it was steered after its end or "
                "out of order."
            )
