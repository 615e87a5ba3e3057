"""Replay a recorded run: the same layout, bit for bit.

On the same machine and with the same versions the result is the same to the last
bit on the CPU, whatever the number of threads.  Elsewhere the start layout may differ
in its last digits (linear algebra is compiled for each processor), and a GPU
adds in any order; the game then makes another map, of the same quality.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.core.types import Snapshot
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.run.run import steer_of


def replay(X: Any, record: RunRecord) -> Snapshot:
    """Play what was recorded on the rows of ``X`` and return the last snapshot.

    Parameters
    ----------
    X : (n, D) array or sparse matrix
        The same rows as then.
    record : RunRecord

    Raises
    ------
    DataError
        The record cannot be true: it steers after its end or out of order.  Or the
        run went on from a map that the record does not hold.
    InputError
        A setting is out of its range for these data.
    """
    for snapshot in replay_frames(X, record):
        last = snapshot
    return last


def replay_frames(
    X: Any, record: RunRecord, every: int | None = None
) -> Iterator[Snapshot]:
    """Do what :func:`replay` does, and yield all snapshots on the way.

    There is one wherever the run was steered, and every so many iterations.
    """
    check(record)
    if record.is_branch and record.warm_start is None:
        raise DataError(
            "This run went on from another map, which is not kept here: replay the "
            "session file that it was saved in."
        )
    from napari_embedding_game.core import pipeline

    start = record.start
    with COMPUTING:
        warm = record.warm_start
        graph, former = (
            pipeline.neighbors(X, start),
            None if warm is None else warm.embedding,
        )
        edges, layout = pipeline.place(graph, X, start, former)
        game = pipeline.begin(
            edges,
            layout,
            start,
            record.game,
            frame_iterations=lambda done: _next_stop(record, done, every) - done,
            warm_start=warm,
        )
        snapshot = next(game)
    yield snapshot
    steered = {steering.iteration: steering.game for steering in record.steered}
    forced = {forced.iteration: forced.forces for forced in record.forced}
    while snapshot.iteration < record.n_iter:
        with COMPUTING:
            done = snapshot.iteration
            steer = steer_of(steered.get(done), forced.get(done))
            try:
                snapshot = next(game) if steer is None else game.send(steer)
            except StopIteration:
                raise DataError(
                    f"The record says {record.n_iter} iterations, but the game ended "
                    f"after {snapshot.iteration}: it is damaged."
                ) from None
        yield snapshot
    game.close()


def same(one: Snapshot, other: Snapshot) -> bool:
    """Return whether two layouts are the same, to the last bit.

    Clusters and pressure are not compared: they only describe the layout, and
    are worked out now and then, as time allows.
    """
    return (
        one.iteration == other.iteration
        and one.energy == other.energy
        and np.array_equal(one.embedding, other.embedding)
        and np.array_equal(one.landmarks, other.landmarks)
    )


def check(record: RunRecord) -> None:
    """Raise DataError if no run can have left this record."""
    for events in (record.steered, record.forced):
        iterations = [event.iteration for event in events]
        in_order = all(a < b for a, b in pairwise(iterations))
        inside = all(0 <= iteration < record.n_iter for iteration in iterations)
        if not (in_order and inside and record.n_iter >= 0):
            raise DataError(
                "The record of this run is damaged: it was steered after its end or "
                "out of order."
            )


def _next_stop(record: RunRecord, done: int, every: int | None) -> int:
    stops = [s.iteration for s in record.steered if s.iteration > done]
    stops += [f.iteration for f in record.forced if f.iteration > done]
    if every is not None:
        stops.append(done + every)
    return min([*stops, record.n_iter])
