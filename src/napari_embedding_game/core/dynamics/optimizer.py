"""The step of one player: gradient divided by its root mean square, with momentum.

``game.Game._play_iterations`` computes the gradients and steps both players.

The compiled loops run over chunks of rows with a partial sum of squares each, so that a
step has the same bits for any number of threads.  ``gradient``, ``points`` and
``velocity`` (None without momentum) are C-contiguous arrays of one type, float32 or
float64, flattened from (N, d) to (N ``width``,).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy.pair_loops import (
    CHUNK,
    LANE_LOOP,
    OPTIONS,
    count_chunks,
)
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.simd import (
    WIDE,
    broadcast,
    fma,
    load,
    sum_lanes,
    to_float64,
)
from napari_embedding_game.core.threads import run_blocks


class Player:
    """Points or landmarks, which step along a gradient g divided by its rms.

        v <- momentum v + (1 - momentum) g / rms(g)
        p <- p + rate v

    With momentum 0 this is the update of the paper's Alg. 1.  ``rate`` is the root mean
    square length of a step per coordinate, in units of the map.  ``positions`` (N, d)
    change in place: by a compiled loop on the CPU, by torch on other devices.
    """

    def __init__(self, positions: Tensor) -> None:
        self.positions = positions
        self.velocity: Tensor | None = None

    def step(
        self,
        gradient: Tensor,
        rate: float,
        momentum: float = 0.0,
        stiffness: Tensor | None = None,
    ) -> None:
        """Move the positions once in place; ``gradient`` (N, d) may be overwritten.

        A negative ``rate`` descends, a positive rate ascends.  ``stiffness`` (N,)
        divides the gradient before its rms is taken, so that points of different
        stiffness converge equally fast (diagonal preconditioning).  Without momentum
        the velocity is not used.
        """
        if self.positions.device.type != "cpu":
            if stiffness is not None:
                gradient = gradient / stiffness[:, None]
            self._step_by_torch(gradient, rate, momentum)
            return
        n, width = gradient.shape
        points, force = (each.view(-1).numpy() for each in (self.positions, gradient))
        velocity = self._get_velocity(momentum)
        sums = np.empty(count_chunks(n))
        run_blocks(
            divide_rows_and_sum_squares,
            len(sums),
            points.size,
            width,
            force,
            None if stiffness is None else stiffness.numpy(),
            sums,
        )
        run_blocks(
            move_points,
            len(sums),
            points.size,
            width,
            force,
            compute_root_mean_square(sums, force),
            (rate, 1.0 - momentum),
            None if velocity is None else velocity.view(-1).numpy(),
            points,
        )

    def reset_velocity(self, rows: Tensor | None) -> None:
        """Set the velocity of ``rows`` to 0; do nothing for None."""
        if rows is not None and self.velocity is not None:
            self.velocity[rows] = 0.0

    def _step_by_torch(self, gradient: Tensor, rate: float, momentum: float) -> None:
        """Move the positions once in place, on a device other than the CPU.

        ``gradient`` (N, d) has been divided by the stiffness.
        """
        rms = torch.linalg.vector_norm(gradient) / math.sqrt(gradient.numel())
        step = gradient / rms.clamp_min(torch.finfo(rms.dtype).tiny)
        velocity = self._get_velocity(momentum)
        if velocity is not None:
            velocity += (1.0 - momentum) * (step - velocity)
            step = velocity
        self.positions += rate * step

    def _get_velocity(self, momentum: float) -> Tensor | None:
        """Return the velocity (N, d), zeros at first, or None without momentum."""
        if momentum and self.velocity is None:
            self.velocity = torch.zeros_like(self.positions)
        return self.velocity if momentum else None


def compute_root_mean_square(
    sums: NDArray[np.float64], gradient: NDArray[Any]
) -> float:
    """Return the gradient's root mean square from its chunks' sums of squares.

    ``sums`` are added in order.  The result is at least the least normal number of the
    gradient's type.
    """
    rms = gradient.dtype.type(math.sqrt(sum(sums.tolist()) / gradient.size))
    return float(max(rms, np.finfo(gradient.dtype).tiny))


@njit(**LANE_LOOP)
def _sum_squares(numbers, begin, end, zero):
    """Return the sum of squares of ``numbers[begin:end]``, float64.

    ``zero``: a vector of zeros, whose number of lanes divides ``end - begin``.
    """
    total = to_float64(zero)
    for at in range(begin, end, len(zero)):
        number = to_float64(load(numbers, (at,), zero))
        total = total + number * number
    return sum_lanes(total)


@njit(**OPTIONS)
def divide_rows_and_sum_squares(begin, end, width, gradient, stiffness, sums):
    """Divide gradient rows by ``stiffness`` (N,), unless None, and sum squares.

    ``gradient`` (N ``width``,) is flat and changed in place.  ``begin`` and ``end``
    count chunks of rows; ``sums`` (chunks,) receives the sum of squares of each chunk.
    """
    zero, size = gradient.dtype.type(0), CHUNK * width
    for c in range(begin, end):
        first, last = c * size, min((c + 1) * size, len(gradient))
        if stiffness is not None:
            for at in range(first, last, width):
                divisor = stiffness[at // width]
                for axis in range(width):
                    gradient[at + axis] /= divisor
        aligned_end = last - (last - first) % WIDE
        total = _sum_squares(gradient, first, aligned_end, broadcast(zero, WIDE))
        sums[c] = total + _sum_squares(gradient, aligned_end, last, broadcast(zero, 1))


@njit(**OPTIONS)
def move_points(begin, end, width, gradient, rms, rate_and_gain, velocity, points):
    """Move points of chunks begin to end by one step, and update ``velocity``.

    ``gradient``, ``velocity`` (None without momentum) and ``points`` are flat, rows of
    ``width`` numbers.  ``rms``: root mean square of ``gradient``; ``rate_and_gain``:
    length of the step, and 1 - momentum.
    """
    kind, size = points.dtype.type, CHUNK * width
    length, gain, unit = kind(rate_and_gain[0]), kind(rate_and_gain[1]), kind(rms)
    for at in range(begin * size, min(end * size, len(points))):
        step = gradient[at] / unit
        if velocity is not None:
            step = fma(gain, step - velocity[at], velocity[at])
            velocity[at] = step
        points[at] = fma(length, step, points[at])
