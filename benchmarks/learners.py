"""Ways for both players to move: true energy, bound, accuracy and recall.

Every pair plays the default game (`fast` schedule, default edges, 500 iterations)
in a small loop of its own, from the same starts.  A player's loss in a round is its
gradient divided by the gradient's root mean square, its weight the schedule's rate.

- momentum: the default, v <- 0.9 v + 0.1 g
- omd: a plain step (momentum 0)
- optimistic: a step along 2 g - (the g before)
- optimistic momentum: momentum of 2 g - (the g before)
- omd+, momentum+: the landmarks see where the points went, then step
- best response: momentum+ with ten steps of the landmarks for each of the points
- mean: momentum, and the map is the weighted mean of the last fifth of the iterations

FTRL without bounds is omd.  FTL and FTL+ would need the best landmarks against the
mean of all maps so far: the first maps are noise, and they would never be forgotten.

Evaluations counts how often the landmark sums were worked out.  Energies are means
over the seeds, with their standard deviation; the ratio is to the default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from napari_embedding_game.core.dynamics.optimizer import resolve_schedule
from napari_embedding_game.core.energy.methods import strength_of
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.energy.pair_sums import CompiledForces
from napari_embedding_game.core.graph.affinities import Edges, edges
from napari_embedding_game.core.graph.classical.online_learners import (
    Average,
    Learner,
    MirrorDescent,
)
from napari_embedding_game.core.graph.initialization import start_layout
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.metrics import (
    knn_accuracy,
    neighbor_recall,
    true_energy,
)
from napari_embedding_game.core.names import DEFAULT_AFFINITY
from napari_embedding_game.core.types import GameSettings
from napari_embedding_game.core.warm_up import compile_kernels
from napari_embedding_game.papers.reproductions.learners import OptimisticDescent
from shared import Input, arguments, load_all, report

INPUTS = ("digits", "pbmc", "mnist")
OPTIONS: dict[str, dict[str, Any]] = {
    "seeds": {"type": int, "default": 3},
    "rows": {"type": int, "default": 10_000, "help": "most rows of an input"},
    "inputs": {"nargs": "+", "choices": INPUTS, "default": INPUTS},
}
MOMENTUM = 0.9
INNER_STEPS = 10
AVERAGED_SHARE = 0.2


class HeavyBall(MirrorDescent):
    """The game's own rule: a step along the running mean of the losses."""

    def __init__(self, start: Tensor, step: float, *, prescient: bool = False) -> None:
        super().__init__(start, step, prescient=prescient)
        self._velocity = torch.zeros_like(start)

    def observe(self, weight: float, other: Tensor) -> None:
        """Step."""
        self._velocity = torch.lerp(other, self._velocity, MOMENTUM)
        super().observe(weight, self._velocity)


class OptimisticBall(HeavyBall):
    """The same with the last change of the loss counted twice."""

    _last: Tensor | None = None

    def observe(self, weight: float, other: Tensor) -> None:
        """Step."""
        last = other if self._last is None else self._last
        self._last = other
        super().observe(weight, 2 * other - last)


