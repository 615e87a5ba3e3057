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
from napari_embedding_game.core.settings import (
    Settings,
    resolve_repulsion,
    validate_point_count,
)

from .minimizers import MAX_ITER, Points, Step, homotopy, spectral_direction
from .pressured_points import pressured_points
from .spectral_direction import SpectralDirection

TOO_FEW = (
    "After {} iterations only a part of the repulsion acts: allow more iterations."
)


def out_of_stuck_points(
    objective: AllPairs, layout: Points, *, max_iter: int = MAX_ITER
) -> Iterator[Step]:
    """Go down to where points are stuck, and on from there."""
    direct, left = SpectralDirection(objective.forces.edges), max_iter
    for stuck in spectral_direction(
        objective, layout, max_iter=max_iter, direct=direct
    ):
        yield stuck
        left -= 1  # the start took one, which is left to go back
    last = stuck
    steps = pressured_points(objective, stuck.y, max_iter=left, direct=direct)
    for last in islice(steps, 1, None):
        yield last
    if last.energy > stuck.energy:
        yield stuck


def _layouts(
    descend: Callable[..., Iterator[Step]], problem: Problem, settings: Settings
) -> Layouts:
    settings.validate()
    validate_point_count(settings, len(problem.layout))
    method, edges = get_method(settings.method), problem.edges
    forces = CompiledForces(edges, method.attraction, method.kernel)
    repulsion = method.lambda_scale(edges) * resolve_repulsion(settings)
    seed, most = problem.random_state, settings.max_iter
    objective = AllPairs(forces, repulsion, 1, seed, method.aggregate)
    steps = descend(objective, problem.layout, **({"max_iter": most} if most else {}))
    return Layouts(_states(steps, most), objective)


def _states(steps: Iterator[Step], most: int | None) -> Iterator[State]:
    for iteration, step in enumerate(steps):
        is_part = math.isnan(step.energy)
        yield State(
            iteration,
            0,
            torch.from_numpy(step.y),
            energy=None if is_part else step.energy,
            warning=TOO_FEW.format(most) if is_part and iteration == most else "",
        )


by_spectral_direction, by_homotopy, by_pressured_points = (
    partial(_layouts, minimizer)
    for minimizer in (spectral_direction, homotopy, out_of_stuck_points)
)
