"""Optimise stuck points by an extra dimension: pressured points (paper 4, Alg. 1).

Points under pressure get an additional coordinate h, their height above the map.  For
mu = 0, m, 2m, ... (m: the mean degree) the algorithm minimises

    E(y, h) + mu sum h^2,      h_k = 0 for all points that are not pressured,

and after each iteration determines the pressured points from y alone, until no point
has a height.  Paper 4 determines pressured points without mu.  Here a point is
pressured where the energy falls as it rises in spite of mu h^2; otherwise the algorithm
would never end for a map whose minimum has pressured points.
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
    count_chunks,
    sum_values_and_slopes,
    write_squared_distances,
)
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import run_blocks

from .minimizers import (
    MAX_ITER,
    Points,
    Step,
    copy_as_start,
    line_search,
    make_point_energy,
    scale_tolerance,
)
from .spectral_direction import Array, SpectralDirection

Mask = NDArray[np.bool_]

_MAX_PER_MU = 500
"""Most iterations at a value of mu, as points may rise and fall in turn forever."""
_TINY = 1e-300


def minimize_by_pressured_points(
    objective: AllPairs,
    layout: Points,
    *,
    max_iter: int = MAX_ITER,
    spectral_direction: SpectralDirection | None = None,
) -> Iterator[Step]:
    """Minimise an objective with heights of pressured points; yield start and steps.

    Steps follow spectral directions.  The penalty mu on heights rises when the energy
    falls by less than the tolerance, or after ``_MAX_PER_MU`` iterations.  The
    minimiser ends when the energy falls by less than the tolerance and no point has a
    height, or after ``max_iter`` iterations.

    A yielded step has the points without heights and the energy of this map, which may
    rise.  ``layout`` (N, d) is not changed; ``spectral_direction``: that of the
    objective's edges, computed by default.
    """
    spectral_direction = spectral_direction or SpectralDirection(objective.forces.edges)
    lifted, least = (
        LiftedEnergy(objective, spectral_direction.degrees),
        scale_tolerance(objective),
    )
    y = copy_as_start(objective, layout)
    x = np.column_stack([y, np.zeros(len(y), y.dtype)])
    flat, x, free = lifted.set_pressured_heights(x, np.zeros(len(x), bool))
    iteration, begun, length, step = 0, 0, 1.0, None
    yield Step(y, flat)
    while iteration < max_iter:
        step = step or Step(x, *lifted(x), length)
        step.gradient[~free, -1] = 0
        across = spectral_direction.solve_heights(step.gradient[:, -1], free, lifted.mu)
        down = np.column_stack(
            [spectral_direction(step.gradient[:, :-1]), across]
        ).astype(x.dtype)
        new, fall = line_search(lifted, step, down), 0.0
        if new is not None:
            iteration, fall = iteration + 1, step.energy - new.energy
            flat, x, free = lifted.set_pressured_heights(new.y, free)
            length, step = new.length, new if np.array_equal(x, new.y) else None
            yield Step(x[:, :-1].copy(), flat)
        if fall < least or iteration - begun >= _MAX_PER_MU:
            if fall < least and not free.any():
                return
            # The degree of Edges is twice the paper's, whose weights sum to 1.
            lifted.mu += float(spectral_direction.degrees.mean()) / 2
            length, begun, step = 1.0, iteration, None
            flat, x, free = lifted.set_pressured_heights(x, free)


class LiftedEnergy:
    """The energy of points and heights, with the penalty mu h^2 on heights.

    ``degrees`` (N,): sum of the weights of each point's edges.  ``mu`` is 0 at first,
    and may be set.
    """

    def __init__(self, objective: AllPairs, degrees: Array) -> None:
        self.mu = 0.0
        self._objective = objective
        self._energy_of = make_point_energy(objective)
        self._degrees = degrees

    def __call__(self, x: Points) -> tuple[float, Points]:
        """Return the energy of points with heights, and its gradient, (N, d + 1).

        ``x`` (N, d + 1): positions, and heights in the last column.
        """
        energy, gradient = self._energy_of(x)
        heights = x[:, -1].astype(np.float64)
        gradient[:, -1] += (2 * self.mu * heights).astype(x.dtype)
        return energy + self.mu * float(heights @ heights), gradient

    def set_pressured_heights(
        self, x: Points, free: Mask
    ) -> tuple[float, Points, Mask]:
        """Give heights to newly pressured points, and height 0 to those that are free.

        Points that stay pressured keep their heights.  ``x`` (N, d + 1): points and
        heights, not changed; ``free`` (N,): the points pressured so far.

        Returns the energy of the map without heights, the points with new heights (N, d
        + 1), and which points are pressured now (N,) bool.
        """
        y = np.ascontiguousarray(x[:, :-1])
        push, total = self._repulsion_slopes_and_sum(y)
        strength, is_sum = self._objective.repulsion, self._objective.aggregate == "sum"
        pull = self._degrees + self.mu
        # d/du of each point's energy at u = h^2 = 0.
        is_free = pull < strength / (1.0 if is_sum else total) * push
        x = x.copy()
        x[free & ~is_free, -1] = 0
        raised = is_free & ~free
        # With r = exp(-h^2) EE's minimum is at  pull = lambda push r,  that of s-SNE at
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

    def _repulsion_slopes_and_sum(self, y: Points) -> tuple[Array, float]:
        """Return -2 times each point's slope of the kernels, (N,), and the sum of k.

        The slope of point i of ``y`` (N, d) is the sum of k'(s) over all other points,
        where k' is the derivative by the squared distance s.  The sum of k is over all
        ordered pairs of different points, so that each pair counts twice.  Both are
        weighted by the objective's repelling weights, if it has any.
        """
        forces, weights = self._objective.forces, self._objective.weights
        push, sums = np.empty(len(y)), np.empty(count_chunks(len(y)))
        v = np.empty((0, 0), y.dtype) if weights is None else weights
        columns = np.ascontiguousarray(y.T)
        run_blocks(
            _write_repulsion_slopes, len(sums), len(y) ** 2,
            forces.k, v, y, columns, push, sums,
        )  # fmt: skip
        return 2 * push, float(sums.sum())


@njit(**OPTIONS)
def _write_repulsion_slopes(begin, end, k, v, y, z, push, sums):
    """Write slopes of the repulsion at points, and sums of the kernel, for some chunks.

    - ``push`` (N,): -sum_j v_ij k'(|y_i - y_j|^2) over j != i is written, paper 4's d-.
    - ``sums`` (chunks,): the sum of v_ij k of each chunk of points is written.
    - ``v``: weights (N, N), or empty for weights of 1.
    - ``y`` (N, d): points; ``z`` (d, N): the columns of ``y``.
    """
    for c in range(begin, end):
        s = np.empty(y.shape[0], y.dtype)
        weights = np.ones_like(s)
        total = 0.0
        for i in range(c * CHUNK, min((c + 1) * CHUNK, y.shape[0])):
            write_squared_distances(i, y, z, s)
            if v.shape[0] > 0:
                for j in range(y.shape[0]):
                    weights[j] = v[i, j]
            weights[i] = 0
            value, slope = sum_values_and_slopes(k, s, weights, 0.0)
            weights[i] = 1
            push[i] = -slope
            total += value
        sums[c] = total
