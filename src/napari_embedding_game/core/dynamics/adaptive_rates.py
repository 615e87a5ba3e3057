"""Learning rates that find themselves while a game is played.

Each player's directions, its gradients divided by their root mean square, are averaged
over about the last ten steps.  How long that average is, 0 to 1, tells whether the
steps suit the map: near 1 each step goes on where the last one went and could be
longer, near 0 each takes back the one before and is too long; random directions give
0.23.  A rate grows by the factor exp(0.2 (length - wanted)) in each step, up to the
reach of the kernel: landmarks that step further than that lose the points they stand
for (``benchmarks/rates.py --reach``, b9dd4b2).

In evolution strategies this is the control of the step by the path's length.  The
wanted length is small while the repulsion is weak, so that the points search, and
grows in the second half of the schedule, so that the points settle.  It stands in the
place of the schedule's course of the rates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from napari_embedding_game.core.dynamics.optimizer import Schedule

REACH = 1.0
"""Longest step, root mean square per coordinate: what the kernels reach."""
_LEAST = 1e-5
"""Lowest rate; one that is given as 0 stays 0."""
_SPEED = 0.2
_HALF = 0.5
_DONE = (0.0, _HALF, 0.75, 1.0)
_OF_POINTS = (0.1, 0.1, 0.3, 0.6)
_OF_LANDMARKS = (0.1, 0.1, 0.3, 0.15)
"""Wanted length of the average direction at these shares of the schedule."""


class AdaptiveRates:
    """The rates of both players, which begin as ``schedule`` gives them."""

    def __init__(self, schedule: Schedule) -> None:
        self.given = given_rates(schedule)
        self.rates = [min(rate, REACH) for rate in self.given]
        self._at_half = list(self.rates)
        self._done = 0.0

    def adapt(self, lengths: Sequence[float], done: float) -> None:
        """Take up how long the average directions of the players are, 0 to 1.

        Where the schedule has gone back, as it does for new settings, so do the rates.

        Parameters
        ----------
        lengths : (2,) of float
            Of the points, and of the landmarks.
        done : float
            Share of the schedule that is done, 0 to 1.
        """
        if done < self._done:
            self.rates = list(self._at_half)
        self._done = done
        for i, wanted in enumerate((_OF_POINTS, _OF_LANDMARKS)):
            growth = _SPEED * (lengths[i] - float(np.interp(done, _DONE, wanted)))
            least = min(self.given[i], _LEAST)
            rate = self.rates[i] * math.exp(growth)
            self.rates[i] = min(max(rate, least), REACH)
        if done <= _HALF:
            self._at_half = list(self.rates)


def given_rates(schedule: Schedule) -> tuple[float, float]:
    """Return the rates that adaptive ones begin with."""
    return schedule.learning_rate, schedule.landmark_learning_rate
