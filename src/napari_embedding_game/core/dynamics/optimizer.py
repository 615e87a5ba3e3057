"""How one player moves: scaled gradient, momentum, step.

An iteration of both, with their gradients, is ``game.Game._played``.

The compiled loops run in chunks of rows, each with its part of the sum of squares, so
that a step has the same bits for any number of threads.  Arrays (N, d), all
C-contiguous and of one type, float32 or float64: ``gradient``, ``points``, and
``velocity``, or None without momentum.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from napari_embedding_game.core.energy.pair_loops import (
    CHUNK,
    INSIDE,
    OPTIONS,
    n_chunks,
)
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.simd import (
    WIDE,
    across,
    double,
    fused,
    load,
    spread,
)
from napari_embedding_game.core.threads import run_blocks


class Player:
    """Points or landmarks, which step along a gradient g by its root mean square.

        v <- momentum v + (1 - momentum) g / rms(g)
        p <- p + rate v

    With momentum 0 this is the update of the paper's Alg. 1.  ``rate`` is the root mean
    square length of a step per coordinate, in units of the map.  ``positions`` (N, d)
    move in place: by a compiled loop in the processor's memory, elsewhere by torch.
    """

    def __init__(self, positions: Tensor) -> None:
        self.positions = positions
        self.velocity: Tensor | None = None

    def step(
        self,
        gradient: Tensor,
        rate: float,
        momentum: float = 0.0,
        scale: Tensor | None = None,
    ) -> None:
        """Move once; down where the rate is below 0.  The gradient is written over.

        ``scale`` (N,) divides the gradient first: rows that differ much in stiffness
        take longer steps in the same time (diagonal preconditioning).
        """
        if self.positions.device.type != "cpu":
            if scale is not None:
                gradient = gradient / scale[:, None]
            self._step_by_torch(gradient, rate, momentum)
            return
        points, force = self.positions.numpy(), gradient.numpy()
        velocity = self._moving(momentum)
        sums = np.empty(n_chunks(len(points)))
        work = len(sums), points.size
        divisors = None if scale is None else scale.numpy()
        run_blocks(divide_and_add_squares, *work, force, divisors, sums)
        rms = root_mean_square(sums, force)
        speeds = None if velocity is None else velocity.numpy()
        rates = rate, 1.0 - momentum
        run_blocks(move, *work, force, rms, rates, speeds, points)

    def stop(self, rows: Tensor | None) -> None:
        """Let some rows, which were put elsewhere, lose their velocity."""
        if rows is not None and self.velocity is not None:
            self.velocity[rows] = 0.0

    def _step_by_torch(self, gradient: Tensor, rate: float, momentum: float) -> None:
        rms = torch.linalg.vector_norm(gradient) / math.sqrt(gradient.numel())
        step = gradient / rms.clamp_min(torch.finfo(rms.dtype).tiny)
        velocity = self._moving(momentum)
        if velocity is not None:
            velocity += (1.0 - momentum) * (step - velocity)
            step = velocity
        self.positions += rate * step

    def _moving(self, momentum: float) -> Tensor | None:
        """Return the velocity, 0 at first; None without momentum."""
        if momentum and self.velocity is None:
            self.velocity = torch.zeros_like(self.positions)
        return self.velocity if momentum else None


@njit(**INSIDE)
def _squares(row, begin, end, zero):
    total = double(zero)
    for at in range(begin, end, len(zero)):
        number = double(load(row, (at,), zero))
        total = total + number * number
    return across(total)


@njit(**OPTIONS)
def _sum_of_squares(row):
    """Return the sum of the squares of a row, float64."""
    zero, n = row.dtype.type(0), len(row)
    whole = n - n % WIDE
    total = _squares(row, 0, whole, spread(zero, WIDE))
    return total + _squares(row, whole, n, spread(zero, 1))


@njit(**OPTIONS)
def _numbers(rows, c):
    """Return the numbers of a chunk's rows, one after the other."""
    chunk = rows[c * CHUNK : (c + 1) * CHUNK]
    return chunk.reshape(chunk.size)


@njit(**OPTIONS)
def divide_and_add_squares(begin, end, gradient, scale, sums):
    """Divide rows by ``scale`` (N,), if given; write the sums of squares of chunks."""
    for c in range(begin, end):
        if scale is not None:
            for i in range(c * CHUNK, min((c + 1) * CHUNK, len(gradient))):
                for axis in range(gradient.shape[1]):
                    gradient[i, axis] /= scale[i]
        sums[c] = _sum_of_squares(_numbers(gradient, c))


@njit(**OPTIONS)
def root_mean_square(sums, gradient):
    """Return that of the whole gradient; at least the least normal number."""
    rms = gradient.dtype.type(math.sqrt(sums.sum() / gradient.size))
    least = np.finfo(gradient.dtype).tiny
    return least if rms < least else rms


@njit(**OPTIONS)
def move(begin, end, gradient, rms, rates, velocity, points):
    """Move the ``points`` of some chunks, and change ``velocity``, both in place.

    ``rates``: the length of the step, and 1 - momentum.
    """
    kind = points.dtype.type
    length, gain, unit = kind(rates[0]), kind(rates[1]), kind(rms)
    for c in range(begin, end):
        directions, positions = _numbers(gradient, c), _numbers(points, c)
        if velocity is not None:
            speeds = _numbers(velocity, c)
        for at in range(len(positions)):
            step = directions[at] / unit
            if velocity is not None:
                step = fused(gain, step - speeds[at], speeds[at])
                speeds[at] = step
            positions[at] = fused(length, step, positions[at])
