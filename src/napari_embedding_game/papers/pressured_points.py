"""Pressured-points optimisation (paper 4, Alg. 1): a way out for stuck points.

Points under pressure get one more coordinate h, across the map, and leave their
bad places through it.  For mu = 0, m, 2m, ... (m: the mean degree) minimise

    E(y, h) + mu sum h^2,      h_k = 0 for all points that are not pressured,

and after each iteration see anew, from y alone, which points are.  With mu the
pressure falls, until no point is off the map: y is then a map like any other.
As a rule its energy is lower than where it began; nothing makes sure of that.

Paper 4 counts a point as pressured without a look at mu.  Here it is pressured
if mu h^2 still lets it rise; without that a map whose minimum has pressured
points would never end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.energy import pair_loops
from napari_embedding_game.core.energy.objective import AllPairs, Objective
from napari_embedding_game.core.energy.pair_functions import ATTRACTIONS, KERNELS
from napari_embedding_game.core.energy.pressure import pressure
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.threads import run_blocks

from .minimizers import (
    MAX_ITER,
    TOLERANCE,
    PointEnergy,
    Points,
    Step,
    least_fall,
    line_search,
    longest_step,
    start_of,
)
from .spectral_direction import SpectralDirection

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST_PER_MU = 500
"""Iterations at one mu: points that rise and come down in turn might never rest."""


def pressured_points(
    objective: Objective,
    layout: Points,
    *,
    tolerance: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    step: float | None = None,
    direct: SpectralDirection | None = None,
) -> Iterator[Step]:
    """Optimise a map by way of its pressured points, with spectral directions.

    Ends when no point is off the map and the energy falls by less than
    ``tolerance`` (see :mod:`minimizers`), or after ``max_iter`` iterations; then
    the heights of the last step are not all 0.

    Parameters
    ----------
    objective : Objective
        With the sum over all pairs.
    layout : (N, d) array
        Where the points start; it stays as it is.
    tolerance, max_iter
        When to end.
    step : float, optional
        m, between two values of mu; the mean degree, if not given.
    direct : SpectralDirection, optional
        That of the edges, if it has been factored already.

    Yields
    ------
    Step
        The start, then each iteration.  Its energy, of the map alone, may rise on the
        way.

    Raises
    ------
    InputError
        The repulsion is not the sum over all pairs, or edges push.
    """
    if not isinstance(objective, AllPairs):
        raise InputError(
            "Pressured points need to know all that push them: choose the "
            "approximation exact."
        )
    task = _Task(objective, step, direct)
    start = start_of(objective, layout)
    return _optimise(task, start, least_fall(objective, tolerance), max_iter)


def _optimise(
    task: _Task, layout: Points, least: float, max_iter: int
) -> Iterator[Step]:
    x = np.column_stack([layout, np.zeros(len(layout), layout.dtype)])
    mu, iteration, length, begun = 0.0, 0, 1.0, 0
    state = task.lift(x, np.zeros(len(x), bool), mu)
    yield state.seen(iteration, mu)
    while iteration < max_iter:
        direction = task.direction(state, mu)
        step = line_search(
            task.penalised(mu),
            state.x,
            state.energy,
            state.gradient,
            direction,
            length,
            task.longest,
        )
        fall = 0.0
        if step is not None:
            iteration += 1
            fall, length = state.energy - step.energy, step.length
            state = task.lift(step.y, state.free, mu, (step.energy, step.gradient))
            yield state.seen(iteration, mu)
        if fall < least or iteration - begun >= _MOST_PER_MU:
            if fall < least and not state.free.any():
                return
            mu, length, begun = mu + task.step, 1.0, iteration
            state = task.lift(state.x, state.free, mu)


@dataclass(frozen=True, slots=True)
class _State:
    x: Points
    """(N, d + 1): the map, and the heights."""
    free: Mask
    """(N,): the pressured points."""
    energy: float
    """Of x, with the penalty."""
    gradient: Points
    """(N, d + 1)."""
    flat_energy: float
    """Of the map alone."""

    def seen(self, iteration: int, mu: float) -> Step:
        y, heights = self.x[:, :-1].copy(), np.abs(self.x[:, -1])
        return Step(iteration, y, self.flat_energy, heights=heights, mu=mu)


class _Task:
    """An objective, and what is pressured under it."""

    def __init__(
        self,
        objective: Objective,
        step: float | None,
        direct: SpectralDirection | None = None,
    ) -> None:
        assert isinstance(objective, AllPairs)
        self._objective = objective
        self._energy_of = PointEnergy(objective)
        self._direct = direct or SpectralDirection(objective.forces.edges)
        self._matrix = objective.forces.edges.matrix()
        dtype = self._matrix.dtype
        weights = objective.weights
        self._far = np.empty((0, 0), dtype) if weights is None else weights
        # The degree of Edges is twice the paper's, whose weights sum to 1.
        degrees = self._direct.degrees
        self.longest = longest_step(objective)
        self.step = float(degrees.mean()) / 2 if step is None else step

    def penalised(self, mu: float) -> _Penalised:
        return _Penalised(self._energy_of, mu)

    def direction(self, state: _State, mu: float) -> Points:
        flat, steep = state.gradient[:, :-1], state.gradient[:, -1]
        across = self._direct.of_heights(steep, state.free, mu)
        return np.column_stack([self._direct(flat), across]).astype(state.x.dtype)

    def lift(
        self,
        x: Points,
        free: Mask,
        mu: float,
        known: tuple[float, Points] | None = None,
    ) -> _State:
        """Raise points that have become pressured, put down those that no longer are.

        ``known``: energy and gradient of x, if nothing has changed but x.
        """
        y = np.ascontiguousarray(x[:, :-1])
        energy, pull, push, total = self._forces_across(y)
        now = self._slope(pull, push, total, mu) < 0
        raised, lowered = now & ~free, free & ~now
        if raised.any() or lowered.any():
            x = x.copy()
            x[lowered, -1] = 0
            heights = self._heights(y, pull, push, total, mu)
            x[raised, -1] = heights[raised]
            known = None
        before, gradient = known or self.penalised(mu)(x)
        gradient[~now, -1] = 0
        return _State(x, now, before, gradient, energy)

    def _forces_across(self, y: Points) -> tuple[float, Array, Array, float]:
        """Return the map's energy; d/du of attraction and sum, by point; the sum."""
        forces = self._objective.forces
        push, sums = np.empty(len(y)), np.empty(pair_loops.n_chunks(len(y)))
        columns = np.ascontiguousarray(y.T)
        k = KERNELS[forces.kernel]
        run_blocks(
            pair_loops.push_of_all, len(sums), len(y) ** 2, forces.n_jobs, k, self._far,
            y, columns, push, sums,
        )  # fmt: skip
        total = float(sums.sum())
        is_sum = self._objective.aggregate == "sum"
        aggregate = total if is_sum else math.log(total)
        attraction = forces.attraction_energy(torch.from_numpy(y))
        energy = attraction + self._objective.repulsion * aggregate
        return energy, self._pull(y), 2 * push, total

    def _pull(self, y: Points) -> Array:
        attraction = self._objective.forces.attraction
        if attraction == "quadratic":
            return self._direct.degrees
        entries = self._matrix.tocoo()
        squared = torch.from_numpy(((y[entries.row] - y[entries.col]) ** 2).sum(axis=1))
        slopes = entries.data * ATTRACTIONS[attraction].slope(squared).numpy()
        pull: Array = np.bincount(entries.row, slopes, minlength=len(y)).astype(float)
        return pull

    def _slope(self, pull: Array, push: Array, total: float, mu: float) -> Array:
        """Return d/du of each point's energy at u = h^2 = 0."""
        is_sum = self._objective.aggregate == "sum"
        strength = self._objective.repulsion / (1.0 if is_sum else total)
        slopes: Array = pull + mu - strength * push
        return slopes

    def _heights(
        self, y: Points, pull: Array, push: Array, total: float, mu: float
    ) -> Array:
        """Return each point's pressure; where the kernel is Gaussian, paper 4's.

        With r = exp(-h^2) EE's minimum is at  pull + mu = lambda push r, s-SNE's
        at  (pull + mu) (S - push + push r) = lambda push r.
        """
        forces = self._objective.forces
        if (forces.attraction, forces.kernel) != ("quadratic", "gaussian"):
            points = torch.from_numpy(y)
            return pressure(self._objective, points, points[:1])[1].astype(np.float64)
        pull = pull + mu
        strength = self._objective.repulsion
        if self._objective.aggregate == "sum":
            shrunk = pull / (strength * np.maximum(push, np.finfo(float).tiny))
        else:
            room = np.maximum(strength - pull, np.finfo(float).tiny)
            shrunk = pull * (total - push) / np.maximum(push * room, 1e-300)
        heights: Array = np.sqrt(-np.log(np.clip(shrunk, 1e-30, 1.0)))
        return heights


@dataclass(frozen=True, slots=True)
class _Penalised:
    """The energy of points and heights, with the penalty on heights."""

    energy_of: PointEnergy
    mu: float

    def __call__(self, x: Points) -> tuple[float, Points]:
        energy, gradient = self.energy_of(x)
        heights = x[:, -1].astype(np.float64)
        gradient[:, -1] += (2 * self.mu * heights).astype(x.dtype)
        return energy + self.mu * float(heights @ heights), gradient
