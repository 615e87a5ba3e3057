"""The compiled loops over pairs: edges, landmarks, all points, random partners.

A loop does a range of points, or of chunks that own their partial sums, and what is
added up in a row goes through :mod:`simd`: the same bits for any number of threads.
``flat`` does not change inside a loop, so the compiler takes the question out of it.
Indices are unsigned, as numba tests signed ones for being negative.

Arrays: ``y`` (N, d) points, d = 2 or 3; ``z`` (d, L) landmarks; ``edges``: the tuple
``indptr`` (N+1,), ``indices``, ``weights``; ``f``, ``k``: pair functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.energy.compiled_pairs import pair_slope, pair_value
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.simd import (
    STRICT,
    WIDE,
    across,
    double,
    fused,
    load,
    spread,
    store,
)
from napari_embedding_game.core.threads import INNER, LOOP

CHUNK = 1024
_AT_ONCE = 1024
"""Edges whose logarithms are taken side by side."""
_TRIANGLE_CHUNKS = 16

OPTIONS: dict[str, Any] = {"fastmath": STRICT, **LOOP}
INSIDE: dict[str, Any] = {"inline": "always", **OPTIONS}
LANE_LOOP: dict[str, Any] = {**INNER, **OPTIONS}
"""Of what is compiled once for lanes, and once for what is left over."""


def n_chunks(n_points: int) -> int:
    """Return the number of chunks that ``n_points`` points fall into."""
    return -(-n_points // CHUNK)


def triangle(n_points: int) -> NDArray[np.int64]:
    """Return where chunks of rows begin with about as many pairs j < i each, and N."""
    shares = np.sqrt(np.linspace(0, 1, _TRIANGLE_CHUNKS + 1))
    return np.round(n_points * shares).astype(np.int64)


def padded_to_plane(positions: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return positions (N, d), those of a line with a second coordinate of 0."""
    if positions.shape[1] > 1:
        return positions
    return np.column_stack([positions, np.zeros_like(positions)])


@njit(**LANE_LOOP)
def _repel(k, i, begin, end, zero, x, z, weights, pull):
    """Return the sum of w k(|x - z_j|^2) over some j, and its gradient in x."""
    total, g0, g1, g2 = zero, zero, zero, zero
    flat = len(z) == 2
    for at in range(begin, end, len(zero)):
        d0, d1 = x[0] - load(z, (0, at), zero), x[1] - load(z, (1, at), zero)
        d2, s = zero, fused(d1, d1, d0 * d0)
        if not flat:
            d2 = x[2] - load(z, (2, at), zero)
            s = fused(d2, d2, s)
        value, slope = pair_value(k, s), pair_slope(k, s)
        if weights is not None:
            weight = load(weights, (i, at), zero)
            value, slope = weight * value, weight * slope
        steep = slope + slope
        p0, p1 = steep * d0, steep * d1
        total, g0, g1 = total + value, g0 + p0, g1 + p1
        if pull is not None:
            store(load(pull, (0, at), zero) - p0, pull, (0, at))
            store(load(pull, (1, at), zero) - p1, pull, (1, at))
        if not flat:
            p2 = steep * d2
            g2 = g2 + p2
            if pull is not None:
                store(load(pull, (2, at), zero) - p2, pull, (2, at))
    return across(total), across(g0), across(g1), across(g2)


@njit(**INSIDE)
def _repel_all(k, i, count, x, z, weights, pull):
    zero, whole = z.dtype.type(0), count - count % WIDE
    bulk = _repel(k, i, 0, whole, spread(zero, WIDE), x, z, weights, pull)
    tail = _repel(k, i, whole, count, spread(zero, 1), x, z, weights, pull)
    return bulk[0] + tail[0], bulk[1] + tail[1], bulk[2] + tail[2], bulk[3] + tail[3]


