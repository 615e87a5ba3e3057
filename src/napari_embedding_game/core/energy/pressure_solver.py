"""The compiled search for the pressure of a point, for every method.

One point is lifted by a height h out of the map; with u = h^2 the slope of the
energy is

    dE/du = sum_e w_e f'(s_e + u) + c(u) sum_j v_j k'(s_j + u)

over its edges and over what repels it.  c is a constant where the energy adds
the kernel up, and strength / (base + change of the sum) where it takes the
logarithm of the sum.  See :mod:`pressure` for what the numbers are; and
:mod:`pair_loops` for the arrays.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,assignment"
# mypy: disable-error-code="call-arg,var-annotated"

from __future__ import annotations

import math

import numpy as np
from numba import njit

from napari_embedding_game.core.elementary import exp, log
from napari_embedding_game.core.energy.compiled_pairs import lifted_row
from napari_embedding_game.core.energy.pair_loops import (
    OPTIONS,
    nearest,
    squared_to_all,
)

_HIGHEST = 1e12
"""u at which a point that nothing holds down is let go."""
_MOST_STEPS = 100
_HALVINGS = 20
"""Of an interval between two heights of a table."""
_LEAST_PUSH = 1e-30
_TOLERANCE = 1e-7
"""Of u, relative; of float32 as near as it gets."""


@njit(**OPTIONS)
def _slope(u, f, near, weights, k, far, strengths, strength, base, rest):
    """Return dE/du; ``rest`` is the sum of v k at u = 0."""
    _, pull = lifted_row(f, near, weights, u)
    total, push = lifted_row(k, far, strengths, u)
    factor = strength if base <= 0.0 else strength / (base + total - rest)
    return pull + factor * push


@njit(**OPTIONS)
def lifted_height(f, near, weights, k, far, strengths, strength, base):
    """Return the height h >= 0 that minimises the energy of one lifted point.

    ``near``, ``weights``: squared distances along the point's edges, and their
    weights.  ``far``, ``strengths``: squared distances to what repels it, and
    the v.  ``base``: the sum inside the logarithm, 0 where there is none.
    False position (Illinois) between heights where the slope changes its sign.
    """
    rest = lifted_row(k, far, strengths, 0.0)[0] if base > 0.0 else 0.0
    terms = (f, near, weights, k, far, strengths, strength, base, rest)
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
    for _ in range(_MOST_STEPS):
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
def _squared_to_some(i, y, indices, s):
    """Write |y_i - y_j|^2 for the points j of an edge row."""
    for e in range(indices.shape[0]):
        squared = y.dtype.type(0)
        for k in range(y.shape[1]):
            d = y[i, k] - y[indices[e], k]
            squared += d * d
        s[e] = squared


@njit(**OPTIONS)
def _longest_row(begin, end, indptr):
    longest = 0
    for i in range(begin, end):
        longest = max(longest, np.int64(indptr[i + 1]) - np.int64(indptr[i]))
    return longest


@njit(**OPTIONS)
def under_field(
    begin, end, f, edges, k, y, z, far_weights, is_self, own, law, labels, pressure
):
    """Write each point's pressure under all ``z`` (d, M), and the nearest of them.

    ``far_weights``: (N, M) weights of the pairs, or (0, 0) where they are 1.
    ``is_self``: whether other i is point i itself, which does not repel it; then
    ``labels`` stay as they are.
    ``own``: else, share of the nearest one's push that is the point's own.
    ``law``: the tuple of strength and base.
    """
    indptr, indices, weights = edges
    near = np.empty(_longest_row(begin, end, indptr), y.dtype)
    far = np.empty(z.shape[1], y.dtype)
    strengths = np.ones(z.shape[1], y.dtype)
    for i in range(begin, end):
        first, stop = np.int64(indptr[i]), np.int64(indptr[i + 1])
        s = near[: stop - first]
        _squared_to_some(i, y, indices[first:stop], s)
        squared_to_all(i, y, z, far)
        if far_weights.shape[0] > 0:
            strengths[:] = far_weights[i]
        if not is_self:
            labels[i] = nearest(far)
        mine = i if is_self else labels[i]
        strengths[mine] = 0.0 if is_self else 1.0 - own
        pull = weights[first:stop]
        pressure[i] = lifted_height(f, s, pull, k, far, strengths, law[0], law[1])
        strengths[mine] = 1.0


@njit(**OPTIONS)
def under_partners(begin, end, f, edges, k, y, pairs, law, pressure):
    """Write each point's pressure under its random partners.

    ``pairs``: order, places and shifts of :class:`sampled_pairs.SampledPairs`.
    """
    indptr, indices, weights = edges
    order, places, shifts = pairs
    n = y.shape[0]
    near = np.empty(_longest_row(begin, end, indptr), y.dtype)
    partners = np.empty(2 * shifts.shape[0], np.int64)
    far = np.empty(partners.shape[0], y.dtype)
    ones = np.ones_like(far)
    for i in range(begin, end):
        first, stop = np.int64(indptr[i]), np.int64(indptr[i + 1])
        s = near[: stop - first]
        _squared_to_some(i, y, indices[first:stop], s)
        for draw in range(shifts.shape[0]):
            partners[2 * draw] = order[(places[i] + shifts[draw]) % n]
            partners[2 * draw + 1] = order[(places[i] - shifts[draw]) % n]
        _squared_to_some(i, y, partners, far)
        pull = weights[first:stop]
        pressure[i] = lifted_height(f, s, pull, k, far, ones, law[0], law[1])


@njit(**OPTIONS)
def _push_at(x, places, pushes):
    """Return a push at x, between four ``places``, by the logarithms that it has there.

    Cubic in x, which like the places is the logarithm of u + the table's first step.
    """
    total = 0.0
    for a in range(4):
        share = 1.0
        for b in range(4):
            if b != a:
                share *= (x - places[b]) / (places[a] - places[b])
        total += share * pushes[a]
    return -exp(total)


@njit(**OPTIONS)
def _pull_at(u, f, near, weights):
    return lifted_row(f, near, weights, u)[1]


@njit(**OPTIONS)
def under_table(begin, end, f, edges, y, squared, table, strength, pressure):
    """Write each point's pressure, given how hard it is pushed at some heights.

    ``squared`` (U,) squared heights from 0 up; ``table`` (U, N) the sums of k' there,
    see :meth:`mesh.Mesh.slopes_across`; ``strength``: what they are multiplied by.
    """
    indptr, indices, weights = edges
    near = np.empty(_longest_row(begin, end, indptr), y.dtype)
    last, step = squared.shape[0] - 1, squared[1]
    places, pushes = np.empty(squared.shape[0]), np.empty(4)
    for a in range(squared.shape[0]):
        places[a] = log(squared[a] + step)
    for i in range(begin, end):
        first, stop = np.int64(indptr[i]), np.int64(indptr[i + 1])
        s, pull = near[: stop - first], weights[first:stop]
        _squared_to_some(i, y, indices[first:stop], s)
        node = 0
        below = _pull_at(0.0, f, s, pull) + strength * table[0, i]
        if below >= 0.0:
            pressure[i] = 0.0
            continue
        above = below
        while node < last:
            u = squared[node + 1]
            above = _pull_at(u, f, s, pull) + strength * table[node + 1, i]
            if above >= 0.0:
                break
            node += 1
        if node == last:  # nothing holds this point down
            pressure[i] = math.sqrt(_HIGHEST)
            continue
        near_by = min(max(node - 1, 0), last - 3)
        for a in range(4):
            pushes[a] = log(max(-float(table[near_by + a, i]), _LEAST_PUSH))
        low, high = squared[node], squared[node + 1]
        for _ in range(_HALVINGS):
            u = 0.5 * (low + high)
            push = _push_at(log(u + step), places[near_by : near_by + 4], pushes)
            if _pull_at(u, f, s, pull) + strength * push < 0.0:
                low = u
            else:
                high = u
        pressure[i] = math.sqrt(0.5 * (low + high))
