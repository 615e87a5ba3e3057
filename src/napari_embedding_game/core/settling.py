"""Landmarks for points that something else than the game moves.

While the points are on their way, some of them stand for the landmarks.  On the
finished map landmarks settle as in a game whose points stand still, so that it
has clusters like every other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core import _kernels
from napari_embedding_game.core.affinities import Edges
from napari_embedding_game.core.types import GameSettings, Snapshot

Game = Generator[Snapshot, GameSettings | None, None]
Play = Callable[..., Game]
SETTLING = 100
"""Iterations in which the landmarks settle on a finished map."""


class Frame(NamedTuple):
    """Where the points stand: iteration, of how many, (N, d) positions.

    ``n_iter`` is 0 while nobody knows.
    """

    iteration: int
    n_iter: int
    positions: NDArray[np.float32]


def draw_members(
    n_points: int, n_landmarks: int, random_state: int
) -> NDArray[np.integer]:
    """Return the points that stand for landmarks: those a game begins with."""
    rng = np.random.default_rng(random_state)
    return rng.choice(n_points, min(n_landmarks, n_points), replace=False)


def moving(
    frame: Frame,
    members: NDArray[np.integer],
    energy: float,
    pressure: NDArray[np.float32] | None = None,
) -> Snapshot:
    """Return a snapshot of points on their way, with some of them as landmarks."""
    n, d = frame.positions.shape
    flat = frame.positions
    if d == 1:
        flat = np.column_stack([flat, np.zeros_like(flat)])
    labels = np.empty(n, np.int32)
    columns = np.ascontiguousarray(flat[members].T)
    _kernels.nearest_landmark(flat, columns, labels)
    return Snapshot(
        iteration=frame.iteration,
        n_iter=frame.n_iter + SETTLING if frame.n_iter else 0,
        embedding=frame.positions,
        landmarks=frame.positions[members],
        energy=energy,
        labels=labels,
        pressure=np.zeros(n, np.float32) if pressure is None else pressure,
    )


def settle(
    play: Play, edges: Edges, frame: Frame, settings: GameSettings, **driving: Any
) -> Iterator[Snapshot]:
    """Yield snapshots of landmarks that settle on points that stand still.

    ``play`` and ``driving`` play them: see :func:`~.game.play`.
    """
    still = replace(settings, learning_rate=0.0, schedule="fast", max_iter=SETTLING)
    for snapshot in play(edges, frame.positions, still, **driving):
        iteration = frame.iteration + snapshot.iteration
        yield replace(snapshot, iteration=iteration, n_iter=frame.iteration + SETTLING)