@njit(**INSIDE)
def repel_row(k, i, count, y, z, weights, gradient, pull):
    """Return sum_j w_ij k(|y_i - z_j|^2) of one point; write its gradient at both ends.

    Over the first ``count`` z; ``weights`` (N, M), or None where they are 1; d/dy_i is
    written to ``gradient[i]`` (N, d), d/dz_j added to ``pull`` (d, M), or None.
    """
    last = y.shape[1] - 1
    x = y[i, 0], y[i, 1], y[i, last]  # on a plane the third is not looked at
    total, g0, g1, g2 = _repel_all(k, i, count, x, z, weights, pull)
    gradient[i, 0], gradient[i, 1] = g0, g1
    if last == 2:
        gradient[i, 2] = g2
    return total


@njit(**LANE_LOOP)
def _repel_shifted(k, begin, end, zero, shift, y, gradient):
    """Add to the gradient of y_i what y_j does, j = i + shift; return the sum of k."""
    total = zero
    for at in range(begin, end, len(zero)):
        d0 = load(y, (0, at), zero) - load(y, (0, at + shift), zero)
        d1 = load(y, (1, at), zero) - load(y, (1, at + shift), zero)
        d2, s = zero, fused(d1, d1, d0 * d0)
        if len(y) == 3:
            d2 = load(y, (2, at), zero) - load(y, (2, at + shift), zero)
            s = fused(d2, d2, s)
        steep = pair_slope(k, s)
        total, steep = total + pair_value(k, s), steep + steep
        store(fused(steep, d0, load(gradient, (0, at), zero)), gradient, (0, at))
        store(fused(steep, d1, load(gradient, (1, at), zero)), gradient, (1, at))
        if len(y) == 3:
            store(fused(steep, d2, load(gradient, (2, at), zero)), gradient, (2, at))
    return across(total)


@njit(**INSIDE)
def _repel_shifted_all(k, begin, end, shift, y, gradient):
    zero, whole = y.dtype.type(0), end - (end - begin) % WIDE
    total = _repel_shifted(k, begin, whole, spread(zero, WIDE), shift, y, gradient)
    return total + _repel_shifted(k, whole, end, spread(zero, 1), shift, y, gradient)


@njit(**LANE_LOOP)
def _lifted(function, begin, end, zero, s, weights, u):
    value = slope = double(zero)
    for at in range(begin, end, len(zero)):
        lifted, weight = load(s, (at,), zero) + u, double(load(weights, (at,), zero))
        value = value + weight * double(pair_value(function, lifted))
        slope = slope + weight * double(pair_slope(function, lifted))
    return across(value), across(slope)


@njit(**OPTIONS)
def lifted_row(function, s, weights, u):
    """Return the sums of w f(s + u) and of w f'(s + u) over a row, both float64.

    ``s`` and ``weights`` (M,); ``weights`` may be longer.
    """
    zero, height = s.dtype.type(0), s.dtype.type(u)
    whole = len(s) - len(s) % WIDE
    bulk = _lifted(function, 0, whole, spread(zero, WIDE), s, weights, height)
    tail = _lifted(function, whole, len(s), spread(zero, 1), s, weights, height)
    return bulk[0] + tail[0], bulk[1] + tail[1]


@njit(**OPTIONS)
def attract(begin, end, f, edges, y, gradient):
    """Write some rows of the (N, d) gradient of the sum over directed edges of w f."""
    indptr, indices, weights = edges
    zero = y.dtype.type(0)
    flat = y.shape[1] == 2
    for i in range(begin, end):
        x0, x1, x2 = y[i, 0], y[i, 1], zero if flat else y[i, 2]
        g0, g1, g2 = zero, zero, zero
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            d0, d1 = x0 - y[j, 0], x1 - y[j, 1]
            d2 = zero if flat else x2 - y[j, 2]
            s = fused(d2, d2, fused(d1, d1, d0 * d0))
            pull = weights[e] * pair_slope(f, s)
            g0, g1 = fused(pull, d0, g0), fused(pull, d1, g1)
            g2 = fused(pull, d2, g2)
        gradient[i, 0], gradient[i, 1] = g0 + g0, g1 + g1
        if not flat:
            gradient[i, 2] = g2 + g2


