"""How well merged landmarks agree with known groups, beside scanpy's Leiden.

Both work on the same neighbours and are asked for the same number of clusters; seeds
are those of the game and of Leiden.  The figure is the adjusted Rand index, 1 for the
same groups and 0 for chance.  scanpy's Leiden is run in both of its flavours, with the
weights that scanpy gives to neighbours (UMAP's) and with those of the game, and tuned
by bisection of the resolution.  The last table has the seconds that merging takes.

``--firm`` makes other tables: how often rows that are one group are divided firmly, and
how well the suggested numbers of clusters agree with known groups, beside Leiden at
its default resolution and at the best of 20 (which nobody knows without the groups).
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from napari_embedding_game.core.graph.edges import Edges, build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.start import make_start_layout
from napari_embedding_game.core.inspect.clusters import build_merge_tree, landmark_graph
from napari_embedding_game.core.inspect.firmness import (
    measure_cuts,
    suggest_n_clusters,
)
from napari_embedding_game.core.inspect.merge_tree import MergeTree
from napari_embedding_game.core.inspect.separation import measure_separation
from shared import Input, arguments, finish, grown, load, median, report, timed

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
    weighted = build_edges(graph_of_rows, "mixed")
    weights = {
        "its weights": build_edges(graph_of_rows, "fuzzy"),
        "our weights": weighted,
    }
    played = [game(data.X, weighted, seed) for seed in range(n_seeds)]

    def score(clusters: np.ndarray) -> float:
        return float(adjusted_rand_score(data.labels, clusters))

    rows = []
    for n in N_CLUSTERS[data.name]:
        merged = [score(tree.cut(n)[own]) for tree, _, own in played]
        row = {
            "data": data.name,
            "clusters": n,
            "merged landmarks": spread(merged),
        }
        for flavor, whose in itertools.product(FLAVORS, weights):
            leiden = Leiden(weights[whose].to_csr_matrix().astype(np.float64), flavor)
            found = [score(leiden(n, seed)) for seed in range(n_seeds)]
            row[f"scanpy Leiden ({flavor}), {whose}"] = spread(found)
        rows.append(row)
    return rows


def game(
    X: np.ndarray, weighted: Edges, seed: int
) -> tuple[MergeTree, sparse.csr_matrix, np.ndarray]:
    """Play a game; return the tree and graph of its landmarks, and (N,) landmarks."""
    layout = make_start_layout(weighted, X, 2, "spectral", seed)
    last = finish(weighted, layout, seed=seed)
    n_landmarks = len(last.landmarks)
    graph = landmark_graph(weighted, last.labels, n_landmarks)
    sizes = np.bincount(last.labels, minlength=n_landmarks)
    return build_merge_tree(graph, sizes), graph, last.labels


def spread(figures: list[float]) -> str:
    """Return "mean (least to most)"."""
    return f"{np.mean(figures):.3f} ({min(figures):.3f} to {max(figures):.3f})"


def seconds(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Time the merging of points on a plane; the landmarks are random points."""
    rng = np.random.default_rng(0)
    n_points = 3_000 if args.quick else 70_000
    points = rng.normal(size=(n_points, 2)).astype(np.float32)
    points += 6 * rng.normal(size=(10, 2))[rng.integers(10, size=n_points)]
    weighted = build_edges(knn_graph(points), "fuzzy")
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
    tree, of_tree = timed(lambda: build_merge_tree(graph, sizes), repeats)
    _, of_update = timed(lambda: build_merge_tree(graph, sizes, previous=tree), repeats)
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


# --- How many clusters are firm


def counts(
    sizes: list[int], parents: dict[int, int], rng: np.random.Generator
) -> np.ndarray:
    """Return counts of 2,000 genes: groups differ in one of ten, libraries in size.

    Negative binomial, dispersion 0.3, about 4,000 counts a cell; library sizes are
    log-normal (0.4).  A group with a parent differs from it, the others from one base.
    """
    n_genes, profiles = 2_000, list[np.ndarray]()
    base = rng.lognormal(0, 1.2, n_genes)
    for group in range(len(sizes)):
        from_ = profiles[parents[group]] if group in parents else base
        changed = (rng.random(n_genes) < 0.1) * rng.normal(0, 0.6, n_genes)
        profiles.append(from_ * np.exp(changed))
    shares = np.array(profiles) / np.sum(profiles, axis=1, keepdims=True)
    library = 4_000 * rng.lognormal(0, 0.4, (sum(sizes), 1))
    means = np.repeat(shares, sizes, axis=0) * library
    return rng.poisson(means * rng.gamma(1 / 0.3, 0.3, means.shape))


