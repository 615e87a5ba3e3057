"""kNN accuracy and 15-neighbour recall with all defaults, beside umap-learn.

Accuracy: 15 neighbours, 10-fold cross-validation; labels of fewer than 10 rows
are left out of it.  Recall: share of the 15 exact input neighbours that are
among the 15 on the map.  Both get the same rows; figures are the mean over the
seeds, and their standard deviation.  Times are of a whole fit, neighbour search
included, in a process in which both are compiled, umap-learn on all cores.
Differences are to umap-learn's mean in the same run.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.papers.reproductions.metrics import (
    knn_accuracy,
    neighbor_recall,
)
from shared import Input, arguments, load_all, report, timed

INPUTS = ("mnist", "covid", "pbmc", "coil20", "digits")
OPTIONS: dict[str, dict[str, Any]] = {
    "seeds": {"type": int, "default": 3},
    "inputs": {"nargs": "+", "choices": INPUTS, "default": INPUTS},
}
FEW_ROWS = 10
Fit = Callable[[np.ndarray, int], np.ndarray]


def umap_learn(X: np.ndarray, seed: int) -> np.ndarray:
    """Fit with defaults; a seed as argument would tie umap-learn to one core."""
    import umap

    np.random.seed(seed)  # noqa: NPY002  where umap-learn takes its numbers from
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return umap.UMAP().fit_transform(X)


def game(affinity: str) -> Fit:
    """Return the fit with defaults but for the edge weights."""
    return lambda X, seed: EmbeddingGame(
        random_state=seed, affinity=affinity
    ).fit_transform(X)


FITS: dict[str, Fit] = {
    "umap-learn": umap_learn,
    "game, uniform": game("uniform"),
    "game, fuzzy": game("fuzzy"),
    "game, mixed (default)": game("mixed"),
}


def compile_all() -> None:
    """Fit noise: above and below 4,096 rows umap-learn goes different ways."""
    rng = np.random.default_rng(0)
    for fit in FITS.values():
        for n_rows in (200, 5_000):
            fit(rng.normal(size=(n_rows, 8)).astype(np.float32), 0)


def measure(data: Input, n_seeds: int) -> list[dict[str, Any]]:
    """Fit and judge every way with every seed."""
    exact = knn_graph(data.X, 15, search="brute" if len(data.X) < 5_000 else "exact")
    _, place, count = np.unique(data.labels, return_inverse=True, return_counts=True)
    judged = count[place] >= FEW_ROWS
    rows: list[dict[str, Any]] = []
    peer: dict[str, float] = {}
    for name, fit in FITS.items():
        accuracy, recall, seconds = [], [], []
        for seed in range(n_seeds):
            embedding, took = timed(lambda f=fit, s=seed: f(data.X, s))
            seconds += took
            accuracy.append(knn_accuracy(embedding[judged], data.labels[judged]))
            recall.append(neighbor_recall(exact.indices, embedding))
        means = {
            "accuracy": statistics.mean(accuracy),
            "recall": statistics.mean(recall),
            "s": statistics.median(seconds),
        }
        peer = peer or means
        rows.append(
            {
                "input": data.name,
                "rows": len(data.X),
                "way": name,
                "accuracy": _spread(accuracy),
                "recall": _spread(recall),
                "s": round(means["s"], 2),
                "d accuracy": f"{means['accuracy'] - peer['accuracy']:+.4f}",
                "d recall": f"{means['recall'] - peer['recall']:+.4f}",
                "time, to umap": means["s"] / peer["s"],
            }
        )
    return rows


def _spread(values: list[float]) -> str:
    return f"{statistics.mean(values):.4f} ± {statistics.pstdev(values):.4f}"


def main() -> None:
    """Print a table for each input."""
    args = arguments(__doc__, **OPTIONS)
    compile_all()
    for data in load_all(args.inputs, args):
        report(f"Quality, {data.name}", measure(data, args.seeds), args)


if __name__ == "__main__":
    main()
