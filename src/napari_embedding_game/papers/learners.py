"""Players that learn while they play: the online learners of the Fenchel game.

A player of a zero-sum game sees in every round only what the other one did.  In
the Fenchel game (paper 2, Section 6) with the payoff g(x, y) = <x, y> - f*(y), the
player of x loses <x, y_t>, and the player of y loses f*(y) - <x_t, y>.  So a learner
is a generator (Alg. 3): it yields an action, and is sent the weight of the round and
what the other did.  A *prescient* one, marked + in the paper, is sent that before its
action of the round is taken (Remark 6.11): :func:`play` sees to it.

All but FTL take losses that are linear in their own action, or their gradients; phi is
half the squared norm.  As printed, Alg. 4 sums FTRL's losses up to t, which is its
prescient form.  Actions may be numpy arrays or torch tensors of any shape.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Literal

import numpy as np

Action = Any
"""An array or tensor."""
Answer = Callable[[Action], Action]
"""Takes what the other did, on average, and returns the action of least loss."""
Projection = Callable[[Action], Action]
"""Takes a position anywhere and returns the nearest action that is allowed."""
Learner = Generator[Action, tuple[float, Action], None]


def follow_the_leader(answer: Answer, first: Action = None) -> Learner:
    """FTL (Alg. 4): answer best to the mean of the rounds before, or do ``first``."""
    action, total, mean = first, 0.0, 0.0
    while True:
        weight, loss = yield action
        total += weight
        mean = mean + (weight / total) * (loss - mean)
        action = answer(mean)


def regularized_leader(
    start: Action, step: float, project: Projection = lambda z: z
) -> Learner:
    """FTRL (Alg. 4): minimise the sum of losses + |z - start|^2 / (2 step)."""
    losses = 0.0
    while True:
        weight, loss = yield project(start - step * losses)
        losses = losses + weight * loss


def best_response(answer: Answer, first: Action = None) -> Learner:
    """BestResp (Alg. 6): answer the last round; for the player of y by grad f."""
    action = first
    while True:
        _, loss = yield action
        action = answer(loss)


def mirror_descent(
    start: Action, step: float, project: Projection = lambda z: z
) -> Learner:
    """OMD (Alg. 5): step from the last action against the last loss."""
    action = start
    while True:
        weight, loss = yield action
        action = project(action - step * weight * loss)


def optimistic_descent(
    start: Action, step: float, project: Projection = lambda z: z
) -> Learner:
    """OMD that takes the last change of the loss for the next (Wang et al.)."""
    action, last = start, None
    while True:
        weight, loss = yield action
        guess = loss if last is None else 2 * loss - last
        action, last = project(action - step * weight * guess), loss


def play(
    x: Learner,
    y: Learner,
    weights: Iterable[float],
    prescient: Literal["x", "y"] | None = None,
) -> Iterator[tuple[Action, Action]]:
    """Play a round for each weight, and yield the actions of both players in it.

    The losses of each are the actions of the other.  ``prescient``: who sees the
    other's action of a round before it acts.
    """
    if prescient == "x":
        yield from ((b, a) for a, b in play(y, x, weights, "y"))
        return
    action, other = next(x), next(y)
    for weight in weights:
        if prescient == "y":
            other = y.send((weight, action))
        yield action, other
        seen, action = action, x.send((weight, other))
        if prescient != "y":
            other = y.send((weight, seen))


def convergence_bound(distance: float, slope: float, n_rounds: int) -> float:
    """Return 3 G R / (2 sqrt(T)), which f(mean x) - min f stays below (Lemma 6.22).

    R: at least the ``distance`` from the start to the minimum; G: at least the norm of
    every gradient; T: rounds, of steps R / (G sqrt(T)).
    """
    return float(3 * slope * distance / (2 * np.sqrt(n_rounds)))
