"""Games that are looked at on the way, and how maps of them are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot

from .frame import Inputs

Map = NDArray[np.float32]
MNIST_STRENGTH = 70.0
"""lambda x N of paper 1 for MNIST: 0.001 x 70,000."""
_MOST_DRAWN = 10_000


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows with their edges, standing where a game begins."""

    X: Any
    labels: NDArray[Any]
    edges: Edges
    layout: Map


def draw_rows(n_rows: int, wanted: int | None, random_state: int) -> NDArray[np.intp]:
    """Return ``wanted`` of the row numbers at random, in order; all if None."""
    if wanted is None or wanted >= n_rows:
        return np.arange(n_rows)
    rng = np.random.default_rng(random_state)
    return np.sort(rng.choice(n_rows, wanted, replace=False))


@lru_cache(maxsize=2)
def placed_digits(inputs: Inputs, wanted: int | None, n_neighbors: int = 15) -> Placed:
    """Return random digits with the edges and start of paper 1.

    They are kept, as several parts of a reproduction begin with them.
    """
    digits = inputs.load("mnist")
    rows = draw_rows(len(digits.X), wanted, inputs.random_state)
    start = Settings(
        affinity="uniform", n_neighbors=n_neighbors, random_state=inputs.random_state
    )
    return place(digits.X[rows], labels_of(digits)[rows], start)


def place(X: Any, labels: NDArray[Any], start: Settings) -> Placed:
    """Find the edges of the rows and put the points where ``start`` says."""
    edges, layout = pipeline.place(pipeline.neighbors(X, start), X, start)
    return Placed(X, labels, edges, layout)


def labels_of(dataset: Any, column: str | None = None) -> NDArray[Any]:
    """Return the labels of the rows: a column, or the first one there is."""
    return np.asarray(dataset.obs[column or dataset.obs.columns[0]].astype(str))


def looks(
    placed: Placed, settings: Settings, at: Sequence[int], random_state: int
) -> Iterator[Snapshot]:
    """Play, and yield the snapshot at each of the iterations ``at``, which rise.

    Labels and pressure are up to date where ``at`` ends with the schedule.
    """

    def until_next(iteration: int) -> int:
        return min(stop for stop in at if stop > iteration) - iteration

    game = play(
        placed.edges,
        placed.layout,
        settings,
        random_state=random_state,
        diagnose=False,
        frame_iterations=until_next,
    )
    for snapshot in game:
        if snapshot.iteration in at:
            yield snapshot
        if snapshot.iteration >= at[-1]:
            return


def draw_map(
    axes: Any,
    layout: NDArray[np.floating],
    labels: NDArray[Any],
    landmarks: Map | None = None,
    title: str = "",
) -> None:
    """Draw points by label, landmarks in black; at most 10,000 points."""
    _, numbers = np.unique(labels, return_inverse=True)
    rows = draw_rows(len(layout), _MOST_DRAWN, 0)
    colors = "tab10" if numbers.max() < 10 else "tab20"
    size = np.clip(8_000 / len(rows), 0.3, 5)
    axes.scatter(
        *layout[rows].T, c=numbers[rows] % 20, cmap=colors, s=size, linewidths=0
    )
    if landmarks is not None:
        axes.scatter(*landmarks.T, c="black", s=6, linewidths=0)
    middle, reach = view(layout)
    axes.set_xlim(middle[0] - reach, middle[0] + reach)
    axes.set_ylim(middle[1] - reach, middle[1] + reach)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, fontsize=9)


def view(layout: NDArray[np.floating]) -> tuple[NDArray[Any], float]:
    """Return the middle and half the width of a square with nearly all points."""
    low, high = np.percentile(layout, [0.1, 99.9], axis=0)
    return (low + high) / 2, max(0.55 * float((high - low).max()), 0.5)
