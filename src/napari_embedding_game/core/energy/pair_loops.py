"""Compiled loops over pairs: edges, points and landmarks, all points, sampled pairs.

A loop processes the points ``begin`` to ``end``, or chunks of points with a partial sum
each, and adds up rows by :mod:`simd`: results have the same bits for any number of
threads.  ``flat`` does not change inside a loop, so the compiler moves the test out of
the loop.  Indices are unsigned, as numba tests signed indices for being negative.

Arrays: ``points`` y (N, d), d = 2 or 3; ``landmarks`` or ``sources`` z (d, L);
``edges``: the tuple ``indptr`` (N+1,), ``indices``, ``weights``.  ``attraction``,
``kernel``: pair functions f and k of squared distances.
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
    broadcast,
    fma,
    load,
    store,
    sum_lanes,
    to_float64,
)
from napari_embedding_game.core.threads import INNER, LOOP

CHUNK = 1024
_EDGES_AT_ONCE = 1024
"""Edges whose logarithms are computed side by side."""
_TRIANGLE_CHUNKS = 16

OPTIONS: dict[str, Any] = {"fastmath": STRICT, **LOOP}
INSIDE: dict[str, Any] = {"inline": "always", **OPTIONS}
LANE_LOOP: dict[str, Any] = {**INNER, **OPTIONS}
"""Options of a loop that is compiled for :data:`WIDE` lanes and for one lane."""


def count_chunks(n_points: int) -> int:
    """Return the number of chunks of :data:`CHUNK` points, rounded up."""
    return -(-n_points // CHUNK)


def split_triangle_rows(n_points: int) -> NDArray[np.int64]:
    """Return the first row of each chunk; chunks have about equally many pairs j < i.

    The last of the 17 ascending row numbers is ``n_points``.
    """
    shares = np.sqrt(np.linspace(0, 1, _TRIANGLE_CHUNKS + 1))
    return np.round(n_points * shares).astype(np.int64)


def pad_to_plane(positions: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return positions (N, d), for d = 1 with a second coordinate of 0."""
    if positions.shape[1] > 1:
        return positions
    return np.column_stack([positions, np.zeros_like(positions)])


@njit(**LANE_LOOP)
def _sum_block_repulsion(
    kernel, i, begin, end, zero, x, sources, weights, source_gradient
):
    """Return the sum of w k(|x - z_j|^2) over sources begin to end, and its x-gradient.

    Subtract each term's share of that gradient from ``source_gradient`` (d, M) unless
    None.  ``zero``: lanes of zeros, whose number divides ``end - begin``; ``i``: the
    point's row of ``weights``.
    """
    total, g0, g1, g2 = zero, zero, zero, zero
    flat = len(sources) == 2
    for at in range(begin, end, len(zero)):
        d0, d1 = (
            x[0] - load(sources, (0, at), zero),
            x[1] - load(sources, (1, at), zero),
        )
        d2, s = zero, fma(d1, d1, d0 * d0)
        if not flat:
            d2 = x[2] - load(sources, (2, at), zero)
            s = fma(d2, d2, s)
        value, slope = pair_value(kernel, s), pair_slope(kernel, s)
        if weights is not None:
            weight = load(weights, (i, at), zero)
            value, slope = weight * value, weight * slope
        steep = slope + slope
        p0, p1 = steep * d0, steep * d1
        total, g0, g1 = total + value, g0 + p0, g1 + p1
        if source_gradient is not None:
            store(load(source_gradient, (0, at), zero) - p0, source_gradient, (0, at))
            store(load(source_gradient, (1, at), zero) - p1, source_gradient, (1, at))
        if not flat:
            p2 = steep * d2
            g2 = g2 + p2
            if source_gradient is not None:
                store(
                    load(source_gradient, (2, at), zero) - p2, source_gradient, (2, at)
                )
    return sum_lanes(total), sum_lanes(g0), sum_lanes(g1), sum_lanes(g2)


