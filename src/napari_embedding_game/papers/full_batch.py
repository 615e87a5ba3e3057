"""Minimisers in the place of the game: the points go downhill over all pairs.

See :mod:`minimizers`; "pressured_points" is the spectral direction to its end, then a
way out for points that are stuck there (paper 4's "PP from SD"), and back to that end
where it has found nothing lower.  A step costs N^2, so there is a limit to N.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from itertools import islice

import torch

from napari_embedding_game.core.dynamics.state import Layouts, Problem, State
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
    Step,
    homotopy,
    lbfgs,
    spectral_direction,
    start_of,
)
from .pressured_points import pressured_points
from .spectral_direction import SpectralDirection


def layouts(problem: Problem, settings: Settings) -> Layouts:
    """Let the points go downhill as ``settings.optimizer`` says."""
    settings.validate()
    check_size(settings, len(problem.layout), problem.n_components)
    method, found_by = choose(
        settings.method, settings.approximation, settings.optimizer
    )
    edges = problem.edges
    forces = CompiledForces(edges, problem.n_jobs, method.attraction, method.kernel)
    repulsion = method.lambda_scale(edges) * repulsion_of(settings)
    objective = make_objective(
        found_by, forces, repulsion, 1, aggregate=method.aggregate
    )
    return Layouts(
        _states(objective, problem, settings),
        objective,
        way_back="raise the repulsion, or choose another optimizer",
    )


def _states(
    objective: Objective, problem: Problem, settings: Settings
) -> Iterator[State]:
    most = settings.max_iter or MAX_ITER
    if settings.optimizer == "homotopy" and settings.max_iter is None:
        most *= N_STEPS  # each of its minimisations has that limit
    steps = _steps(objective, problem, settings.optimizer, most)
    for iteration, step in enumerate(islice(steps, most + 1)):
        # Under a part of the repulsion it is not the energy of the map.
        is_whole = step.repulsion in (None, objective.repulsion)
        yield State(
            iteration,
            0,
            torch.from_numpy(step.y),
            energy=step.energy if is_whole else None,
        )


def _steps(
    objective: Objective, problem: Problem, optimizer: str, most: int
) -> Iterator[Step]:
    y = start_of(objective, problem.layout)
    if optimizer == "lbfgs":
        yield from lbfgs(objective, y, max_iter=most)
        return
    direct = SpectralDirection(objective.forces.edges)
    if optimizer == "homotopy":
        # A map to go on from is not pressed together again.
        is_warm = problem.warm_start is not None
        steps = homotopy(
            copy(objective),  # whose lambda grows
            y,
            n_steps=1 if is_warm else N_STEPS,
            weakest=1.0 if is_warm else WEAKEST,
            direct=direct,
            random_state=problem.random_state,
        )
        yield Step(0, y, math.nan, 0.0)
        yield from islice(steps, 1, None)
        return
    stuck = Step(0, y, math.inf)
    for stuck in spectral_direction(objective, y, max_iter=most, direct=direct):
        yield stuck
    if optimizer == "pressured_points":
        # One step is left, to go back.
        left = most - stuck.iteration - 1
        found = pressured_points(objective, stuck.y, max_iter=left, direct=direct)
        last = stuck
        for last in islice(found, 1, None):
            yield last
        if last.energy > stuck.energy:
            yield stuck
