"""One iteration of the game: milliseconds of the processor, and what they go to.

Points on a random walk with edges to points near by, as in ``pair_loops.py``; nothing
depends on data.  One thread and processor time, so that other programs on the machine
change little.  *Evaluation* is the energy's gradients alone, *rest* what the iteration
takes besides: the rates, the players' update, the state that is handed out.

*Floor* is what no iteration could do without, by what this machine does of it in numpy
or scipy alone: a division for each pair of point and landmark (in the cache), or the
Fourier transforms of the grid; one for each end of an edge; and the bytes that are read
and written once from memory:
number and weight of each edge's end, the points, their velocities and gradients.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import fft

from napari_embedding_game.core.dynamics.game import Game
from napari_embedding_game.core.dynamics.state import Problem
from napari_embedding_game.core.graph.memory_order import memory_order
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.threads import use_one_torch_thread
from pair_loops import problem
from shared import QUICK_ROWS, arguments, report

SIZES = (300, 1_000, 3_000, 70_000)
SECONDS = 0.5
"""For which each piece of work is repeated in a round."""


def processor_ms(work: Callable[[], Any], rounds: int) -> float:
    """Return the milliseconds of the quickest round, what is compiled left out."""
    work()
    found = []
    for _ in range(rounds):
        begin, count = time.process_time(), 0
        while time.process_time() < begin + SECONDS:
            work()
            count += 1
        found.append(1e3 * (time.process_time() - begin) / count)
    return min(found)


def seconds_of_a_division() -> float:
    """Return the processor seconds of one division, of many in the cache."""
    x = np.linspace(1, 2, 8_192, dtype=np.float32)
    y = np.empty_like(x)
    return 1e-3 * processor_ms(lambda: np.divide(1, x, out=y), 2) / len(x)


def seconds_of_a_byte() -> float:
    """Return the processor seconds of reading one byte from memory."""
    x = np.ones(2**24, np.float32)
    return 1e-3 * processor_ms(x.max, 2) / x.nbytes


def seconds_of_transforms(shape: tuple[int, ...], dtype: Any) -> float:
    """Return the processor seconds of a grid's two Fourier transforms."""
    mass = np.ones(shape, dtype)
    return 1e-3 * processor_ms(lambda: fft.irfftn(fft.rfftn(mass), s=shape), 2)


def floor_ms(game: Game, approximation: str) -> float:
    """Return the milliseconds that an iteration cannot do without."""
    forces = game.objective.forces
    n_points, n_dims = game.points.positions.shape
    n_ends = len(forces.edges.indices)
    n_bytes = 8 * n_ends + 4 * n_points * (1 + 6 * n_dims)
    division = seconds_of_a_division()
    if approximation == "mesh":
        grid = forces.mesh._grid
        sums = seconds_of_transforms(grid.shape, grid.dtype)
    else:
        sums = n_points * len(game.landmarks.positions) * division
    return 1e3 * (sums + n_ends * division + n_bytes * seconds_of_a_byte())


def row(n_points: int, approximation: str, rounds: int) -> dict[str, Any]:
    """Return the figures of one size."""
    edges, y = problem(n_points)
    method = "tsne" if approximation == "mesh" else "game"
    settings = Settings(method=method, max_iter=1_000_000)
    order = memory_order(y.numpy())
    ordered = {"edges": edges.reorder_points(order), "layout": y.numpy()[order]}
    game = Game(Problem(**ordered, device=torch.device("cpu")))
    states = game.apply_and_play(settings)
    next(states)
    with use_one_torch_thread():
        step = processor_ms(lambda: next(states), rounds)
        points, landmarks = game.points.positions, game.landmarks.positions
        objective = game.objective
        evaluation = processor_ms(
            lambda: objective.gradients(points, landmarks), rounds
        )
    return {
        "points": f"{n_points:,}",
        "repulsion": approximation,
        "step, ms": step,
        "evaluation, ms": evaluation,
        "rest, ms": step - evaluation,
        "floor, ms": (floor := floor_ms(game, approximation)),
        "step, to floor": step / floor,
    }


def main() -> None:
    """Print the table."""
    args = arguments(__doc__)
    sizes = [n for n in SIZES if not args.quick or n <= QUICK_ROWS]
    rows = [row(n, "landmarks", args.repeats) for n in sizes]
    if not args.quick:
        rows.append(row(SIZES[-1], "mesh", args.repeats))
    report("An iteration, one thread, processor time", rows, args)


if __name__ == "__main__":
    main()
