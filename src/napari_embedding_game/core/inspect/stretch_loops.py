"""The compiled loops of :mod:`stretch`, serial and parallel."""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,assignment"

from __future__ import annotations

import numpy as np
from numba import njit, prange

from napari_embedding_game.core.energy.pair_loops import OPTIONS, PARALLEL_OPTIONS


@njit(**OPTIONS)
def _squared(y, i, j):
    total = np.float64(0.0)
    for k in range(y.shape[1]):
        difference = np.float64(y[i, k]) - np.float64(y[j, k])
        total += difference * difference
    return total


@njit(**OPTIONS)
def edge_lengths(indptr, indices, y, step, squared):
    """Write the squared length of every `step`-th entry of the edges, (n,)."""
    row = 0
    for n in range(squared.shape[0]):
        entry = n * step
        while np.int64(indptr[row + 1]) <= entry:
            row += 1
        squared[n] = _squared(y, row, indices[entry])


@njit(**OPTIONS)
def _stretch(indptr, indices, weights, y, unit, i):
    """Return the stretch of point i; 0 where nothing attracts it."""
    total, weight = np.float64(0.0), np.float64(0.0)
    for entry in range(np.int64(indptr[i]), np.int64(indptr[i + 1])):
        share = abs(np.float64(weights[entry]))
        total += share * np.log1p(_squared(y, i, indices[entry]) / unit)
        weight += share
    return np.sqrt(np.expm1(total / weight)) if weight > 0.0 else np.float64(0.0)


@njit(**OPTIONS)
def stretch_serial(indptr, indices, weights, y, unit, out):
    """Write the stretch of every point, (N,); `unit` is a squared length."""
    for i in range(y.shape[0]):
        out[i] = _stretch(indptr, indices, weights, y, unit, i)


@njit(**PARALLEL_OPTIONS)
def stretch_parallel(indptr, indices, weights, y, unit, out):
    """Like :func:`stretch_serial`."""
    for i in prange(y.shape[0]):
        out[i] = _stretch(indptr, indices, weights, y, unit, i)
