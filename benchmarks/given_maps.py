"""Maps by other programs, doubted: how well stretch finds points in a wrong place.

Each maker embeds the same principal components; its map is opened as the window does,
``EmbeddingGame(method="given", init=map)``.  A point is in a wrong place where most of
its 15 neighbours on the map have another label although most of its 15 neighbours in
the data have its own; figures are areas under the ROC curve (AUC).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from doubtful_points import FEWEST, N_NEIGHBORS, auc, lost
from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import knn_graph
from shared import Input, arguments, load_all, report

INPUTS = ("pbmc", "ifnb")


def umap_learn(X: np.ndarray) -> np.ndarray:
    """Embed by umap-learn."""
    from umap import UMAP

    return UMAP(random_state=0, n_jobs=1).fit_transform(X)


def open_tsne(X: np.ndarray) -> np.ndarray:
    """Embed by openTSNE."""
    from openTSNE import TSNE

    return np.asarray(TSNE(random_state=0).fit(X))


def pacmap(X: np.ndarray) -> np.ndarray:
    """Embed by PaCMAP."""
    from pacmap import PaCMAP

    return PaCMAP(random_state=0).fit_transform(X)


def game(X: np.ndarray) -> np.ndarray:
    """Embed by the game."""
    return EmbeddingGame(random_state=0).fit_transform(X)


MAKERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "umap-learn": umap_learn,
    "openTSNE": open_tsne,
    "PaCMAP": pacmap,
    "the game": game,
}


def row(data: Input, maker: str) -> dict[str, Any]:
    """Return what is found on the map of one maker."""
    X = np.ascontiguousarray(data.X, np.float32)
    embedding = np.asarray(MAKERS[maker](X), np.float32)
    begin = time.perf_counter()
    opened = EmbeddingGame(method="given", init=embedding, random_state=0).fit(X)
    seconds = time.perf_counter() - begin
    labels = np.unique(data.labels, return_inverse=True)[1]
    near = opened.knn_indices_[:, :N_NEIGHBORS]
    shown = knn_graph(embedding, N_NEIGHBORS).indices
    own = (labels[near] == labels[:, None]).mean(axis=1) > 0.5
    wrong = own & ((labels[shown] == labels[:, None]).mean(axis=1) < 0.5)
    judged = wrong.sum() >= FEWEST
    return {
        "input": f"{data.name}, {len(X):,}",
        "map by": maker,
        "in a wrong place": int(wrong.sum()),
        "AUC of stretch": auc(wrong[own], opened.stretch_[own]) if judged else "–",
        "neighbours kept": round(1 - float(lost(near, embedding).mean()), 3),
        "opened and doubted, s": round(seconds, 2),
    }


def main() -> None:
    """Print the table."""
    args = arguments(
        __doc__,
        inputs={"nargs": "+", "default": list(INPUTS)},
        makers={"nargs": "+", "default": list(MAKERS)},
    )
    data = list(load_all(args.inputs, args))
    rows = [row(each, maker) for each in data for maker in args.makers]
    report("Maps by other programs", rows, args)


if __name__ == "__main__":
    main()
