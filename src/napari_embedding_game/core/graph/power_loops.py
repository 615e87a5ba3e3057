"""The compiled loops of the spectral start: components, a step of a power iteration."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def power_step(begin, end, indptr, indices, weights, vectors, own, of_others, moved):
    """Write ``own * vectors + of_others * (W @ vectors)`` of some rows into ``moved``.

    In the order of sums that scipy takes, so that its bits are the same.

    Parameters
    ----------
    begin, end : int
        The rows.
    indptr, indices, weights : of W (N, N), a CSR matrix of float32
    vectors, moved : (N, d) float32
    own, of_others : float32
    """
    for i in range(begin, end):
        for k in range(vectors.shape[1]):
            total = np.float32(0)
            for at in range(indptr[i], indptr[i + 1]):
                total += weights[at] * vectors[indices[at], k]
            moved[i, k] = own * vectors[i, k] + of_others * total


@njit(nogil=True, cache=True)
def components(indptr, indices):
    """Return how many components a symmetric graph has, and which each point is in.

    As scipy's ``connected_components``, which keeps all other threads waiting.

    Parameters
    ----------
    indptr, indices : of a CSR matrix (N, N) in which each edge stands in both rows

    Returns
    -------
    n_parts : int
    part : (N,) int32
        In the order of their first points.
    """
    n = len(indptr) - 1
    part = np.full(n, -1, np.int32)
    waiting = np.empty(n, np.int32)
    n_parts = 0
    for first in range(n):
        if part[first] >= 0:
            continue
        part[first] = n_parts
        waiting[0], n_waiting = first, 1
        while n_waiting > 0:
            n_waiting -= 1
            point = waiting[n_waiting]
            for at in range(indptr[point], indptr[point + 1]):
                other = indices[at]
                if part[other] < 0:
                    part[other] = n_parts
                    waiting[n_waiting] = other
                    n_waiting += 1
        n_parts += 1
    return n_parts, part
