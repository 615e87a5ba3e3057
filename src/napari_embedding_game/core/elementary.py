"""Exponential, logarithm and cosine whose bits are the same on every processor.

The functions use only sums, products, quotients and shifts, which IEEE 754 fixes, in
one order.  Results are within two units in the last place; arguments are numbers or
arrays, also inside compiled loops.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable

_BIAS, _MANTISSA_BITS, _ROOT_HALF_BITS = 1023, 52, 0x3FE6A09E667F3BCD
_LOG2, _LOG2_REST = 0.6931471803691238, 1.9082149292705877e-10
"""Together log 2; an integer times the first, which has few bits, is exact."""
_INVERSE_LOG2 = 1.4426950408889634
_ROUNDING_SHIFT = 1.5 * 2.0**52
"""Adding this shift rounds a number to an integer, held by the last bits of the sum."""
_MAX_EXPONENT = 708.0
_EXP = tuple(1 / math.factorial(k) for k in range(13, -1, -1))
_ATANH = tuple(2 / k for k in range(23, 1, -2))
_COS = tuple((-1) ** k / math.factorial(2 * k) for k in range(14, -1, -1))


@register_jitable
def exp(x: Any) -> Any:
    """Return e^x of float64 numbers.

    x is clamped to +-708, near the ends of the range: the result is never 0 or
    infinite.
    """
    x = np.minimum(np.maximum(x, -_MAX_EXPONENT), _MAX_EXPONENT)
    shifted = x * _INVERSE_LOG2 + _ROUNDING_SHIFT
    n = shifted - _ROUNDING_SHIFT
    remainder = (x - n * _LOG2) - n * _LOG2_REST
    total = remainder * _EXP[0]
    for coefficient in _EXP[1:-1]:
        total = (total + coefficient) * remainder
    bits = np.float64(shifted).view(np.int64)
    power = np.int64((bits + _BIAS) << _MANTISSA_BITS).view(np.float64)
    return (total + 1.0) * power


@register_jitable
def log(x: Any) -> Any:
    """Return the natural logarithm of float64 numbers above 1e-307."""
    bits = np.float64(x).view(np.int64)
    n = (bits - _ROOT_HALF_BITS) >> _MANTISSA_BITS
    mantissa = np.int64(bits - (n << _MANTISSA_BITS)).view(np.float64)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    squared = ratio * ratio
    total = squared * _ATANH[0]
    for coefficient in _ATANH[1:]:
        total = (total + coefficient) * squared
    return n * _LOG2 + (n * _LOG2_REST + ratio * (total + 2.0))


@register_jitable
def cos(x: Any) -> Any:
    """Return the cosine of float64 numbers from -pi to pi."""
    squared = x * x
    total = squared * _COS[0]
    for coefficient in _COS[1:-1]:
        total = (total + coefficient) * squared
    return total + 1.0
