"""Compute pressure: how far the energy pushes points off the map (paper 4, section 3).

Give one point an extra coordinate h, perpendicular to the map, with all others at 0:
the h of the lowest energy is the point's pressure.  With u = h^2,

    dE/du = sum_edges at k  w f'(d_kj^2 + u)
            + lambda R'(S) m  sum_x v_x k'(d_kx^2 + u)

over all x that repel k; m is the derivative of S by that sum.  Under landmarks m
changes with h by about one part in N, which is neglected; a landmark stands for r
points, and the share of k itself is subtracted from the landmark nearest to k.  Without
landmarks all other points repel k.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy.objective import (
    LandmarkBound,
    Objective,
    find_nearest_landmarks,
    tensor_to_array,
)
from napari_embedding_game.core.energy.pair_loops import (
    OPTIONS,
    sum_values_and_slopes,
    write_squared_distances,
)
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import run_blocks

MAX_POINTS = 20_000
"""Most points for which the repulsion by all points is computed; landmarks have no
limit."""
MAX_ON_THE_MOVE = 5_000
"""The same limit while points move, so that no frame is late: 40 ms on two cores."""
_HIGHEST = 1e12
"""u at which the search ends for a point that no edge holds down."""
_MAX_STEPS = 100
_TOLERANCE = 1e-7
"""Relative tolerance of u; below the precision of float32."""


def compute_labels_and_pressure(
    objective: Objective, points: Tensor, landmarks: Tensor, is_at_rest: bool = True
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return each point's nearest landmark (Eq. 7), (N,), and its pressure, (N,).

    Pressure is in units of the map, 0 for points without pressure.  Of more than
    ``MAX_POINTS`` points (``MAX_ON_THE_MOVE`` if not at rest) it is NaN for all points,
    unless landmarks repel the points.
    """
    forces = objective.forces
    positions = np.ascontiguousarray(tensor_to_array(points))
    labels = find_nearest_landmarks(positions, tensor_to_array(landmarks))
    heights = np.full(len(positions), np.nan, np.float32)
    is_pushed_by_landmarks = isinstance(objective, LandmarkBound)
    most = MAX_POINTS if is_at_rest else MAX_ON_THE_MOVE
    if len(positions) > most and not is_pushed_by_landmarks:
        return labels, heights
    field = objective.repulsion_field(points, landmarks)
    sources = np.ascontiguousarray(tensor_to_array(field.sources).T)
    own_sources = labels
    if not is_pushed_by_landmarks:
        own_sources = np.arange(len(positions), dtype=np.int32)
    run_blocks(
        _write_pressures,
        len(positions),
        len(positions) * sources.shape[1],
        (forces.f, forces.k),
        forces.edges.arrays,
        positions,
        sources,
        field.weights,
        (own_sources, field.self_share),
        (field.strength, field.base),
        heights,
    )
    return labels, heights


@njit(**OPTIONS)
def _compute_energy_slope(
    u,
    attraction,
    edge_squared,
    edge_weights,
    kernel,
    source_squared,
    source_weights,
    strength,
    base,
    flat_sum,
):
    """Return dE/du at u = h^2 of one lifted point.

    Squared distances and weights are those of the point's edges and of its sources;
    ``flat_sum``: weighted sum of k at u = 0.  ``base`` > 0: the repulsion is a
    logarithm.
    """
    _, pull = sum_values_and_slopes(attraction, edge_squared, edge_weights, u)
    total, push = sum_values_and_slopes(kernel, source_squared, source_weights, u)
    factor = strength if base <= 0.0 else strength / (base + total - flat_sum)
    return pull + factor * push


@njit(**OPTIONS)
def _find_lowest_energy_height(
    attraction,
    edge_squared,
    edge_weights,
    kernel,
    source_squared,
    source_weights,
    strength,
    base,
):
    """Return the height h >= 0 that minimises the energy of one lifted point.

    The method is false position (Illinois) between heights where the slope changes its
    sign; 0 where the energy increases at once, about 1e6 for a point that no edge
    holds.
    """
    flat_sum = 0.0
    if base > 0.0:
        flat_sum, _ = sum_values_and_slopes(kernel, source_squared, source_weights, 0.0)
    terms = (
        attraction,
        edge_squared,
        edge_weights,
        kernel,
        source_squared,
        source_weights,
        strength,
        base,
        flat_sum,
    )
    low, below = 0.0, _compute_energy_slope(0.0, *terms)
    if below >= 0.0:
        return 0.0
    high = 1.0
    above = _compute_energy_slope(high, *terms)
    while above < 0.0:
        low, below = high, above
        high *= 4.0
        if high > _HIGHEST:  # no edge holds this point down
            return math.sqrt(high)
        above = _compute_energy_slope(high, *terms)
    for _ in range(_MAX_STEPS):
        if high - low <= _TOLERANCE * (1e-6 + high):
            break
        u = low - below * (high - low) / (above - below)
        if not low < u < high:
            u = 0.5 * (low + high)
        value = _compute_energy_slope(u, *terms)
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
def _write_pressures(
    first,
    last,
    pair_functions,
    edges,
    points,
    sources,
    pair_weights,
    own_sources_and_share,
    strength_and_base,
    heights,
):
    """Write the pressure of the points ``first`` to ``last`` to ``heights`` (N,).

    ``points`` (N, d) are repelled by ``sources`` (d, M); ``pair_functions``: attraction
    and kernel; ``pair_weights`` (N, M), None is 1; ``own_sources_and_share``: each
    point's own source (N,), and the share of the point in that source, which is
    subtracted; ``strength_and_base``: those of the :class:`objective.RepulsionField`.
    """
    attraction, kernel = pair_functions
    indptr, indices, weights = edges
    own_sources, self_share = own_sources_and_share
    strength, base = strength_and_base
    squared = np.empty(sources.shape[1], points.dtype)
    source_weights = np.ones(sources.shape[1], points.dtype)
    for i in range(first, last):
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        edge_squared = np.zeros(end - begin, points.dtype)
        for e in range(begin, end):
            for axis in range(points.shape[1]):
                difference = points[i, axis] - points[indices[e], axis]
                edge_squared[e - begin] += difference * difference
        write_squared_distances(i, points, sources, squared)
        if pair_weights is not None:
            source_weights[:] = pair_weights[i]
        source_weights[own_sources[i]] *= 1.0 - self_share
        heights[i] = _find_lowest_energy_height(
            attraction,
            edge_squared,
            weights[begin:end],
            kernel,
            squared,
            source_weights,
            strength,
            base,
        )
        source_weights[own_sources[i]] = 1.0
