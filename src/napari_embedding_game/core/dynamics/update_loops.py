"""The compiled loop by which a player moves: its step's length, momentum and the step.

Like the other loops it runs in chunks of rows that own their part of the sum of
squares, so that a step has the same bits for any number of threads.

Arrays, all C-contiguous and of one type, float32 or float64: ``gradient`` and
``points`` (N, d); ``scale`` (N, 1), or (0, 1) where the gradient is not divided;
``velocity`` (N, d), or (0, d) without momentum.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,assignment"
# mypy: disable-error-code="call-arg,var-annotated"

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from napari_embedding_game.core.energy.lanes import fused, row_sums
from napari_embedding_game.core.energy.pair_loops import CHUNK, OPTIONS


@intrinsic
def _sum_of_squares(context, row):
    """Return the sum of the squares of a row, float64."""

    def write(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])

        def terms(place):
            number = place.load(array.data).double()
            return [number * number]

        (total,) = row_sums(builder, array.nitems, ir.DoubleType(), 1, terms)
        return total.value

    return types.float64(row), write


@njit(**OPTIONS)
def _directions(c, gradient, scale):
    """Return the chunk's part of the gradient, one number after the other."""
    begin = c * CHUNK
    end = min(begin + CHUNK, gradient.shape[0])
    rows = gradient[begin:end]
    if scale.shape[0] > 0:
        rows = rows / scale[begin:end]
    return rows.reshape(rows.size)


@njit(**OPTIONS)
def add_squares(begin, end, gradient, scale, sums):
    """Write each chunk's sum of squares, (chunks,) float64."""
    for c in range(begin, end):
        sums[c] = _sum_of_squares(_directions(c, gradient, scale))


@njit(**OPTIONS)
def root_mean_square(sums, gradient):
    """Return that of the whole gradient; at least the least normal number."""
    rms = gradient.dtype.type(math.sqrt(sums.sum() / gradient.size))
    least = np.finfo(gradient.dtype).tiny
    return least if rms < least else rms


@njit(**OPTIONS)
def move(begin, end, gradient, scale, rms, rates, velocity, points):
    """Move the ``points`` of some chunks, and change ``velocity``, both in place.

    ``rms`` divides the gradient.  ``rates``: the length of the step, below 0
    where it goes down; and 1 - momentum.
    """
    kind = points.dtype.type
    length, gain = kind(rates[0]), kind(rates[1])
    is_fast = velocity.size > 0
    for c in range(begin, end):
        directions = _directions(c, gradient, scale)
        first = c * CHUNK * points.shape[1]
        places = points.reshape(points.size)[first:]
        speeds = velocity.reshape(velocity.size)[first:]
        for j in range(directions.size):
            direction = directions[j] / kind(rms)
            if is_fast:
                direction = fused(gain, direction - speeds[j], speeds[j])
                speeds[j] = direction
            places[j] = fused(length, direction, places[j])
