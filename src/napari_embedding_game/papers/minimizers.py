"""Minimisers for methods without landmarks: only the points move, downhill.

Each is a function (objective, layout, *, max_iter, ...) that returns an iterator of
steps, the start first; it ends when the energy falls by less than
``TOLERANCE``, paper 4's, where the attraction's weights sum to 1.
``spectral_direction``: Vladymyrov & Carreira-Perpinan, ICML 2012; ``homotopy``:
spectral directions from a repulsion so weak that there is one minimum to the whole
(Carreira-Perpinan, ICML 2010).
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

from napari_embedding_game.core.energy.methods import all_attraction
from napari_embedding_game.core.energy.objective import AllPairs

from .spectral_direction import SpectralDirection

Points = NDArray[np.floating]
Energy = Callable[[Points], tuple[float, Points]]
"""Returns the energy of (N, d) points and its (N, d) gradient."""

TOLERANCE = 1e-5
MAX_ITER = 5000
N_STEPS = 50
"""Values of lambda of a homotopy."""
WEAKEST = 1e-4
"""The first of them, as a share of the last."""
_JITTER = 0.03
"""Standard deviation of what each minimum is shaken by, in widths of the kernel:
under a weak repulsion points fall onto one spot, where nothing parts them again."""
_ARMIJO = 1e-4
_MAX_TRIALS = 40


class Step(NamedTuple):
    """The state of a minimiser; never changed afterwards."""

    y: Points
    """(N, d) positions."""
    energy: float
    """Of the map; NaN in a homotopy under a part of the repulsion."""
    gradient: Any = None
    """(N, d) array, where a line search goes on from here."""
    length: float = 1.0
    """What that begins with: twice the last step, if it served at once; at most 1,
    where a quadratic attraction has its minimum."""


def point_energy(objective: AllPairs) -> Energy:
    """Return an objective as a function of the points alone."""

    def energy_of(y: Points) -> tuple[float, Points]:
        points = torch.from_numpy(y)
        # Of the landmarks, which have no say here, one is the fewest.
        energy, gradient, _ = objective.evaluate(points, points[:1])
        return energy, gradient.numpy()

    return energy_of


def start_of(objective: AllPairs, layout: Points) -> Points:
    """Return a copy of the layout in the type that the objective computes in."""
    return np.array(layout, objective.forces.edges.weights.dtype, order="C")


def min_fall(objective: AllPairs) -> float:
    """Return the tolerance in the unit of the objective."""
    return TOLERANCE * abs(all_attraction(objective.forces.edges))


def line_search(energy_of: Energy, begin: Step, direction: Points) -> Step | None:
    """Go back from a step of its length until the energy falls as Armijo asks."""
    slope, length = float(np.vdot(begin.gradient, direction)), begin.length
    for trial in range(_MAX_TRIALS):
        y = begin.y + begin.y.dtype.type(length) * direction
        energy, gradient = energy_of(y)
        if energy < begin.energy + _ARMIJO * length * slope:
            return Step(y, energy, gradient, min(length * (1 if trial else 2), 1.0))
        length /= 2
    return None


def spectral_direction(
    objective: AllPairs,
    layout: Points,
    *,
    max_iter: int = MAX_ITER,
    direct: SpectralDirection | None = None,
) -> Iterator[Step]:
    """Follow the spectral direction, each step at first as long as the last.

    ``layout`` (N, d) stays as it is.  ``direct``: the direction for these edges, if it
    is there already.
    """
    energy_of, least = point_energy(objective), min_fall(objective)
    direct = direct or SpectralDirection(objective.forces.edges)
    y = start_of(objective, layout)
    step = Step(y, *energy_of(y))
    yield step
    for _ in range(max_iter):
        direction = direct(step.gradient).astype(y.dtype)
        new = line_search(energy_of, step, direction)
        if new is None:
            return
        yield new
        if step.energy - new.energy < least:
            return
        step = new


def homotopy(
    objective: AllPairs,
    layout: Points,
    *,
    max_iter: int = N_STEPS * MAX_ITER,
    n_steps: int = N_STEPS,
) -> Iterator[Step]:
    """Minimise for lambda from ``WEAKEST`` of its value to the whole, in ``n_steps``.

    Before each minimisation the layout is shaken.
    """
    direct, y = SpectralDirection(objective.forces.edges), layout
    rng, under = np.random.default_rng(objective.random_state), copy(objective)
    width = _JITTER * (np.ptp(layout, axis=0) > 0)
    yield Step(start_of(objective, layout), math.nan)
    for share in (*np.geomspace(WEAKEST, 1.0, n_steps)[:-1], 1.0):
        under.repulsion = float(share) * objective.repulsion
        start = y + rng.normal(size=y.shape) * width
        descent = islice(spectral_direction(under, start, direct=direct), 1, None)
        for y, energy, *_ in descent:
            yield Step(y, energy if share == 1.0 else math.nan)
            max_iter -= 1
            if max_iter == 0:
                return
