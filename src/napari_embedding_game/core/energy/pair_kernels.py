"""The compiled loops of every method but the default: any profile, row by row.

Where :mod:`game_kernels` fuses attraction and repulsion of the default game in one
pass, these loops go through a row of squared distances once for each step, so
that one body serves every profile of :mod:`pair_function_kernels`.  A sum over points
and landmarks or over pairs of landmarks is the same loop: every *target* against all
*others*.  Pairs of points, of which there are most, are looked at once each.

Chunks own the partial sums, as in :mod:`game_kernels`, and are smaller here: all
pairs of a few thousand points are already a lot of work.  Sums over a row go through
:mod:`lanes`, so that their digits do not depend on the compiler.

Arrays: ``targets`` (n, d); ``others`` (d, m), a row per coordinate; ``indptr``,
``indices``, ``weights``: symmetric edges in compressed rows; ``shape``: see
:mod:`pair_function_kernels`.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,assignment"
# mypy: disable-error-code="call-arg,var-annotated"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from napari_embedding_game.core.energy.game_kernels import _widest
from napari_embedding_game.core.energy.lanes import (
    STRICT,
    fused,
    row_product,
    row_push,
    row_push_both,
)
from napari_embedding_game.core.energy.pair_function_kernels import (
    attraction_energy_row,
    attraction_row,
    kernel_row,
)

CHUNK = 64
_TRIANGLE_CHUNKS = 16

_OPTIONS: dict[str, Any] = {
    "fastmath": STRICT,
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
}
_PARALLEL: dict[str, Any] = {**_OPTIONS, "parallel": True}


def n_chunks(n_targets: int) -> int:
    """Return the number of chunks that ``n_targets`` targets fall into."""
    return -(-n_targets // CHUNK)


def triangle(n_points: int) -> NDArray[np.int64]:
    """Return where chunks of rows begin that hold about as many pairs each, and N.

    Row i holds the pairs of point i with the points before it.
    """
    shares = np.sqrt(np.linspace(0, 1, _TRIANGLE_CHUNKS + 1))
    return np.round(n_points * shares).astype(np.int64)


@njit(**_OPTIONS)
def _squared_to_all(i, targets, others, s):
    """Write |t_i - o_j|^2 for all j."""
    s[:] = 0
    for k in range(others.shape[0]):
        x = targets[i, k]
        row = others[k]
        for j in range(s.shape[0]):
            d = x - row[j]
            s[j] = fused(d, d, s[j])


@njit(**_OPTIONS)
def _gather(points, indices, columns):
    """Write the points of an edge row, a row per coordinate."""
    for k in range(points.shape[1]):
        for e in range(indices.shape[0]):
            columns[k, e] = points[indices[e], k]


@njit(**_OPTIONS)
def _squared_to_some(i, targets, points, indices, s):
    """Write |t_i - p_j|^2 for the points j of an edge row."""
    for e in range(indices.shape[0]):
        squared = targets.dtype.type(0)
        for k in range(targets.shape[1]):
            d = targets[i, k] - points[indices[e], k]
            squared = fused(d, d, squared)
        s[e] = squared


# --- Every target against all others ----------------------------------------------


@njit(**_OPTIONS)
def _field(c, profile, shape, targets, others, gradient, sums):
    s = np.empty(others.shape[1], targets.dtype)
    value = np.empty_like(s)
    slope = np.empty_like(s)
    two = targets.dtype.type(2)
    total = 0.0
    for i in range(c * CHUNK, min((c + 1) * CHUNK, targets.shape[0])):
        _squared_to_all(i, targets, others, s)
        total += kernel_row(profile, shape, s, value, slope)
        for k in range(others.shape[0]):
            gradient[i, k] = two * row_push(slope, targets[i, k], others[k])
    sums[c] = total


@njit(**_OPTIONS)
def field_serial(profile, shape, targets, others, gradient, sums):
    """Write d/dt_i of sum_j k(|t_i - o_j|^2), and the sum over both, by chunks."""
    for c in range(sums.shape[0]):
        _field(c, profile, shape, targets, others, gradient, sums)


@njit(**_PARALLEL)
def field_parallel(profile, shape, targets, others, gradient, sums):
    """Like :func:`field_serial`."""
    for c in prange(sums.shape[0]):
        _field(c, profile, shape, targets, others, gradient, sums)


# --- Every point against all other points -------------------------------------------


@njit(**_OPTIONS)
def kernel_before(i, profile, shape, far, points, columns, s, value, slope):
    """Write v dk/ds of point i and the points before it; return the sum of v k.

    ``far`` (n, n) holds the weights v; it is (0, 0) where they are 1.
    """
    _squared_to_all(i, points, columns, s[:i])
    total = kernel_row(profile, shape, s[:i], value, slope)
    if far.shape[0] > 0:
        weights = far[i, :i]
        total = points.dtype.type(row_product(weights, value))
        for j in range(i):
            slope[j] *= weights[j]
    return total


@njit(**_OPTIONS)
def _between(c, n_rows, profile, shape, far, points, columns, own, across, sums):
    s = np.empty(n_rows[c + 1], points.dtype)
    value = np.empty_like(s)
    slope = np.empty_like(s)
    across[c, :, : n_rows[c + 1]] = 0
    total = 0.0
    for i in range(n_rows[c], n_rows[c + 1]):
        total += kernel_before(i, profile, shape, far, points, columns, s, value, slope)
        for k in range(columns.shape[0]):
            row = columns[k, :i]
            own[i, k] = row_push_both(slope, points[i, k], row, across[c, k])
    sums[c] = total


@njit(**_OPTIONS)
def between_serial(n_rows, profile, shape, far, points, columns, own, across, sums):
    """Write the sum of k over pairs of points, and half its gradient, in two parts.

    A pair is looked at once and moves both of its points: the one of the higher
    number in ``own`` (n, d), the other in ``across`` (chunks, d, n), of which a
    chunk fills what its rows can reach.  ``n_rows``: where the chunks begin, and n;
    ``columns``: the points by coordinate; ``far``: (n, n) weights of the pairs, or
    (0, 0) where they are 1.
    """
    for c in range(sums.shape[0]):
        _between(c, n_rows, profile, shape, far, points, columns, own, across, sums)


@njit(**_PARALLEL)
def between_parallel(n_rows, profile, shape, far, points, columns, own, across, sums):
    """Like :func:`between_serial`."""
    for c in prange(sums.shape[0]):
        _between(c, n_rows, profile, shape, far, points, columns, own, across, sums)


# --- Along edges ------------------------------------------------------------------


@njit(**_OPTIONS)
def _along(i, n, points, columns, factors, gradient):
    """Write 2 sum_e factor_e (p_i - p_e) over the first ``n`` of ``columns``."""
    for k in range(points.shape[1]):
        g = row_push(factors, points[i, k], columns[k, :n])
        gradient[i, k] = g + g


@njit(**_OPTIONS)
def _attract(c, profile, shape, indptr, indices, weights, y, gradient):
    widest = _widest(indptr)
    s = np.empty(widest, y.dtype)
    slope = np.empty(widest, y.dtype)
    columns = np.empty((y.shape[1], widest), y.dtype)
    for i in range(c * CHUNK, min((c + 1) * CHUNK, y.shape[0])):
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        n = end - begin
        own = indices[begin:end]
        _gather(y, own, columns)
        _squared_to_all(i, y, columns, s[:n])
        attraction_row(profile, shape, s[:n], slope)
        for e in range(n):
            slope[e] *= weights[begin + e]
        _along(i, n, y, columns, slope, gradient)


@njit(**_OPTIONS)
def attract_serial(profile, shape, indptr, indices, weights, y, gradient, chunks):
    """Write d/dy_i of the sum of w f over the edges at point i."""
    for c in range(chunks.shape[0]):
        _attract(c, profile, shape, indptr, indices, weights, y, gradient)


@njit(**_PARALLEL)
def attract_parallel(profile, shape, indptr, indices, weights, y, gradient, chunks):
    """Like :func:`attract_serial`."""
    for c in prange(chunks.shape[0]):
        _attract(c, profile, shape, indptr, indices, weights, y, gradient)


@njit(**_OPTIONS)
def attraction_energy(profile, shape, indptr, indices, weights, y):
    """Return the sum of w f over all entries."""
    s = np.empty(_widest(indptr), y.dtype)
    columns = np.empty((y.shape[1], len(s)), y.dtype)
    total = 0.0
    for i in range(y.shape[0]):
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        own = s[: end - begin]
        _gather(y, indices[begin:end], columns)
        _squared_to_all(i, y, columns, own)
        total += attraction_energy_row(profile, shape, own, weights[begin:end])
    return total


@njit(**_OPTIONS)
def _pairs(c, profile, shape, indptr, indices, weights, y, gradient, sums):
    widest = _widest(indptr)
    s = np.empty(widest, y.dtype)
    value = np.empty(widest, y.dtype)
    slope = np.empty(widest, y.dtype)
    columns = np.empty((y.shape[1], widest), y.dtype)
    total = 0.0
    for i in range(c * CHUNK, min((c + 1) * CHUNK, y.shape[0])):
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        n = end - begin
        own = indices[begin:end]
        _gather(y, own, columns)
        _squared_to_all(i, y, columns, s[:n])
        kernel_row(profile, shape, s[:n], value, slope)
        total += row_product(weights[begin:end], value)
        for e in range(n):
            slope[e] *= weights[begin + e]
        _along(i, n, y, columns, slope, gradient)
    sums[c] = total


@njit(**_OPTIONS)
def pairs_serial(profile, shape, indptr, indices, weights, y, gradient, sums):
    """Write the sum of w k over all entries, and the gradient of half of it."""
    for c in range(sums.shape[0]):
        _pairs(c, profile, shape, indptr, indices, weights, y, gradient, sums)


@njit(**_PARALLEL)
def pairs_parallel(profile, shape, indptr, indices, weights, y, gradient, sums):
    """Like :func:`pairs_serial`."""
    for c in prange(sums.shape[0]):
        _pairs(c, profile, shape, indptr, indices, weights, y, gradient, sums)