@njit(**INSIDE)
def _sum_row_repulsion(kernel, i, count, x, sources, weights, source_gradient):
    """Return the sum of w k over the first ``count`` sources, and its gradient in x.

    Arguments are those of :func:`_sum_block_repulsion`, which also changes
    ``source_gradient``.
    """
    zero, aligned_end = sources.dtype.type(0), count - count % WIDE
    lanes = broadcast(zero, WIDE)
    main = _sum_block_repulsion(
        kernel, i, 0, aligned_end, lanes, x, sources, weights, source_gradient
    )
    lane = broadcast(zero, 1)
    rest = _sum_block_repulsion(
        kernel, i, aligned_end, count, lane, x, sources, weights, source_gradient
    )
    return main[0] + rest[0], main[1] + rest[1], main[2] + rest[2], main[3] + rest[3]


@njit(**INSIDE)
def write_row_repulsion(
    kernel, i, count, points, sources, weights, gradient, source_gradient
):
    """Return sum_j w_ij k(|y_i - z_j|^2) of point i; write its gradients in y_i and z.

    The sum is over the first ``count`` of the ``sources`` z.  The gradient in y_i is
    written to row i of ``gradient`` (N, d); the gradient in z is added to
    ``source_gradient`` (d, M) unless that is None.  ``weights`` (N, M): w, None is 1.
    """
    last = points.shape[1] - 1
    # On a plane the third coordinate is not used.
    x = points[i, 0], points[i, 1], points[i, last]
    total, g0, g1, g2 = _sum_row_repulsion(
        kernel, i, count, x, sources, weights, source_gradient
    )
    gradient[i, 0], gradient[i, 1] = g0, g1
    if last == 2:
        gradient[i, 2] = g2
    return total


@njit(**LANE_LOOP)
def _add_shifted_repulsion_block(kernel, begin, end, zero, shift, points, gradient):
    """Return the sum of k over pairs (i, i + shift), i from ``begin`` to ``end``.

    Add the sum's gradient in y_i to ``gradient`` (d, N), for one end of each pair.
    ``zero``: lanes of zeros, whose number divides ``end - begin``.
    """
    total = zero
    for at in range(begin, end, len(zero)):
        d0 = load(points, (0, at), zero) - load(points, (0, at + shift), zero)
        d1 = load(points, (1, at), zero) - load(points, (1, at + shift), zero)
        d2, s = zero, fma(d1, d1, d0 * d0)
        if len(points) == 3:
            d2 = load(points, (2, at), zero) - load(points, (2, at + shift), zero)
            s = fma(d2, d2, s)
        steep = pair_slope(kernel, s)
        total, steep = total + pair_value(kernel, s), steep + steep
        store(fma(steep, d0, load(gradient, (0, at), zero)), gradient, (0, at))
        store(fma(steep, d1, load(gradient, (1, at), zero)), gradient, (1, at))
        if len(points) == 3:
            store(fma(steep, d2, load(gradient, (2, at), zero)), gradient, (2, at))
    return sum_lanes(total)


@njit(**INSIDE)
def _add_shifted_repulsion(kernel, begin, end, shift, points, gradient):
    """Sum and add as :func:`_add_shifted_repulsion_block`, for any begin and end."""
    zero, aligned_end = points.dtype.type(0), end - (end - begin) % WIDE
    total = _add_shifted_repulsion_block(
        kernel, begin, aligned_end, broadcast(zero, WIDE), shift, points, gradient
    )
    return total + _add_shifted_repulsion_block(
        kernel, aligned_end, end, broadcast(zero, 1), shift, points, gradient
    )


