"""The optimisation alone, beside umap-learn's own layout step on the same graph.

MNIST, 50 principal components, 15 neighbours, one start layout for all.
umap-learn runs ``simplicial_set_embedding`` with its defaults: 200 epochs from
10,000 points on, 500 below, on all cores ("parallel") or on one, which is what
it does when a seed is given.  Both are compiled beforehand.  The ratio is to
umap-learn on all cores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from napari_embedding_game.core.graph.affinities import edges
from napari_embedding_game.core.graph.initialization import start_layout
from napari_embedding_game.core.graph.neighbors import NeighborGraph, knn_graph
from napari_embedding_game.core.warm_up import compile_kernels
from shared import Input, arguments, finish, load, median, report, timed


def umap_step(
    X: np.ndarray, graph: NeighborGraph, layout: np.ndarray
) -> Callable[..., Any]:
    """Return umap-learn's layout step on its own weights of ``graph``."""
    from umap.umap_ import (
        find_ab_params,
        fuzzy_simplicial_set,
        simplicial_set_embedding,
    )

    rows = np.arange(len(X))[:, None]
    indices = np.hstack([rows, graph.indices])  # a point counts as its own neighbour
    distances = np.hstack([np.zeros_like(rows), graph.distances]).astype(np.float32)
    random = np.random.RandomState(0)
    fuzzy, _, _ = fuzzy_simplicial_set(
        X, indices.shape[1], random, "euclidean",
        knn_indices=indices, knn_dists=distances,
    )  # fmt: skip
    a, b = find_ab_params(1.0, 0.1)

    def step(parallel: bool, n_epochs: int | None = None) -> np.ndarray:
        return simplicial_set_embedding(
            X, fuzzy.copy(), 2, 1.0, a, b, 1.0, 5, n_epochs, layout.copy(),
            np.random.RandomState(0), "euclidean", {}, False, {}, False,
            parallel=parallel,
        )[0]  # fmt: skip

    return step


def measure(data: Input, repeats: int) -> list[dict[str, Any]]:
    """Time each way in turn, so that a slow minute of the machine meets all."""
    graph = knn_graph(data.X)
    fuzzy, uniform = edges(graph, "fuzzy"), edges(graph, "uniform")
    mixed = edges(graph, "mixed")
    layout = start_layout(fuzzy, data.X)
    umap = umap_step(data.X, graph, layout)
    for parallel in (True, False):
        umap(parallel, n_epochs=2)
    ways: dict[str, Callable[[], Any]] = {
        "umap-learn, parallel": lambda: umap(parallel=True),
        "umap-learn, one core": lambda: umap(parallel=False),
        "game, fuzzy": lambda: finish(fuzzy, layout),
        "game, uniform": lambda: finish(uniform, layout),
        "game, mixed (default)": lambda: finish(mixed, layout),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            times[name] += timed(way)[1]
    peer = np.array(times["umap-learn, parallel"])
    return [
        {
            "layout step": name,
            "s": median(seconds),
            "to umap-learn": float(np.median(seconds / peer)),
        }
        for name, seconds in times.items()
    ]


def main() -> None:
    """Print the table."""
    args = arguments(__doc__)
    data = load("mnist", args)
    if data is not None:
        compile_kernels()
        title = f"Layout alone, {len(data.X):,} points, L = 200"
        report(title, measure(data, args.repeats), args)


if __name__ == "__main__":
    main()