Rule = Callable[[Tensor, float], Learner]
RULES: dict[str, Rule] = {
    "momentum": HeavyBall,
    "omd": MirrorDescent,
    "optimistic": OptimisticDescent,
    "optimistic momentum": OptimisticBall,
    "omd+": lambda z, step: MirrorDescent(z, step, prescient=True),
    "momentum+": lambda z, step: HeavyBall(z, step, prescient=True),
    "best response": lambda z, step: HeavyBall(z, step, prescient=True),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Who moves how; factors on the schedule's learning rates."""

    points: str = "momentum"
    landmarks: str = "momentum"
    points_factor: float = 1.0
    landmarks_factor: float = 1.0
    averaged: bool = False


PAIRS = (
    Pair(),
    Pair("omd", "omd"),
    Pair("omd", "omd", 0.3, 0.3),
    Pair("omd", "momentum"),
    Pair("momentum", "omd"),
    Pair("optimistic", "optimistic"),
    Pair("momentum", "optimistic"),
    Pair("optimistic momentum", "optimistic momentum"),
    Pair("optimistic momentum", "momentum"),
    Pair("momentum", "optimistic momentum"),
    Pair("momentum", "momentum+"),
    Pair("momentum", "omd+"),
    Pair("momentum", "best response"),
    Pair("momentum", "best response", landmarks_factor=0.1),
    Pair(averaged=True),
)


def unit(gradient: Tensor) -> Tensor:
    """Divide by the root mean square."""
    return gradient / gradient.square().mean().sqrt().clamp_min(1e-30)


class Table:
    """Points and landmarks that play a pair of rules against each other."""

    def __init__(self, weighted: Edges, layout: np.ndarray, pair: Pair, seed: int):
        settings = GameSettings()
        self.schedule = resolve_schedule(settings)
        self.repulsion = strength_of(settings) / len(layout)
        forces = CompiledForces(weighted)
        n_landmarks = min(settings.n_landmarks, len(layout))
        self.objective = make_objective(
            "landmarks", forces, self.repulsion, n_landmarks
        )
        self.y = torch.from_numpy(layout.copy())
        chosen = np.random.default_rng(seed).choice(
            len(layout), n_landmarks, replace=False
        )
        self.z = self.y[torch.from_numpy(chosen)].clone()
        step = self.schedule.learning_rate * pair.points_factor
        self.points = RULES[pair.points](self.y, step)
        step = self.schedule.landmark_learning_rate * pair.landmarks_factor
        self.landmarks = RULES[pair.landmarks](self.z, step)
        self.n_inner = INNER_STEPS if pair.landmarks == "best response" else 1
        self.evaluations = 0

    def play(self, pair: Pair) -> None:
        """Play the whole schedule; leave the last map, or the mean of the last."""
        means = Average(), Average()
        n_iter = self.schedule.n_iter
        for iteration in range(n_iter):
            done = iteration / n_iter
            self.objective.repulsion = self.repulsion * self.schedule.repulsion(done)
            self.round(self.schedule.rate(done))
            if pair.averaged and done >= 1 - AVERAGED_SHARE:
                means[0].add(self.schedule.rate(done), self.y)
                means[1].add(self.schedule.rate(done), self.z)
        if pair.averaged:
            self.y, self.z = means[0].mean, means[1].mean
        self.objective.repulsion = self.repulsion

    def round(self, weight: float) -> None:
        """Move both players once."""
        y_gradient, z_gradient = self.gradients()
        self.points.observe(weight, unit(y_gradient))
        if not self.landmarks.prescient:
            self.landmarks.observe(weight, -unit(z_gradient))
            self.y, self.z = self.points.act(), self.landmarks.act()
            return
        self.y = self.points.act()
        for _ in range(self.n_inner):
            self.landmarks.observe(weight, -unit(self.gradients()[1]))
            self.z = self.landmarks.act()

    def gradients(self) -> tuple[Tensor, Tensor]:
        """Return the energy's gradients in points and landmarks."""
        self.evaluations += 1
        return self.objective.evaluate(self.y, self.z, False)[1:]

    def bound(self) -> float:
        """Return Eq. 3."""
        return self.objective.evaluate(self.y, self.z, True)[0]


def measure(data: Input, n_seeds: int) -> list[dict[str, Any]]:
    """Play every pair with every seed, each from the seed's own start."""
    graph = knn_graph(data.X, search="exact")
    weighted = edges(graph, DEFAULT_AFFINITY)
    starts = [start_layout(weighted, data.X, random_state=s) for s in range(n_seeds)]
    rows: list[dict[str, Any]] = []
    first = None
    for pair in PAIRS:
        found = []
        for seed, start in enumerate(starts):
            table = Table(weighted, start, pair, seed)
            table.play(pair)
            layout = np.ascontiguousarray(table.y.numpy())
            energy = true_energy(weighted, layout, table.repulsion)
            recall = neighbor_recall(graph.indices, layout)
            accuracy = knn_accuracy(layout, data.labels)
            found.append((energy, table.bound() / energy, accuracy, recall))
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
        first = mean[0] if first is None else first
        rows.append(_row(data, pair, mean, spread, first) | {
            "evaluations": table.evaluations
        })  # fmt: skip
    return rows


def _row(
    data: Input, pair: Pair, mean: np.ndarray, spread: np.ndarray, first: float
) -> dict[str, Any]:
    return {
        "input": data.name,
        "points": f"{pair.points} x{pair.points_factor:g}"
        + (", mean" if pair.averaged else ""),
        "landmarks": f"{pair.landmarks} x{pair.landmarks_factor:g}",
        "true energy": round(mean[0]),
        "to default": f"{mean[0] / first:.4f} ± {spread[0] / first:.4f}",
        "bound / true": f"{mean[1]:.3f}",
        "accuracy": f"{mean[2]:.4f} ± {spread[2]:.4f}",
        "recall": f"{mean[3]:.4f} ± {spread[3]:.4f}",
    }


def main() -> None:
    """Print a table for each input."""
    args = arguments(__doc__, repeats=1, **OPTIONS)
    compile_kernels()
    for data in load_all(args.inputs, args):
        some = data.some(args.rows)
        title = f"Ways to move, {data.name}, {len(some.X):,} points"
        report(title, measure(some, args.seeds), args)


if __name__ == "__main__":
    main()
