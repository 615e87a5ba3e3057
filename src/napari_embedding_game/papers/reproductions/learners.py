"""Online learners of paper 2 that no map of the window needs.

==========  ======================================================  ============
learner     what it does in round t                                 source
==========  ======================================================  ============
FTL         answers best to the mean of the rounds before t         Alg. 4
FTL+        answers best to the mean of the rounds up to t          Alg. 4
FTRL        minimises the sum of losses + |z - z_0|^2 / (2 step)    Alg. 4
optimistic  OMD with the last loss counted twice less the one       Wang et al.
            before, as a guess of the next
==========  ======================================================  ============

The last two take losses that are linear in their own action, or their gradients;
phi is half the squared norm.  As printed, Alg. 4 sums FTRL's losses up to t, which
is its prescient form; here FTRL sees t - 1 of them unless it is prescient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.classical.online_learners import (
    Action,
    Average,
    BestResponse,
    MirrorDescent,
    Projection,
    anywhere,
)


def in_ball(radius: float) -> Projection:
    """Allow positions at most ``radius`` from 0."""

    def project(z: NDArray[Any]) -> Action:
        length = float(np.linalg.norm(z))
        return z if length <= radius else z * (radius / length)

    return project


class FollowTheLeader:
    """FTL, or FTL+ if prescient: the best action against all rounds it has seen.

    Parameters
    ----------
    best_response : callable
        For the player of y this is the gradient of f.
    first : Action, optional
        What it does before it has seen anything; not needed if prescient.
    """

    def __init__(
        self,
        best_response: BestResponse,
        first: Action = None,
        *,
        prescient: bool = False,
    ) -> None:
        self.prescient = prescient
        self._best_response = best_response
        self._first = first
        self._seen = Average()

    def act(self) -> Action:
        """Return the best response to the weighted mean of the other."""
        if self._seen.mean is None:
            return self._first
        return self._best_response(self._seen.mean)

    def observe(self, weight: float, other: Action) -> None:
        """Add to the mean."""
        self._seen.add(weight, other)


class RegularizedLeader:
    """FTRL: the leader, held back to its start by |z - start|^2 / (2 step)."""

    def __init__(
        self,
        start: Action,
        step: float,
        project: Projection = anywhere,
        *,
        prescient: bool = False,
    ) -> None:
        self.prescient = prescient
        self._start = start
        self._step = step
        self._project = project
        self._sum = start * 0.0

    def act(self) -> Action:
        """Return the minimiser of all losses seen and the regulariser."""
        return self._project(self._start - self._step * self._sum)

    def observe(self, weight: float, other: Action) -> None:
        """Add to the sum of losses."""
        self._sum = self._sum + weight * other


class OptimisticDescent(MirrorDescent):
    """OMD that takes the last change of the loss for the next one as well."""

    def __init__(
        self, start: Action, step: float, project: Projection = anywhere
    ) -> None:
        super().__init__(start, step, project)
        self._last: Action = None

    def observe(self, weight: float, other: Action) -> None:
        """Step against twice this loss less the one before."""
        last = other if self._last is None else self._last
        self._last = other
        super().observe(weight, 2 * other - last)


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
