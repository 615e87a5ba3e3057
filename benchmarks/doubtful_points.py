"""What finds points in a wrong place: stretch, pressure, lost neighbours.

A point is in a wrong place where most of its 15 neighbours on the map have another
label although most of its 15 neighbours in the data have its own.  For ``moved``, two
points of a hundred are put beside points drawn at random, and are to be found.  Both
figures are the area under the ROC curve (AUC) of each measure: 1 finds them all
first, 0.5 is chance.  Labels serve to judge only: no measure knows them.

- stretch: of the package
- far share: share of the neighbours in the data that are ten neighbour distances away
- 1 - recall: share of the neighbours in the data that are none on the map
- pressure: of the package (paper 004)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.stretch import stretch
from napari_embedding_game.core.types import stretched_share
from shared import Input, arguments, load_all, report

INPUTS = ("digits", "pbmc", "covid", "coil20", "ifnb", "mnist")
N_NEIGHBORS = 15
MOST_ROWS = 20_000
MOVED = 0.02
FEWEST = 10
"""Points in a wrong place, from which an AUC means something."""


def measures(embedding: np.ndarray, neighbors: np.ndarray) -> dict[str, np.ndarray]:
    """Return what each measure says of every point."""
    graph = knn_graph(embedding, N_NEIGHBORS)
    squared = ((embedding[neighbors] - embedding[:, None]) ** 2).sum(axis=-1)
    usual = np.median(np.asarray(graph.distances) ** 2)
    kept = (neighbors[:, :, None] == graph.indices[:, None]).any(axis=2)
    return {
        "stretch": stretch(neighbors, embedding),
        "far share": (squared > 100 * usual).mean(axis=1),
        "1 - recall": 1 - kept.mean(axis=1),
    }


def auc(is_wrong: np.ndarray, measured: np.ndarray) -> float:
    """Return the area under the ROC curve."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(is_wrong, measured))


def rows_of(data: Input, method: str, seed: int) -> list[dict[str, Any]]:
    """Fit one map and judge the measures twice."""
    model = EmbeddingGame(method=method, random_state=seed)
    embedding = model.fit_transform(data.X)
    neighbors = knn_graph(data.X, N_NEIGHBORS, search="exact").indices
    labels = np.unique(data.labels, return_inverse=True)[1]
    found = measures(embedding, neighbors)
    found["pressure"] = model.pressure_
    on_map = knn_graph(embedding, N_NEIGHBORS).indices
    is_own = (labels[neighbors] == labels[:, None]).mean(axis=1) > 0.5
    is_wrong = (labels[on_map] == labels[:, None]).mean(axis=1) < 0.5
    rows = []
    wrong = is_wrong & is_own
    start = {
        "input": f"{data.name}, {len(data.X):,}",
        "method": method,
        "stretch > 5": f"{stretched_share(found['stretch']):.1%}",
    }
    if wrong.sum() >= FEWEST:
        judged = {k: round(auc(wrong[is_own], v[is_own]), 3) for k, v in found.items()}
        rows.append(start | {"points": f"wrong place, {wrong.sum():,}"} | judged)
    rng = np.random.default_rng(seed)
    moved = rng.choice(len(embedding), int(MOVED * len(embedding)), replace=False)
    beside = embedding[rng.choice(len(embedding), len(moved))]
    changed = embedding.copy()
    changed[moved] = beside + rng.normal(0, 0.01, beside.shape)
    is_moved = np.zeros(len(embedding), bool)
    is_moved[moved] = True
    again = measures(changed, neighbors)
    judged = {k: round(auc(is_moved, v), 3) for k, v in again.items()}
    rows.append(
        start | {"points": f"moved, {len(moved):,}"} | judged | {"pressure": "–"}
    )
    return rows


def main() -> None:
    """Print the table."""
    args = arguments(__doc__, repeats=1)
    rows = []
    for data in load_all(INPUTS, args):
        for method in ("game", "tsne"):
            rows += rows_of(data.some(MOST_ROWS), method, seed=0)
    report("AUC of what finds points in a wrong place", rows, args)


if __name__ == "__main__":
    main()
