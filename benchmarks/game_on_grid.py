r"""The game with its points pushed by landmarks (Eq. 3) and by a grid, on many data.

Neighbours, edges and start are made once for each seed and shared by all ways; ``s`` is
the processor time of the game alone, all threads together, median of the seeds, on
``--jobs`` threads.  Energy: Eq. 1 over all pairs, above 10,000 rows by a grid half as
wide as the game's.  Accuracy: 15-nearest-neighbour classification on the map; labels of
fewer than 10 rows are left out of it.
Recall: share of the 15 exact input neighbours that are among the 15 on the map.
Beside landmarks: the median number of points that lie nearer than 0.3 to a landmark,
as a share of the median number that lie so near to a point; below 1, landmarks make
holes in the map.  Means over the seeds and their standard deviation.

A way is written ``name:approximation[:setting=value]...``, with settings of
:class:`GameSettings`; ``steps=plain`` plays it with the fast schedule's own steps, not
those that the method has on a grid.  For t-SNE::

    python benchmarks/game_on_grid.py --method tsne --seeds 1 --ways \
        plain:mesh:steps=plain:learning_rate=2:landmark_learning_rate=1 own:mesh
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import torch
from scipy.spatial import cKDTree

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.energy import mesh
from napari_embedding_game.core.energy.methods import (
    METHODS,
    get_method,
    resolve,
    strength_of,
)
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.energy.pair_sums import make_forces
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.metrics import knn_accuracy, neighbor_recall
from napari_embedding_game.core.types import GameSettings, Snapshot, StartSettings
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
NEAR, N_ASKED = 0.3, 2_000
MOST_ONE_BY_ONE = 10_000


@dataclass(frozen=True)
class Way:
    """Settings, and whether the method's own steps on a grid are played."""

    name: str
    settings: GameSettings
    is_plain: bool = False

    def play(self, edges: Edges, layout: np.ndarray, **options: Any) -> Snapshot:
        """Return the last snapshot."""
        method = METHODS[self.settings.method]
        if self.is_plain:
            method = replace(method, on_grid=None)
        with mock.patch.dict(METHODS, {self.settings.method: method}):
            return finish(edges, layout, self.settings, device="cpu", **options)


def way_of(written: str, method: str) -> Way:
    """Return the way that is written."""
    name, approximation, *pairs = written.split(":")
    settings = GameSettings(method=method, approximation=approximation)  # type: ignore[arg-type]
    is_plain = "steps=plain" in pairs
    for pair in pairs:
        key, value = pair.split("=")
        if key == "steps":
            continue
        kind = int if key in ("max_iter", "n_landmarks") else float
        is_word = key in ("schedule", "update", "landmark_update")
        settings = replace(settings, **{key: value if is_word else kind(value)})
    return Way(name, settings, is_plain)


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
    half = mesh.SPACING / 2
    with mock.patch.multiple(mesh, SPACING=half, WIDER=half):
        return objective.evaluate(y, y[:1], True)[0]


def beside_landmarks(last: Snapshot) -> float:
    """Return how many points lie near a landmark, to those near a point; medians."""
    tree = cKDTree(last.embedding)
    rng = np.random.default_rng(0)
    n = len(last.embedding)
    asked = last.embedding[rng.choice(n, min(n, N_ASKED), replace=False)]
    near = [
        np.median(tree.query_ball_point(at, NEAR, return_length=True))
        for at in (last.landmarks, asked)
    ]
    return float(near[0] / max(near[1], 1))


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
    ways = [way_of(way, args.method) for way in args.ways]
    found: dict[str, list[tuple[float, ...]]] = {way.name: [] for way in ways}
    for seed, (edges, layout) in enumerate(
        starts(data, args.method, args.seeds, args.jobs)
    ):
        for way in ways:
            begin = time.process_time()
            last = way.play(edges, layout, seed=seed, n_jobs=args.jobs)
            seconds = time.process_time() - begin
            figures = (
                energy(edges, last.embedding, way.settings),
                knn_accuracy(last.embedding[judged], data.labels[judged]),
                neighbor_recall(exact.indices, last.embedding),
                seconds,
                beside_landmarks(last),
            )
            found[way.name].append(figures)
    return [
        _row(data, name, figures, found[ways[0].name])
        for name, figures in found.items()
    ]


def _row(
    data: Input,
    name: str,
    figures: list[tuple[float, ...]],
    first: list[tuple[float, ...]],
) -> dict[str, Any]:
    energies, accuracy, recall, seconds, beside = zip(*figures, strict=True)
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
        "beside landmarks": round(statistics.mean(beside), 2),
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
            settings = replace(way_of(way, args.method).settings, max_iter=3)
            finish(edges, layout, settings, device="cpu")
    for data in load_all(args.inputs, args):
        report(f"{args.method}, {data.name}", measure(data, args), args)


if __name__ == "__main__":
    main()
