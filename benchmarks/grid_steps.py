"""Ways to step on the grid, and how low the game's energy is after few iterations.

Points only, no landmarks, from the same start; one seed, one thread.  Each figure is
the true energy (Eq. 1) against that of 500 iterations with landmarks.  In all of them
the learning rate falls by a cosine and the repulsion grows over the first half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from game_on_grid import energy, starts
from napari_embedding_game.core.dynamics.game import stiffness
from napari_embedding_game.core.dynamics.optimizer import resolve_schedule
from napari_embedding_game.core.energy import mesh
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.energy.pair_sums import make_forces
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.types import GameSettings
from shared import arguments, finish, load_all, report

GAME = GameSettings()
INPUTS = ("digits", "swiss roll", "pbmc", "mnist 2000", "newsgroups", "words")
OPTIONS: dict[str, dict[str, Any]] = {"inputs": {"nargs": "+", "default": INPUTS}}


@dataclass(frozen=True)
class Steps:
    """A way to step; ``by_pull``: forces are divided by the weights of the edges."""

    n_iter: int = 200
    rate: float = 0.6
    momentum: float = 0.9
    kind: str = "heavy ball"
    gains: bool = False
    by_pull: bool = False
    spacing: float = mesh.SPACING


_HELD = {"by_pull": True, "rate": 1.0}
WAYS = {
    "rate 0.3, 500 iterations": Steps(n_iter=500, rate=0.3),
    "rate 0.6": Steps(),
    "momentum 0.7": Steps(momentum=0.7),
    "Nesterov's momentum": Steps(kind="Nesterov"),
    "optimistic": Steps(kind="optimistic"),
    "gains as in t-SNE": Steps(gains=True),
    "Adam, a rate for each point": Steps(kind="Adam"),
    "divided by the weights": Steps(**_HELD),
    "divided, gains": Steps(**_HELD, gains=True),
    "divided, momentum 0.95": Steps(**_HELD, momentum=0.95),
    "the same, 100 iterations": Steps(**_HELD, momentum=0.95, n_iter=100),
    "the same, nodes 1 apart": Steps(**_HELD, momentum=0.95, spacing=1.0),
}


def play_points(edges: Edges, layout: np.ndarray, way: Steps) -> np.ndarray:
    """Return the map after these steps."""
    method, schedule = METHODS["game"], resolve_schedule(GAME)
    forces = make_forces(
        edges, torch.device("cpu"), 1, method.attraction, method.kernel
    )
    repulsion = method.lambda_scale(edges) * method.strength
    held = torch.from_numpy(stiffness(edges)) if way.by_pull else 1.0
    y, mover = torch.tensor(layout), _Mover(way, torch.tensor(layout))
    with mock.patch.object(mesh, "SPACING", way.spacing):
        for step in range(way.n_iter):
            done = step / way.n_iter
            pull, push = forces.attract(y), forces.mesh(y)[1]
            force = (pull + repulsion * schedule.repulsion(done) * push) / held
            y = y - way.rate * schedule.rate(done) * mover(force)
    return y.numpy()


class _Mover:
    """Turns forces into steps of length 1, about."""

    def __init__(self, way: Steps, y: Tensor) -> None:
        self._way = way
        self._velocity, self._squared = torch.zeros_like(y), torch.zeros_like(y[:, :1])
        self._gain, self._last = torch.ones_like(y), None

    def __call__(self, force: Tensor) -> Tensor:
        way, v, m = self._way, self._velocity, self._way.momentum
        if way.gains:
            is_same = torch.sign(force) == torch.sign(v)
            self._gain = torch.where(is_same, self._gain + 0.2, self._gain * 0.8)
            force = force * self._gain.clamp_(0.05, 4)
        if way.kind == "Adam":
            self._squared.lerp_(force.square().sum(1, keepdim=True) / 2, 0.1)
            return v.lerp_(force, 1 - m) / self._squared.sqrt().clamp_min(1e-12)
        direction = force / (force.norm() / math.sqrt(force.numel()))
        if way.kind == "optimistic":
            last = direction if self._last is None else self._last
            self._last, direction = direction, 2 * direction - last
        v.lerp_(direction, 1 - m)
        return m * v + (1 - m) * direction if way.kind == "Nesterov" else v


def main() -> None:
    """Print a table."""
    args = arguments(__doc__, **OPTIONS)
    rows: dict[str, dict[str, Any]] = {name: {"steps": name} for name in WAYS}
    for data in load_all(args.inputs, args):
        edges, layout = next(starts(data, "game", 1, 1))
        usual = energy(edges, finish(edges, layout, n_jobs=1).embedding, GAME)
        for name, way in WAYS.items():
            found = energy(edges, play_points(edges, layout, way), GAME)
            rows[name][data.name] = f"{found / usual - 1:+.1%}"
    report("True energy to that of 500 iterations", list(rows.values()), args)


if __name__ == "__main__":
    main()
