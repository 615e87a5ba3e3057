"""Fewer iterations of the game: points pushed by landmarks or a grid, larger steps.

True energy (Eq. 1, 5,000 rows drawn above that), kNN accuracy, 15-neighbour recall and
processor time of a whole fit, the mean over the seeds.  The ratios are to the default
of the same input: landmarks, 500 iterations.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.metrics import (
    knn_accuracy,
    neighbor_recall,
    true_energy,
)
from shared import Input, arguments, load_all, report

INPUTS = ("digits", "pbmc", "covid", "coil20", "ifnb", "mnist")
MOST_ROWS = 20_000
N_DRAWN = 5_000
OPTIONS: dict[str, dict[str, Any]] = {
    "inputs": {"nargs": "+", "choices": INPUTS, "default": list(INPUTS)},
    "rows": {"type": int, "default": MOST_ROWS, "help": "most rows of an input"},
    "seeds": {"type": int, "default": 2},
}


@dataclass(frozen=True, slots=True)
class Way:
    """Settings of a fit; None is the default."""

    approximation: str
    max_iter: int
    learning_rate: float | None = None
    momentum: float | None = None

    @property
    def name(self) -> str:
        """Return what a row is called."""
        parts = [self.approximation, f"{self.max_iter} iterations"]
        if self.learning_rate is not None:
            parts.append(f"rate {self.learning_rate:g}")
        if self.momentum is not None:
            parts.append(f"momentum {self.momentum:g}")
        return ", ".join(parts)


WAYS = (
    Way("landmarks", 500),
    Way("landmarks", 200),
    Way("landmarks", 200, 0.5),
    Way("mesh", 500),
    Way("mesh", 200),
    Way("mesh", 200, 1.0),
    Way("mesh", 200, 2.0),
    Way("mesh", 200, 4.0),
    Way("mesh", 200, 1.0, 0.8),
    Way("mesh", 200, 1.0, 0.95),
    Way("mesh", 200, 2.0, 0.95),
    Way("mesh", 120, 2.0),
)


def fit(data: Input, way: Way, seed: int, exact: np.ndarray) -> tuple[float, ...]:
    """Return energy, accuracy, recall and seconds of one fit."""
    model = EmbeddingGame(
        approximation=way.approximation,
        max_iter=way.max_iter,
        learning_rate=way.learning_rate,
        momentum=way.momentum,
        random_state=seed,
    )
    begin = time.process_time()
    embedding = model.fit_transform(data.X)
    seconds = time.process_time() - begin
    edges = Edges.from_matrix(model.affinity_matrix_)
    drawn = min(len(data.X), N_DRAWN)
    energy = true_energy(edges, embedding, model.repulsion_, n_rows=drawn)
    return (
        energy,
        knn_accuracy(embedding, data.labels),
        neighbor_recall(exact, embedding),
        seconds,
    )


def measure(data: Input, n_seeds: int) -> list[dict[str, Any]]:
    """Fit each way with each seed."""
    exact = knn_graph(data.X, 15, search="exact").indices
    rows, usual = [], None
    for way in WAYS:
        fits = np.array([fit(data, way, seed, exact) for seed in range(n_seeds)])
        energy, accuracy, recall, seconds = fits.mean(axis=0)
        if usual is None:
            usual = energy, seconds
        rows.append(
            {
                "input": f"{data.name}, {len(data.X):,}",
                "way": way.name,
                "energy, to default": round(energy / usual[0], 4),
                "accuracy": round(accuracy, 4),
                "recall": f"{recall:.4f} ± {fits[:, 2].std():.4f}",
                "s": round(seconds, 2),
                "s, to default": round(seconds / usual[1], 2),
            }
        )
    return rows


def main() -> None:
    """Print a table for each input."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    warnings.simplefilter("ignore")  # one of them collapses
    for data in load_all(args.inputs, args):
        some = data.some(args.rows)
        report(f"Iterations, {some.name}", measure(some, args.seeds), args)


if __name__ == "__main__":
    main()
