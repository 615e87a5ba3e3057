"""How one player moves: scaled gradient, momentum, step.

An iteration of both, with their gradients, is ``game.Game._played``.

The compiled loops run in chunks of rows, each with its part of the sum of squares, so
that a step has the same bits for any number of threads.  Arrays (N, d), all
C-contiguous and of one type, float32 or float64: ``gradient``, ``points``, and
``velocity``, or None without momentum.
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
        n, width = gradient.shape
        points, force = (each.view(-1).numpy() for each in (self.positions, gradient))
        velocity = self._moving(momentum)
        sums = np.empty(n_chunks(n))
        work = len(sums), points.size
        divisors = None if scale is None else scale.numpy()
        run_blocks(divide_and_add_squares, *work, width, force, divisors, sums)
        rms = root_mean_square(sums, force)
        speeds = None if velocity is None else velocity.view(-1).numpy()
        rates = rate, 1.0 - momentum
        run_blocks(move, *work, width, force, rms, rates, speeds, points)

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


def root_mean_square(sums: NDArray[np.float64], gradient: NDArray[Any]) -> float:
    """Return that of the whole gradient; at least the least normal number.

    ``sums``: of the squares of each chunk, which are added one after another.
    """
    rms = gradient.dtype.type(math.sqrt(sum(sums.tolist()) / gradient.size))
    return float(max(rms, np.finfo(gradient.dtype).tiny))


@njit(**LANE_LOOP)
def _squares(numbers, begin, end, zero):
    """Return the sum of the squares of some numbers, float64."""
    total = double(zero)
    for at in range(begin, end, len(zero)):
        number = double(load(numbers, (at,), zero))
        total = total + number * number
    return across(total)


@njit(**OPTIONS)
def divide_and_add_squares(begin, end, width, gradient, scale, sums):
    """Divide rows by ``scale`` (N,), if given; write the sums of squares of chunks.

    ``gradient`` (N ``width``,): one row after another.
    """
    zero, size = gradient.dtype.type(0), CHUNK * width
    for c in range(begin, end):
        first, last = c * size, min((c + 1) * size, len(gradient))
        if scale is not None:
            for at in range(first, last, width):
                divisor = scale[at // width]
                for axis in range(width):
                    gradient[at + axis] /= divisor
        whole = last - (last - first) % WIDE
        total = _squares(gradient, first, whole, spread(zero, WIDE))
        sums[c] = total + _squares(gradient, whole, last, spread(zero, 1))


@njit(**OPTIONS)
def move(begin, end, width, gradient, rms, rates, velocity, points):
    """Move the ``points`` of some chunks, and change ``velocity``, both in place.

    Arrays as above.  ``rates``: the length of the step, and 1 - momentum.
    """
    kind, size = points.dtype.type, CHUNK * width
    length, gain, unit = kind(rates[0]), kind(rates[1]), kind(rms)
    for at in range(begin * size, min(end * size, len(points))):
        step = gradient[at] / unit
        if velocity is not None:
            step = fused(gain, step - velocity[at], velocity[at])
            velocity[at] = step
        points[at] = fused(length, step, points[at])
