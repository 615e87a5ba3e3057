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
FTL         answers best to the mean of the rounds before t         Alg. 4
FTL+        answers best to the mean of the rounds up to t          Alg. 4
FTRL        minimises the sum of losses + |z - z_0|^2 / (2 step)    Alg. 4
BestResp+   answers best to round t                                 Alg. 6
OMD         steps from its last action against the last loss        Alg. 5
OMD+        steps from its last action against the loss of round t  Alg. 5
optimistic  OMD with the last loss counted twice less the one       Wang et al.
            before, as a guess of the next
==========  ======================================================  ============

The last four take losses that are linear in their own action, or their gradients; phi
is half the squared norm.  As printed, Alg. 4 sums FTRL's losses up to t, which is its
prescient form; here FTRL sees t - 1 of them unless it is prescient.

Actions may be numpy arrays or torch tensors of any shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Action = Any
"""An array or tensor."""
BestResponse = Callable[[Action], Action]
"""Takes what the other did, on average, and returns the action of least loss."""
Projection = Callable[[Action], Action]
"""Takes a position anywhere and returns the nearest action that is allowed."""


def anywhere(z: Action) -> Action:
    """Allow every position."""
    return z


def in_ball(radius: float) -> Projection:
    """Allow positions at most ``radius`` from 0."""

    def project(z: NDArray[Any]) -> Action:
        length = float(np.linalg.norm(z))
        return z if length <= radius else z * (radius / length)

    return project


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


@dataclass
class BestResponsePlus:
    """BestResp+: the best action against what the other does in this round."""

    best_response: BestResponse
    prescient: bool = field(default=True, init=False)
    _other: Action = field(default=None, init=False)

    def act(self) -> Action:
        """Return the best response to the round just observed."""
        return self.best_response(self._other)

    def observe(self, weight: float, other: Action) -> None:
        """Remember the round; its weight changes nothing."""
        self._other = other


@dataclass
class MirrorDescent:
    """OMD, or OMD+ if prescient: a step of ``step`` times weight against the loss."""

    action: Action
    """Where it starts, then where the last step led."""
    step: float
    project: Projection = anywhere
    prescient: bool = field(default=False, kw_only=True)

    def act(self) -> Action:
        """Return where the last step led."""
        return self.action

    def observe(self, weight: float, other: Action) -> None:
        """Step."""
        self.action = self.project(self.action - self.step * weight * other)


@dataclass
class OptimisticDescent(MirrorDescent):
    """OMD that takes the last change of the loss for the next one as well."""

    _last: Action = field(default=None, init=False)

    def observe(self, weight: float, other: Action) -> None:
        """Step against twice this loss less the one before."""
        last = other if self._last is None else self._last
        self._last = other
        super().observe(weight, 2 * other - last)


@dataclass
class FollowTheLeader:
    """FTL, or FTL+ if prescient: the best action against all rounds it has seen."""

    best_response: BestResponse
    """For the player of y the gradient of f."""
    first: Action = None
    """What it does before it has seen anything; not needed if prescient."""
    prescient: bool = field(default=False, kw_only=True)
    _seen: Average = field(default_factory=Average, init=False)

    def act(self) -> Action:
        """Return the best response to the weighted mean of the other."""
        mean = self._seen.mean
        return self.first if mean is None else self.best_response(mean)

    def observe(self, weight: float, other: Action) -> None:
        """Add to the mean."""
        self._seen.add(weight, other)


@dataclass
class RegularizedLeader:
    """FTRL: the leader, held back to its start by |z - start|^2 / (2 step)."""

    start: Action
    step: float
    project: Projection = anywhere
    prescient: bool = field(default=False, kw_only=True)
    _sum: Action = field(default=0.0, init=False)

    def act(self) -> Action:
        """Return the minimiser of all losses seen and the regulariser."""
        return self.project(self.start - self.step * self._sum)

    def observe(self, weight: float, other: Action) -> None:
        """Add to the sum of losses."""
        self._sum = self._sum + weight * other


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


def convergence_bound(distance: float, slope: float, n_rounds: int) -> float:
    """Return 3 G R / (2 sqrt(T)), which f(mean x) - min f stays below (Lemma 6.22).

    Parameters
    ----------
    distance : float
        R, at least the distance from the start to the minimum.
    slope : float
        G, at least the norm of every gradient.
    n_rounds : int
        T; the step has to be R / (G sqrt(T)).
    """
    return float(3 * slope * distance / (2 * np.sqrt(n_rounds)))
