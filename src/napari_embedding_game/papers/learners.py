"""Players that learn while they play: those of the Fenchel game that descend.

A player of a zero-sum game sees in every round only what the other one did.  In the
Fenchel game (paper 2, Section 6) with the payoff g(x, y) = <x, y> - f*(y) the player of
x loses <x, y_t>, and the player of y loses f*(y) - <x_t, y>.  Mirror descent of x (Alg.
5, phi half the squared norm) against best responses of y that see x before they answer
(BestResp+, Remark 6.11) is gradient descent on f (Alg. 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Action = NDArray[np.float64]


def descent_game(
    start: Action, step: float, answer: Callable[[Action], Action]
) -> Iterator[tuple[Action, Action]]:
    """Yield the actions of both players in each round, without end.

    ``answer``: the best response to x, which is the gradient of f there.
    """
    x = start
    while True:
        y = answer(x)
        yield x, y
        x = x - step * y


def convergence_bound(distance: float, slope: float, n_rounds: int) -> float:
    """Return 3 G R / (2 sqrt(T)), which f(mean x) - min f stays below (Lemma 6.22).

    R: at least the ``distance`` from the start to the minimum; G: at least the norm of
    every gradient; T: rounds, of steps R / (G sqrt(T)).
    """
    return float(3 * slope * distance / (2 * np.sqrt(n_rounds)))
