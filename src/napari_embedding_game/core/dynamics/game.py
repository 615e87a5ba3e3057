"""The embedding game: two players and their position in the schedule.

A step follows the paper's Alg. 1; :mod:`play` runs the steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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

MIDDLE, REMIXED = 0.5, 0.2
"""Share of the schedule to which a game returns for other settings, and for other
neighbours."""
_FIRM = 0.3
"""Share of the mean stiffness that is added to the stiffness of each point."""


def compute_point_stiffness(edges: Edges) -> NDArray[np.floating]:
    """Return the divisor of each point's gradient, (N,), in the type of the weights.

    The divisor is the sum of |w| over a point's edges plus 0.3 of the mean sum, or 1
    for all points where all weights are 0.
    """
    stiffness = sum_absolute_weights(edges.indptr, edges.weights)
    stiffness += _FIRM * stiffness.mean()
    # Without edges all points have the same stiffness.
    stiffness = stiffness if stiffness.any() else np.ones_like(stiffness)
    return stiffness.astype(edges.weights.dtype)


class Game:
    """The players ``points`` and ``landmarks``, and their position in the schedule.

    Landmarks begin at those of ``problem.warm_start``; otherwise there are none until
    :meth:`apply_and_play`, which must be called before all other methods.
    """

    objective: Objective
    _schedule: Schedule

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._rng = np.random.default_rng(problem.random_state)
        warm = problem.warm_start
        self.points = self._make_player(problem.layout)
        self.landmarks = self._make_player(
            problem.layout[:0] if warm is None else warm.landmarks
        )
        self._iteration = problem.iteration
        self._position = 0
        self._iterations_left = None if warm is None else warm.iterations_left
        self.replace_edges(problem.edges)
        self._latest_share = MIDDLE
        self._hand: AppliedForces | None = None
        known = problem.coordinates
        rows = problem.memory_rows
        self._large_picture = None if known is None else LargePicture(known, rows)
        self._picture_strength = 0.0
        self._sums: Sums | PotentialSums | None = None

    def _make_player(self, positions: NDArray[np.floating] | Tensor) -> Player:
        """Return a player at ``positions`` (n, d), without velocity.

        An array is copied to the problem's device in the type of the edges' weights; a
        tensor is used itself.
        """
        if not isinstance(positions, Tensor):
            rows = np.array(positions, self._problem.edges.weights.dtype, order="C")
            positions = torch.as_tensor(rows, device=self._problem.device)
        return Player(positions)

    def replace_edges(self, edges: Edges) -> None:
        """Replace the edges; :meth:`apply_and_play` must follow.

        The game then returns to the first ``REMIXED`` of its schedule, as points that
        get other neighbours find them under weak repulsion only.
        """
        self._problem = replace(self._problem, edges=edges)
        stiffness = compute_point_stiffness(edges)
        self._stiffness = torch.as_tensor(stiffness, device=self._problem.device)
        self._objective_request: tuple[str, str, int] | None = None
        self._forces: Forces | None = None
        self._latest_share = REMIXED

    def set_hand_forces(self, forces: HandForces) -> None:
        """Replace the forces of the hand from the next step on; empty ``forces``: none.

        Raises InputError for points or positions that the map does not have; the former
        forces then stay.
        """
        self._sums, hand = None, None
        if forces:
            hand = AppliedForces(
                forces,
                self.points.positions,
                n_components=self._problem.n_components,
                memory_rows=self._problem.memory_rows,
                iterations_left=self._schedule.n_iter - self._schedule.n_iter // 2,
            )
        self._hand = hand

    def apply_and_play(self, settings: Settings) -> Iterator[State]:
        """Apply settings, and return an iterator over the states from now on.

        The first state is the present one.  The game returns to the middle of its
        schedule if it is beyond, so that the settings take effect, or further back
        after :meth:`replace_edges`; the first call of a warm start begins at its
        ``iterations_left``.  Raises InputError for settings that this game cannot use.
        """
        self._apply_settings(settings)
        n_iter = self._schedule.n_iter
        if self._iterations_left is not None:
            self._position = max(0, n_iter - self._iterations_left)
            self._iterations_left = None
        self._position = min(self._position, int(n_iter * self._latest_share))
        self._latest_share = MIDDLE
        return self._play_iterations()

    def _apply_settings(self, settings: Settings) -> None:
        """Update schedule, landmarks' number and objective; relocate landmarks if due.

        Raises InputError for settings out of range, too many points for the method, and
        a large picture without coordinates.
        """
        settings.validate()
        schedule, n = resolve_schedule(settings), len(self.points.positions)
        validate_point_count(settings, n)
        if settings.large_picture and self._large_picture is None:
            raise InputError(NO_LARGE_PICTURE)
        self._picture_strength = settings.large_picture
        self._sums, self._schedule = None, schedule
        self._set_landmark_count(min(settings.n_landmarks, n))
        self._update_objective(settings)
        self.objective.update_landmarks(self.points.positions, self.landmarks.positions)

    def _update_objective(self, settings: Settings) -> None:
        """Set the repulsion; make a new objective if forces or landmarks have changed.

        A new one is made for another method, approximation or number of landmarks; its
        forces are kept where attraction and kernel stay the same.
        """
        problem, edges = self._problem, self._problem.edges
        method, approx = resolve_method(settings.method, settings.approximation)
        self._repulsion = method.lambda_scale(edges) * resolve_repulsion(settings)
        # Sampling large data takes half a second: not for every change of settings.
        request = settings.method, approx, len(self.landmarks.positions)
        if request != self._objective_request:
            self._objective_request = request
            functions, forces = (method.attraction, method.kernel), self._forces
            if forces is None or (forces.attraction, forces.kernel) != functions:
                if problem.device.type == "cpu":
                    forces = CompiledForces(edges, *functions)
                else:
                    forces = TorchForces(edges, problem.device, *functions)
            self.objective = make_objective(
                approx,
                forces,
                self._repulsion,
                n_landmarks=len(self.landmarks.positions),
                random_state=problem.random_state,
                aggregate=method.aggregate,
            )
            self._forces = forces
        self.objective.repulsion = self._repulsion

    def _set_landmark_count(self, n_landmarks: int) -> None:
        """Remove random landmarks, or add landmarks at the positions of random points.

        The result is a new player of ``n_landmarks`` in which kept landmarks keep their
        velocity, and new ones have velocity 0.
        """
        old, rows = self.landmarks.positions, self._problem.memory_rows
        kept = np.arange(len(old))
        if n_landmarks < len(old):
            kept = np.sort(self._rng.choice(len(old), n_landmarks, replace=False))
        n_new = max(0, n_landmarks - len(old))
        sampled = self._rng.choice(len(self.points.positions), n_new, replace=False)
        sampled = sampled if rows is None else rows[sampled]
        new = self.points.positions[torch.as_tensor(sampled, device=old.device)]
        stay = old[torch.as_tensor(kept, device=old.device)]
        velocity, self.landmarks = (
            self.landmarks.velocity,
            self._make_player(torch.cat([stay, new])),
        )
        if velocity is not None:
            self.landmarks.velocity = torch.cat([velocity[kept], torch.zeros_like(new)])

    def energy(self, state: State) -> float:
        """Return the energy of the present positions, whatever ``state`` is.

        The sums are kept for the next step, which then need not compute them again.
        """
        if self._sums is None:
            self._sums = self.objective.compute_sums(
                self.points.positions, self.landmarks.positions
            )
        return self.objective.energy(
            self.points.positions, self.landmarks.positions, self._sums
        )

    def _play_iterations(self) -> Iterator[State]:
        """Yield the present state, then the state after each step of the schedule.

        A step moves the points down and the landmarks up their gradients, under the
        schedule's repulsion and with the pull of the large picture; then landmarks
        without points may be relocated, and the forces of the hand act.
        """
        yield self._make_state()
        while self._position < self._schedule.n_iter:
            schedule, momentum = self._schedule, self._schedule.momentum
            done = self._position / schedule.n_iter
            y, z = self.points.positions, self.landmarks.positions
            sums = self._sums or self.objective.compute_sums(y, z)
            self._sums = None
            self.objective.repulsion = self._repulsion * schedule.repulsion_factor(done)
            y_gradient, z_gradient = self.objective.gradients(y, z, sums)
            self.objective.repulsion = self._repulsion
            if self._picture_strength and self._large_picture is not None:
                self._large_picture.add_pull(y_gradient, y, z, self._picture_strength)
            factor = schedule.rate_factor(done)
            scale = self._stiffness if schedule.divides_by_stiffness else None
            self.points.step(
                y_gradient, -factor * schedule.learning_rate, momentum, scale
            )
            self.landmarks.step(
                z_gradient, factor * schedule.landmark_learning_rate, momentum
            )
            self.landmarks.reset_velocity(self.objective.update_landmarks(y, z))
            if self._hand is not None:
                self._hand.move_players(self.points, self.landmarks)
            self._position += 1
            self._iteration += 1
            yield self._make_state()

    def _make_state(self) -> State:
        """Return the present state, with the positions themselves and not copies.

        Its ``n_iter`` is the number of iterations done plus those left of the schedule.
        """
        left = self._schedule.n_iter - self._position
        n_iter = self._iteration + left
        return State(
            self._iteration, n_iter, self.points.positions, self.landmarks.positions
        )
