"""How far the large picture of a map is that of its data, beside umap-learn and PCA.

Of each data set at most 4,000 rows, drawn at random.

- triplets: how often the map has the right one of two random points nearer to a third
  (0.5 by chance)
- labels: Spearman's rank correlation of the distances between the means of the labels
  with those in the data; labels of fewer than 10 rows are left out, and data sets of
  fewer than 5 labels have none
- recall: share of the 15 exact neighbours in the data that are among the 15 on the map
- accuracy: of 15 neighbours on the map, 10-fold cross-validation
- energy: of the game, to that without a large picture

Figures are the mean over the seeds, and their standard deviation; times are seconds of
a whole fit, in a process in which all is compiled.  ``--peers`` names programs, none,
umap-learn, openTSNE or PaCMAP, that are installed.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.principal_components import pca
from napari_embedding_game.papers.reproductions.metrics import (
    knn_accuracy,
    neighbor_recall,
)
from quality import FEW_ROWS, umap_learn
from shared import Input, arguments, load_all, report, timed


def fit_components(X: np.ndarray, seed: int) -> np.ndarray:
    """Return the first two principal components."""
    return pca(X, 2, seed)


def open_tsne(X: np.ndarray, seed: int) -> np.ndarray:
    """Fit with defaults, on all cores."""
    return np.asarray(
        import_module("openTSNE").TSNE(n_jobs=-1, random_state=seed).fit(X)
    )


def pacmap(X: np.ndarray, seed: int) -> np.ndarray:
    """Fit with defaults."""
    found = import_module("pacmap").PaCMAP(random_state=seed).fit_transform(X)
    return np.asarray(found)


PEERS = {"umap-learn": umap_learn, "openTSNE": open_tsne, "pacmap": pacmap}
INPUTS = (
    *("pbmc", "ifnb", "covid", "nuclei", "coil20", "digits", "mnist", "words"),
    *("newsgroups", "swiss roll"),
)
MAX_ROWS, N_TRIPLETS, FEW_LABELS = 4_000, 200_000, 5
OPTIONS: dict[str, dict[str, Any]] = {
    "seeds": {"type": int, "default": 5},
    "inputs": {"nargs": "+", "choices": INPUTS, "default": INPUTS},
    "strengths": {"nargs": "*", "type": float, "default": [0, 1, 2, 3]},
    "peers": {"nargs": "*", "choices": PEERS, "default": ["umap-learn"]},
}
Fit = Callable[[np.ndarray, int], tuple[np.ndarray, float]]
"""Returns a map of some rows by a seed, and its energy, NaN where it has none."""


def game(strength: float) -> Fit:
    """Return the fit with defaults but for the large picture."""

    def fit(X: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
        params = {"large_picture": strength}
        model = EmbeddingGame(random_state=seed, method_params=params).fit(X)
        return model.embedding_, model.energy_

    return fit


def without_energy(fit: Callable[[np.ndarray, int], np.ndarray]) -> Fit:
    """Return the fit of another program."""
    return lambda X, seed: (fit(X, seed), math.nan)


def share_of_triplets(X: np.ndarray, embedding: np.ndarray) -> float:
    """Return how often the map has the right one of two points nearer."""
    points, one, other = np.random.default_rng(0).integers(len(X), size=(3, N_TRIPLETS))
    is_nearer = [
        np.linalg.norm(rows[points] - rows[one], axis=1)
        < np.linalg.norm(rows[points] - rows[other], axis=1)
        for rows in (X, embedding)
    ]
    return float(
        (is_nearer[0] == is_nearer[1])[(points != one) & (points != other)].mean()
    )


def likeness_of_labels(data: Input, embedding: np.ndarray) -> float:
    """Return the rank correlation of distances between means of labels."""
    names, count = np.unique(data.labels, return_counts=True)
    if (count >= FEW_ROWS).sum() < FEW_LABELS:
        return math.nan
    held = [data.labels == name for name in names[count >= FEW_ROWS]]
    means = [[rows[of].mean(axis=0) for of in held] for rows in (data.X, embedding)]
    return float(spearmanr(*map(pdist, means)).statistic)


def measure(
    data: Input, fits: dict[str, Fit], n_seeds: int
) -> Iterator[dict[str, Any]]:
    """Fit and judge every way with every seed."""
    exact = knn_graph(data.X, 15, search="brute").indices
    _, place, count = np.unique(data.labels, return_inverse=True, return_counts=True)
    judged, usual = count[place] >= FEW_ROWS, math.nan
    for name, fit in fits.items():
        figures: dict[str, list[float]] = {}
        for seed in range(n_seeds):
            (embedding, energy), took = timed(partial(fit, data.X, seed))
            for title, value in (
                ("triplets", share_of_triplets(data.X, embedding)),
                ("labels", likeness_of_labels(data, embedding)),
                ("recall", neighbor_recall(exact, embedding)),
                ("accuracy", knn_accuracy(embedding[judged], data.labels[judged])),
                ("energy", energy),
                ("s", took[0]),
            ):
                figures.setdefault(title, []).append(value)
        energy, seconds = (statistics.mean(figures.pop(x)) for x in ("energy", "s"))
        usual = energy if math.isnan(usual) else usual
        yield {
            "input": data.name,
            "rows": len(data.X),
            "way": name,
            **{title: _spread(values) for title, values in figures.items()},
            "energy": "" if math.isnan(energy) else f"{energy / usual - 1:+.1%}",
            "s": round(seconds, 2),
        }


def _spread(values: list[float]) -> str:
    if math.isnan(values[0]):
        return ""
    return f"{statistics.mean(values):.3f} ± {statistics.pstdev(values):.3f}"


def main() -> None:
    """Print a table for each input."""
    args = arguments(__doc__, 1, **OPTIONS)
    fits = {f"game, large picture {x:g}": game(x) for x in args.strengths}
    fits |= {name: without_energy(PEERS[name]) for name in args.peers}
    fits["PCA"] = without_energy(fit_components)
    noise = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fit in fits.values():  # compiles
            fit(noise, 0)
        for data in load_all(args.inputs, args):
            some = data.some(MAX_ROWS)
            report(
                f"Large picture, {data.name}",
                list(measure(some, fits, args.seeds)),
                args,
            )


if __name__ == "__main__":
    main()
