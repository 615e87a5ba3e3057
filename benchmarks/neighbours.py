"""Time and recall of every neighbour search: where the table of ``core.graph`` is from.

Recall: share of the 15 exact neighbours found, for 1,000 rows drawn at random.
The ratio is to the exact search of the same rows.  pynndescent is compiled
beforehand in the first table; in the second, each search runs in a process of
its own, from start to end, imports and compiling included.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from napari_embedding_game.core.graph.neighbors import Search, choose_search, knn_graph
from shared import QUICK_ROWS, Input, arguments, load_all, median, report, timed

K = 15
SAMPLE = 1_000
ROWS = {
    50: (2_638, 10_000, 20_000, 31_000, 45_000, 70_000),
    784: (8_000, 20_000, 70_000),
}
SEARCHES: tuple[Search, ...] = (
    "exact",
    "ivf",
    "leaves",
    "projected",
    "hnsw",
    "brute",
    "descent",
)
NEEDS = {"hnsw": "usearch", "exact": "faiss", "ivf": "faiss"}
MOST_BRUTE = 20_000
COLD = """
import sys
import numpy as np
from napari_embedding_game.core.graph.neighbors import knn_graph
np.save(sys.argv[3], knn_graph(np.load(sys.argv[1]), search=sys.argv[2]).indices)
"""


class Truth:
    """The exact neighbours of some rows."""

    def __init__(self, X: np.ndarray) -> None:
        rng = np.random.default_rng(0)
        self.rows = rng.choice(len(X), min(SAMPLE, len(X)), replace=False)
        search = NearestNeighbors(n_neighbors=K + 1, algorithm="brute").fit(X)
        found = search.kneighbors(X[self.rows], return_distance=False)
        self.neighbors = [
            set(row) - {own} for own, row in zip(self.rows, found, strict=True)
        ]

    def recall(self, indices: np.ndarray) -> float:
        """Return the share of them in ``indices`` (N, K)."""
        pairs = zip(self.neighbors, indices[self.rows], strict=True)
        return float(np.mean([len(true & set(row)) / K for true, row in pairs]))


def available(search: Search) -> bool:
    """Return whether the library of a search is installed."""
    return search not in NEEDS or find_spec(NEEDS[search]) is not None


def warm(data: Input, n_rows: int, repeats: int) -> list[dict[str, Any]]:
    """Time every search on the first ``n_rows`` rows."""
    X = data.X[:n_rows]
    truth = Truth(X)
    rows: list[dict[str, Any]] = []
    exact = float("nan")
    for search in filter(available, SEARCHES):
        if search == "brute" and n_rows > MOST_BRUTE:
            continue
        graph, seconds = timed(lambda s=search: knn_graph(X, K, search=s), repeats)
        if search == "exact":
            exact = statistics.median(seconds)
        rows.append(
            {
                "n": n_rows,
                "D": X.shape[1],
                "n^2 D": f"{n_rows**2 * X.shape[1]:.1e}",
                "search": search,
                "chosen": "x" * (search == choose_search(*X.shape, "euclidean", False)),
                "s": median(seconds),
                "to exact": statistics.median(seconds) / exact,
                "recall": truth.recall(graph.indices),
            }
        )
    return rows


def cold(data: Input, repeats: int) -> list[dict[str, Any]]:
    """Time whole processes that load the rows, search, and store what they found."""
    truth = Truth(data.X)
    rows = []
    chosen = choose_search(*data.X.shape, "euclidean", False)
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "X.npy"), Path(folder, "found.npy")
        np.save(given, data.X)
        for search in filter(available, (chosen, "hnsw", "brute", "descent")):
            command = [sys.executable, "-c", COLD, str(given), search, str(found)]
            _, seconds = timed(lambda c=command: subprocess.run(c, check=True), repeats)
            rows.append(
                {
                    "search": search,
                    "s, whole process": median(seconds),
                    "middle": statistics.median(seconds),
                    "recall": truth.recall(np.load(found)),
                }
            )
    peer = rows[-1]["middle"]  # pynndescent, which umap-learn uses
    return [{**row, "to descent": row.pop("middle") / peer} for row in rows]


def main() -> None:
    """Print both tables."""
    args = arguments(__doc__)
    knn_graph(np.random.default_rng(0).normal(size=(6_000, 8)), search="descent")
    for data in load_all(("mnist", "mnist pixels"), args):
        n_dims = data.X.shape[1]
        sizes = (QUICK_ROWS,) if args.quick else ROWS[n_dims]
        rows = [row for n in sizes for row in warm(data, n, args.repeats)]
        report(f"Searches, {data.name}", rows, args)
        if n_dims == 50:
            title = f"Cold process, {len(data.X):,} x {n_dims}"
            report(title, cold(data, args.repeats), args)


if __name__ == "__main__":
    main()
