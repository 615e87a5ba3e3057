"""The game with its points pushed by landmarks (Eq. 3) and by a grid, on many data.

Neighbours, edges and start are made once for each seed and shared by all ways; ``s`` is
the processor time of the game alone, all threads together, median of the seeds, on
``--jobs`` threads.  Energy: Eq. 1 over all pairs, above 10,000 rows by a grid half as
wide as the game's.  Accuracy: 15-nearest-neighbour classification on the map; labels of
fewer than 10 rows are left out of it.
Recall: share of the 15 exact input neighbours that are among the 15 on the map.  Means
over the seeds and their standard deviation.

A way is written ``name:approximation[:setting=value]...``, with settings of
:class:`GameSettings`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.energy import mesh
from napari_embedding_game.core.energy.methods import get_method, resolve, strength_of
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.energy.pair_sums import make_forces
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.metrics import knn_accuracy, neighbor_recall
from napari_embedding_game.core.types import GameSettings, StartSettings
from shared import SOURCES, Input, arguments, finish, load_all, report

WAYS = (
    "landmarks:landmarks",
    "grid:mesh",
)
OPTIONS: dict[str, dict[str, Any]] = {
    "seeds": {"type": int, "default": 5},
    "jobs": {"type": int, "default": None},
    "method": {"default": "game"},
    "ways": {"nargs": "+", "default": WAYS},
    "inputs": {
        "nargs": "+",
        "choices": tuple(SOURCES),
        "default": [name for name in SOURCES if name != "mnist pixels"],
    },
}
FEW_ROWS = 10
MOST_ONE_BY_ONE = 10_000


def settings_of(way: str, method: str) -> tuple[str, GameSettings]:
    """Return the name and the settings of a way."""
    name, approximation, *pairs = way.split(":")
    settings = GameSettings(method=method, approximation=approximation)  # type: ignore[arg-type]
    for pair in pairs:
        key, value = pair.split("=")
        kind = int if key in ("max_iter", "n_landmarks") else float
        is_word = key in ("schedule", "update", "landmark_update")
        settings = replace(settings, **{key: value if is_word else kind(value)})
    return name, settings


def energy(edges: Edges, embedding: np.ndarray, settings: GameSettings) -> float:
    """Return Eq. 1 of a map."""
    method = get_method(settings.method)
    forces = make_forces(
        edges, torch.device("cpu"), None, method.attraction, method.kernel
    )
    is_small = len(embedding) <= MOST_ONE_BY_ONE
    objective = make_objective(
        "exact" if is_small else "mesh",
        forces,
        method.lambda_scale(edges) * strength_of(settings),
        1,
        aggregate=method.aggregate,
    )
    y = torch.from_numpy(embedding)
    spacing = mesh.SPACING
    mesh.SPACING = spacing / 2
    try:
        return objective.evaluate(y, y[:1], True)[0]
    finally:
        mesh.SPACING = spacing


def starts(
    data: Input, method: str, n_seeds: int, n_jobs: int | None
) -> Iterator[tuple[Edges, np.ndarray]]:
    """Yield edges and start of each seed."""
    for seed in range(n_seeds):
        start = resolve(StartSettings(random_state=seed, n_jobs=n_jobs), method)
        yield pipeline.place(pipeline.neighbors(data.X, start), data.X, start)


def measure(data: Input, args: Any) -> list[dict[str, Any]]:
    """Play and judge every way with every seed."""
    exact = knn_graph(data.X, 15, search="brute" if len(data.X) < 5_000 else "exact")
    _, place, count = np.unique(data.labels, return_inverse=True, return_counts=True)
    judged = count[place] >= FEW_ROWS
    ways = [settings_of(way, args.method) for way in args.ways]
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name, _ in ways}
    for seed, (edges, layout) in enumerate(
        starts(data, args.method, args.seeds, args.jobs)
    ):
        for name, settings in ways:
            begin = time.process_time()
            last = finish(edges, layout, settings, seed, n_jobs=args.jobs, device="cpu")
            seconds = time.process_time() - begin
            figures = (
                energy(edges, last.embedding, settings),
                knn_accuracy(last.embedding[judged], data.labels[judged]),
                neighbor_recall(exact.indices, last.embedding),
                seconds,
            )
            found[name].append(figures)
    return [
        _row(data, name, figures, found[ways[0][0]]) for name, figures in found.items()
    ]


def _row(
    data: Input,
    name: str,
    figures: list[tuple[float, ...]],
    first: list[tuple[float, ...]],
) -> dict[str, Any]:
    energies, accuracy, recall, seconds = zip(*figures, strict=True)
    usual = list(zip(*first, strict=True))
    usual_energy = statistics.mean(usual[0])
    return {
        "input": data.name,
        "rows": len(data.X),
        "way": name,
        "energy": f"{statistics.mean(energies):.6g}",
        "to the first": f"{statistics.mean(energies) / usual_energy - 1:+.2%}",
        "accuracy": _spread(accuracy),
        "recall": _spread(recall),
        "s": round(statistics.median(seconds), 2),
        "time, to the first": statistics.median(seconds) / statistics.median(usual[3]),
    }


def _spread(values: tuple[float, ...]) -> str:
    return f"{statistics.mean(values):.4f} ± {statistics.pstdev(values):.4f}"


def main() -> None:
    """Print a table for each input."""
    args = arguments(__doc__, **OPTIONS)
    noise = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
    for edges, layout in starts(Input("", noise, noise), args.method, 1, 1):
        for way in args.ways:  # which compiles
            settings = replace(settings_of(way, args.method)[1], max_iter=3)
            finish(edges, layout, settings, device="cpu")
    for data in load_all(args.inputs, args):
        report(f"{args.method}, {data.name}", measure(data, args), args)


if __name__ == "__main__":
    main()