@njit(**LANE_LOOP)
def _sum_block_values_and_slopes(function, begin, end, zero, squared, weights, u):
    """Return the float64 sums of w f(s + u) and w f'(s + u) from begin to end.

    s: ``squared``, w: ``weights``; ``zero``: lanes of zeros, whose number divides ``end
    - begin``.
    """
    value = slope = to_float64(zero)
    for at in range(begin, end, len(zero)):
        lifted = load(squared, (at,), zero) + u
        weight = to_float64(load(weights, (at,), zero))
        value = value + weight * to_float64(pair_value(function, lifted))
        slope = slope + weight * to_float64(pair_slope(function, lifted))
    return sum_lanes(value), sum_lanes(slope)


@njit(**OPTIONS)
def sum_values_and_slopes(function, squared, weights, height_squared):
    """Return the weighted sums of a pair function and its slope, both float64.

    The sums are of w f(s + u) and w f'(s + u) over the squared distances s, ``squared``
    (M,), with u = ``height_squared``.  ``weights`` (M,) may be longer.
    """
    zero, lift = squared.dtype.type(0), squared.dtype.type(height_squared)
    aligned_end = len(squared) - len(squared) % WIDE
    main = _sum_block_values_and_slopes(
        function, 0, aligned_end, broadcast(zero, WIDE), squared, weights, lift
    )
    rest = _sum_block_values_and_slopes(
        function, aligned_end, len(squared), broadcast(zero, 1), squared, weights, lift
    )
    return main[0] + rest[0], main[1] + rest[1]


@njit(**OPTIONS)
def write_attraction_gradient(begin, end, attraction, edges, points, gradient):
    """Write rows ``begin`` to ``end`` of the attraction's gradient to ``gradient``.

    The attraction is the sum over directed edges of w f; ``gradient``: (N, d).
    """
    indptr, indices, weights = edges
    zero = points.dtype.type(0)
    flat = points.shape[1] == 2
    for i in range(begin, end):
        x0, x1, x2 = points[i, 0], points[i, 1], zero if flat else points[i, 2]
        g0, g1, g2 = zero, zero, zero
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            d0, d1 = x0 - points[j, 0], x1 - points[j, 1]
            d2 = zero if flat else x2 - points[j, 2]
            s = fma(d2, d2, fma(d1, d1, d0 * d0))
            pull = weights[e] * pair_slope(attraction, s)
            g0, g1 = fma(pull, d0, g0), fma(pull, d1, g1)
            g2 = fma(pull, d2, g2)
        gradient[i, 0], gradient[i, 1] = g0 + g0, g1 + g1
        if not flat:
            gradient[i, 2] = g2 + g2


@njit(**OPTIONS)
def write_edge_energies(begin, end, attraction, edges, points, sums):
    """Write the attraction's energy of chunks begin to end of points to ``sums``.

    The energy of a chunk of ``CHUNK`` points is the sum of w f(s) over the edges of its
    points, f being ``attraction`` and s the squared length.  ``sums`` (chunks,)
    float64; ``begin`` and ``end`` count chunks.  Each undirected edge is counted at
    both of its points.
    """
    indptr, indices, weights = edges
    squared = np.empty(_EDGES_AT_ONCE, points.dtype)
    for c in range(begin, end):
        total, filled, first = 0.0, 0, indptr[c * CHUNK]
        for i in range(c * CHUNK, min((c + 1) * CHUNK, points.shape[0])):
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                s = points.dtype.type(0)
                for k in range(points.shape[1]):
                    difference = points[i, k] - points[j, k]
                    s = fma(difference, difference, s)
                squared[filled] = s
                filled += 1
                if filled == _EDGES_AT_ONCE:
                    some = weights[first:]
                    total += sum_values_and_slopes(attraction, squared, some, 0.0)[0]
                    first, filled = e + 1, 0
        last, some = squared[:filled], weights[first:]
        sums[c] = total + sum_values_and_slopes(attraction, last, some, 0.0)[0]


