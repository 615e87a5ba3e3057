"""Methods without landmarks: the points go downhill over all pairs (paper 4).

See :mod:`minimizers`; "pressured points" are the spectral direction to its end, then a
way out for points that are stuck there (paper 4's "PP from SD"), and back to that end
where it has found nothing lower.  A step costs N^2, so there is a limit to N.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice

import torch

from napari_embedding_game.core.dynamics.state import Layouts, Problem, State
from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.energy.objective import AllPairs
from napari_embedding_game.core.settings import Settings, check_size, repulsion_of

from .minimizers import (
    MAX_ITER,
    N_STEPS,
    Points,
    Step,
    homotopy,
    spectral_direction,
    start_of,
)
from .pressured_points import pressured_points
from .spectral_direction import SpectralDirection

Descent = Callable[[AllPairs, Points, int], Iterator[Step]]
"""(energy, start, most steps) -> steps."""


def by_spectral_direction(problem: Problem, settings: Settings) -> Layouts:
    """Follow the spectral direction to its end."""

    def descend(objective: AllPairs, y: Points, most: int) -> Iterator[Step]:
        return spectral_direction(objective, y, max_iter=most)

    return _layouts(problem, settings, descend)


def by_homotopy(problem: Problem, settings: Settings) -> Layouts:
    """Follow the minimum from a weak repulsion to the whole."""

    def descend(objective: AllPairs, y: Points, most: int) -> Iterator[Step]:
        steps = homotopy(objective, y, random_state=problem.random_state)
        yield Step(0, y, math.nan)
        yield from islice(steps, 1, None)

    return _layouts(problem, settings, descend, N_STEPS)


def by_pressured_points(problem: Problem, settings: Settings) -> Layouts:
    """Go down to where points are stuck, and on from there."""

    def descend(objective: AllPairs, y: Points, most: int) -> Iterator[Step]:
        direct = SpectralDirection(objective.forces.edges)
        stuck = Step(0, y, math.inf)
        for stuck in spectral_direction(objective, y, max_iter=most, direct=direct):
            yield stuck
        last, left = stuck, most - stuck.iteration - 1  # one step is left, to go back
        found = pressured_points(objective, stuck.y, max_iter=left, direct=direct)
        for last in islice(found, 1, None):
            yield last
        if last.energy > stuck.energy:
            yield stuck

    return _layouts(problem, settings, descend)


def _layouts(
    problem: Problem, settings: Settings, descend: Descent, n_descents: int = 1
) -> Layouts:
    settings.validate()
    check_size(settings, len(problem.layout))
    method, edges = get_method(settings.method), problem.edges
    forces = CompiledForces(edges, problem.n_jobs, method.attraction, method.kernel)
    repulsion = method.lambda_scale(edges) * repulsion_of(settings)
    objective = AllPairs(forces, repulsion, method.aggregate)
    most = settings.max_iter or n_descents * MAX_ITER
    steps = descend(objective, start_of(objective, problem.layout), most)
    return Layouts(
        _states(islice(steps, most + 1)),
        objective,
        way_back="raise the repulsion, or choose another method",
    )


def _states(steps: Iterator[Step]) -> Iterator[State]:
    for iteration, step in enumerate(steps):
        energy = None if math.isnan(step.energy) else step.energy
        yield State(iteration, 0, torch.from_numpy(step.y), energy=energy)
