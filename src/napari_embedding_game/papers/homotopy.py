"""Homotopy: from a repulsion so weak that there is one minimum, to the whole.

Each minimum is where the search for the next begins (Carreira-Perpinan, ICML
2010).  It costs many minimisations and finds low energies: paper 4 takes it as
what an optimiser could reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from napari_embedding_game.core.energy.objective import Objective
from napari_embedding_game.core.errors import InputError

from .minimizers import (
    MAX_ITER,
    TOLERANCE,
    Minimizer,
    Points,
    spectral_direction,
)

N_STEPS = 50
_JITTER = 0.03
"""Standard deviation of what each minimum is shaken by, in widths of the kernel:
under a weak repulsion points fall onto one spot, where nothing parts them again."""
WEAKEST = 1e-4
"""The first lambda, as a share of the last."""


class HomotopyStep(NamedTuple):
    """Where the homotopy stands."""

    iteration: int
    y: Points
    """(N, d) positions, a copy."""
    energy: float
    """Under the repulsion of this step."""
    repulsion: float
    """lambda."""


def homotopy(
    objective: Objective,
    layout: Points,
    *,
    n_steps: int = N_STEPS,
    weakest: float = WEAKEST,
    minimizer: Minimizer = spectral_direction,
    tolerance: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    random_state: int = 0,
) -> Iterator[HomotopyStep]:
    """Minimise for lambda from ``weakest`` of its value to the whole.

    ``max_iter`` is for each of the ``n_steps`` minimisations.  The objective gets
    its lambda back, also if the driver stops before the end.  ``random_state`` is the
    seed of what the minima are shaken by.

    Raises
    ------
    InputError
        ``n_steps`` or ``weakest`` is out of range, or the minimiser refuses.
    """
    if n_steps < 1 or not 0 < weakest <= 1:
        raise InputError(
            "A homotopy needs at least 1 step, and a weakest repulsion above 0 "
            "and at most 1."
        )
    minimizer(objective, layout, max_iter=0)  # refuses now, and not at the first step
    shares = np.geomspace(weakest, 1.0, n_steps)
    shares[-1] = 1.0
    descend = partial(minimizer, tolerance=tolerance, max_iter=max_iter)
    return _follow(objective, layout, shares, descend, random_state)


def _follow(
    objective: Objective,
    y: Points,
    shares: Points,
    minimizer: Minimizer,
    random_state: int,
) -> Iterator[HomotopyStep]:
    whole = objective.repulsion
    rng = np.random.default_rng(random_state)
    iteration = 0
    try:
        for share in shares:
            objective.repulsion = float(share) * whole
            start = y + rng.normal(scale=_JITTER, size=y.shape)
            for step in minimizer(objective, start):
                y = step.y
                yield HomotopyStep(iteration, y, step.energy, objective.repulsion)
                iteration += 1
    finally:
        objective.repulsion = whole
