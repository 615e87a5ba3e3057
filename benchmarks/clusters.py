"""How well merged landmarks agree with known groups, beside scanpy's Leiden.

Both work on the same neighbours and are asked for the same number of clusters; seeds
are those of the game and of Leiden.  The figure is the adjusted Rand index, 1 for the
same groups and 0 for chance.  scanpy's Leiden is run in both of its flavours, with the
weights that scanpy gives to neighbours (UMAP's) and with those of the game, and tuned
by bisection of the resolution.  The last table has the seconds that merging takes.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from napari_embedding_game.core.graph.edges import Edges, edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.start import start_layout
from napari_embedding_game.core.inspect.clusters import (
    landmark_graph,
    merge_tree,
)
from napari_embedding_game.core.settings import Settings
from shared import Input, arguments, finish, load, median, report, timed

N_CLUSTERS = {"pbmc": (6, 8, 10), "covid": (6, 8, 10), "digits": (8, 10, 12)}
FLAVORS: dict[str, dict[str, Any]] = {
    "leidenalg": {"n_iterations": -1},
    "igraph": {"n_iterations": 2, "directed": False},
}


@dataclass(frozen=True)
class Leiden:
    """scanpy's Leiden on given edges, tuned to a number of clusters."""

    weights: sparse.csr_matrix
    flavor: str

    def __call__(self, n_clusters: int, seed: int) -> np.ndarray:
        """Return (N,) clusters at the first resolution that gives so many."""
        low, high = 1e-3, 10.0
        for _ in range(30):
            resolution = float(np.sqrt(low * high))
            found = self.at(resolution, seed)
            n = len(np.unique(found))
            if n == n_clusters:
                break
            low, high = (resolution, high) if n < n_clusters else (low, resolution)
        return found

    def at(self, resolution: float, seed: int) -> np.ndarray:
        """Return (N,) clusters at one resolution."""
        import anndata
        import scanpy as sc

        cells = anndata.AnnData(np.zeros((self.weights.shape[0], 1), np.float32))
        sc.tl.leiden(
            cells,
            resolution,
            random_state=seed,
            adjacency=self.weights,
            flavor=self.flavor,
            **FLAVORS[self.flavor],
        )
        return cells.obs["leiden"].to_numpy()


def agreement(data: Input, n_seeds: int) -> list[dict[str, Any]]:
    """Return a row for each number of clusters, each way with the same seeds."""
    graph_of_rows = knn_graph(data.X)
    weighted = edges(graph_of_rows, "mixed")
    weights = {
        "its weights": edges(graph_of_rows, "fuzzy"),
        "our weights": weighted,
    }
    trees, labels = [], []
    for seed in range(n_seeds):
        layout = start_layout(weighted, data.X, 2, "spectral", seed)
        last = finish(weighted, layout, Settings(), seed)
        n_landmarks = len(last.landmarks)
        graph = landmark_graph(weighted, last.labels, n_landmarks)
        sizes = np.bincount(last.labels, minlength=n_landmarks)
        trees.append(merge_tree(graph, sizes))
        labels.append(last.labels)

    def score(clusters: np.ndarray) -> float:
        return float(adjusted_rand_score(data.labels, clusters))

    rows = []
    for n in N_CLUSTERS[data.name]:
        merged = [
            score(tree.cut(n)[own]) for tree, own in zip(trees, labels, strict=True)
        ]
        row = {
            "data": data.name,
            "clusters": n,
            "merged landmarks": spread(merged),
        }
        for flavor, whose in itertools.product(FLAVORS, weights):
            leiden = Leiden(weights[whose].matrix().astype(np.float64), flavor)
            found = [score(leiden(n, seed)) for seed in range(n_seeds)]
            row[f"scanpy Leiden ({flavor}), {whose}"] = spread(found)
        rows.append(row)
    return rows


def spread(figures: list[float]) -> str:
    """Return "mean (least to most)"."""
    return f"{np.mean(figures):.3f} ({min(figures):.3f} to {max(figures):.3f})"


def seconds(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Time the merging of points on a plane; the landmarks are random points."""
    rng = np.random.default_rng(0)
    n_points = 3_000 if args.quick else 70_000
    points = rng.normal(size=(n_points, 2)).astype(np.float32)
    points += 6 * rng.normal(size=(10, 2))[rng.integers(10, size=n_points)]
    weighted = edges(knn_graph(points), "fuzzy")
    return [
        timing(weighted, points, n_landmarks, args.repeats)
        for n_landmarks in (200, 500, 1000)
    ]


def timing(
    weighted: Edges, points: np.ndarray, n_landmarks: int, repeats: int
) -> dict[str, Any]:
    """Return the milliseconds of each step for one number of landmarks."""
    from scipy.spatial import cKDTree

    labels = cKDTree(points[:n_landmarks]).query(points)[1].astype(np.int32)
    sizes = np.bincount(labels, minlength=n_landmarks)
    graph, of_graph = timed(
        lambda: landmark_graph(weighted, labels, n_landmarks), repeats
    )
    tree, of_tree = timed(lambda: merge_tree(graph, sizes), repeats)
    _, of_update = timed(lambda: merge_tree(graph, sizes, previous=tree), repeats)
    _, of_cut = timed(lambda: tree.cut(12), repeats)
    return {
        "points": len(points),
        "landmarks": n_landmarks,
        **{
            f"{name}, ms": median([1e3 * second for second in found])
            for name, found in (
                ("graph", of_graph),
                ("tree", of_tree),
                ("tree from the last one", of_update),
                ("cut", of_cut),
            )
        },
    }


def main() -> None:
    """Print agreement and seconds."""
    args = arguments(
        __doc__, repeats=5, seeds={"type": int, "default": 5, "help": "games a row"}
    )
    warnings.simplefilter("ignore")  # scanpy's own
    rows = []
    for name in N_CLUSTERS:
        data = load(name, args)
        if data is not None:
            rows += agreement(data, args.seeds)
    report("Adjusted Rand index, mean (least to most) over seeds", rows, args)
    report("Merging", seconds(args), args)


if __name__ == "__main__":
    main()
