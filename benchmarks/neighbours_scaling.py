"""Time, memory and recall of the neighbour search that is chosen, by number of rows.

Each size in a process of its own, cold.  The rows are a mixture of 200 clouds, each of
12 dimensions in 50 and a little noise, in random order; or, with ``--data``, MNIST's
50 principal components, each row drawn on the way to one of its neighbours, plus noise.
Recall: share of the 15 true neighbours, of 500 rows.  Processor seconds are of all
threads together, and depend less on what else the machine does.

``--fits`` times the three parts of a whole fit instead, by the processor and by a
graphics card.  Each goes first once without being counted, as loops are compiled and a
card is woken; the search and the start are by the processor on both.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.graph.leaves import make_recall_check
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.rows import Rows
from napari_embedding_game.core.settings import (
    Settings,
    fill_affinity,
    fill_approximation_by_size,
)
from shared import arguments, finish, load, report

K = 15
SIZES = (10_000, 30_000, 100_000, 300_000, 1_300_000, 10_000_000)
QUICK_SIZES = (3_000, 10_000)
COLD = """
import json, sys, time
import numpy as np
from napari_embedding_game.core.graph.neighbors import knn_graph
X = np.load(sys.argv[1])
begin, used = time.perf_counter(), time.process_time()
graph = knn_graph(X, 15, search=sys.argv[3] or None)
seconds, used = time.perf_counter() - begin, time.process_time() - used
status = open("/proc/self/status").read()  # ru_maxrss would be this process' as well
peak = int(status.split("VmHWM:")[1].split()[0]) / 2**20
np.save(sys.argv[2], graph.indices)
print(json.dumps([graph.search, seconds, used, peak]))
"""


def clouds(n_rows: int) -> np.ndarray:
    """Return a mixture of 200 clouds, (N, 50) float32."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 200, n_rows)
    centres = 3 * rng.normal(size=(200, 50))
    axes = 0.5 * rng.normal(size=(200, 12, 50))
    X = np.empty((n_rows, 50), np.float32)
    for j in range(200):
        rows = np.flatnonzero(label == j)
        inner = rng.normal(size=(len(rows), 12)) @ axes[j]
        X[rows] = centres[j] + inner + 0.1 * rng.normal(size=inner.shape)
    return X


def drawn_between(X: np.ndarray, n_rows: int) -> np.ndarray:
    """Return rows drawn between those of ``X`` and their neighbours, float32."""
    rng = np.random.default_rng(0)
    begin = rng.integers(0, len(X), n_rows)
    end = knn_graph(X, K).indices[begin, rng.integers(0, K, n_rows)]
    share = rng.random((n_rows, 1), dtype=np.float32)
    found = X[begin] * (1 - share) + X[end] * share
    noise = rng.standard_normal(found.shape, np.float32)
    return np.asarray(found + 0.02 * X.std(axis=0) * noise, np.float32)


def measured(X: np.ndarray, search: str, repeats: int) -> dict[str, object]:
    """Search in processes of their own; return the row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder, "X.npy"), Path(folder, "found.npy")
        np.save(given, X)
        command = [sys.executable, "-c", COLD, str(given), str(out), search]
        told = [
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            for _ in range(repeats)
        ]
        found = np.load(out)
    some, share_of = make_recall_check(Rows(X, "euclidean"), K, seed=99)
    recall = share_of(found[some])
    return {
        "n": len(X),
        "search": told[0][0],
        "s": round(statistics.median(row[1] for row in told), 1),
        "processor s": round(statistics.median(row[2] for row in told), 1),
        "peak GiB": round(max(row[3] for row in told), 2),
        "recall": round(recall, 4),
    }


def fit(X: np.ndarray, device: str) -> dict[str, Any]:
    """Return the seconds of a fit, and the share of neighbours that the map keeps."""
    settings = fill_approximation_by_size(
        fill_affinity(Settings(device=device)), len(X)
    )
    stamps = [time.perf_counter()]
    graph = pipeline.find_neighbors(X, settings)
    stamps.append(time.perf_counter())
    placed = pipeline.make_edges_and_layout(graph, X, settings)
    stamps.append(time.perf_counter())
    y = finish(*placed, settings).embedding
    stamps.append(time.perf_counter())
    names = ("neighbours, s", "start, s", "game, s")
    drawn = np.random.default_rng(1).choice(len(X), 500, replace=False)
    near = knn_graph(y, K).indices[drawn]
    kept = (near[:, :, None] == graph.indices[drawn][:, None, :K]).any(axis=2).mean()
    found = dict(zip(names, np.diff(stamps).round(2), strict=True))
    return {"rows": f"{len(X):,}", "device": device, **found, "kept": float(kept)}


def fits(sizes: list[int], repeats: int) -> list[dict[str, Any]]:
    """Return a row for each size, device and repeat."""
    import torch

    rows, devices = [], ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for X in map(clouds, sizes):
        for device in devices:
            fit(clouds(sizes[0]), device)
            rows += [fit(X, device) for _ in range(repeats)]
    return rows


def main() -> None:
    """Print a table for each kind of rows."""
    args = arguments(
        __doc__,
        repeats=1,
        least={"type": int, "default": 0, "help": "rows of the smallest size"},
        most={"type": int, "default": 1_300_000, "help": "rows of the largest size"},
        search={"default": "", "help": "this one instead of the one chosen"},
        fits={"action": "store_true", "help": "whole fits, by device"},
    )
    sizes = [n for n in SIZES if args.least <= n <= args.most]
    sizes = list(QUICK_SIZES) if args.quick else sizes
    if args.fits:
        report("A fit by device", fits(sizes, args.repeats), args)
        return
    rows = [measured(clouds(n), args.search, args.repeats) for n in sizes]
    report("Neighbours by number of rows, 200 clouds, 50 columns", rows, args)
    data = load("mnist", args)
    if data is not None:
        rows = [
            measured(drawn_between(data.X, n), args.search, args.repeats) for n in sizes
        ]
        report("Neighbours by number of rows, between MNIST's, 50 columns", rows, args)


if __name__ == "__main__":
    main()
