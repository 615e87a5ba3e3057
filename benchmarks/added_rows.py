"""Rows that join a map in batches, beside a fit of all rows.

A map of the first 30 % of the rows is fitted; the others come in batches of 5 % of all
rows by ``partial_fit``, in random order, or sorted by class (``--sorted``), so that
most classes are new to the map.  At the end:

- energy: the true one of Eq. 1, over that of a fit of all rows
- recall: share of the 15 exact neighbours in the data that are among the 15 on the map,
  beside that of the fit of all rows
- move: how far an old point moves in a batch, a share of the map's width before: the
  median over the points, the mean over the batches
- processor ms/row, all threads, in a process in which everything is compiled
- apart: least and largest apartness of a batch, and how many batches warn

``--place`` places the rows by ``transform`` instead, on the map of the first 30 %.
Figures are the mean over the seeds, and their standard deviation.
"""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any

import numpy as np
import torch

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import NeighborGraph, knn_graph
from napari_embedding_game.core.new_rows.likeness import measure_apartness
from napari_embedding_game.papers.reproductions.metrics import neighbor_recall
from shared import Input, arguments, load_all, report

INPUTS = ("mnist", "pbmc", "newsgroups")
OPTIONS: dict[str, dict[str, Any]] = {
    "seeds": {"type": int, "default": 3},
    "inputs": {"nargs": "+", "default": INPUTS},
    "method": {"default": "game"},
    "sorted": {"action": "store_true", "help": "rows come sorted by class"},
    "place": {"action": "store_true", "help": "rows are placed by transform"},
}
MAX_ROWS = 10_000
FIRST, BATCH = 0.3, 0.05


def order_of_rows(labels: np.ndarray, seed: int, is_sorted: bool) -> np.ndarray:
    """Return the rows in random order, or sorted by class."""
    order = np.random.default_rng(seed).permutation(len(labels))
    return order[np.argsort(labels[order], kind="stable")] if is_sorted else order


def true_energy(X: np.ndarray, graph: NeighborGraph, model: EmbeddingGame) -> float:
    """Return the energy over all pairs, with the edges of the exact graph."""
    settings, y = model._fitted.settings, model.embedding_
    edges, _ = pipeline.make_edges_and_layout(graph, X, settings, y)
    method = get_method(settings.method)
    objective = make_objective(
        "exact",
        CompiledForces(edges, method.attraction, method.kernel),
        method.lambda_scale(edges) * model.repulsion_,
        aggregate=method.aggregate,
    )
    points = torch.from_numpy(np.ascontiguousarray(y))
    return objective.energy(points, points[:1])


def run(data: Input, seed: int, args: Any) -> dict[str, float]:
    """Fit the first rows, add the others, and judge."""
    order = order_of_rows(data.labels, seed, args.sorted)
    X, n = np.ascontiguousarray(data.X[order]), len(order)
    new: dict[str, Any] = {"method": args.method, "random_state": seed}
    everything = EmbeddingGame(**new).fit(X)
    k = everything.knn_indices_.shape[1]
    graph = knn_graph(X, k, search="exact")
    first, step = int(FIRST * n), int(BATCH * n)
    model = EmbeddingGame(**new).fit(X[:first])
    moves, apart, n_told, seconds = [0.0], [0.0], 0, 0.0
    if args.place:
        begin = time.process_time()
        placed = model.transform(X[first:])
        seconds = time.process_time() - begin
        model.embedding_ = np.concatenate([model.embedding_, placed])
    else:
        moves, apart = [], []
        for at in range(first, n, step):
            before = model.embedding_
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                begin = time.process_time()
                model.partial_fit(X[at : at + step])
                seconds += time.process_time() - begin
            n_told += any("Fit all rows again" in str(one.message) for one in caught)
            apart.append(measure_apartness(model.knn_indices_[at:], at))
            moved = np.linalg.norm(model.embedding_[:at] - before, axis=1)
            moves.append(float(np.median(moved)) / np.ptp(before, axis=0).max())
    energies = [true_energy(X, graph, one) for one in (model, everything)]
    exact = graph.indices[:, :15]
    return {
        "energy": energies[0] / energies[1] - 1,
        "recall": neighbor_recall(exact, model.embedding_),
        "recall, fit": neighbor_recall(exact, everything.embedding_),
        "move": statistics.mean(moves),
        "processor ms/row": 1e3 * seconds / (n - first),
        "apart, least": min(apart),
        "apart, most": max(apart),
        "warn": n_told,
    }


def summary(data: Input, found: list[dict[str, float]]) -> dict[str, Any]:
    """Return a row of the table: mean and standard deviation over the seeds."""
    row: dict[str, Any] = {"data": f"{data.name}, {len(data.X):,}"}
    for key in found[0]:
        values = [each[key] for each in found]
        form = "+.1%" if key == "energy" else ".2%" if key == "move" else ".4g"
        form = form if form != ".4g" or "recall" not in key else ".3f"
        spread = format(statistics.pstdev(values), form.lstrip("+"))
        row[key] = f"{statistics.mean(values):{form}} ± {spread}"
    return row


def main() -> None:
    """Measure and print."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    warnings.simplefilter("ignore")
    noise = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    EmbeddingGame(method=args.method).fit(noise[:200]).partial_fit(noise)  # compiles
    rows = []
    for data in load_all(args.inputs, args):
        some = data.some(MAX_ROWS)
        rows.append(summary(some, [run(some, s, args) for s in range(args.seeds)]))
        print(rows[-1], flush=True)
    report("Rows that join a map", rows, args)


if __name__ == "__main__":
    main()
