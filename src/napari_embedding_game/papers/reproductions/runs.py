"""Load or make rows with labels, and play games with snapshots on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot

from .inputs import Inputs

Map = NDArray[np.float32]
Vector = NDArray[np.float64]
GameInput = tuple[Edges, NDArray[Any]]
"""Edges, and a start layout (N, d)."""


def sample_row_numbers(n_rows: int, count: int, random_state: int) -> NDArray[np.intp]:
    """Return ``count`` random row numbers below ``n_rows``, ascending.

    All row numbers are returned where ``count`` is at least ``n_rows``.
    """
    if count >= n_rows:
        return np.arange(n_rows)
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(n_rows, count, replace=False))


@lru_cache(maxsize=2)
def load_digits(inputs: Inputs, count: int) -> tuple[Map, NDArray[Any]]:
    """Return ``count`` random MNIST digits (n, D) and their labels (n,) as text.

    All digits are returned where ``count`` is at least their number.  The last two
    calls are cached: do not change the arrays.
    """
    dataset = inputs.load("mnist")
    rows = sample_row_numbers(len(dataset.X), count, inputs.random_state)
    return dataset.X[rows], dataset.obs.iloc[rows, 0].astype(str).to_numpy()


@lru_cache(maxsize=2)
def load_digits_game_input(inputs: Inputs, count: int) -> GameInput:
    """Return the edges and the start layout of random digits as in paper 1.

    Edges have weight 1.  The last two calls are cached: do not change the arrays.
    """
    settings = Settings(affinity="uniform", random_state=inputs.random_state)
    return make_game_input(load_digits(inputs, count)[0], settings)


def make_swiss_roll(n_points: int, random_state: int) -> tuple[Vector, Vector]:
    """Return random points of a rolled sheet (N, 3), and of the unrolled one (N, 2).

    The first column of the unrolled sheet is the length along the roll, from 0.
    """
    rng = np.random.default_rng(random_state)
    angle = rng.uniform(1.5 * np.pi, 4.5 * np.pi, n_points)
    height = rng.uniform(0, 10, n_points)
    X = np.column_stack([angle * np.cos(angle), angle * np.sin(angle), height])
    along = (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle)) / 2
    return X, np.column_stack([along - along.min(), height])


def make_game_input(X: Any, settings: Settings) -> GameInput:
    """Return the edges and the start layout of rows (N, D) by the settings.

    The neighbours of the rows are searched first.
    """
    return pipeline.make_edges_and_layout(
        pipeline.find_neighbors(X, settings), X, settings
    )


def iterate_snapshots_at(
    game_input: GameInput, settings: Settings, iterations: Sequence[int]
) -> Iterator[Snapshot]:
    """Play, and yield the snapshot at each of the ascending ``iterations``.

    The game ends after the last of them.
    """

    def until(done: int) -> int:
        """Return the number of iterations from ``done`` to the next snapshot."""
        return min(stop - done for stop in iterations if stop > done)

    game = play(*game_input, settings, diagnose=False, frame_iterations=until)
    for snapshot in game:
        if snapshot.iteration in iterations:
            yield snapshot
        if snapshot.iteration >= iterations[-1]:
            return
