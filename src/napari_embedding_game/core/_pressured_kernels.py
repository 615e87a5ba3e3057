"""The compiled pass that says how hard every point is pushed off the map.

One pass over all pairs gives both the sum of the kernel and what paper 4 calls
d-, so that pressure costs no more than an energy.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from napari_embedding_game.core._pair_kernels import _FAST, _squared_to_all
from napari_embedding_game.core._profiles import kernel_row


@njit(**_FAST)
def push_of_all(profile, shape, far, targets, others, push):
    """Write -sum_j v_ij k'(|t_i - t_j|^2) over j != i; return the sum of v_ij k.

    ``targets`` (n, d), ``others`` (d, n) the same points, ``push`` (n,) float64,
    ``far`` (n, n) the weights v, or (0, 0) where they are 1.
    """
    s = np.empty(others.shape[1], targets.dtype)
    value = np.empty_like(s)
    slope = np.empty_like(s)
    total = 0.0
    for i in range(targets.shape[0]):
        _squared_to_all(i, targets, others, s)
        kernel_row(profile, shape, s, value, slope)
        value[i] = 0
        slope[i] = 0
        if far.shape[0] > 0:
            own = far[i]
            for j in range(s.shape[0]):
                value[j] *= own[j]
                slope[j] *= own[j]
        part = targets.dtype.type(0)
        steep = targets.dtype.type(0)
        for j in range(s.shape[0]):
            part += value[j]
            steep += slope[j]
        total += part
        push[i] = -steep
    return total
