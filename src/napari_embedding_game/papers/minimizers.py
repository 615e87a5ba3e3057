"""Minimisers for methods without landmarks: only the points move, downhill.

Each is a function (objective, layout, *, max_iter, ...) that returns an iterator of
steps, the start first; it ends when the energy falls by less than ``tolerance``, paper
4's, where the attraction's weights sum to 1.  ``spectral_direction``: Vladymyrov
& Carreira-Perpinan, ICML 2012; ``lbfgs``: limited-memory BFGS with a strong Wolfe line
search; ``homotopy``: spectral directions from a repulsion so weak that there is one
minimum to the whole (Carreira-Perpinan, ICML 2010).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.energy.methods import all_attraction
from napari_embedding_game.core.energy.objective import Landmarks, Objective
from napari_embedding_game.core.errors import InputError

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
_MOST_TRIALS = 40
_HISTORY = 20


class Step(NamedTuple):
    """Where a minimiser stands."""

    iteration: int
    """0 is the start."""
    y: Points
    """(N, d) positions, a copy."""
    energy: float
    """Of the map; in a homotopy under the repulsion of this step."""
    repulsion: float | None = None
    """lambda of this step of a homotopy."""
    heights: Points | None = None
    """(N,) coordinates of pressured points across the map, 0 for the others."""
    mu: float = 0.0
    """Weight of the penalty on heights."""


def point_energy(objective: Objective) -> Energy:
    """Return an objective as a function of the points alone, or raise InputError."""
    if isinstance(objective, Landmarks):
        raise InputError(
            "A minimiser moves the points alone, and landmarks play against them: "
            "choose the approximation exact, or play the game."
        )

    def energy_of(y: Points) -> tuple[float, Points]:
        points = torch.from_numpy(y)
        # Of the landmarks, which have no say here, one is the fewest.
        energy, gradient, _ = objective.evaluate(points, points[:1])
        return energy, gradient.numpy()

    return energy_of


def start_of(objective: Objective, layout: Points) -> Points:
    """Return a copy of the layout in the type that the objective computes in."""
    return np.array(layout, objective.forces.edges.weights.dtype, order="C")


def least_fall(objective: Objective, tolerance: float = TOLERANCE) -> float:
    """Return the tolerance in the unit of the objective."""
    return tolerance * abs(all_attraction(objective.forces.edges))


class Found(NamedTuple):
    """The end of a line search."""

    y: Points
    energy: float
    gradient: Points
    length: float
    """What the next search begins with: twice the step, if the first one served."""


def line_search(
    energy_of: Energy,
    y: Points,
    energy: float,
    gradient: Points,
    direction: Points,
    length: float,
) -> Found | None:
    """Go back from a step of ``length`` until the energy falls as Armijo asks."""
    slope = float(np.vdot(gradient, direction))
    for trial in range(_MOST_TRIALS):
        there = y + y.dtype.type(length) * direction
        energy_there, steepness = energy_of(there)
        if energy_there < energy + _ARMIJO * length * slope:
            return Found(there, energy_there, steepness, length * (1 if trial else 2))
        length /= 2
    return None


def spectral_direction(
    objective: Objective,
    layout: Points,
    *,
    tolerance: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    direct: SpectralDirection | None = None,
) -> Iterator[Step]:
    """Follow the spectral direction, each step at first as long as the last.

    ``layout`` (N, d) stays as it is.  ``direct``: the direction for these edges, if it
    is there already.  InputError where the objective has landmarks, or edges that push.
    """
    energy_of = point_energy(objective)
    direct = direct or SpectralDirection(objective.forces.edges)
    # A quadratic attraction has its minimum at a step of 1.  The others flatten as
    # points part: there the direction is too short.
    longest = 1.0 if objective.forces.attraction == "quadratic" else math.inf
    least = least_fall(objective, tolerance)
    y, length = start_of(objective, layout), 1.0
    energy, gradient = energy_of(y)
    yield Step(0, y.copy(), energy)
    for iteration in range(1, max_iter + 1):
        before = energy
        direction = direct(gradient).astype(y.dtype)
        found = line_search(energy_of, y, energy, gradient, direction, length)
        if found is None:
            return
        y, energy, gradient, length = found
        length = min(length, longest)
        yield Step(iteration, y.copy(), energy)
        if before - energy < least:
            return


def lbfgs(
    objective: Objective,
    layout: Points,
    *,
    tolerance: float = TOLERANCE,
    max_iter: int = MAX_ITER,
) -> Iterator[Step]:
    """Follow limited-memory BFGS; torch's, as SciPy's cannot be left after a step."""
    energy_of, least = point_energy(objective), least_fall(objective, tolerance)
    points = start_of(objective, layout)
    y = torch.nn.Parameter(torch.from_numpy(points))  # of the same memory
    known: list[Points] = []
    last = 0.0

    def closure() -> float:
        # It is asked twice for the place that a step has come to.
        nonlocal known, last
        if not known or not np.array_equal(points, known[0]):
            last, gradient = energy_of(points)
            known = [points.copy(), gradient]
        y.grad = torch.from_numpy(known[1].copy())
        return last

    optimizer = torch.optim.LBFGS(
        [y],
        max_iter=1,
        max_eval=_MOST_TRIALS,
        tolerance_change=0.0,
        tolerance_grad=0.0,
        history_size=_HISTORY,
        line_search_fn="strong_wolfe",
    )
    energy = closure()
    yield Step(0, points.copy(), energy)
    for iteration in range(1, max_iter + 1):
        optimizer.step(closure)  # type: ignore[no-untyped-call]
        fall = energy - (energy := closure())
        if fall > 0:
            yield Step(iteration, points.copy(), energy)
        if fall < least:
            return


def homotopy(
    objective: Objective,
    layout: Points,
    *,
    n_steps: int = N_STEPS,
    weakest: float = WEAKEST,
    max_iter: int = MAX_ITER,
    direct: SpectralDirection | None = None,
    random_state: int = 0,
) -> Iterator[Step]:
    """Minimise for lambda from ``weakest`` of its value to the whole.

    ``max_iter`` is for each of the ``n_steps`` minimisations; in between the layout is
    shaken.  The objective gets its lambda back, also if the driver stops before the
    end.
    """
    direct = direct or SpectralDirection(objective.forces.edges)
    whole, y = objective.repulsion, layout
    rng = np.random.default_rng(random_state)
    width = _JITTER * (np.ptp(layout, axis=0) > 0)
    iteration = 0
    try:
        for share in (*np.geomspace(weakest, 1.0, n_steps)[:-1], 1.0):
            objective.repulsion = float(share) * whole
            start = y + rng.normal(size=y.shape) * width
            steps = spectral_direction(
                objective, start, max_iter=max_iter, direct=direct
            )
            for _, y, energy, *_ in steps:
                yield Step(iteration, y, energy, objective.repulsion)
                iteration += 1
    finally:
        objective.repulsion = whole