@njit(**OPTIONS)
def write_landmark_repulsion(
    begin, end, kernel, points, landmarks, gradient, landmark_gradients, sums
):
    """Write sum_ia k(|y_i - z_a|^2) for chunks of points, and its gradients.

    ``begin`` and ``end`` count chunks.  The gradient in y is written to ``gradient``
    (N, d), the gradient in z is added to ``landmark_gradients`` (chunks, d, L), the
    sums are written to ``sums`` (chunks,) float64.
    """
    for c in range(begin, end):
        total = 0.0
        for i in range(c * CHUNK, min((c + 1) * CHUNK, points.shape[0])):
            total += write_row_repulsion(
                kernel,
                i,
                landmarks.shape[1],
                points,
                landmarks,
                None,
                gradient,
                landmark_gradients[c],
            )
        sums[c] = total


@njit(**OPTIONS)
def write_nearest_landmarks(begin, end, points, landmarks, labels):
    """Write the index of the nearest landmark (Eq. 7) of points begin to end.

    ``labels`` (N,): the first of landmarks at the same distance.
    """
    squared = np.empty(landmarks.shape[1], points.dtype)
    for i in range(begin, end):
        write_squared_distances(i, points, landmarks, squared)
        labels[i] = find_first_minimum(squared)


@njit(**OPTIONS)
def write_squared_distances(i, points, landmarks, squared):
    """Write the squared distances of point i to all ``landmarks`` (d, L).

    They are written to ``squared`` (L,).
    """
    squared[:] = 0
    for c in range(landmarks.shape[0]):
        x, row = points[i, c], landmarks[c]
        for a in range(squared.shape[0]):
            difference = x - row[a]
            squared[a] = fma(difference, difference, squared[a])


@njit(**OPTIONS)
def find_first_minimum(squared):
    """Return the index of the least number; the first of equal numbers."""
    # Two passes, a minimum and a search, vectorise; one pass with both does not.
    least = squared.dtype.type(np.inf)
    for a in range(squared.shape[0]):
        least = min(least, squared[a])
    for a in range(squared.shape[0]):
        if squared[a] == least:
            return a
    return 0


@njit(**OPTIONS)
def write_all_pair_repulsion(
    begin,
    end,
    chunk_rows,
    kernel,
    pair_weights,
    points,
    columns,
    gradient,
    partner_gradient,
    sums,
):
    """Write the sum of w k over pairs j < i of points, in chunks, and its gradient.

    The gradient in y_i is written to ``gradient`` (N, d), the gradient in y_j to
    ``partner_gradient`` (chunks, d, N); the whole gradient is their sum.  Chunk c has
    the i from ``chunk_rows[c]`` to ``chunk_rows[c + 1]``; ``columns`` (d, N) are the
    points again; ``pair_weights`` (N, N): w, None is 1.
    """
    for c in range(begin, end):
        partner_gradient[c, :, : chunk_rows[c + 1]] = 0
        total = 0.0
        for i in range(chunk_rows[c], chunk_rows[c + 1]):
            total += write_row_repulsion(
                kernel,
                i,
                i,
                points,
                columns,
                pair_weights,
                gradient,
                partner_gradient[c],
            )
        sums[c] = total


@njit(**OPTIONS)
def write_partner_repulsion(begin, end, kernel, shifts, points, gradient, sums):
    """Write the sum of k over sampled pairs of points, in chunks, and its gradient.

    ``gradient`` (d, N) and ``points`` (d, 2 N) are in the order of
    :data:`torch_forces.Pairs`; ``points`` has all points twice, so that shifted indices
    need no modulo.  Each pair is counted once in ``sums`` (chunks,), and moves both of
    its points.
    """
    n = gradient.shape[1]
    for c in range(begin, end):
        first, last = c * CHUNK, min((c + 1) * CHUNK, n)
        gradient[:, first:last] = 0
        total = 0.0
        for shift in shifts:
            total += _add_shifted_repulsion(
                kernel, first, last, shift, points, gradient
            )
            _add_shifted_repulsion(kernel, first, last, n - shift, points, gradient)
        sums[c] = total