@njit(**OPTIONS)
def edge_energy(begin, end, f, edges, y, sums):
    """Write the sum of w f over all entries, a partial sum a chunk, float64."""
    indptr, indices, weights = edges
    squared = np.empty(_AT_ONCE, y.dtype)
    for c in range(begin, end):
        total, filled, first = 0.0, 0, indptr[c * CHUNK]
        for i in range(c * CHUNK, min((c + 1) * CHUNK, y.shape[0])):
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                s = y.dtype.type(0)
                for k in range(y.shape[1]):
                    difference = y[i, k] - y[j, k]
                    s = fused(difference, difference, s)
                squared[filled] = s
                filled += 1
                if filled == _AT_ONCE:
                    total += lifted_row(f, squared, weights[first:], 0.0)[0]
                    first, filled = e + 1, 0
        sums[c] = total + lifted_row(f, squared[:filled], weights[first:], 0.0)[0]


@njit(**OPTIONS)
def repel(begin, end, k, y, z, gradient, pull, sums):
    """Write d/dy of sum_ia k(|y_i - z_a|^2), add d/dz to ``pull`` (chunks, d, L)."""
    for c in range(begin, end):
        total = 0.0
        for i in range(c * CHUNK, min((c + 1) * CHUNK, y.shape[0])):
            total += repel_row(k, i, z.shape[1], y, z, None, gradient, pull[c])
        sums[c] = total


@njit(**OPTIONS)
def write_nearest_landmarks(begin, end, y, z, labels):
    """Write the nearest landmark (Eq. 7) of some points; of equals, the first."""
    squared = np.empty(z.shape[1], y.dtype)
    for i in range(begin, end):
        squared_to_all(i, y, z, squared)
        labels[i] = nearest(squared)


@njit(**OPTIONS)
def squared_to_all(i, y, z, squared):
    """Write |y_i - z_a|^2 for all a."""
    squared[:] = 0
    for c in range(z.shape[0]):
        x, row = y[i, c], z[c]
        for a in range(squared.shape[0]):
            difference = x - row[a]
            squared[a] = fused(difference, difference, squared[a])


@njit(**OPTIONS)
def nearest(squared):
    """Return the place of the least of a row; of equals, the first."""
    # Two passes, a minimum and a look-up, vectorise; one pass with both does not.
    least = squared.dtype.type(np.inf)
    for a in range(squared.shape[0]):
        least = min(least, squared[a])
    for a in range(squared.shape[0]):
        if squared[a] == least:
            return a
    return 0


@njit(**OPTIONS)
def all_pairs(begin, end, rows, k, far, y, z, gradient, across, sums):
    """Write the sum of k over unordered pairs of points and its gradient, in two parts.

    A pair moves the point of the higher number in ``gradient`` (N, d), the other in
    ``across`` (chunks, d, N).  ``far``: (N, N) weights of the pairs, or None.
    """
    for c in range(begin, end):
        across[c, :, : rows[c + 1]] = 0
        total = 0.0
        for i in range(rows[c], rows[c + 1]):
            total += repel_row(k, i, i, y, z, far, gradient, across[c])
        sums[c] = total


@njit(**OPTIONS)
def repel_partners(begin, end, k, shifts, y, gradient, sums):
    """Write the sum of k over random pairs of points and its gradient (d, N).

    ``y`` (d, 2 N): points in the order of :data:`torch_forces.Pairs`, twice.
    """
    n = gradient.shape[1]
    for c in range(begin, end):
        first, last = c * CHUNK, min((c + 1) * CHUNK, n)
        gradient[:, first:last] = 0
        total = 0.0
        for shift in shifts:
            total += _repel_shifted_all(k, first, last, shift, y, gradient)
            _repel_shifted_all(k, first, last, n - shift, y, gradient)
        sums[c] = total
