"""The compiled loops over pairs: edges, landmarks, all points, random partners.

A loop does a range of points, or of chunks that own their partial sums, and what is
added up in a row goes through :mod:`lanes`: the same bits for any number of threads.
``flat`` does not change inside a loop, so the compiler takes the question out of it.
Indices are unsigned, as numba tests signed ones for being negative.

Arrays: ``y`` (N, d) points, d = 2 or 3; ``z`` (d, L) landmarks; ``edges``: the tuple
``indptr`` (N+1,), ``indices``, ``weights``; ``f``, ``k``: pair functions.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,assignment"
# mypy: disable-error-code="call-arg,var-annotated"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from napari_embedding_game.core.energy.compiled_pairs import (
    lifted_row,
    pair_slope,
    repel_row,
    repel_shifted,
)
from napari_embedding_game.core.lanes import STRICT, fused

CHUNK = 1024
_AT_ONCE = 1024
"""Edges whose logarithms are taken side by side."""
_TRIANGLE_CHUNKS = 16

OPTIONS: dict[str, Any] = {
    "fastmath": STRICT,
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
}


def n_chunks(n_points: int) -> int:
    """Return the number of chunks that ``n_points`` points fall into."""
    return -(-n_points // CHUNK)


def triangle(n_points: int) -> NDArray[np.int64]:
    """Return where chunks of rows begin with about as many pairs j < i each, and N."""
    shares = np.sqrt(np.linspace(0, 1, _TRIANGLE_CHUNKS + 1))
    return np.round(n_points * shares).astype(np.int64)


def in_the_plane(positions: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return positions (N, d), those of a line with a second coordinate of 0."""
    if positions.shape[1] > 1:
        return positions
    return np.column_stack([positions, np.zeros_like(positions)])


# --- Along edges --------------------------------------------------------------------


@njit(**OPTIONS)
def attract(begin, end, f, edges, y, gradient):
    """Write some rows of the (N, d) gradient of the sum over directed edges of w f."""
    indptr, indices, weights = edges
    zero = y.dtype.type(0)
    flat = y.shape[1] == 2
    for i in range(begin, end):
        x0 = y[i, 0]
        x1 = y[i, 1]
        x2 = zero if flat else y[i, 2]
        g0 = zero
        g1 = zero
        g2 = zero
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            d0 = x0 - y[j, 0]
            d1 = x1 - y[j, 1]
            d2 = zero if flat else x2 - y[j, 2]
            s = fused(d2, d2, fused(d1, d1, d0 * d0))
            pull = weights[e] * pair_slope(f, s)
            g0 = fused(pull, d0, g0)
            g1 = fused(pull, d1, g1)
            g2 = fused(pull, d2, g2)
        gradient[i, 0] = g0 + g0
        gradient[i, 1] = g1 + g1
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


# --- Points and landmarks -----------------------------------------------------------


@njit(**OPTIONS)
def repel(begin, end, k, y, z, gradient, pull, sums):
    """Write d/dy of sum_ia k(|y_i - z_a|^2), add d/dz to ``pull`` (chunks, d, L)."""
    for c in range(begin, end):
        total = 0.0
        for i in range(c * CHUNK, min((c + 1) * CHUNK, y.shape[0])):
            total += repel_row(k, i, z.shape[1], y, z, None, gradient, pull[c])
        sums[c] = total


@njit(**OPTIONS)
def nearest_landmark(begin, end, y, z, labels):
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
            apart = x - row[a]
            squared[a] = fused(apart, apart, squared[a])


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


# --- Every point and all others -----------------------------------------------------


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


# --- Random partners (Eq. 8) --------------------------------------------------------


@njit(**OPTIONS)
def repel_partners(begin, end, k, shifts, y, gradient, sums):
    """Write the sum of k over random pairs of points and its gradient (d, N).

    ``y`` (d, 2 N): points in the order of :data:`pair_sums.Pairs`, twice.
    """
    n = gradient.shape[1]
    for c in range(begin, end):
        first = c * CHUNK
        count = min(CHUNK, n - first)
        gradient[:, first : first + count] = 0
        total = 0.0
        for shift in shifts:
            total += repel_shifted(k, first, count, shift, y, gradient)
            repel_shifted(k, first, count, n - shift, y, gradient)
        sums[c] = total
