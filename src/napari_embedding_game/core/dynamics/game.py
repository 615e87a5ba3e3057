"""The embedding game itself: two players and where they stand in the schedule.

A step reads like the paper's Alg. 1; :mod:`play` plays it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.dynamics.hand import AppliedForces, edited
from napari_embedding_game.core.dynamics.optimizer import PlayerRMS
from napari_embedding_game.core.dynamics.schedule import Schedule, resolve_schedule
from napari_embedding_game.core.dynamics.state import Problem, State
from napari_embedding_game.core.energy.methods import Method
from napari_embedding_game.core.energy.objective import (
    Objective,
    Sums,
    make_objective,
)
from napari_embedding_game.core.energy.pair_sums import Forces, make_forces
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.settings import (
    Settings,
    check_size,
    choose,
    repulsion_of,
)
from napari_embedding_game.core.snapshot import HandForces

_FIRM = 0.3
"""What every point has of the mean stiffness, besides its own."""


def stiffness(edges: Edges) -> NDArray[np.floating]:
    """Return how firmly each point is held by its edges, (N, 1), for longer steps.

    The curvature of an attraction is about the sum of the weights; a part of the mean
    keeps points with next to no edges in place.
    """
    summed = np.zeros(len(edges.weights) + 1)
    np.cumsum(np.abs(edges.weights), out=summed[1:], dtype=float)
    held = np.diff(summed[edges.indptr])
    held += _FIRM * held.mean()
    # Without any edges all are as free.
    held = held if held.any() else np.ones_like(held)
    column: NDArray[np.floating] = held[:, None].astype(edges.weights.dtype)
    return column


class Game:
    """Points, landmarks, and where in its schedule the game stands."""

    moved_by = PlayerRMS
    shows_every_step = False
    farthest = 1e6
    """Beyond this points feel nothing: maps are some tens to some thousands wide."""
    way_back = "lower the learning rates"

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._rng = np.random.default_rng(problem.random_state)
        warm = problem.warm_start
        landmarks = problem.layout[:0] if warm is None else warm.landmarks
        self._y = self._player(problem.layout)
        self._z = self._player(landmarks)
        self._optimizer = self.moved_by([{"params": [self._y]}], n_jobs=problem.n_jobs)
        self._optimizer.add_param_group({"params": [self._z], "maximize": True})
        self._iteration = problem.iteration
        self._position = 0
        self._iterations_left = None if warm is None else warm.iterations_left
        self._drawn_for: tuple[str, str, int] | None = None
        self._forces: Forces | None = None
        self._stiffness = torch.as_tensor(
            stiffness(problem.edges), device=problem.device
        )
        self._hand: AppliedForces | None = None
        self._sums: Sums | None = None

    def _player(self, positions: NDArray[np.floating]) -> torch.nn.Parameter:
        rows = np.array(positions, self._problem.edges.weights.dtype, order="C")
        return torch.nn.Parameter(torch.as_tensor(rows, device=self._problem.device))

    # --- Settings

    def take_forces(self, forces: HandForces) -> None:
        """Let these forces of a hand act from now on, in place of those before.

        Raises
        ------
        InputError
            They are not of points and places of this map.
        """
        self._sums = None
        n_left = self._schedule.n_iter - self._schedule.n_iter // 2
        y, places = self._y.detach(), self._problem.places
        self._hand = AppliedForces(forces, y, places, n_left) if forces else None
        for edit in forces.edits:
            self._replace_landmarks(*edited(self._z.detach(), edit))

    def steps(self, settings: Settings) -> Iterator[State]:
        """Take over settings, and enough of the schedule to act on them; play it.

        Raises
        ------
        InputError
            A setting is out of range, or the points are too many for it.
        """
        self._apply(settings)
        n_iter = self._schedule.n_iter
        if self._iterations_left is not None:
            self._position = max(0, n_iter - self._iterations_left)
            self._iterations_left = None
        self._position = min(self._position, n_iter // 2)
        return self._states()

    def _states(self) -> Iterator[State]:
        yield self._state()
        while self._position < self._schedule.n_iter:
            self._step()
            yield self._state()

    def _state(self) -> State:
        left = self._schedule.n_iter - self._position
        return State(self._iteration, self._iteration + left, self._y, self._z)

    def _apply(self, settings: Settings) -> None:
        settings.validate()
        schedule = resolve_schedule(settings)
        check_size(settings, len(self._y), self._problem.n_components)
        self._sums = None
        self._schedule: Schedule = schedule
        self._set_landmarks(min(settings.n_landmarks, len(self._y)))
        self._choose_objective(settings)
        self.objective.follow(self._y, self._z)

    def _choose_objective(self, settings: Settings) -> None:
        method, approximation = choose(settings.method, settings.approximation)
        scale = method.lambda_scale(self._problem.edges)
        self._repulsion = scale * repulsion_of(settings)
        # Drawing samples for large data takes half a second: not at every steer.
        wanted = settings.method, approximation, len(self._z)
        if wanted != self._drawn_for:
            self._drawn_for = wanted
            self.objective: Objective = make_objective(
                approximation,
                self._forces_of(method),
                self._repulsion,
                len(self._z),
                self._problem.random_state,
                method.aggregate,
            )
        self.objective.repulsion = self._repulsion

    def _forces_of(self, method: Method) -> Forces:
        wanted = method.attraction, method.kernel
        forces, problem = self._forces, self._problem
        if forces is None or (forces.attraction, forces.kernel) != wanted:
            forces = make_forces(problem.edges, problem.device, problem.n_jobs, *wanted)
        self._forces = forces
        return forces

    def _set_landmarks(self, n_landmarks: int) -> None:
        """Drop landmarks at random, or add some on top of random points."""
        old = self._z.detach()
        kept = np.arange(len(old))
        if n_landmarks < len(old):
            kept = np.sort(self._rng.choice(len(old), n_landmarks, replace=False))
        n_new = max(0, n_landmarks - len(old))
        drawn = self._rng.choice(len(self._y), n_new, replace=False)
        places = self._problem.places
        drawn = drawn if places is None else places[drawn]
        new = self._y.detach()[torch.as_tensor(drawn, device=old.device)]
        stay = old[torch.as_tensor(kept, device=old.device)]
        self._replace_landmarks(torch.cat([stay, new]), kept)

    def _replace_landmarks(self, z: torch.Tensor, kept: NDArray[np.intp]) -> None:
        """Play with other landmarks (L, d); the first are kept, and their momentum."""
        velocity = self._velocity(self._z)
        self._optimizer.state.pop(self._z, None)
        self._z = torch.nn.Parameter(z)
        self._optimizer.param_groups[1]["params"] = [self._z]
        if velocity is not None:
            moving = torch.zeros_like(z)
            moving[: len(kept)] = velocity[torch.as_tensor(kept, device=z.device)]
            self._optimizer.state[self._z]["velocity"] = moving

    # --- Play

    def energy(self) -> float:
        """Return the energy of the present points and landmarks.

        Its sums are those that the next step begins with, and are kept for it: all
        that the number costs beyond the game is a logarithm for each edge.
        """
        if self._sums is None:
            self._sums = self.objective.sums(self._y, self._z)
        return self.objective.energy(self._y, self._z, self._sums)

    def _step(self) -> None:
        done = self._position / self._schedule.n_iter
        self._set_rates(done)
        self.objective.repulsion = self._repulsion * self._schedule.repulsion(done)
        self._y.grad, self._z.grad = self.objective.gradients(
            self._y, self._z, self._sums
        )
        self._sums = None
        self.objective.repulsion = self._repulsion
        self._optimizer.step()
        if self._hand is not None:
            self._hand.move(self._y.detach(), self._velocity(self._y))
            self._hand.move_landmarks(self._z.detach(), self._velocity(self._z))
        self.objective.follow(self._y, self._z)
        self._position += 1
        self._iteration += 1

    def _velocity(self, player: torch.nn.Parameter) -> torch.Tensor | None:
        velocity: torch.Tensor | None
        velocity = self._optimizer.state.get(player, {}).get("velocity")
        return velocity

    def _set_rates(self, done: float) -> None:
        points, landmarks = self._optimizer.param_groups
        points["lr"], landmarks["lr"] = self._rates(done)
        points["scale"] = self._stiffness if self._schedule.by_pull else None
        points["momentum"] = landmarks["momentum"] = self._schedule.momentum

    def _rates(self, done: float) -> tuple[float, float]:
        """Return the learning rates of both players for the next step."""
        schedule, factor = self._schedule, self._schedule.rate(done)
        points = factor * schedule.learning_rate
        return points, factor * schedule.landmark_learning_rate
