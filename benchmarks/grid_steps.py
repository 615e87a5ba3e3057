"""Ways to step on the grid, and how low the game's energy is after few iterations.

Points only, no landmarks, from the same start; one seed, one thread.  Each figure is
the true energy (Eq. 1) against that of 500 iterations with landmarks.  In all of them
the learning rate falls by a cosine and the repulsion grows over the first half.

Coarse to fine: points are joined with the neighbour that pulls them most, again and
again; the joined ones play the first half, every pair of them repelling for all the
pairs that they stand for, and the points go on from where theirs came to lie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import torch
from scipy import sparse
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
    """A way to step.

    ``by_pull``: forces are divided by the weights of the edges.  ``levels``: how often
    points are joined for the first half.
    """

    n_iter: int = 200
    rate: float = 0.6
    momentum: float = 0.9
    kind: str = "heavy ball"
    gains: bool = False
    by_pull: bool = False
    spacing: float = mesh.SPACING
    levels: int = 0


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
    "coarse to fine, 1 level": Steps(**_HELD, momentum=0.95, levels=1),
    "coarse to fine, 2 levels": Steps(**_HELD, momentum=0.95, levels=2),
    "coarse to fine, 3 levels": Steps(**_HELD, momentum=0.95, levels=3),
}


def play_points(edges: Edges, layout: np.ndarray, way: Steps) -> np.ndarray:
    """Return the map after these steps."""
    if not way.levels:
        return play_part(edges, layout, way, METHODS["game"].lambda_scale(edges))
    graph, group = to_csr(edges), np.arange(edges.n_points)
    for _ in range(way.levels):
        graph, joined = join(graph)
        group = joined[group]
    count = np.bincount(group)[:, None]
    start = np.column_stack([np.bincount(group, axis) for axis in layout.T]) / count
    coarse = Edges(
        graph.indptr.astype(np.uint32),
        graph.indices.astype(np.uint32),
        graph.data.astype(np.float32),
    )
    stands_for = (edges.n_points / coarse.n_points) ** 2
    scale = stands_for * METHODS["game"].lambda_scale(edges)
    places = play_part(coarse, start.astype(np.float32), way, scale, until=0.5)
    jitter = 0.1 * np.random.default_rng(0).normal(size=layout.shape)
    layout = (places[group] + jitter).astype(np.float32)
    return play_part(edges, layout, way, METHODS["game"].lambda_scale(edges), 0.5)


def to_csr(edges: Edges) -> sparse.csr_array:
    """Return the weights, (N, N)."""
    parts = edges.weights, edges.indices.astype(np.int64), edges.indptr.astype(np.int64)
    return sparse.csr_array(parts, shape=(edges.n_points,) * 2)


def join(graph: sparse.csr_array) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the graph of joined points, and which of them each point is in, (N,)."""
    n = graph.shape[0]
    partner = np.full(n, -1)
    left = graph.tocsr()
    for _ in range(10):
        best = np.asarray(left.argmax(axis=1)).ravel()
        has_any = np.asarray(left.max(axis=1).todense()).ravel() > 0
        is_mutual = has_any & has_any[best] & (best[best] == np.arange(n))
        partner[is_mutual] = best[is_mutual]
        free = sparse.diags_array((partner < 0).astype(float))
        left = (free @ left @ free).tocsr()
    first = np.where(partner < 0, np.arange(n), np.minimum(np.arange(n), partner))
    group = np.unique(first, return_inverse=True)[1]
    member = sparse.csr_array((np.ones(n), (np.arange(n), group)))
    joined = (member.T @ graph @ member).tocsr()
    joined.setdiag(0)
    joined.eliminate_zeros()
    joined.sort_indices()
    return joined, group


def play_part(
    edges: Edges,
    layout: np.ndarray,
    way: Steps,
    lambda_scale: float,
    since: float = 0.0,
    until: float = 1.0,
) -> np.ndarray:
    """Return the map after the steps of this part of the schedule."""
    method, schedule = METHODS["game"], resolve_schedule(GAME)
    forces = make_forces(
        edges, torch.device("cpu"), 1, method.attraction, method.kernel
    )
    repulsion = lambda_scale * method.strength
    held = torch.from_numpy(stiffness(edges)) if way.by_pull else 1.0
    y, mover = torch.tensor(layout), _Mover(way, torch.tensor(layout))
    wider = max(way.spacing, mesh.WIDER)
    with mock.patch.multiple(mesh, SPACING=way.spacing, WIDER=wider):
        for step in range(round(since * way.n_iter), round(until * way.n_iter)):
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
