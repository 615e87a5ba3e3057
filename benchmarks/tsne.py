"""t-SNE on a grid and as a game with landmarks, beside openTSNE: recall and time.

MNIST, 50 principal components, perplexity 30, whole fits, neighbour search
included, with everything compiled beforehand.  openTSNE runs with its defaults
on all cores.  Recall: share of the 15 exact input neighbours that are among the
15 on the map; ``to openTSNE`` are ratios of recall and of time.  ``--figure FILE``
draws the curve.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.metrics import knn_accuracy, neighbor_recall
from shared import Input, arguments, load, report

OPTIONS: dict[str, dict[str, Any]] = {
    "landmarks": {
        "nargs": "+",
        "type": int,
        "default": [200, 1000],
        "help": "L of the games with landmarks",
    },
    "grid": {
        "nargs": "+",
        "type": int,
        "default": [300, 500],
        "help": "iterations of the fits on a grid",
    },
    "rates": {"nargs": 2, "type": float, "default": None, "metavar": ("Y", "Z")},
    "iterations": {"type": int, "default": None, "help": "of the games"},
    "without-peer": {"action": "store_true"},
    "figure": {"type": Path, "default": None},
}
WANTED = {"recall": 1.0, "time": 0.2}
"""Shares of openTSNE's that were aimed at."""


def opentsne(X: np.ndarray) -> np.ndarray:
    """Fit openTSNE with its defaults."""
    from openTSNE import TSNE

    return np.asarray(TSNE(n_jobs=-1, random_state=0).fit(X))


def game(
    X: np.ndarray, n_landmarks: int, rates: list[float] | None, n_iter: int | None
) -> np.ndarray:
    """Fit t-SNE with landmarks."""
    learning_rate, landmark_rate = rates or (None, None)
    return EmbeddingGame(
        method="tsne",
        approximation="landmarks",
        n_landmarks=n_landmarks,
        learning_rate=learning_rate,
        landmark_learning_rate=landmark_rate,
        max_iter=n_iter,
        random_state=0,
    ).fit_transform(X)


def on_a_grid(X: np.ndarray, n_iter: int) -> np.ndarray:
    """Fit t-SNE with its defaults, but for the number of iterations."""
    model = EmbeddingGame(method="tsne", max_iter=n_iter, random_state=0)
    return np.asarray(model.fit_transform(X))


def measure(data: Input, args: Any) -> list[dict[str, Any]]:
    """Fit and judge each way once."""
    exact = knn_graph(data.X, 15, search="exact").indices
    ways: dict[str, Any] = {}
    if not args.without_peer:
        ways["openTSNE"] = lambda: opentsne(data.X)
    for n_iter in args.grid:
        ways[f"grid, {n_iter:,} iterations"] = lambda n=n_iter: on_a_grid(data.X, n)
    for n_landmarks in args.landmarks:
        ways[f"game, L = {n_landmarks:,}"] = lambda n=n_landmarks: game(
            data.X, n, args.rates, args.iterations
        )
    rows: list[dict[str, Any]] = []
    peer: dict[str, float] = {}
    for name, fit in ways.items():
        begin = time.perf_counter()
        embedding = fit()
        seconds = time.perf_counter() - begin
        recall = neighbor_recall(exact, embedding)
        peer = peer or {"s": seconds, "recall": recall}
        rows.append(
            {
                "way": name,
                "accuracy": round(knn_accuracy(embedding, data.labels), 4),
                "recall": round(recall, 4),
                "s": round(seconds, 1),
                "recall, to openTSNE": recall / peer["recall"],
                "time, to openTSNE": seconds / peer["s"],
            }
        )
    return rows


def draw(rows: list[dict[str, Any]], n_points: int, path: Path) -> None:
    """Draw recall against time, one point for each way."""
    import matplotlib.pyplot as plt

    peer, *games = rows
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for kind in ("grid", "game"):
        of_kind = [row for row in games if row["way"].startswith(kind)]
        axes.plot([r["s"] for r in of_kind], [r["recall"] for r in of_kind], "o-")
    for row in games:
        name = row["way"].removeprefix("game, ")
        axes.annotate(
            name,
            (row["s"], row["recall"]),
            textcoords="offset points",
            xytext=(8, -4),
        )
    axes.plot(peer["s"], peer["recall"], "s", color="black")
    axes.annotate(
        peer["way"],
        (peer["s"], peer["recall"]),
        textcoords="offset points",
        xytext=(-8, -14),
        ha="right",
    )
    axes.axvline(WANTED["time"] * peer["s"], color="grey", linestyle=":")
    axes.axhline(WANTED["recall"] * peer["recall"], color="grey", linestyle=":")
    axes.set(
        xlabel="seconds of the whole fit",
        ylabel="recall of 15 neighbours",
        title=f"t-SNE of {n_points:,} points; dotted: what was aimed at",
        xlim=(0, 1.05 * peer["s"]),
        ylim=(0, 1.1 * peer["recall"]),
    )
    figure.savefig(path, dpi=150)


def main() -> None:
    """Print the table."""
    args = arguments(__doc__, **OPTIONS)
    data = load("mnist", args)
    if data is not None:
        noise = np.random.default_rng(0).normal(size=(2_000, 50)).astype(np.float32)
        game(noise, 50, None, 3)
        on_a_grid(noise, 3)
        rows = measure(data, args)
        report(f"t-SNE, {len(data.X):,} points", rows, args)
        if args.figure is not None and not args.without_peer:
            draw(rows, len(data.X), args.figure)


if __name__ == "__main__":
    main()
