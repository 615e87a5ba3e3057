"""Which points are pushed off the map, and how far (paper 4, section 3).

Give one point an extra coordinate h, across the map, with all others at 0: the h at
which the energy is lowest is its pressure.  With u = h^2,

    dE/du = sum_edges at k  w f'(d_kj^2 + u)
            + lambda R'(S) m  sum_x v_x k'(d_kx^2 + u)

over all x that repel k, m being what S gains for a unit of that sum.  Under landmarks m
itself changes with h, by about one part in N, which is left out; a landmark stands for
r points, one of which, k, is taken off its nearest.  Else all other points push k.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy.objective import (
    Landmarks,
    Objective,
    as_array,
    find_nearest_landmarks,
)
from napari_embedding_game.core.energy.pair_loops import (
    OPTIONS,
    lifted_row,
    squared_to_all,
)
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import run_blocks

MAX_POINTS = 20_000
"""Points up to which all push one another; landmarks push any number."""
MAX_ON_THE_MOVE = 5_000
"""The same while points move, so that no frame waits for it: 40 ms on two cores."""
_HIGHEST = 1e12
"""u at which a point that nothing holds down is let go."""
_MAX_STEPS = 100
_TOLERANCE = 1e-7
"""Of u, relative; of float32 as near as it gets."""


def pressure(
    objective: Objective, y: Tensor, z: Tensor, is_at_rest: bool = True
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return each point's nearest landmark (Eq. 7) and its pressure, (N,) each.

    In units of the map, 0 where there is none; NaN of more than ``MAX_POINTS`` points
    (``MAX_ON_THE_MOVE`` if not at rest), unless landmarks push them.
    """
    forces = objective.forces
    points = np.ascontiguousarray(as_array(y))
    labels = find_nearest_landmarks(points, as_array(z))
    heights = np.full(len(points), np.nan, np.float32)
    is_pushed_by_landmarks = isinstance(objective, Landmarks)
    most = MAX_POINTS if is_at_rest else MAX_ON_THE_MOVE
    if len(points) > most and not is_pushed_by_landmarks:
        return labels, heights
    field = objective.field(y, z)
    sources = np.ascontiguousarray(as_array(field.sources).T)
    mine = labels if is_pushed_by_landmarks else np.arange(len(points), dtype=np.int32)
    functions, arrays = (forces.f, forces.k), forces.edges.arrays
    excluded, law = (mine, field.self_share), (field.strength, field.base)
    given = functions, arrays, points, sources, field.weights, excluded, law, heights
    run_blocks(_lift, len(points), len(points) * sources.shape[1], *given)
    return labels, heights


@njit(**OPTIONS)
def _slope(u, f, near, weights, k, far, strengths, strength, base, flat):
    """Return dE/du; ``flat`` is the sum of v k at u = 0."""
    _, pull = lifted_row(f, near, weights, u)
    total, push = lifted_row(k, far, strengths, u)
    factor = strength if base <= 0.0 else strength / (base + total - flat)
    return pull + factor * push


@njit(**OPTIONS)
def _height(f, near, weights, k, far, strengths, strength, base):
    """Return the height h >= 0 that minimises the energy of one lifted point.

    False position (Illinois) between heights where the slope changes its sign.
    """
    flat = lifted_row(k, far, strengths, 0.0)[0] if base > 0.0 else 0.0
    terms = (f, near, weights, k, far, strengths, strength, base, flat)
    low, below = 0.0, _slope(0.0, *terms)
    if below >= 0.0:
        return 0.0
    high = 1.0
    above = _slope(high, *terms)
    while above < 0.0:
        low, below = high, above
        high *= 4.0
        if high > _HIGHEST:  # nothing holds this point down: no neighbours
            return math.sqrt(high)
        above = _slope(high, *terms)
    for _ in range(_MAX_STEPS):
        if high - low <= _TOLERANCE * (1e-6 + high):
            break
        u = low - below * (high - low) / (above - below)
        if not low < u < high:
            u = 0.5 * (low + high)
        value = _slope(u, *terms)
        if value == 0.0:
            return math.sqrt(u)
        if value < 0.0:
            low, below = u, value
            above *= 0.5
        else:
            high, above = u, value
            below *= 0.5
    return math.sqrt(0.5 * (low + high))


@njit(**OPTIONS)
def _lift(first, last, functions, edges, y, z, far_weights, excluded, law, heights):
    """Write the pressure of some points ``y`` (N, d), pushed by sources ``z`` (d, M).

    ``excluded``: each point's source (N,), and the share of its push left out.
    ``law``: strength and base of the field.
    """
    (f, k), (indptr, indices, weights), (mine, share) = functions, edges, excluded
    squared = np.empty(z.shape[1], y.dtype)
    strengths = np.ones(z.shape[1], y.dtype)
    for i in range(first, last):
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        near = np.zeros(end - begin, y.dtype)
        for e in range(begin, end):
            for axis in range(y.shape[1]):
                difference = y[i, axis] - y[indices[e], axis]
                near[e - begin] += difference * difference
        squared_to_all(i, y, z, squared)
        if far_weights is not None:
            strengths[:] = far_weights[i]
        strengths[mine[i]] *= 1.0 - share
        heights[i] = _height(
            f, near, weights[begin:end], k, squared, strengths, law[0], law[1]
        )
        strengths[mine[i]] = 1.0
