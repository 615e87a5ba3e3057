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
from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.objective import Objective, make_objective
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
    most = settings.max_iter or MAX_ITER
    y = start_of(objective, problem.layout)
    if settings.optimizer == "lbfgs":
        steps = lbfgs(objective, y, max_iter=most)
    elif settings.optimizer == "homotopy":
        # Each of its minimisations has that limit.
        most *= N_STEPS if settings.max_iter is None else 1
        steps = _homotopy(objective, y, problem)
    else:
        is_out = settings.optimizer == "pressured_points"
        steps = _downhill_and_out(objective, y, most, is_out)
    return Layouts(
        _states(islice(steps, most + 1), objective.repulsion),
        objective,
        way_back="raise the repulsion, or choose another optimizer",
    )


def _states(steps: Iterator[Step], whole: float) -> Iterator[State]:
    for iteration, step in enumerate(steps):
        # Under a part of the repulsion it is not the energy of the map.
        energy = step.energy if step.repulsion in (None, whole) else None
        yield State(iteration, 0, torch.from_numpy(step.y), energy=energy)


def _homotopy(objective: Objective, y: Points, problem: Problem) -> Iterator[Step]:
    # A map to go on from is not pressed together again.
    is_warm = problem.warm_start is not None
    steps = homotopy(
        copy(objective),  # whose lambda grows
        y,
        n_steps=1 if is_warm else N_STEPS,
        weakest=1.0 if is_warm else WEAKEST,
        random_state=problem.random_state,
    )
    yield Step(0, y, math.nan, 0.0)
    yield from islice(steps, 1, None)


def _downhill_and_out(
    objective: Objective, y: Points, most: int, is_out: bool
) -> Iterator[Step]:
    """Go down to where points are stuck, and with ``is_out`` on from there."""
    direct = SpectralDirection(objective.forces.edges)
    stuck = Step(0, y, math.inf)
    for stuck in spectral_direction(objective, y, max_iter=most, direct=direct):
        yield stuck
    if is_out:
        last, left = stuck, most - stuck.iteration - 1  # one step is left, to go back
        found = pressured_points(objective, stuck.y, max_iter=left, direct=direct)
        for last in islice(found, 1, None):
            yield last
        if last.energy > stuck.energy:
            yield stuck
