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
from napari_embedding_game.core.types import GameSettings, Snapshot, undefined

Game = Generator[Snapshot, GameSettings | None, None]
Play = Callable[..., Game]
FrameIterations = int | Callable[[int], int] | None
SETTLING = 100
"""Iterations in which the landmarks settle on a finished map."""


class Frame(NamedTuple):
    """Where the points stand on their way."""

    iteration: int
    n_iter: int
    """Iterations there will have been at the end, as far as known now; 0 while nobody
    knows."""
    positions: NDArray[np.float32]
    """(N, d)."""
    energy: float | None = None
    """None: to be worked out by whoever has the objective."""
    warning: str = ""


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
    n = len(frame.positions)
    flat = in_the_plane(frame.positions)
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
        pressure=undefined(n) if pressure is None else pressure,
        warning=frame.warning,
    )


def in_the_plane(positions: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return a line as a line in the plane: the loops know 2 and 3 dimensions.

    Nothing pushes a point off it.
    """
    if positions.shape[1] > 1:
        return positions
    return np.column_stack([positions, np.zeros_like(positions)])


def settle(
    play: Play,
    edges: Edges,
    frame: Frame,
    settings: GameSettings,
    *,
    frame_iterations: FrameIterations = None,
    **driving: Any,
) -> Iterator[Snapshot]:
    """Yield snapshots of landmarks that settle on points that stand still.

    ``play``, ``frame_iterations`` and ``driving`` play them: see
    :func:`~.game.play`.  The first snapshot is not the points alone, which the frame
    has shown, and iterations count on from the frame's.
    """
    still = replace(settings, learning_rate=0.0, schedule="fast", max_iter=SETTLING)
    most = _counted_from(frame.iteration, frame_iterations)
    playing = play(edges, frame.positions, still, frame_iterations=most, **driving)
    next(playing)
    for snapshot in playing:
        iteration = frame.iteration + snapshot.iteration
        yield replace(snapshot, iteration=iteration, n_iter=frame.iteration + SETTLING)


def _counted_from(first: int, most: FrameIterations) -> FrameIterations:
    """Return ``most`` for a game of which the iterations count from 0."""
    if not callable(most):
        return most
    return lambda iteration: most(first + iteration)
