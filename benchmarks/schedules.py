"""Ways to begin: how the repulsion grows over a game, and what becomes of the map.

True energy (Eq. 1, 10,000 rows drawn above that), kNN accuracy and 15-neighbour
recall, the mean over the seeds and their standard deviation, with the default
edges and the `fast` schedule but for its repulsion.  The ratio is to constant
repulsion.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from napari_embedding_game.core.dynamics import game
from napari_embedding_game.core.dynamics.optimizer import Schedule, resolve_schedule
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.graph.affinities import edges
from napari_embedding_game.core.graph.initialization import start_layout
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.metrics import (
    knn_accuracy,
    neighbor_recall,
    true_energy,
)
from napari_embedding_game.core.names import DEFAULT_AFFINITY
from napari_embedding_game.core.types import GameSettings
from shared import Input, arguments, finish, load_all, report, timed

INPUTS = ("mnist", "pbmc", "coil20")
OPTIONS: dict[str, dict[str, Any]] = {"seeds": {"type": int, "default": 3}}
SAMPLED_ROWS = 10_000

Repulsion = Callable[[float], float]


def growing(least: float, until: float) -> Repulsion:
    """Grow by the same factor in every iteration, from ``least`` to 1."""
    return lambda done: least ** max(0.0, 1 - done / until)


BEGINNINGS: dict[str, Repulsion | None] = {
    "constant": lambda done: 1.0,
    "a quarter for the first quarter": lambda done: 0.25 if done < 0.25 else 1.0,
    "growing from 0.1 until half": growing(0.1, 0.5),
    "growing from 0.03 until half": growing(0.03, 0.5),
    "growing from 0.003 until 0.3": growing(0.003, 0.3),
    "growing from 0.003 until 0.8": growing(0.003, 0.8),
    "growing from 0.0003 until half": growing(0.0003, 0.5),
    "the default": None,
}


def with_repulsion(repulsion: Repulsion | None) -> Callable[[GameSettings], Schedule]:
    """Return ``resolve_schedule`` with another beginning."""
    if repulsion is None:
        return resolve_schedule
    return lambda settings: replace(resolve_schedule(settings), repulsion=repulsion)


def measure(data: Input, n_seeds: int) -> list[dict[str, Any]]:
    """Play every beginning with every seed, each from the seed's own start."""
    graph = knn_graph(data.X, search="exact")
    weighted = edges(graph, DEFAULT_AFFINITY)
    starts = [start_layout(weighted, data.X, random_state=s) for s in range(n_seeds)]
    rows: list[dict[str, Any]] = []
    for name, repulsion in BEGINNINGS.items():
        found, seconds = [], []
        with mock.patch.object(game, "resolve_schedule", with_repulsion(repulsion)):
            for seed, start in enumerate(starts):
                last, took = timed(lambda y=start, s=seed: finish(weighted, y, seed=s))
                seconds += took
                energy = true_energy(
                    weighted,
                    last.embedding,
                    METHODS["game"].strength / len(data.X),
                    SAMPLED_ROWS,
                )
                recall = neighbor_recall(graph.indices, last.embedding)
                accuracy = knn_accuracy(last.embedding, data.labels)
                found.append((energy, accuracy, recall))
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
        first = rows[0]["true energy"] if rows else mean[0]
        rows.append(
            {
                "input": data.name,
                "repulsion": name,
                "true energy": round(mean[0]),
                "to constant": f"{mean[0] / first:.4f} ± {spread[0] / first:.4f}",
                "accuracy": f"{mean[1]:.4f} ± {spread[1]:.4f}",
                "recall": f"{mean[2]:.4f} ± {spread[2]:.4f}",
                "s": round(statistics.median(seconds), 2),
            }
        )
    return rows


def main() -> None:
    """Print a table for each input."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    game.warm_up()
    for data in load_all(INPUTS, args):
        report(f"Ways to begin, {data.name}", measure(data, args.seeds), args)


if __name__ == "__main__":
    main()
