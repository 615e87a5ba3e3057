"""The game itself: points and landmarks that play against each other.

A step reads like the paper's Alg. 1; :mod:`driver` plays it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.dynamics.hand_forces import AppliedForces, edited
from napari_embedding_game.core.dynamics.memory_order import inverse, memory_order
from napari_embedding_game.core.dynamics.optimizer import (
    PlayerRMS,
    Schedule,
    resolve_schedule,
)
from napari_embedding_game.core.dynamics.state import Problem, State, in_the_plane
from napari_embedding_game.core.energy.methods import Method
from napari_embedding_game.core.energy.objective import (
    Objective,
    Sums,
    make_objective,
)
from napari_embedding_game.core.energy.pair_sums import Forces, make_forces
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.settings import (
    Settings,
    check_size,
    choose,
    repulsion_of,
)
from napari_embedding_game.core.snapshot import HandForces, LandmarkEdit

_FIRM = 0.3
"""What every point has of the mean stiffness, besides its own."""
_AT_ONCE = 1 << 17
"""Weights that are summed together: meanwhile no other thread goes on."""


def stiffness(edges: Edges) -> NDArray[np.floating]:
    """Return how firmly each point is held by its edges, (N, 1), for longer steps.

    The curvature of an attraction is about the sum of the weights; a part of the mean
    keeps points with next to no edges in place.
    """
    ends = edges.indptr.astype(np.int64)
    summed = np.zeros(len(edges.weights) + 1)
    for begin in range(0, len(edges.weights), _AT_ONCE):
        part = edges.weights[begin : begin + _AT_ONCE]
        running = summed[begin : begin + len(part) + 1]
        np.abs(part, out=running[1:])
        np.cumsum(running, out=running)
    held = summed[ends[1:]] - summed[ends[:-1]]
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
        edges, layout = problem.edges, problem.layout
        self._seed = problem.random_state
        self._rng = np.random.default_rng(problem.random_state)
        self._device = problem.device
        self._n_jobs = problem.n_jobs
        self._forces: Forces | None = None
        layout = in_the_plane(np.asarray(layout, edges.weights.dtype))
        # Inside, the points have an order of their own; outside, that of the data.
        order = memory_order(layout)
        self.places = inverse(order)
        self._edges = edges.in_order(order)
        layout = layout[order]
        self._y = torch.nn.Parameter(torch.tensor(layout, device=self._device))
        warm_start = problem.warm_start
        landmarks = layout[:0] if warm_start is None else warm_start.landmarks
        landmarks = in_the_plane(np.asarray(landmarks, layout.dtype))
        self._z = torch.nn.Parameter(torch.tensor(landmarks, device=self._device))
        self._iterations_left = None if not warm_start else warm_start.iterations_left
        self._optimizer = self.moved_by([{"params": [self._y]}], n_jobs=problem.n_jobs)
        self._optimizer.add_param_group({"params": [self._z], "maximize": True})
        self._iteration = 0
        self._position = 0
        self._drawn_for: tuple[str, str, int] | None = None
        self._stiffness = torch.as_tensor(stiffness(self._edges), device=self._device)
        self._hand: AppliedForces | None = None
        self._sums: Sums | None = None

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
        applied = AppliedForces(forces, self._y.detach(), self.places, n_left)
        self._hand = applied if forces else None
        for edit in forces.edits:
            self._edit_landmarks(edit)

    def steps(self, settings: Settings) -> Iterator[State]:
        """Take over settings, and enough of the schedule to act on them; play it."""
        self._apply(settings)
        if self._iterations_left is not None:
            self._position = max(0, self._schedule.n_iter - self._iterations_left)
            self._iterations_left = None
        self._position = min(self._position, self._schedule.n_iter // 2)
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
        check_size(settings, *self._y.shape)
        self._sums = None
        self._settings = settings
        self._schedule: Schedule = schedule
        self._set_landmarks(min(settings.n_landmarks, len(self._y)))
        self._choose_objective(len(self._z))
        self.objective.follow(self._y, self._z)

    def _choose_objective(self, n_landmarks: int) -> None:
        settings = self._settings
        method, approximation = choose(settings.method, settings.approximation)
        self._repulsion = method.lambda_scale(self._edges) * repulsion_of(settings)
        # Drawing samples for large data takes half a second: not at every steer.
        if (settings.method, approximation, n_landmarks) != self._drawn_for:
            self._drawn_for = settings.method, approximation, n_landmarks
            self.objective: Objective = make_objective(
                approximation,
                self._forces_of(method),
                self._repulsion,
                n_landmarks,
                self._seed,
                method.aggregate,
            )
        self.objective.repulsion = self._repulsion

    def _forces_of(self, method: Method) -> Forces:
        wanted = method.attraction, method.kernel
        forces = self._forces
        if forces is None or (forces.attraction, forces.kernel) != wanted:
            forces = make_forces(self._edges, self._device, self._n_jobs, *wanted)
        self._forces = forces
        return forces

    def _set_landmarks(self, n_landmarks: int) -> None:
        """Drop landmarks at random, or add some on top of random points."""
        old = self._z.detach()
        n_old = len(old)
        kept = np.arange(n_old)
        if n_landmarks < n_old:
            kept = np.sort(self._rng.choice(n_old, n_landmarks, replace=False))
        n_new = max(0, n_landmarks - n_old)
        drawn = self._rng.choice(len(self._y), n_new, replace=False)
        places = torch.as_tensor(self.places[drawn], device=self._device)
        new = self._y.detach()[places]
        keep = torch.as_tensor(kept, device=self._device)
        self._replace_landmarks(torch.cat([old[keep], new]), kept)

    def _edit_landmarks(self, edit: LandmarkEdit) -> None:
        """Take landmarks away and add others; those that stay keep their momentum."""
        self._replace_landmarks(*edited(self._z.detach(), edit))

    def _replace_landmarks(self, z: torch.Tensor, kept: NDArray[np.intp]) -> None:
        """Play with other landmarks (L, d), the first of which were there before."""
        before = self._optimizer.state.pop(self._z, {})
        self._z = torch.nn.Parameter(z)
        self._optimizer.param_groups[1]["params"] = [self._z]
        if "velocity" in before:
            moving = torch.zeros_like(z)
            rows = torch.as_tensor(kept, device=self._device)
            moving[: len(kept)] = before["velocity"][rows]
            self._optimizer.state[self._z]["velocity"] = moving

    # --- Play

    def energy(self) -> float:
        """Return the energy of the present points and landmarks.

        Its sums are those that the next step begins with, and are kept for it: all
        that the number costs beyond the game is a logarithm for each edge.
        """
        if self._sums is None:
            self._sums = self.objective.pairs.sums(self._y, self._z)
        return self.objective.energy(self._y, self._z, self._sums)

    def _step(self) -> None:
        done = self._position / self._schedule.n_iter
        self._set_rates(done)
        self.objective.repulsion = self._repulsion * self._schedule.repulsion(done)
        self.objective.set_gradients(self._y, self._z, self._sums)
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
        velocity: torch.Tensor | None = self._optimizer.state.get(player, {}).get(
            "velocity"
        )
        return velocity

    def _set_rates(self, done: float) -> None:
        points, landmarks = self._optimizer.param_groups
        points["lr"], landmarks["lr"] = self._rates(done)
        points["scale"] = self._stiffness if self._schedule.by_pull else None
        for group in (points, landmarks):
            group["momentum"] = self._schedule.momentum

    def _rates(self, done: float) -> tuple[float, float]:
        """Return the learning rates of both players for the next step."""
        schedule = self._schedule
        factor = schedule.rate(done)
        return (
            factor * schedule.learning_rate,
            factor * schedule.landmark_learning_rate,
        )
