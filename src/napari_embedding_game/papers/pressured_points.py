"""Pressured-points optimisation (paper 4, Alg. 1): a way out for stuck points.

Points under pressure get one more coordinate h, across the map.  For mu = 0, m, 2m, ...
(m: the mean degree) minimise

    E(y, h) + mu sum h^2,      h_k = 0 for all points that are not pressured,

and after each iteration see anew, from y alone, which points are, until none is off the
map.  Paper 4 counts a point as pressured without a look at mu; here it is where mu h^2
still lets it rise; otherwise a map whose minimum has pressured points never ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.energy.objective import AllPairs
from napari_embedding_game.core.energy.pair_loops import (
    CHUNK,
    OPTIONS,
    lifted_row,
    n_chunks,
    squared_to_all,
)
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import run_blocks

from .minimizers import (
    MAX_ITER,
    Points,
    Step,
    line_search,
    min_fall,
    point_energy,
    start_of,
)
from .spectral_direction import Array, SpectralDirection

Mask = NDArray[np.bool_]

_MAX_PER_MU = 500
"""Iterations at one mu: points that rise and come down in turn might never rest."""
_TINY = 1e-300


def pressured_points(
    objective: AllPairs,
    layout: Points,
    *,
    max_iter: int = MAX_ITER,
    direct: SpectralDirection | None = None,
) -> Iterator[Step]:
    """Optimise a map by way of its pressured points, with spectral directions.

    Ends when no point is off the map and the energy hardly falls, or after
    ``max_iter`` iterations.  The energy of a step, of the map alone, may rise on the
    way.  ``direct``: that of the edges, if it is there already.
    """
    direct = direct or SpectralDirection(objective.forces.edges)
    lifted, least = Lifted(objective, direct.degrees), min_fall(objective)
    y = start_of(objective, layout)
    x = np.column_stack([y, np.zeros(len(y), y.dtype)])
    flat, x, free = lifted.lift(x, np.zeros(len(x), bool))
    iteration, begun, length, step = 0, 0, 1.0, None
    yield Step(y, flat)
    while iteration < max_iter:
        step = step or Step(x, *lifted(x), length)
        step.gradient[~free, -1] = 0
        across = direct.of_heights(step.gradient[:, -1], free, lifted.mu)
        down = np.column_stack([direct(step.gradient[:, :-1]), across]).astype(x.dtype)
        new, fall = line_search(lifted, step, down), 0.0
        if new is not None:
            iteration, fall = iteration + 1, step.energy - new.energy
            flat, x, free = lifted.lift(new.y, free)
            length, step = new.length, new if np.array_equal(x, new.y) else None
            yield Step(x[:, :-1].copy(), flat)
        if fall < least or iteration - begun >= _MAX_PER_MU:
            if fall < least and not free.any():
                return
            # The degree of Edges is twice the paper's, whose weights sum to 1.
            lifted.mu += float(direct.degrees.mean()) / 2
            length, begun, step = 1.0, iteration, None
            flat, x, free = lifted.lift(x, free)


class Lifted:
    """The energy of points and heights, with the penalty on heights."""

    def __init__(self, objective: AllPairs, degrees: Array) -> None:
        self.mu = 0.0
        self._objective = objective
        self._energy_of = point_energy(objective)
        self._degrees = degrees

    def __call__(self, x: Points) -> tuple[float, Points]:
        """Return the energy of (N, d + 1) points and heights, and its gradient."""
        energy, gradient = self._energy_of(x)
        heights = x[:, -1].astype(np.float64)
        gradient[:, -1] += (2 * self.mu * heights).astype(x.dtype)
        return energy + self.mu * float(heights @ heights), gradient

    def lift(self, x: Points, free: Mask) -> tuple[float, Points, Mask]:
        """Raise points that have become pressured, put down those that no more are."""
        y = np.ascontiguousarray(x[:, :-1])
        push, total = self._push(y)
        strength, is_sum = self._objective.repulsion, self._objective.aggregate == "sum"
        pull = self._degrees + self.mu
        # d/du of each point's energy at u = h^2 = 0.
        is_free = pull < strength / (1.0 if is_sum else total) * push
        x = x.copy()
        x[free & ~is_free, -1] = 0
        raised = is_free & ~free
        # With r = exp(-h^2) EE's minimum is at  pull = lambda push r, s-SNE's at
        # pull (S - push + push r) = lambda push r.
        shrunk = pull / np.maximum(strength * push, _TINY)
        if not is_sum:
            room = np.maximum((strength - pull) * push, _TINY)
            shrunk = pull * (total - push) / room
        heights = np.sqrt(-np.log(np.clip(shrunk, 1e-30, 1.0)))
        x[raised, -1] = heights[raised]
        attraction = self._objective.forces.attraction_energy(torch.from_numpy(y))
        flat = attraction + strength * (total if is_sum else math.log(total))
        return flat, x, is_free

    def _push(self, y: Points) -> tuple[Array, float]:
        """Return each point's share of the sum over all pairs, and that sum."""
        forces, weights = self._objective.forces, self._objective.weights
        push, sums = np.empty(len(y)), np.empty(n_chunks(len(y)))
        v = np.empty((0, 0), y.dtype) if weights is None else weights
        columns = np.ascontiguousarray(y.T)
        run_blocks(
            _push_of_all, len(sums), len(y) ** 2,
            forces.k, v, y, columns, push, sums,
        )  # fmt: skip
        return 2 * push, float(sums.sum())


@njit(**OPTIONS)
def _push_of_all(begin, end, k, v, y, z, push, sums):
    """Write paper 4's d-, -sum_j v_ij k'(|y_i - y_j|^2), j != i, and sums of v_ij k."""
    for c in range(begin, end):
        s = np.empty(y.shape[0], y.dtype)
        weights = np.ones_like(s)
        total = 0.0
        for i in range(c * CHUNK, min((c + 1) * CHUNK, y.shape[0])):
            squared_to_all(i, y, z, s)
            if v.shape[0] > 0:
                for j in range(y.shape[0]):
                    weights[j] = v[i, j]
            weights[i] = 0
            value, slope = lifted_row(k, s, weights, 0.0)
            weights[i] = 1
            push[i] = -slope
            total += value
        sums[c] = total
