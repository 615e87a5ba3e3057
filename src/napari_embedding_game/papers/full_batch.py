"""Methods without landmarks: the points go downhill over all pairs (paper 4).

See :mod:`minimizers`; "pressured points" are the spectral direction to its end, then a
way out for points that are stuck there (paper 4's "PP from SD"), and back to that end
where it has found nothing lower.  A step costs N^2, so there is a limit to N.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
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
)
from .pressured_points import pressured_points
from .spectral_direction import SpectralDirection

Descent = Callable[..., Iterator[Step]]
"""(energy, start, max_iter=, random_state=) -> steps."""


def out_of_stuck_points(
    objective: AllPairs, layout: Points, *, max_iter: int, random_state: int
) -> Iterator[Step]:
    """Go down to where points are stuck, and on from there."""
    direct, stuck = SpectralDirection(objective.forces.edges), None
    for stuck in spectral_direction(
        objective, layout, max_iter=max_iter, direct=direct
    ):
        yield stuck
    assert stuck is not None
    last, left = stuck, max_iter - stuck.iteration - 1  # one is left, to go back
    found = pressured_points(objective, stuck.y, max_iter=left, direct=direct)
    for last in islice(found, 1, None):
        yield last
    if last.energy > stuck.energy:
        yield stuck


def _layouts(
    descend: Descent, n_descents: int, problem: Problem, settings: Settings
) -> Layouts:
    settings.validate()
    check_size(settings, len(problem.layout))
    method, edges = get_method(settings.method), problem.edges
    forces = CompiledForces(edges, problem.n_jobs, method.attraction, method.kernel)
    repulsion = method.lambda_scale(edges) * repulsion_of(settings)
    objective = AllPairs(forces, repulsion, method.aggregate)
    most = settings.max_iter or n_descents * MAX_ITER
    steps = descend(
        objective, problem.layout, max_iter=most, random_state=problem.random_state
    )
    return Layouts(_states(islice(steps, most + 1)), objective)


def _states(steps: Iterator[Step]) -> Iterator[State]:
    for iteration, step in enumerate(steps):
        energy = None if math.isnan(step.energy) else step.energy
        yield State(iteration, 0, torch.from_numpy(step.y), energy=energy)


by_spectral_direction = partial(_layouts, spectral_direction, 1)
by_homotopy = partial(_layouts, homotopy, N_STEPS)
by_pressured_points = partial(_layouts, out_of_stuck_points, 1)
