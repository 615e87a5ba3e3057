"""Minimisers in the place of the game: the points go downhill over all pairs.

==================  ==========================================================
spectral_direction  by the curvature of the attraction, see :mod:`minimizers`
lbfgs               by the steps of the past, see :mod:`minimizers`
homotopy            from a weak repulsion to the whole, see :mod:`minimizers`
pressured_points    the spectral direction to its end, then a way out for points
                    that are stuck there (paper 4's "PP from SD")
==================  ==========================================================

All of it is computed by the processor.  A step through all pairs costs N^2, so there
is a limit to N.  Nobody knows how many steps there will be.

``pressured_points`` goes back to the end of the spectral direction where it has
found nothing lower, so that it never ends above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy
from itertools import islice

import torch

from napari_embedding_game.core.dynamics.state import (
    Layouts,
    Problem,
    State,
)
from napari_embedding_game.core.energy.objective import Objective, make_objective
from napari_embedding_game.core.energy.pair_sums import CompiledForces
from napari_embedding_game.core.settings import (
    Settings,
    check_size,
    choose,
    repulsion_of,
)

from .minimizers import (
    MAX_ITER,
    N_STEPS,
    WEAKEST,
    Points,
    Step,
    homotopy,
    lbfgs,
    spectral_direction,
    start_of,
)
from .pressured_points import pressured_points
from .spectral_direction import SpectralDirection


def layouts(problem: Problem, settings: Settings) -> Layouts:
    """Let the points go downhill as ``settings.optimizer`` says.

    Raises
    ------
    InputError
        The settings do not go together, or the points are too many.
    """
    settings.validate()
    check_size(settings, len(problem.layout), problem.n_components)
    method, found_by = choose(
        settings.method, settings.approximation, settings.optimizer
    )
    edges = problem.edges
    forces = CompiledForces(edges, problem.n_jobs, method.attraction, method.kernel)
    objective = make_objective(
        found_by,
        forces,
        method.lambda_scale(edges) * repulsion_of(settings),
        1,
        aggregate=method.aggregate,
    )
    most = settings.max_iter or MAX_ITER
    if settings.optimizer == "homotopy" and settings.max_iter is None:
        most = MAX_ITER * N_STEPS  # each of its minimisations has that limit
    y = start_of(objective, problem.layout)
    steps = _WAYS[settings.optimizer](objective, y, most, problem)
    return Layouts(
        _states(steps, most),
        objective,
        way_back="raise the repulsion, or choose another optimizer",
    )


def _states(steps: Iterator[Step], most: int) -> Iterator[State]:
    for iteration, step in enumerate(islice(steps, most + 1)):
        energy = None if math.isnan(step.energy) else step.energy
        yield State(iteration, 0, torch.from_numpy(step.y), energy=energy)


Way = Callable[[Objective, Points, int, Problem], Iterator[Step]]
"""(objective, start, most steps, problem) -> the steps down."""


def _spectral_direction(
    objective: Objective, y: Points, most: int, problem: Problem
) -> Iterator[Step]:
    direct = SpectralDirection(objective.forces.edges)
    return spectral_direction(objective, y, max_iter=most, direct=direct)


def _lbfgs(
    objective: Objective, y: Points, most: int, problem: Problem
) -> Iterator[Step]:
    return lbfgs(objective, y, max_iter=most)


def _homotopy(
    objective: Objective, y: Points, most: int, problem: Problem
) -> Iterator[Step]:
    # Another one, whose lambda grows: the energy that is told is the whole's.
    whole = objective.repulsion
    growing = copy(objective)
    direct = SpectralDirection(objective.forces.edges)
    # A map to go on from is not pressed together again.
    is_warm = problem.warm_start is not None
    steps = homotopy(
        growing,
        y,
        n_steps=1 if is_warm else N_STEPS,
        weakest=1.0 if is_warm else WEAKEST,
        direct=direct,
        random_state=problem.random_state,
    )
    yield Step(0, y, math.nan)
    for step in islice(steps, 1, None):
        is_whole = step.repulsion == whole
        yield Step(step.iteration, step.y, step.energy if is_whole else math.nan)


def _pressured_points(
    objective: Objective, y: Points, most: int, problem: Problem
) -> Iterator[Step]:
    direct = SpectralDirection(objective.forces.edges)
    stuck = Step(0, y, math.inf)
    for stuck in spectral_direction(objective, y, max_iter=most, direct=direct):
        yield stuck
    # One step is left, to go back.
    left = most - stuck.iteration - 1
    found = pressured_points(objective, stuck.y, max_iter=left, direct=direct)
    energy = stuck.energy
    for step in islice(found, 1, None):
        energy = step.energy
        yield Step(step.iteration, step.y, energy)
    if energy > stuck.energy:
        yield stuck


_WAYS: dict[str, Way] = {
    "spectral_direction": _spectral_direction,
    "lbfgs": _lbfgs,
    "homotopy": _homotopy,
    "pressured_points": _pressured_points,
}
