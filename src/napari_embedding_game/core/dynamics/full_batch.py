"""Minimisers in the place of the game: the points go downhill over all pairs.

==================  ==========================================================
spectral_direction  by the curvature of the attraction, see :mod:`minimizers`
lbfgs               by the steps of the past, see :mod:`minimizers`
homotopy            from a weak repulsion to the whole, see :mod:`homotopy`
pressured_points    the spectral direction to its end, then a way out for points
                    that are stuck there (paper 4's "PP from SD")
==================  ==========================================================

They know no landmarks: :mod:`driver` fits these to the finished map.  All of it is
computed by the processor.  A step through all pairs costs N^2, so there is a limit to
N; on a grid there is none, and the spectral direction is not factored there, so that
every step can be the last.  Nobody knows how many steps there will be.

``pressured_points`` goes back to the end of the spectral direction where it has
found nothing lower, so that it never ends above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.dynamics.homotopy import N_STEPS, WEAKEST, homotopy
from napari_embedding_game.core.dynamics.minimizers import (
    MAX_ITER,
    Step,
    lbfgs,
    spectral_direction,
)
from napari_embedding_game.core.dynamics.optimizer import resolve_schedule
from napari_embedding_game.core.dynamics.pressured_points import pressured_points
from napari_embedding_game.core.dynamics.spectral_direction import SpectralDirection
from napari_embedding_game.core.dynamics.state import (
    ANYWHERE,
    Problem,
    State,
    in_the_plane,
)
from napari_embedding_game.core.energy.mesh import is_far_from_edge
from napari_embedding_game.core.energy.methods import check_numbers, strength_of
from napari_embedding_game.core.energy.objective import Objective, make_objective
from napari_embedding_game.core.energy.pair_sums import CompiledForces
from napari_embedding_game.core.energy.valid_combinations import check_size, choose
from napari_embedding_game.core.names import OptimizerName
from napari_embedding_game.core.types import GameSettings

_MOST_STEPS: dict[OptimizerName, int] = {"homotopy": MAX_ITER * N_STEPS}
"""Where it is not ``MAX_ITER``: each minimisation of a homotopy has that limit."""


class FullBatch:
    """Points on their way down, under settings that may change.

    A homotopy goes on from the lambda that it has reached.
    """

    is_steered = True
    shows_every_step = False
    farthest = ANYWHERE
    way_back = "raise the repulsion, or choose another optimizer"
    places: NDArray[np.intp] | None = None

    def __init__(self, problem: Problem) -> None:
        self._edges = problem.edges
        self._n_jobs = problem.n_jobs
        self._n_components = problem.layout.shape[1]
        dtype = self._edges.weights.dtype
        self._y = np.array(in_the_plane(problem.layout), dtype, order="C")
        self._iteration = 0
        self._reached = 0.0
        self._is_warm = problem.warm_start is not None
        self._settings = GameSettings()
        self._directions: dict[bool, SpectralDirection] = {}

    # --- Settings

    def steps(self, settings: GameSettings) -> Iterator[State]:
        """Go on from the present points under these settings."""
        self._check(settings)
        method, found_by = choose(
            settings.method, settings.approximation, settings.optimizer
        )
        forces = CompiledForces(
            self._edges, self._n_jobs, method.attraction, method.kernel
        )
        repulsion = method.lambda_scale(self._edges) * strength_of(settings)
        self.objective = make_objective(
            found_by, forces, repulsion, 1, aggregate=method.aggregate
        )
        self._is_on_grid = found_by == "mesh"
        former = self._settings
        if (former.method, former.optimizer) != (settings.method, settings.optimizer):
            # A map to go on from is not pressed together again.
            self._reached = math.inf if self._is_warm else 0.0
        self._is_warm = False
        self._settings = settings
        # By the game's own settings, whatever the method.
        self.fitting = GameSettings(n_landmarks=settings.n_landmarks)
        return self._states(_WAYS[settings.optimizer](self))

    def _check(self, settings: GameSettings) -> None:
        resolve_schedule(settings)
        check_numbers(settings)
        check_size(settings, len(self._y), self._n_components)

    def _states(self, steps: Iterator[Step]) -> Iterator[State]:
        yield State(self._iteration, 0, torch.from_numpy(self._y))
        # The first step is where the points already are.
        for step in islice(steps, 1, self._most + 1):
            self._y = step.y
            self._iteration += 1
            energy = None if math.isnan(step.energy) else step.energy
            points = torch.from_numpy(step.y)
            told = self._warning(step.y)
            yield State(self._iteration, 0, points, energy=energy, warning=told)

    def _warning(self, y: NDArray[np.floating]) -> str:
        if not self._is_on_grid or is_far_from_edge(y):
            return ""
        return (
            "Parts of the map are as far apart as a grid can show, perhaps because no "
            "edges join them: raise the number of neighbours, or choose the optimizer "
            "game in a new run."
        )

    @property
    def _most(self) -> int:
        """Most steps."""
        most = self._settings.max_iter
        return most or _MOST_STEPS.get(self._settings.optimizer, MAX_ITER)

    # --- The ways down

    @property
    def _direct(self) -> SpectralDirection:
        """Made once, also for what is steered; factored where all pairs are few."""
        by_steps = self._is_on_grid
        if by_steps not in self._directions:
            self._directions[by_steps] = SpectralDirection(
                self._edges, iterate=by_steps
            )
        return self._directions[by_steps]

    def _spectral_direction(self) -> Iterator[Step]:
        yield from spectral_direction(
            self.objective, self._y, max_iter=self._most, direct=self._direct
        )

    def _lbfgs(self) -> Iterator[Step]:
        yield from lbfgs(self.objective, self._y, max_iter=self._most)

    def _homotopy(self) -> Iterator[Step]:
        whole = self.objective.repulsion
        weakest = min(1.0, max(WEAKEST, self._reached / whole))
        n_steps = max(1, round(N_STEPS * math.log(weakest) / math.log(WEAKEST)))
        # Another one, whose lambda grows: the energy that is told is the whole's.
        growing = Objective(self.objective.pairs, whole, self.objective.aggregate)
        steps = homotopy(
            growing,
            self._y,
            n_steps=n_steps,
            weakest=weakest,
            minimizer=partial(spectral_direction, direct=self._direct),
        )
        for step in steps:
            self._reached = step.repulsion
            is_whole = step.repulsion == whole
            yield Step(step.iteration, step.y, step.energy if is_whole else math.nan)

    def _pressured_points(self) -> Iterator[Step]:
        stuck = Step(0, self._y, math.inf)
        for stuck in self._spectral_direction():
            yield stuck
        # One step is left, to go back.
        left = self._most - stuck.iteration - 1
        found = pressured_points(
            self.objective, stuck.y, max_iter=left, direct=self._direct
        )
        energy = stuck.energy
        for step in islice(found, 1, None):
            energy = step.energy
            yield Step(step.iteration, step.y, energy)
        if energy > stuck.energy:
            yield stuck


_WAYS: dict[OptimizerName, Callable[[FullBatch], Iterator[Step]]] = {
    "spectral_direction": FullBatch._spectral_direction,
    "lbfgs": FullBatch._lbfgs,
    "homotopy": FullBatch._homotopy,
    "pressured_points": FullBatch._pressured_points,
}
