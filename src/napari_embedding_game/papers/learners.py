"""Online learners, the players of the Fenchel game.

A player of a zero-sum game sees in every round only the action of the other player.  In
the Fenchel game (paper 2, Section 6) with the payoff g(x, y) = <x, y> - f*(y), the
player of x loses <x, y_t>, and the player of y loses f*(y) - <x_t, y>.  So a learner is
a generator (Alg. 3): it yields an action, and is sent the weight of the round and the
other player's action.  A *prescient* learner, marked + in the paper, is sent the other
player's action before its own action of the round is taken (Remark 6.11);
:func:`play_rounds` decides which learner is prescient.

All learners but FTL take losses that are linear in their own action, or gradients of
losses; phi is half the squared norm.  As printed, Alg. 4 sums FTRL's losses up to t,
which is its prescient form.  Actions are numpy arrays or torch tensors of any shape.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Literal

import numpy as np

Action = Any
"""An array or tensor."""
Answer = Callable[[Action], Action]
"""Takes the (mean) action of the other player and returns the action of least loss."""
Projection = Callable[[Action], Action]
"""Takes any position and returns the nearest action that is allowed."""
Learner = Generator[Action, tuple[float, Action], None]


def follow_the_leader(answer: Answer, first: Action = None) -> Learner:
    """FTL (Alg. 4): yield ``first``, then the best answer to the mean of all rounds.

    The mean is of the other player's actions, weighted by the rounds' weights.
    """
    action, total, mean = first, 0.0, 0.0
    while True:
        weight, loss = yield action
        total += weight
        mean = mean + (weight / total) * (loss - mean)
        action = answer(mean)


def follow_the_regularized_leader(
    start: Action, step: float, project: Projection = lambda z: z
) -> Learner:
    """FTRL (Alg. 4): yield the minimum of sum of losses + |z - start|^2 / (2 step).

    The sum is over all rounds so far, weighted; the first action is ``start``.  Each
    action is mapped to an allowed one by ``project``.
    """
    losses = 0.0
    while True:
        weight, loss = yield project(start - step * losses)
        losses = losses + weight * loss


def best_response(answer: Answer, first: Action = None) -> Learner:
    """BestResp (Alg. 6): yield ``first``, then the best answer to the last round.

    The answer is to the other player's last action.  For the player of y ``answer`` is
    grad f.
    """
    action = first
    while True:
        _, loss = yield action
        action = answer(loss)


def mirror_descent(
    start: Action, step: float, project: Projection = lambda z: z
) -> Learner:
    """OMD (Alg. 5): yield ``start``, then step from each action against its loss.

    A step is minus ``step`` times the weight of the round times the loss.  The result
    is mapped to an allowed action by ``project``.
    """
    action = start
    while True:
        weight, loss = yield action
        action = project(action - step * weight * loss)


def optimistic_descent(
    start: Action, step: float, project: Projection = lambda z: z
) -> Learner:
    """Optimistic OMD: as OMD, but expect the loss to change as it did last (Wang).

    The step is against 2 loss - last loss; the first step is that of OMD.
    """
    action, last = start, None
    while True:
        weight, loss = yield action
        guess = loss if last is None else 2 * loss - last
        action, last = project(action - step * weight * guess), loss


def play_rounds(
    x: Learner,
    y: Learner,
    weights: Iterable[float],
    prescient: Literal["x", "y"] | None = None,
) -> Iterator[tuple[Action, Action]]:
    """Play a round for each weight, and yield the actions of both players, (x, y).

    The loss of a player is the action of the other player.  ``prescient``: the player
    that sees the other player's action of a round before it acts; by default both
    players see it afterwards.
    """
    if prescient == "x":
        yield from ((b, a) for a, b in play_rounds(y, x, weights, "y"))
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
    """Return 3 G R / (2 sqrt(T)), an upper bound of f(mean x) - min f (Lemma 6.22).

    ``distance`` R: at least the distance from the start to the minimum; ``slope`` G: at
    least the norm of every gradient; ``n_rounds`` T, with steps of R / (G sqrt(T)).
    """
    return float(3 * slope * distance / (2 * np.sqrt(n_rounds)))