def components(found: np.ndarray) -> np.ndarray:
    """Return (N, 50) principal components of counts, by scanpy's usual way."""
    from sklearn.decomposition import PCA

    found = found[:, (found > 0).sum(axis=0) >= 3]
    logs = np.log1p(1e4 * found / found.sum(axis=1, keepdims=True))
    scaled = ((logs - logs.mean(axis=0)) / logs.std(axis=0)).clip(max=10)
    pca = PCA(50, svd_solver="randomized", random_state=0)
    return pca.fit_transform(scaled).astype(np.float32)


SIMULATED: dict[str, tuple[list[int], dict[int, int]]] = {
    "3 groups": ([700, 500, 300], {}),
    "6 groups": ([1200, 800, 400, 300, 200, 100], {}),
    "8 groups, nested": (
        [900, 700, 600, 500, 400, 400, 300, 200],
        {1: 0, 2: 0, 4: 3, 5: 3, 7: 6},
    ),
    "12 groups": ([1500, 1000, 800, 700, 500, 400, 300, 250, 200, 150, 120, 80], {}),
}
GROUPED = ["pbmc", "ifnb", "covid", "digits", "mnist 2000", "mnist", "coil20"]
GROUPED += ["newsgroups", "words"]
MNIST_ROWS = 10_000
RESOLUTIONS = np.geomspace(0.05, 3, 20)
PARTS = "how many are firm: all, or 'one group', 'power', 'time', names of data"


def simulated(name: str) -> Input:
    """Return cells of known groups."""
    sizes, parents = SIMULATED[name]
    found = counts(sizes, parents, np.random.default_rng(1))
    return Input(name, components(found), np.repeat(np.arange(len(sizes)), sizes))


