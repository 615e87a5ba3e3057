"""The embedding game: two players and their position in the schedule.

A step reads like the paper's Alg. 1; :mod:`play` plays it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.dynamics.hand import AppliedForces
from napari_embedding_game.core.dynamics.large_picture import LargePicture
from napari_embedding_game.core.dynamics.optimizer import Player
from napari_embedding_game.core.dynamics.schedule import Schedule, resolve_schedule
from napari_embedding_game.core.dynamics.state import Problem, State
from napari_embedding_game.core.energy.forces import CompiledForces, Forces
from napari_embedding_game.core.energy.objective import (
    Objective,
    PotentialSums,
    Sums,
    make_objective,
)
from napari_embedding_game.core.energy.torch_forces import TorchForces
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import Edges, sum_absolute_weights
from napari_embedding_game.core.settings import (
    NO_LARGE_PICTURE,
    Settings,
    resolve_method,
    resolve_repulsion,
    validate_point_count,
)
from napari_embedding_game.core.snapshot import HandForces

_FIRM = 0.3
"""Share of the mean stiffness that is added to that of each point."""


def sum_stiffness(edges: Edges) -> NDArray[np.floating]:
    """Return how firmly edges hold each point, (N,), which steps are divided by."""
    stiffness = sum_absolute_weights(edges.indptr, edges.weights)
    stiffness += _FIRM * stiffness.mean()
    # Without any edges all are as free.
    stiffness = stiffness if stiffness.any() else np.ones_like(stiffness)
    return stiffness.astype(edges.weights.dtype)


class Game:
    """Points ``y``, landmarks ``z``, and the game's position in its schedule."""

    objective: Objective
    _schedule: Schedule

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._rng = np.random.default_rng(problem.random_state)
        warm = problem.warm_start
        self.y = self._player(problem.layout)
        self.z = self._player(problem.layout[:0] if warm is None else warm.landmarks)
        self._iteration = problem.iteration
        self._position = 0
        self._iterations_left = None if warm is None else warm.iterations_left
        self._drawn_for: tuple[str, str, int] | None = None
        self._forces: Forces | None = None
        stiffness = sum_stiffness(problem.edges)
        self._stiffness = torch.as_tensor(stiffness, device=problem.device)
        self._hand: AppliedForces | None = None
        known = problem.coordinates
        rows = problem.memory_rows
        self._large_picture = None if known is None else LargePicture(known, rows)
        self._picture_strength = 0.0
        self._sums: Sums | PotentialSums | None = None

    def _player(self, positions: NDArray[np.floating] | Tensor) -> Player:
        if not isinstance(positions, Tensor):
            rows = np.array(positions, self._problem.edges.weights.dtype, order="C")
            positions = torch.as_tensor(rows, device=self._problem.device)
        return Player(positions)

    def set_forces(self, forces: HandForces) -> None:
        """Replace the forces of the hand."""
        self._sums = None
        n_left = self._schedule.n_iter - self._schedule.n_iter // 2
        y, d = self.y.positions, self._problem.n_components
        given = forces, y, d, self._problem.memory_rows, n_left
        self._hand = AppliedForces(*given) if forces else None

    def steps(self, settings: Settings) -> Iterator[State]:
        """Take over settings, and enough of the schedule to act on them; play it."""
        self._apply(settings)
        n_iter = self._schedule.n_iter
        if self._iterations_left is not None:
            self._position = max(0, n_iter - self._iterations_left)
            self._iterations_left = None
        self._position = min(self._position, n_iter // 2)
        return self._played()

    def _apply(self, settings: Settings) -> None:
        settings.validate()
        schedule, n = resolve_schedule(settings), len(self.y.positions)
        validate_point_count(settings, n)
        if settings.large_picture and self._large_picture is None:
            raise InputError(NO_LARGE_PICTURE)
        self._picture_strength = settings.large_picture
        self._sums, self._schedule = None, schedule
        self._set_landmarks(min(settings.n_landmarks, n))
        self._choose_objective(settings)
        self.objective.follow(self.y.positions, self.z.positions)

    def _choose_objective(self, settings: Settings) -> None:
        problem, edges = self._problem, self._problem.edges
        method, approx = resolve_method(settings.method, settings.approximation)
        self._repulsion = method.lambda_scale(edges) * resolve_repulsion(settings)
        # Drawing samples for large data takes half a second: not at every steer.
        request = settings.method, approx, len(self.z.positions)
        if request != self._drawn_for:
            self._drawn_for = request
            functions, forces = (method.attraction, method.kernel), self._forces
            if forces is None or (forces.attraction, forces.kernel) != functions:
                if problem.device.type == "cpu":
                    forces = CompiledForces(edges, *functions)
                else:
                    forces = TorchForces(edges, problem.device, *functions)
            law = len(self.z.positions), problem.random_state, method.aggregate
            self.objective = make_objective(approx, forces, self._repulsion, *law)
            self._forces = forces
        self.objective.repulsion = self._repulsion

    def _set_landmarks(self, n_landmarks: int) -> None:
        """Drop landmarks at random, or add some on top of random points."""
        old, rows = self.z.positions, self._problem.memory_rows
        kept = np.arange(len(old))
        if n_landmarks < len(old):
            kept = np.sort(self._rng.choice(len(old), n_landmarks, replace=False))
        n_new = max(0, n_landmarks - len(old))
        drawn = self._rng.choice(len(self.y.positions), n_new, replace=False)
        drawn = drawn if rows is None else rows[drawn]
        new = self.y.positions[torch.as_tensor(drawn, device=old.device)]
        stay = old[torch.as_tensor(kept, device=old.device)]
        velocity, self.z = self.z.velocity, self._player(torch.cat([stay, new]))
        if velocity is not None:
            self.z.velocity = torch.cat([velocity[kept], torch.zeros_like(new)])

    def energy(self, state: State) -> float:
        """Return the energy now, of the sums that the next step begins with."""
        if self._sums is None:
            self._sums = self.objective.sums(self.y.positions, self.z.positions)
        return self.objective.energy(self.y.positions, self.z.positions, self._sums)

    def _played(self) -> Iterator[State]:
        yield self._state()
        while self._position < self._schedule.n_iter:
            schedule, momentum = self._schedule, self._schedule.momentum
            done = self._position / schedule.n_iter
            y, z = self.y.positions, self.z.positions
            sums = self._sums or self.objective.sums(y, z)
            self._sums = None
            self.objective.repulsion = self._repulsion * schedule.repulsion(done)
            down, up = self.objective.gradients(y, z, sums)
            self.objective.repulsion = self._repulsion
            if self._picture_strength and self._large_picture is not None:
                self._large_picture.add_pull(down, y, z, self._picture_strength)
            factor = schedule.rate(done)
            scale = self._stiffness if schedule.by_pull else None
            self.y.step(down, -factor * schedule.learning_rate, momentum, scale)
            self.z.step(up, factor * schedule.landmark_learning_rate, momentum)
            self.z.stop(self.objective.follow(y, z))
            if self._hand is not None:
                self._hand.move(self.y, self.z)
            self._position += 1
            self._iteration += 1
            yield self._state()

    def _state(self) -> State:
        left = self._schedule.n_iter - self._position
        n_iter = self._iteration + left
        return State(self._iteration, n_iter, self.y.positions, self.z.positions)
