"""Minimise the energy of methods without landmarks, in the points alone.

A minimiser is a function (objective, layout, *, max_iter, ...) that returns an iterator
of steps, the start first.  It ends when the energy falls by less than ``TOLERANCE``,
which is paper 4's value for attracting weights that sum to 1.
:func:`minimize_by_spectral_direction` is by Vladymyrov & Carreira-Perpinan, ICML 2012.
:func:`minimize_by_homotopy` (Carreira-Perpinan, ICML 2010) follows spectral directions
while the repulsion grows from a value at which there is a single minimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.energy.methods import total_attraction_weight
from napari_embedding_game.core.energy.objective import AllPairs

from .spectral_direction import SpectralDirection

Points = NDArray[np.floating]
Energy = Callable[[Points], tuple[float, Points]]
"""Takes points (N, d) and returns their energy and its gradient (N, d)."""

TOLERANCE = 1e-5
MAX_ITER = 5000
N_STEPS = 50
"""Number of values of lambda in a homotopy."""
WEAKEST = 1e-4
"""First value of lambda, as a share of the last."""
_JITTER = 0.03
"""Standard deviation, in widths of the kernel, of the noise added to each minimum:
under a weak repulsion points fall onto the same spot, where their forces are equal."""
_ARMIJO = 1e-4
_MAX_TRIALS = 40


class Step(NamedTuple):
    """The state of a minimiser after an iteration, never changed afterwards."""

    y: Points
    """(N, d) positions."""
    energy: float
    """Energy of the map; NaN in a homotopy under a share of the repulsion."""
    gradient: Any = None
    """(N, d) gradient for the next line search, or None."""
    length: float = 1.0
    """First step length of the next line search: twice the last length if its first
    trial was accepted; at most 1, where a quadratic attraction has its minimum."""


def make_point_energy(objective: AllPairs) -> Energy:
    """Return a function of points (N, d): the objective's energy and its gradient."""

    def energy_of(y: Points) -> tuple[float, Points]:
        """Return the energy of points, and its gradient (N, d)."""
        points = torch.from_numpy(y)
        # A single landmark, as few as possible: it has no effect on all pairs.
        energy, gradient, _ = objective.energy_and_gradients(points, points[:1])
        return energy, gradient.numpy()

    return energy_of


def copy_as_start(objective: AllPairs, layout: Points) -> Points:
    """Return a copy of the layout (N, d) in the objective's number type."""
    return np.array(layout, objective.forces.edges.weights.dtype, order="C")


def scale_tolerance(objective: AllPairs) -> float:
    """Return ``TOLERANCE`` in the unit of the objective: times all attraction."""
    return TOLERANCE * abs(total_attraction_weight(objective.forces.edges))


def line_search(energy_of: Energy, begin: Step, direction: Points) -> Step | None:
    """Halve the step until the energy meets Armijo's condition; None if it never does.

    ``begin``: the step to start from, with its gradient and first length; ``direction``
    (N, d).  At most ``_MAX_TRIALS`` lengths are tried.  The returned step has the
    gradient at the new points, and the first length of the next search.
    """
    slope, length = float(np.vdot(begin.gradient, direction)), begin.length
    for trial in range(_MAX_TRIALS):
        y = begin.y + begin.y.dtype.type(length) * direction
        energy, gradient = energy_of(y)
        if energy < begin.energy + _ARMIJO * length * slope:
            return Step(y, energy, gradient, min(length * (1 if trial else 2), 1.0))
        length /= 2
    return None


def minimize_by_spectral_direction(
    objective: AllPairs,
    layout: Points,
    *,
    max_iter: int = MAX_ITER,
    spectral_direction: SpectralDirection | None = None,
) -> Iterator[Step]:
    """Minimise an objective along spectral directions; yield the start and each step.

    It ends after ``max_iter`` steps, after a step that lowers the energy by less than
    the tolerance, or where no step lowers it.  ``layout`` (N, d) is not changed.
    ``spectral_direction``: that of the objective's edges, computed by default.
    """
    energy_of, least = make_point_energy(objective), scale_tolerance(objective)
    spectral_direction = spectral_direction or SpectralDirection(objective.forces.edges)
    y = copy_as_start(objective, layout)
    step = Step(y, *energy_of(y))
    yield step
    for _ in range(max_iter):
        direction = spectral_direction(step.gradient).astype(y.dtype)
        new = line_search(energy_of, step, direction)
        if new is None:
            return
        yield new
        if step.energy - new.energy < least:
            return
        step = new


def minimize_by_homotopy(
    objective: AllPairs,
    layout: Points,
    *,
    max_iter: int = N_STEPS * MAX_ITER,
    n_steps: int = N_STEPS,
) -> Iterator[Step]:
    """Minimise for ``n_steps`` values of lambda, from ``WEAKEST`` of its value to 1.

    Random noise is added to the layout (N, d) before each minimisation, except along
    axes where the start has no width.  Yields the start and each step; ends after
    ``max_iter`` steps, even before the full lambda.  Neither ``objective`` nor
    ``layout`` is changed.
    """
    spectral_direction, y = SpectralDirection(objective.forces.edges), layout
    rng, under = np.random.default_rng(objective.random_state), copy(objective)
    width = _JITTER * (np.ptp(layout, axis=0) > 0)
    yield Step(copy_as_start(objective, layout), math.nan)
    for share in (*np.geomspace(WEAKEST, 1.0, n_steps)[:-1], 1.0):
        under.repulsion = float(share) * objective.repulsion
        start = y + rng.normal(size=y.shape) * width
        descent = islice(
            minimize_by_spectral_direction(
                under, start, spectral_direction=spectral_direction
            ),
            1,
            None,
        )
        for y, energy, *_ in descent:
            yield Step(y, energy if share == 1.0 else math.nan)
            max_iter -= 1
            if max_iter == 0:
                return
