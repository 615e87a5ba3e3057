"""The compiled loops of :mod:`stretch`.

Arrays: ``neighbors`` (N, k), where -1 is none; ``y`` (N, d) the map; ``unit`` the
squared length that is usual.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,assignment"

from __future__ import annotations

import numpy as np
from numba import njit

from napari_embedding_game.core.energy.pair_loops import OPTIONS


@njit(**OPTIONS)
def _squared(y, i, j):
    total = np.float64(0.0)
    for k in range(y.shape[1]):
        difference = np.float64(y[i, k]) - np.float64(y[j, k])
        total += difference * difference
    return total


@njit(**OPTIONS)
def squared_lengths(neighbors, y, step, squared):
    """Write the squared distances to the neighbours of every `step`-th point.

    Returns
    -------
    int
        How many were written.
    """
    n = 0
    for i in range(0, neighbors.shape[0], step):
        for k in range(neighbors.shape[1]):
            if neighbors[i, k] >= 0:
                squared[n] = _squared(y, i, neighbors[i, k])
                n += 1
    return n


@njit(**OPTIONS)
def _stretch(neighbors, y, unit, i):
    """Return the stretch of point i; 0 where it has no neighbours."""
    total, n = np.float64(0.0), 0
    for k in range(neighbors.shape[1]):
        if neighbors[i, k] >= 0:
            total += np.log1p(_squared(y, i, neighbors[i, k]) / unit)
            n += 1
    return np.sqrt(np.expm1(total / n)) if n > 0 else np.float64(0.0)


@njit(**OPTIONS)
def stretch(begin, end, neighbors, y, unit, out):
    """Write the stretch of some points into ``out`` (N,)."""
    for i in range(begin, end):
        out[i] = _stretch(neighbors, y, unit, i)
