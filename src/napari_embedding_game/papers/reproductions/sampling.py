"""What stands for the sum over all pairs, and how far it is from the sum.

Shared by ``game-fig5`` and ``game-fig6``: both play the game of paper 1 with
sampled edges (Eq. 8), sampled landmarks (Eq. 9) and landmarks that move (Eq. 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.dynamics.alarms import occupancy
from napari_embedding_game.core.dynamics.memory_order import memory_order
from napari_embedding_game.core.energy.methods import Approximation, get_method
from napari_embedding_game.core.energy.objective import Objective, make_objective
from napari_embedding_game.core.energy.pair_sums import make_forces
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.papers.reproductions.metrics import knn_accuracy

from .frame import Inputs
from .game_fig4 import distinct_share
from .runs import MNIST_STRENGTH, Placed, looks, placed_digits

Way = Literal["sampled_edges", "sampled_landmarks", "landmarks"]
WAYS: dict[Way, str] = {
    "sampled_edges": "sampled edges",
    "sampled_landmarks": "sampled landmarks",
    "landmarks": "optimised landmarks",
}
N_ITERATIONS = 4_000
"""2,000 with eta_y = 0.03, then 2,000 with a tenth of it; eta_z is ten times that."""
N_POINTS = 5_000
_GAME = get_method("game")


def follow(
    inputs: Inputs, n_points: int, way: Way, n_samples: int, at: Sequence[int]
) -> dict[str, Any]:
    """Play in one way and return energies and gradient errors at ``at``, and the map.

    The last of the iterations ``at`` is where the schedule ends.

    Returns
    -------
    dict
        Lists ``iteration``, ``approximate``, ``true``, ``rmse`` (of the gradient
        in the points, against that of Eq. 1) and ``size`` (root mean square of the
        true gradient); at the end ``layout``, ``landmarks``, ``labels``,
        ``occupancy``, ``distinct`` and ``accuracy``.
    """
    placed = placed_digits(inputs, n_points)
    meter = _Meter(placed, way, n_samples, inputs.random_state)
    settings = Settings(
        approximation=way,
        repulsion=MNIST_STRENGTH,
        n_landmarks=n_samples,
        schedule="paper",
        max_iter=at[-1],
    )
    rows, last = [], None
    for last in looks(placed, settings, at, inputs.random_state):
        rows.append(meter.measure(last))
    assert last is not None
    layout = last.embedding
    return {
        **{key: [row[key] for row in rows] for key in rows[0]},
        "layout": layout,
        "landmarks": last.landmarks,
        "labels": np.unique(placed.labels, return_inverse=True)[1],
        "occupancy": occupancy(layout),
        "distinct": distinct_share(layout),
        "accuracy": knn_accuracy(layout, placed.labels),
    }


class _Meter:
    """The energy that is played on, and the true one, of the same points.

    Samples are drawn by the places of points in memory, so it keeps the points in the
    order in which the game does.
    """

    def __init__(self, placed: Placed, way: Way, n_samples: int, seed: int) -> None:
        self._repulsion = _GAME.lambda_scale(placed.edges) * MNIST_STRENGTH
        self._n = placed.edges.n_points
        start = np.asarray(placed.layout, placed.edges.weights.dtype)
        self._order = memory_order(start)
        forces = make_forces(placed.edges.in_order(self._order), torch.device("cpu"))

        def objective(name: Approximation) -> Objective:
            return make_objective(name, forces, self._repulsion, n_samples, seed)

        self._played, self._true = objective(way), objective("exact")

    def measure(self, snapshot: Snapshot) -> dict[str, float]:
        y = torch.from_numpy(snapshot.embedding[self._order])
        z = torch.from_numpy(snapshot.landmarks)
        approximate, gradient, _ = self._played.evaluate(y, z, True)
        true, wanted, _ = self._true.evaluate(y, z, True)
        return {
            "iteration": snapshot.iteration,
            "approximate": approximate,
            # Eq. 1 counts the pairs i = j, which all pairs of the family leave out.
            "true": true + self._repulsion * self._n,
            "rmse": _rms((gradient - wanted).numpy()),
            "size": _rms(wanted.numpy()),
        }


def _rms(values: NDArray[np.floating]) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
