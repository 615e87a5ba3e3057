"""What the presets do to a map: the words that describe them, in figures.

On labelled data, of at most 10,000 rows: kNN accuracy, 15-neighbour recall, the
silhouette of the known classes on the map (how far apart they are, in their own
sizes), the share of random triplets whose order of distances the map keeps, and the
processor seconds of a fit.  On grown trees, ten branches of 300 points in 50
dimensions with noise: the rank correlation of distances on the map with those along
the branches, of all pairs and of near ones (less than 60 points apart).  The mean
over the seeds and their standard deviation.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.metrics import silhouette_score

from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.metrics import knn_accuracy, neighbor_recall
from napari_embedding_game.session.presets import BUILT_IN, Preset, apply
from napari_embedding_game.session.run.engine import CoreEngine
from napari_embedding_game.session.run.run import UNPACED, Run
from napari_embedding_game.session.settings import Settings
from shared import arguments, load_all, report

INPUTS = ("pbmc", "ifnb", "covid", "mnist")
OPTIONS: dict[str, dict[str, Any]] = {"seeds": {"type": int, "default": 3}}
MOST_ROWS, N_TRIPLETS, N_PAIRS = 10_000, 50_000, 20_000
N_BRANCHES, BRANCH_LENGTH, N_COLUMNS, NOISE = 10, 300, 50, 0.5
NEAR = 60


class Tree(NamedTuple):
    """Points along branches, some pairs of them, and how far these are along it."""

    X: NDArray[np.float32]
    pairs: NDArray[np.integer]
    distances: NDArray[np.integer]


def fit(X: NDArray[np.floating], preset: Preset, seed: int) -> NDArray[np.floating]:
    """Return the map of a preset."""
    settings = Settings(random_state=seed)
    apply(preset, settings)
    run = Run(X, settings.start(), settings.game(), engine=CoreEngine(), pace=UNPACED)
    snapshots = (progress.snapshot for progress in run.frames())
    return next(one.embedding for one in snapshots if one is not None and one.finished)


def grow(seed: int) -> Tree:
    """Return a tree: each branch begins at the end of one that is there."""
    rng = np.random.default_rng(seed)
    ends, parents, parts = [np.zeros(N_COLUMNS)], [], []
    for branch in range(N_BRANCHES):
        at = int(rng.integers(len(ends))) if branch else 0
        direction = rng.normal(size=N_COLUMNS)
        direction *= 0.03 * np.sqrt(N_COLUMNS) / np.linalg.norm(direction)
        walk = direction + rng.normal(0, 0.02, (BRANCH_LENGTH, N_COLUMNS))
        parts.append(ends[at] + walk.cumsum(axis=0))
        ends.append(parts[-1][-1])
        parents.append(at - 1)
    X = np.concatenate(parts)
    X = (X + rng.normal(0, NOISE, X.shape)).astype(np.float32)
    pairs = rng.integers(0, len(X), (N_PAIRS, 2))
    distances = [along(*pair, parents) for pair in pairs.tolist()]
    return Tree(X, pairs, np.array(distances))


def along(first: int, second: int, parents: list[int]) -> int:
    """Return how many points lie between two points along the branches."""
    ways = [_way(point, parents) for point in (first, second)]
    # What both have come by from the root: shared branches, as far as both went.
    shared = sum(min(part, ways[1].get(branch, 0)) for branch, part in ways[0].items())
    return sum(ways[0].values()) + sum(ways[1].values()) - 2 * shared


def _way(point: int, parents: list[int]) -> dict[int, int]:
    """Return how far along each branch one goes from the root to a point."""
    branch, rest = divmod(point, BRANCH_LENGTH)
    way = {branch: rest + 1}
    while (branch := parents[branch]) >= 0:
        way[branch] = BRANCH_LENGTH
    return way


def on_tree(preset: Preset, seeds: range) -> dict[str, str]:
    """Return how well distances along the branches are kept."""
    whole, near = [], []
    for seed in seeds:
        tree = grow(seed)
        ends = fit(tree.X, preset, seed)[tree.pairs]
        shown = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
        is_near = tree.distances < NEAR
        whole.append(spearmanr(tree.distances, shown).statistic)
        near.append(spearmanr(tree.distances[is_near], shown[is_near]).statistic)
    return {"all pairs": _spread(whole), "near pairs": _spread(near)}


def on_data(
    X: NDArray[np.floating], labels: NDArray[Any], preset: Preset, seeds: range
) -> dict[str, str]:
    """Return the figures of a preset on labelled rows."""
    rng = np.random.default_rng(0)
    near = knn_graph(X, 15).indices
    triplets = rng.integers(0, len(X), (N_TRIPLETS, 3))
    some = rng.choice(len(X), min(3_000, len(X)), replace=False)
    found: dict[str, list[float]] = {
        name: [] for name in ("accuracy", "recall", "silhouette", "triplets", "cpu s")
    }
    for seed in seeds:
        begun = time.process_time()
        shown = fit(X, preset, seed)
        found["cpu s"].append(time.process_time() - begun)
        found["accuracy"].append(knn_accuracy(shown, labels))
        found["recall"].append(neighbor_recall(near, shown))
        found["silhouette"].append(silhouette_score(shown[some], labels[some]))
        kept = _is_nearer(X, triplets) == _is_nearer(shown, triplets)
        found["triplets"].append(float(kept.mean()))
    return {name: _spread(values) for name, values in found.items()}


def _is_nearer(X: NDArray[np.floating], triplets: NDArray[np.integer]) -> Any:
    first, second, third = (X[column] for column in triplets.T)
    to_second = np.linalg.norm(first - second, axis=1)
    return to_second < np.linalg.norm(first - third, axis=1)


def _spread(values: list[float]) -> str:
    spread = statistics.pstdev(values)
    return f"{statistics.fmean(values):.3f} ± {spread:.3f}"


def main() -> None:
    """Print a table for each data set and one for the trees."""
    args = arguments(__doc__, **OPTIONS)
    seeds = range(args.seeds)
    fit(np.random.default_rng(0).normal(size=(300, 5)), BUILT_IN[0], 0)  # compiles
    for data in load_all(INPUTS, args):
        some = data.some(MOST_ROWS)
        rows = [
            {"preset": preset.name, **on_data(some.X, some.labels, preset, seeds)}
            for preset in BUILT_IN
        ]
        report(f"{data.name}, {len(some.X):,} rows", rows, args)
    rows = [{"preset": p.name, **on_tree(p, seeds)} for p in BUILT_IN]
    report("Trees of ten branches, 3,000 points", rows, args)


if __name__ == "__main__":
    main()
