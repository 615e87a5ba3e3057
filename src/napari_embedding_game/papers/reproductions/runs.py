"""Rows and their labels, and games that are looked at on the way."""

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
Placed = tuple[Edges, NDArray[Any]]
"""Edges, and a start (N, d)."""


def draw_rows(n_rows: int, count: int, random_state: int) -> NDArray[np.intp]:
    """Return at most ``count`` of the row numbers at random, in order."""
    if count >= n_rows:
        return np.arange(n_rows)
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(n_rows, count, replace=False))


@lru_cache(maxsize=2)
def digits(inputs: Inputs, count: int) -> tuple[Map, NDArray[Any]]:
    """Return random digits and their labels."""
    dataset = inputs.load("mnist")
    rows = draw_rows(len(dataset.X), count, inputs.random_state)
    return dataset.X[rows], dataset.obs.iloc[rows, 0].astype(str).to_numpy()


@lru_cache(maxsize=2)
def placed_digits(inputs: Inputs, count: int) -> Placed:
    """Return the edges and start of random digits as in paper 1."""
    settings = Settings(affinity="uniform", random_state=inputs.random_state)
    return make_edges_and_layout(digits(inputs, count)[0], settings)


def roll(n_points: int, random_state: int) -> tuple[Vector, Vector]:
    """Return the rolled sheet, (N, 3), and where each point is on it, (N, 2)."""
    rng = np.random.default_rng(random_state)
    angle = rng.uniform(1.5 * np.pi, 4.5 * np.pi, n_points)
    height = rng.uniform(0, 10, n_points)
    X = np.column_stack([angle * np.cos(angle), angle * np.sin(angle), height])
    along = (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle)) / 2
    return X, np.column_stack([along - along.min(), height])


def make_edges_and_layout(X: Any, settings: Settings) -> Placed:
    """Find the edges of the rows and put the points where the settings say."""
    return pipeline.make_edges_and_layout(
        pipeline.find_neighbors(X, settings), X, settings
    )


def looks(placed: Placed, settings: Settings, at: Sequence[int]) -> Iterator[Snapshot]:
    """Play, and yield the snapshot at each of the iterations ``at``, which rise."""

    def until(done: int) -> int:
        return min(stop - done for stop in at if stop > done)

    game = play(*placed, settings, diagnose=False, frame_iterations=until)
    for snapshot in game:
        if snapshot.iteration in at:
            yield snapshot
        if snapshot.iteration >= at[-1]:
            return
