"""How force falls with distance: the functions inside every pair sum.

All take squared distances s = u^2.

==============  =====================  ======================================
attraction      f(s)                   of
==============  =====================  ======================================
LOG1P           log(1 + s)             embedding game, t-SNE
QUADRATIC       s                      EE, s-SNE
KERNEL          -1 / (1 + s)           two-kernel LLE and PCA
UMAP            log(1 + a t^b)         UMAP, repulsion from all points
UMAP_EXACT      log(a t^b)             UMAP, repulsion weighted 1 - w
==============  =====================  ======================================

==============  =====================  ======================================
kernel          k(s)                   of
==============  =====================  ======================================
CAUCHY          1 / (1 + s)            embedding game, t-SNE, two-kernel LLE
GAUSSIAN        exp(-s)                EE, s-SNE
SQUARED_CAUCHY  1 / (1 + s)^2          two-kernel PCA
UMAP_REPULSION  log(1 + 1 / (a t^b))   UMAP
==============  =====================  ======================================

where t = s + nearest keeps UMAP's forces from their pole at s = 0, as
umap-learn does.  ``shape`` is the array (a, b, nearest); only UMAP looks at it.
The functions work on whole rows, so that which profile it is is asked once a
row, and the loops stay simple enough for the compiler to vectorise.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,var-annotated"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

from napari_embedding_game.core.energy.lanes import STRICT, fused, row_sum

_OPTIONS: dict[str, Any] = {
    "fastmath": STRICT,
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
}

LOG1P, QUADRATIC, KERNEL, UMAP, UMAP_EXACT = range(5)
CAUCHY, GAUSSIAN, SQUARED_CAUCHY, UMAP_REPULSION = range(4)

# Library calls do not vectorise, these polynomials do.  exp(-s) = 2^n 2^f with
# |f| <= 1/2; log(x) = n log 2 + 2 atanh((m - 1) / (m + 1)) with x = 2^n m.
_LOG_2 = np.float32(math.log(2))
_LOG2_E = np.float32(1 / math.log(2))
_POWERS = [np.float32(math.log(2) ** k / math.factorial(k)) for k in range(7)]
_P0, _P1, _P2, _P3, _P4, _P5, _P6 = _POWERS
_A1, _A3, _A5, _A7, _A9 = (np.float32(2 / k) for k in (1, 3, 5, 7, 9))
_LEAST_EXPONENT, _MOST_EXPONENT = np.float32(-126.0), np.float32(126.0)
_HALF, _ONE = np.float32(0.5), np.float32(1)
_BIAS, _MANTISSA_BITS = np.int32(127), np.int32(23)
_ROOT_HALF_BITS = np.int32(np.float32(math.sqrt(0.5)).view(np.int32))


@intrinsic
def _float32_of_bits(context, bits):
    """Return the float32 that 32 bits stand for."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), code


@intrinsic
def _bits_of_float32(context, x):
    """Return the 32 bits of a float32."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), code


def exp(x):
    """Return exp(x); in float32 to 1e-6 and |x|/10 units of its precision."""
    return math.exp(x)


def log(x):
    """Return log(x) for x > 0; in float32 to 1e-6."""
    return math.log(x)


@overload(exp, inline="always", jit_options={"fastmath": STRICT})
def _compiled_exp(x):
    if x != types.float32:
        return lambda x: math.exp(x)

    def single(x):
        t = min(max(x * _LOG2_E, _LEAST_EXPONENT), _MOST_EXPONENT)
        n = np.int32(np.floor(t + _HALF))
        f = t - np.float32(n)
        p = fused(f, fused(f, _P6, _P5), _P4)
        p = fused(f, fused(f, fused(f, fused(f, p, _P3), _P2), _P1), _P0)
        return p * _float32_of_bits(np.int32((n + _BIAS) << _MANTISSA_BITS))

    return single


@overload(log, inline="always", jit_options={"fastmath": STRICT})
def _compiled_log(x):
    if x != types.float32:
        return lambda x: math.log(x)

    def single(x):
        bits = _bits_of_float32(x)
        n = np.int32((bits - _ROOT_HALF_BITS) >> _MANTISSA_BITS)
        m = _float32_of_bits(np.int32(bits - (n << _MANTISSA_BITS)))
        w = (m - _ONE) / (m + _ONE)
        v = w * w
        p = fused(v, fused(v, fused(v, fused(v, _A9, _A7), _A5), _A3), _A1)
        return fused(w, p, np.float32(n) * _LOG_2)

    return single


@njit(**_OPTIONS)
def kernel_row(profile, shape, s, value, slope):
    """Write k(s) and dk/ds for a row of squared distances; return the sum of k."""
    one = s.dtype.type(1)
    if profile == CAUCHY:
        for j in range(s.shape[0]):
            q = one / (one + s[j])
            value[j] = q
            slope[j] = -q * q
    elif profile == GAUSSIAN:
        for j in range(s.shape[0]):
            e = exp(-s[j])
            value[j] = e
            slope[j] = -e
    elif profile == SQUARED_CAUCHY:
        for j in range(s.shape[0]):
            q = one / (one + s[j])
            value[j] = q * q
            slope[j] = -(q + q) * q * q
    else:
        a, b, nearest = shape[0], shape[1], shape[2]
        for j in range(s.shape[0]):
            t = s[j] + nearest
            p = a * exp(b * log(t))
            value[j] = log(one + one / p)
            slope[j] = -b / (t * (one + p))
    return row_sum(value[: s.shape[0]])


@njit(**_OPTIONS)
def attraction_row(profile, shape, s, slope):
    """Write df/ds for a row of squared distances."""
    one = s.dtype.type(1)
    if profile == LOG1P:
        for j in range(s.shape[0]):
            slope[j] = one / (one + s[j])
    elif profile == QUADRATIC:
        slope[:] = one
    elif profile == KERNEL:
        for j in range(s.shape[0]):
            q = one / (one + s[j])
            slope[j] = q * q
    elif profile == UMAP:
        a, b, nearest = shape[0], shape[1], shape[2]
        for j in range(s.shape[0]):
            t = s[j] + nearest
            p = a * exp(b * log(t))
            slope[j] = b * p / (t * (one + p))
    else:
        for j in range(s.shape[0]):
            slope[j] = shape[1] / (s[j] + shape[2])


@njit(**_OPTIONS)
def attraction_energy_row(profile, shape, s, weights):
    """Return the sum of w f(s) over a row of squared distances."""
    total = 0.0
    for j in range(s.shape[0]):
        if profile == LOG1P:
            f = math.log1p(s[j])
        elif profile == QUADRATIC:
            f = np.float64(s[j])
        elif profile == KERNEL:
            f = -1.0 / (1.0 + s[j])
        elif profile == UMAP:
            f = math.log1p(shape[0] * (s[j] + shape[2]) ** shape[1])
        else:
            f = math.log(shape[0] * (s[j] + shape[2]) ** shape[1])
        total += weights[j] * f
    return total
