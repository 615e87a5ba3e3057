"""The compiled pass that says how hard every point is pushed off the map.

One pass over all pairs gives both the sum of the kernel and what paper 4 calls
d-, so that pressure costs no more than an energy.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,var-annotated"

from __future__ import annotations

import numpy as np
from numba import njit

from napari_embedding_game.core.energy.lanes import row_sum
from napari_embedding_game.core.energy.pair_kernels import _OPTIONS, kernel_before


@njit(**_OPTIONS)
def push_of_all(profile, shape, far, points, columns, push):
    """Write -sum_j v_ij k'(|y_i - y_j|^2) over j != i; return the sum of v_ij k.

    ``points`` (n, d), ``columns`` (d, n) the same by coordinate, ``push`` (n,)
    float64, ``far`` (n, n) the symmetric weights v, or (0, 0) where they are 1.
    """
    n = points.shape[0]
    s = np.empty(n, points.dtype)
    value = np.empty_like(s)
    slope = np.empty_like(s)
    back = np.zeros_like(s)
    total = 0.0
    for i in range(n):
        total += kernel_before(i, profile, shape, far, points, columns, s, value, slope)
        for j in range(i):
            back[j] += slope[j]
        push[i] = -row_sum(slope[:i])
    for i in range(n):
        push[i] -= back[i]
    return 2 * total
