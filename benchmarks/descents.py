"""Minimisers over all pairs: what a step costs, and which energy they end at.

Seconds to begin (the Laplacian is factored) and for one of the first steps, on one
thread, of EE and the game, by number of points, drawn from MNIST (50 principal
components); a step of a homotopy is one along the spectral direction.  Then whole
runs of EE on the digits from the default start: energy, share of points under
pressure, seconds; the ratio is to the game over all pairs.  With ``--large`` only EE on
all of MNIST, on the grid, with each optimiser that takes it but the homotopy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.dynamics.minimizers import lbfgs, spectral_direction
from napari_embedding_game.core.dynamics.pressured_points import pressured_points
from napari_embedding_game.core.energy.methods import METHODS, resolve
from napari_embedding_game.core.energy.objective import AllPairs, Objective
from napari_embedding_game.core.energy.optimizer_needs import RULES
from napari_embedding_game.core.energy.pair_sums import CompiledForces
from napari_embedding_game.core.energy.valid_combinations import optimizers
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.names import OptimizerName
from napari_embedding_game.core.types import GameSettings, StartSettings
from shared import Input, arguments, finish, load, report, timed

OPTIONS: dict[str, dict[str, Any]] = {
    "sizes": {"nargs": "+", "type": int, "default": [2_000, 5_000, 10_000, 20_000]},
    "large": {"action": "store_true", "help": "EE on all of MNIST, on the grid"},
}
WAYS: dict[OptimizerName, Callable[..., Iterator[Any]]] = {
    "spectral_direction": spectral_direction,
    "lbfgs": lbfgs,
    "pressured_points": pressured_points,
}
COMPARED_METHODS = ("ee", "game")
N_STEPS = 5


def place(X: np.ndarray, method: str) -> tuple[Edges, np.ndarray]:
    """Return the edges and the start of a method."""
    start = resolve(StartSettings(), method)
    return pipeline.place(pipeline.neighbors(X, start), X, start)


def cost(
    method: str, edges: Edges, layout: np.ndarray, by: OptimizerName
) -> dict[str, Any]:
    """Take the first steps of a minimiser."""
    found = METHODS[method]
    forces = CompiledForces(edges, 1, found.attraction, found.kernel)
    repulsion = found.lambda_scale(edges) * found.strength
    objective = Objective(AllPairs(forces), repulsion, found.aggregate)
    begin = time.perf_counter()
    taken = iter(WAYS[by](objective, layout))
    next(taken)
    first = time.perf_counter()
    n_steps = len(list(islice(taken, N_STEPS)))
    seconds = (time.perf_counter() - first) / max(n_steps, 1)
    return {
        "N": len(layout),
        "method": method,
        "optimiser": by,
        "s to begin": first - begin,
        "s for a step": seconds,
    }


def costs(data: Input, sizes: list[int]) -> list[dict[str, Any]]:
    """Return a row for each size, method and minimiser."""
    rows = []
    for n_rows in sizes:
        some = data.some(n_rows)
        for method in COMPARED_METHODS:
            edges, layout = place(some.X, method)
            for by in WAYS:
                if n_rows <= (RULES[by].most_points or n_rows):
                    rows.append(cost(method, edges, layout, by))
    return rows


def ends(data: Input) -> list[dict[str, Any]]:
    """Run everything that EE takes to its end."""
    edges, layout = place(data.X, "ee")
    rows: list[dict[str, Any]] = []
    for by in optimizers("ee"):
        settings = GameSettings(method="ee", optimizer=by, approximation="exact")
        last, seconds = timed(lambda s=settings: finish(edges, layout, s))
        known = rows[0]["energy"] if rows else last.energy
        rows.append(
            {
                "optimiser": by,
                "energy": last.energy,
                "to the game": last.energy / known,
                "under pressure": last.pressured_share,
                "iterations": last.iteration,
                "s": seconds[0],
            }
        )
    return rows


def ends_on_grid(data: Input) -> list[dict[str, Any]]:
    """Run EE on the grid to its end."""
    edges, layout = place(data.X, "ee")
    rows: list[dict[str, Any]] = []
    for by in ("game", "lbfgs", "spectral_direction"):
        settings = GameSettings(method="ee", optimizer=by, approximation="mesh")
        begin = time.process_time()
        last, seconds = timed(lambda s=settings: finish(edges, layout, s))
        rows.append(
            {
                "optimiser": by,
                "iterations": last.iteration,
                "energy": last.energy,
                "to the game": last.energy
                / (rows[0]["energy"] if rows else last.energy),
                "s of the processor": time.process_time() - begin,
                "s": seconds[0],
            }
        )
    return rows


def main() -> None:
    """Print the tables."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    if args.large:
        mnist = load("mnist", args)
        if mnist is not None:
            ends_on_grid(mnist.some(300))  # compiles
            title = f"EE on the grid, MNIST, {len(mnist.X):,} rows"
            report(title, ends_on_grid(mnist), args)
        return
    digits = load("digits", args)
    assert digits is not None
    costs(digits.some(300), [300])  # compiles
    report(f"EE, {len(digits.X):,} digits", ends(digits), args)
    mnist = load("mnist", args)
    if mnist is not None:
        sizes = [n for n in args.sizes if n <= len(mnist.X)]
        report("One step, MNIST", costs(mnist, sizes), args)


if __name__ == "__main__":
    main()
