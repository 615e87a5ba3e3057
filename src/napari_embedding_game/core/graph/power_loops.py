"""The compiled loop of the spectral start: one step of a power iteration."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def power_step(indptr, indices, weights, vectors, own, of_others, begin, end, moved):
    """Write ``own * vectors + of_others * (W @ vectors)`` of some rows into ``moved``.

    In the order of sums that scipy takes, so that its bits are the same.

    Parameters
    ----------
    indptr, indices, weights : of W (N, N), a CSR matrix of float32
    vectors, moved : (N, d) float32
    own, of_others : float32
    begin, end : int
        The rows.
    """
    for i in range(begin, end):
        for k in range(vectors.shape[1]):
            total = np.float32(0)
            for at in range(indptr[i], indptr[i + 1]):
                total += weights[at] * vectors[indices[at], k]
            moved[i, k] = own * vectors[i, k] + of_others * total
