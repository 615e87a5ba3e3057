"""kNN accuracy and 15-neighbour recall with all defaults, beside umap-learn.

Accuracy: 15 neighbours, 10-fold cross-validation; labels of fewer than 10 rows
are left out of it.  Recall: share of the 15 exact input neighbours that are
among the 15 on the map.  Both get the same rows; figures are the mean over the
seeds, and their standard deviation.  Times are of a whole fit, neighbour search
included, in a process in which both are compiled, umap-learn on all cores.
Differences are to umap-learn's mean in the same run.

``--pressure`` fits the game only, and tells what its pressure says of the points:
Spearman's rank correlation with two kinds of mistakes of the map.  A point is among
others where most of its 15 neighbours on the map have another label; neighbours are
lost that are among the 15 exact ones and not among the 15 on the map.
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
    "pressure": {"action": "store_true", "help": "judge the pressure instead"},
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
    edges = {"affinity": affinity}
    return lambda X, seed: EmbeddingGame(
        random_state=seed, method_params=edges
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


def judge_pressure(data: Input, n_seeds: int) -> list[dict[str, Any]]:
    """Fit the game with every seed and compare pressure with the map's mistakes."""
    exact = knn_graph(data.X, 15, search="brute" if len(data.X) < 5_000 else "exact")
    shares, recalls, among_others, lost_neighbors = [], [], [], []
    for seed in range(n_seeds):
        fitted = EmbeddingGame(random_state=seed).fit(data.X)
        pressure, embedding = fitted.pressure_, fitted.embedding_
        near = _nearest(embedding, 15)
        lost = 1 - _shared(exact.indices, near)
        is_other = (data.labels[near] != data.labels[:, None]).mean(axis=1) > 0.5
        shares.append(float((pressure > 0).mean()))
        recalls.append(float(1 - lost.mean()))
        among_others.append(_rank_correlation(pressure, is_other))
        lost_neighbors.append(_rank_correlation(pressure, lost))
    return [
        {
            "input": data.name,
            "rows": len(data.X),
            "recall": _spread(recalls),
            "under pressure": _spread(shares),
            "rho, among others": _spread(_known(among_others)),
            "rho, lost neighbours": _spread(_known(lost_neighbors)),
        }
    ]


def _rank_correlation(pressure: np.ndarray, mistakes: np.ndarray) -> float:
    """Return Spearman's rho; NaN where all are the same, such as under no pressure."""
    from scipy.stats import spearmanr

    if np.ptp(pressure) == 0 or np.ptp(mistakes.astype(float)) == 0:
        return float("nan")
    return float(spearmanr(pressure, mistakes).statistic)


def _known(values: list[float]) -> list[float]:
    return [value for value in values if not np.isnan(value)]


def _nearest(embedding: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest other points on the map: (N, k)."""
    from scipy.spatial import KDTree

    return KDTree(embedding).query(embedding, k + 1)[1][:, 1:]


def _shared(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the share of each row of ``first`` that is in that row of ``second``."""
    found = np.zeros(len(first))
    for column in second.T:
        found += (first == column[:, None]).any(axis=1)
    return found / first.shape[1]


def _spread(values: list[float]) -> str:
    if not values:
        return "none"
    return f"{statistics.mean(values):.4f} ± {statistics.pstdev(values):.4f}"


def main() -> None:
    """Print a table for each input."""
    args = arguments(__doc__, **OPTIONS)
    if args.pressure:
        rows = [
            row
            for data in load_all(args.inputs, args)
            for row in judge_pressure(data, args.seeds)
        ]
        report("Pressure of the game, and mistakes of the map", rows, args)
        return
    compile_all()
    for data in load_all(args.inputs, args):
        report(f"Quality, {data.name}", measure(data, args.seeds), args)


if __name__ == "__main__":
    main()
