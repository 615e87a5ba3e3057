"""The compiled search for the pressure of a point, for every method.

One point is lifted by a height h out of the map; with u = h^2 the slope of the
energy is

    dE/du = sum_e w_e f'(s_e + u) + c(u) sum_j v_j k'(s_j + u)

over its edges and over what repels it.  c is a constant where the energy adds
the kernel up, and strength / (base + change of the sum) where it takes the
logarithm of the sum.  See :mod:`pressure` for what the numbers are.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,var-annotated"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from napari_embedding_game.core.energy.game_kernels import _widest
from napari_embedding_game.core.energy.lanes import STRICT, row_product
from napari_embedding_game.core.energy.pair_function_kernels import (
    attraction_row,
    kernel_row,
)
from napari_embedding_game.core.energy.pair_kernels import (
    _squared_to_all,
    _squared_to_some,
)

_OPTIONS: dict[str, Any] = {
    "fastmath": STRICT,
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
}
_HIGHEST = 1e12
"""u at which a point that nothing holds down is let go."""
_MOST_STEPS = 100


@njit(**_OPTIONS)
def _slope(u, profiles, shape, near, weights, far, strengths, strength, base, rest):
    """Return dE/du; ``rest`` is the sum of v k at u = 0."""
    lifted = near + near.dtype.type(u)
    slope = np.empty_like(lifted)
    attraction_row(profiles[0], shape, lifted, slope)
    pull = row_product(weights, slope)
    lifted = far + far.dtype.type(u)
    slope = np.empty_like(lifted)
    value = np.empty_like(lifted)
    kernel_row(profiles[1], shape, lifted, value, slope)
    push = row_product(strengths, slope)
    total = row_product(strengths, value)
    factor = strength if base <= 0.0 else strength / (base + total - rest)
    return pull + factor * push


@njit(**_OPTIONS)
def _sum_at_rest(profiles, shape, far, strengths):
    slope = np.empty_like(far)
    value = np.empty_like(far)
    kernel_row(profiles[1], shape, far, value, slope)
    return row_product(strengths, value)


@njit(**_OPTIONS)
def lift(profiles, shape, near, weights, far, strengths, strength, base):
    """Return the height h >= 0 that minimises the energy of one lifted point.

    ``near``, ``weights``: squared distances along the point's edges, and their
    weights.  ``far``, ``strengths``: squared distances to what repels it, and
    the v.  ``base``: the sum inside the logarithm, 0 where there is none.
    False position (Illinois) between heights where the slope changes its sign.
    """
    rest = _sum_at_rest(profiles, shape, far, strengths)
    own = (profiles, shape, near, weights, far, strengths, strength, base, rest)
    low, below = 0.0, _slope(0.0, *own)
    if below >= 0.0:
        return 0.0
    high = 1.0
    above = _slope(high, *own)
    while above < 0.0:
        low, below = high, above
        high *= 4.0
        if high > _HIGHEST:  # nothing holds this point down: no neighbours
            return math.sqrt(high)
        above = _slope(high, *own)
    for _ in range(_MOST_STEPS):
        if high - low <= 1e-7 * (1e-6 + high):
            break
        u = low - below * (high - low) / (above - below)
        if not low < u < high:
            u = 0.5 * (low + high)
        value = _slope(u, *own)
        if value == 0.0:
            return math.sqrt(u)
        if value < 0.0:
            low, below = u, value
            above *= 0.5
        else:
            high, above = u, value
            below *= 0.5
    return math.sqrt(0.5 * (low + high))


@njit(**_OPTIONS)
def field_pressure(
    profiles,
    shape,
    indptr,
    indices,
    weights,
    y,
    others,
    far_weights,
    is_self,
    own,
    strength,
    base,
    pressure,
):
    """Write each point's pressure under all ``others`` (d, m).

    ``far_weights``: (n, m) weights of the pairs, or (0, 0) where they are 1.
    ``is_self``: whether other i is point i itself, which does not repel it.
    ``own``: else, share of the nearest one's push that is the point's own.
    """
    near = np.empty(_widest(indptr), y.dtype)
    far = np.empty(others.shape[1], y.dtype)
    strengths = np.ones(others.shape[1], y.dtype)
    for i in range(y.shape[0]):
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        _squared_to_some(i, y, y, indices[begin:end], near)
        _squared_to_all(i, y, others, far)
        if far_weights.shape[0] > 0:
            strengths[:] = far_weights[i]
        mine = i if is_self else far.argmin()
        strengths[mine] = 0.0 if is_self else 1.0 - own
        pressure[i] = lift(
            profiles,
            shape,
            near[: end - begin],
            weights[begin:end],
            far,
            strengths,
            strength,
            base,
        )
        strengths[mine] = 1.0


@njit(**_OPTIONS)
def pairs_pressure(
    profiles,
    shape,
    indptr,
    indices,
    weights,
    y,
    far_indptr,
    far_indices,
    far_weights,
    strength,
    base,
    pressure,
):
    """Write each point's pressure under the points it shares a sampled edge with."""
    near = np.empty(_widest(indptr), y.dtype)
    far = np.empty(_widest(far_indptr), y.dtype)
    for i in range(y.shape[0]):
        begin, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        first, last = np.int64(far_indptr[i]), np.int64(far_indptr[i + 1])
        partners = far_indices[first:last]
        _squared_to_some(i, y, y, indices[begin:end], near)
        _squared_to_some(i, y, y, partners, far)
        strengths = far_weights[first:last].copy()
        for e in range(partners.shape[0]):
            if partners[e] == i:
                # A point drawn for itself rises with itself: their distance stays 0.
                strengths[e] = 0.0
        pressure[i] = lift(
            profiles,
            shape,
            near[: end - begin],
            weights[begin:end],
            far[: last - first],
            strengths,
            strength,
            base,
        )