def sample_ball(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return rows (n, 8) that are uniform in a ball."""
    rows = rng.normal(size=(n, 8))
    lengths = rng.random((n, 1)) ** (1 / 8)
    return rows * lengths / np.linalg.norm(rows, axis=1, keepdims=True)


def sample_along_line(along: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return rows (n, 8): their first column is given, the others are Gaussian."""
    return np.column_stack([along, rng.normal(size=(len(along), 7))])


def sample_half_circle(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return rows (n, 8) along half a circle of radius 10, with noise of 1."""
    angle = np.pi * rng.random(n)
    circle = 10 * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.column_stack([circle, np.zeros((n, 6))]) + rng.normal(size=(n, 8))


WIDE = np.array([6, 3, 2, 1, 1, 1, 1, 1])
SINGLE_GROUPS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "Gaussian": lambda r, n: r.normal(size=(n, 8)),
    "long Gaussian": lambda r, n: r.normal(size=(n, 8)) * WIDE,
    "Gaussian of 50 columns": lambda r, n: r.normal(size=(n, 50)),
    "exponential": lambda r, n: r.exponential(size=(n, 8)),
    "gamma of shape 4": lambda r, n: r.gamma(4, 0.5, (n, 8)),
    "Laplace": lambda r, n: r.laplace(size=(n, 8)),
    "logistic": lambda r, n: r.logistic(size=(n, 8)) * WIDE,
    "uniform in a cube of 3": lambda r, n: r.random((n, 3)),
    "uniform in a cube of 5": lambda r, n: r.random((n, 5)),
    "uniform in a ball": sample_ball,
    "uniform in a simplex": lambda r, n: r.dirichlet(np.ones(6), n)[:, :5],
    "even line": lambda r, n: sample_along_line(20 * r.random(n), r),
    "density falls along a line": lambda r, n: sample_along_line(
        12 * np.sqrt(r.random(n)), r
    ),
    "not log-concave: negative binomial": lambda r, n: components(counts([n], {}, r)),
    "not log-concave: t with 3 degrees": lambda r, n: r.standard_t(3, (n, 8)),
    "not log-concave: half circle": sample_half_circle,
}
"""One group of n rows each; the first thirteen have a log-concave density."""


def divided(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Count the samples of one group of which any division is called firm."""
    rows, sizes = [], (300,) if args.quick else (300, 1_000, 5_000)
    for kind, sample in SINGLE_GROUPS.items():
        row: dict[str, Any] = {"one group": kind}
        for n_rows in sizes:
            n_divided = 0
            for seed in range(args.draws):
                X = sample(np.random.default_rng([seed, n_rows]), n_rows)
                X = X.astype(np.float32)
                played = game(X, build_edges(knn_graph(X), "mixed"), seed)
                n_divided += any(cut.is_firm for cut in measure_cuts(X, *played))
            row[f"{n_rows:,} rows"] = f"{n_divided} of {args.draws}"
        rows.append(row)
    return rows


def power(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Count the pairs of Gaussian groups of 1,000 rows together that are two groups.

    Of ten columns one tells them apart; the best rule knows their shares of the rows.
    """
    from scipy.stats import norm

    rows = []
    for ratio in (1, 5, 20):
        n_smaller = 1_000 // (1 + ratio)
        row: dict[str, Any] = {"rows": f"{n_smaller} and {1_000 - n_smaller}"}
        for accuracy in (0.9, 0.95, 0.98, 0.99, 0.999):
            found = []
            for seed in range(args.draws):
                X = np.random.default_rng([seed, ratio]).normal(size=(1_000, 10))
                X[:n_smaller, 0] += 2 * norm.ppf(accuracy)
                groups = np.arange(n_smaller), np.arange(n_smaller, 1_000)
                found.append(measure_separation(X, *groups, random_state=seed))
            two, gap = (sum(f.is_firm for f in found), sum(f.has_gap for f in found))
            row[f"accuracy {accuracy}"] = f"{two}, {gap} with a gap"
        rows.append(row)
    return rows


def suggestion(data: Input, n_seeds: int) -> dict[str, Any]:
    """Return how well the coarse and the fine number agree with known groups."""
    graph_of_rows = knn_graph(data.X)
    weighted = build_edges(graph_of_rows, "mixed")
    fuzzy = build_edges(graph_of_rows, "fuzzy").to_csr_matrix()
    leiden = Leiden(fuzzy.astype(np.float64), "igraph")

    def score(clusters: np.ndarray) -> float:
        return float(adjusted_rand_score(data.labels, clusters))

    found: dict[str, list[Any]] = {}
    for seed in range(n_seeds):
        played = game(data.X, weighted, seed)
        cuts, seconds = timed(lambda one=played: list(measure_cuts(data.X, *one)))
        tree, _, labels = played
        marked = suggest_n_clusters(cuts) or (1,)
        scores = [score(tree.cut(n)[labels]) for n in range(1, len(cuts) + 2)]
        usual = leiden.at(1.0, seed)
        tried = [score(leiden.at(resolution, seed)) for resolution in RESOLUTIONS]
        for name, one in {
            "suggested": "/".join(map(str, marked)),
            "ARI, coarse": scores[marked[0] - 1],
            "ARI, fine": scores[marked[-1] - 1],
            "best cut of the tree": max(scores),
            "Leiden, default": score(usual),
            "its clusters": str(len(np.unique(usual))),
            "Leiden, best of 20": max(tried),
            "seconds": seconds[0],
        }.items():
            found.setdefault(name, []).append(one)
    return {
        "data": f"{data.name}, {len(data.X):,}",
        "known groups": len(np.unique(data.labels)),
        **{
            name: ", ".join(one) if isinstance(one[0], str) else spread(one)
            for name, one in found.items()
        },
    }


def firm(args: argparse.Namespace) -> None:
    """Print the tables of ``--firm``, or those parts that are named."""

    def is_asked(part: str) -> bool:
        return part in args.firm or not args.firm

    if is_asked("one group"):
        report("Samples of one group that are divided firmly", divided(args), args)
    if is_asked("power"):
        title = f"Pairs of groups, of {args.draws}, that are called two"
        report(title, power(args), args)
    rows = []
    for name in filter(is_asked, (*SIMULATED, *GROUPED)):
        data = simulated(name) if name in SIMULATED else load(name, args)
        if data is not None:
            data = data.some(MNIST_ROWS) if name == "mnist" else data
            rows.append(suggestion(data, args.seeds))
    report("Suggested number of clusters, adjusted Rand index", rows, args)
    if not is_asked("time"):
        return
    rows, data = [], load("covid", args)
    for n_rows in () if data is None or args.quick else (10_000, 100_000):
        X = grown(data, n_rows).X
        played = game(X, build_edges(knn_graph(X), "mixed"), 0)
        _, taken = timed(lambda x=X, one=played: list(measure_cuts(x, *one)))
        rows.append({"cells": n_rows, "seconds": median(taken)})
    report("How long it takes", rows, args)


def main() -> None:
    """Print agreement and seconds, or how many clusters are firm."""
    args = arguments(
        __doc__,
        repeats=5,
        seeds={"type": int, "default": 5, "help": "games a row"},
        firm={"nargs": "*", "metavar": "PART", "help": PARTS},
        draws={"type": int, "default": 20, "help": "of one group, with --firm"},
    )
    warnings.simplefilter("ignore")  # scanpy's own
    if args.firm is not None:
        firm(args)
        return
    rows = []
    for name in N_CLUSTERS:
        data = load(name, args)
        if data is not None:
            rows += agreement(data, args.seeds)
    report("Adjusted Rand index, mean (least to most) over seeds", rows, args)
    report("Merging", seconds(args), args)


if __name__ == "__main__":
    main()
