"""Games whose players take other steps: optimistic ones, or at rates that adapt.

"optimistic" puts 2 g_t - g_t-1 in the place of each player's direction g (paper 2's
learners).  "adaptive_rates" averages each player's directions over about ten steps:
near 1 the average says that steps could be longer, near 0 that each takes back the one
before. A rate grows by exp(0.2 (length - wanted)) in each step, up to the reach of the
kernel; the rates that are given are only what a game begins with.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from napari_embedding_game.core.dynamics.game import Game
from napari_embedding_game.core.dynamics.optimizer import Player, direction
from napari_embedding_game.core.dynamics.state import Problem
from napari_embedding_game.core.settings import Settings

REACH = 1.0
"""Longest step, root mean square per coordinate: what the kernels reach."""
_LEAST = 1e-5
"""Lowest rate; one that is given as 0 stays 0."""
_SPEED = 0.2
_HALF = 0.5
_DONE = (0.0, _HALF, 0.75, 1.0)
_WANTED = ((0.1, 0.1, 0.3, 0.6), (0.1, 0.1, 0.3, 0.15))
"""Length of the average direction, of points and landmarks, at these shares of the
schedule: small while the points search, larger while they settle."""
_REMEMBERED = 0.9
"""Share of the average direction that goes into the next one."""


class DirectedSteps(Player):
    """Steps along what is made of the directions, by torch."""

    def step(
        self,
        gradient: Tensor,
        rate: float,
        momentum: float = 0.0,
        scale: Tensor | None = None,
    ) -> None:
        """Move once, see :meth:`Player.step`."""
        self.take(self.along(direction(gradient, scale)), rate, momentum)

    def along(self, now: Tensor) -> Tensor:
        """Return where a step goes, of the direction (N, d) now."""
        raise NotImplementedError


class OptimisticSteps(DirectedSteps):
    """Steps that take the last change of the direction for the next one as well."""

    _last: Tensor | None = None

    def along(self, now: Tensor) -> Tensor:
        """Return the direction and its change since the last step."""
        last = now if self._last is None else self._last
        self._last = now
        return now + (now - last)


class FollowedSteps(DirectedSteps):
    """Steps of which the average direction is kept."""

    length: float | None = None
    """Its root mean square; None before any step."""

    def along(self, now: Tensor) -> Tensor:
        """Return the direction, and add it to the average."""
        if self.length is None:
            self._path, self._forgotten = torch.zeros_like(now), 1.0
        self._path += (1 - _REMEMBERED) * (now - self._path)
        self._forgotten *= _REMEMBERED
        rms = float(torch.linalg.vector_norm(self._path)) / math.sqrt(now.numel())
        self.length = rms / (1 - self._forgotten)  # it began at 0
        return now


class OptimisticGame(Game):
    """A game of two optimistic players."""

    player = OptimisticSteps


class AdaptiveGame(Game):
    """A game whose learning rates find themselves."""

    player = FollowedSteps
    y: FollowedSteps
    z: FollowedSteps
    _given: tuple[float, float] | None = None
    _done = 0.0

    def _apply(self, settings: Settings) -> None:
        super()._apply(settings)
        given = super()._rates(0.0)
        if given != self._given:
            self._given = given
            self._now = [min(rate, REACH) for rate in given]
            self._at_half = list(self._now)

    def _rates(self, done: float) -> tuple[float, float]:
        assert self._given is not None
        lengths = self.y.length, self.z.length
        if None not in lengths:
            if done < self._done:  # the schedule went back, for new settings
                self._now = list(self._at_half)
            self._done = done
            for i, length in enumerate(lengths):
                wanted = float(np.interp(done, _DONE, _WANTED[i]))
                grown = self._now[i] * math.exp(_SPEED * ((length or 0.0) - wanted))
                self._now[i] = min(max(grown, min(self._given[i], _LEAST)), REACH)
            if done <= _HALF:
                self._at_half = list(self._now)
        return self._now[0], self._now[1]


def optimistic(problem: Problem, settings: Settings) -> Game:
    """Return a game of optimistic players."""
    return OptimisticGame(problem)


def adaptive(problem: Problem, settings: Settings) -> Game:
    """Return a game whose rates adapt."""
    return AdaptiveGame(problem)
