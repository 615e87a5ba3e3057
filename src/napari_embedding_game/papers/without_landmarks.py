"""Methods without landmarks, which minimise the energy over all pairs (paper 4).

See :mod:`minimizers`.  The method "pressured points" minimises by the spectral
direction, then by pressured points (paper 4's "PP from SD"), and returns to the first
result where the second is not lower.  A step costs N^2, so that N is limited.
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

from .minimizers import (
    MAX_ITER,
    Points,
    Step,
    minimize_by_homotopy,
    minimize_by_spectral_direction,
)
from .pressured_points import minimize_by_pressured_points
from .spectral_direction import SpectralDirection

TOO_FEW = (
    "After {} iterations only a part of the repulsion acts: allow more iterations."
)


def minimize_and_release_stuck_points(
    objective: AllPairs, layout: Points, *, max_iter: int = MAX_ITER
) -> Iterator[Step]:
    """Minimise by the spectral direction, then by pressured points; yield each step.

    ``max_iter``: iterations of both together.  Where pressured points end at a higher
    energy, the end of the spectral direction is yielded once more as the last step.
    """
    spectral_direction, left = SpectralDirection(objective.forces.edges), max_iter
    for stuck in minimize_by_spectral_direction(
        objective, layout, max_iter=max_iter, spectral_direction=spectral_direction
    ):
        yield stuck
        left -= 1  # the start counts too, which leaves an iteration for the return
    last = stuck
    steps = minimize_by_pressured_points(
        objective, stuck.y, max_iter=left, spectral_direction=spectral_direction
    )
    for last in islice(steps, 1, None):
        yield last
    if last.energy > stuck.energy:
        yield stuck


def _prepare_layouts(
    descend: Callable[..., Iterator[Step]], problem: Problem, settings: Settings
) -> Layouts:
    """Return an iterator of a minimiser's layouts for a problem, with the objective.

    ``descend``: the minimiser.  Without ``settings.max_iter`` the minimiser's own limit
    holds.  InputError: the settings are invalid, or the points too many.
    """
    settings.validate()
    validate_point_count(settings, len(problem.layout))
    method, edges = get_method(settings.method), problem.edges
    forces = CompiledForces(edges, method.attraction, method.kernel)
    repulsion = method.lambda_scale(edges) * resolve_repulsion(settings)
    seed, most = problem.random_state, settings.max_iter
    objective = AllPairs(forces, repulsion, 1, seed, method.aggregate)
    steps = descend(objective, problem.layout, **({"max_iter": most} if most else {}))
    return Layouts(_iterate_states(steps, most), objective)


def _iterate_states(steps: Iterator[Step], most: int | None) -> Iterator[State]:
    """Yield a state for each step of a minimiser.

    A step under a part of lambda (energy NaN) has no energy.  The last of ``most``
    iterations has a warning if it is such a step.
    """
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
    partial(_prepare_layouts, minimizer)
    for minimizer in (
        minimize_by_spectral_direction,
        minimize_by_homotopy,
        minimize_and_release_stuck_points,
    )
)
