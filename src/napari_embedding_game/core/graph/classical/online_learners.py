"""Players that learn while they play: the online learners of the Fenchel game.

A player of a zero-sum game sees in every round only what the other one did.  In
the Fenchel game (paper 2, Section 6) with the payoff g(x, y) = <x, y> - f*(y), the
player of x loses <x, y_t>, and the player of y loses f*(y) - <x_t, y>.  So what the
other did is all that a learner has to be told, and one protocol serves all
(Alg. 3).  A *prescient* learner, marked +, is told before it acts (Remark 6.11):
apart from that, FTL+ is FTL and OMD+ is OMD.

==========  ======================================================  ============
learner     what it does in round t                                 source
==========  ======================================================  ============
BestResp+   answers best to round t                                 Alg. 6
OMD         steps from its last action against the last loss        Alg. 5
OMD+        steps from its last action against the loss of round t  Alg. 5
==========  ======================================================  ============

OMD takes losses that are linear in its own action, or their gradients; phi is half the
squared norm.  ``papers/reproductions/learners.py`` has the others of the paper.

Actions may be numpy arrays or torch tensors of any shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

Action = Any
"""An array or tensor."""
BestResponse = Callable[[Action], Action]
"""Takes what the other did, on average, and returns the action of least loss."""
Projection = Callable[[Action], Action]
"""Takes a position anywhere and returns the nearest action that is allowed."""


def anywhere(z: Action) -> Action:
    """Allow every position."""
    return z


class Learner(Protocol):
    """A player (Alg. 3)."""

    prescient: bool
    """Whether it observes a round before it acts in it."""

    def act(self) -> Action:
        """Return the action of this round."""

    def observe(self, weight: float, other: Action) -> None:
        """Take in what the other did in a round of this weight (alpha_t)."""


class Average:
    """Weighted mean of what it is given, such as the mean iterate of a player."""

    def __init__(self) -> None:
        self._total = 0.0
        self.mean: Action = None

    def add(self, weight: float, value: Action) -> Action:
        """Take in one value and return the mean of all so far."""
        self._total += weight
        if self.mean is None:
            self.mean = value * 1.0  # a copy
        else:
            self.mean = self.mean + (weight / self._total) * (value - self.mean)
        return self.mean


class BestResponsePlus:
    """BestResp+: the best action against what the other does in this round."""

    prescient = True

    def __init__(self, best_response: BestResponse) -> None:
        self._best_response = best_response
        self._other: Action = None

    def act(self) -> Action:
        """Return the best response to the round just observed."""
        return self._best_response(self._other)

    def observe(self, weight: float, other: Action) -> None:
        """Remember the round; its weight changes nothing."""
        self._other = other


class MirrorDescent:
    """OMD, or OMD+ if prescient: a step of ``step`` times weight against the loss."""

    def __init__(
        self,
        start: Action,
        step: float,
        project: Projection = anywhere,
        *,
        prescient: bool = False,
    ) -> None:
        self.prescient = prescient
        self._action = start
        self._step = step
        self._project = project

    def act(self) -> Action:
        """Return where the last step led."""
        return self._action

    def observe(self, weight: float, other: Action) -> None:
        """Step."""
        self._action = self._project(self._action - self._step * weight * other)


@dataclass(frozen=True, slots=True)
class Round:
    """What both players did in a round, and their mean actions so far."""

    x: Action
    y: Action
    mean_x: Action
    mean_y: Action


def play(x: Learner, y: Learner, weights: Iterable[float]) -> Iterator[Round]:
    """Play a round for each weight: x against y, whose losses are each other.

    Raises
    ------
    ValueError
        Both are prescient, so that each would have to wait for the other.
    """
    if x.prescient and y.prescient:
        raise ValueError("only one of two players can see the other's action first")
    means = Average(), Average()
    for weight in weights:
        action_x, action_y = _one_round(x, y, weight)
        yield Round(
            action_x,
            action_y,
            means[0].add(weight, action_x),
            means[1].add(weight, action_y),
        )


def _one_round(x: Learner, y: Learner, weight: float) -> tuple[Action, Action]:
    if x.prescient:
        return _one_round(y, x, weight)[::-1]
    action_x = x.act()
    if y.prescient:
        y.observe(weight, action_x)
    action_y = y.act()
    if not y.prescient:
        y.observe(weight, action_x)
    x.observe(weight, action_y)
    return action_x, action_y
