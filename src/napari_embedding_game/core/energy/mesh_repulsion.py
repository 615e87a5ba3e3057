"""The sum of a kernel over all pairs of points, by a grid (particle-mesh).

The points are spread on a grid by cubic B-splines, convolved with the kernel by Fourier
transforms, and the potential is read back by the same splines; the force is the exact
gradient of the returned sum.  The kernel is divided by the splines' transfer function,
(2 + cos q) / 3 for each axis and spline, so that it is its interpolating spline, and
the self-interaction of points is subtracted.  Hockney and Eastwood (1988); FIt-SNE is
of the family (Linderman and others, 2019).  ``settings.with_approximation`` decides
when it is the default.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len

from napari_embedding_game.core.elementary import cos, exp, log
from napari_embedding_game.core.energy import fft, mesh_loops
from napari_embedding_game.core.energy.pair_functions import PairFunction
from napari_embedding_game.core.graph.edge_loops import by_group
from napari_embedding_game.core.threads import run_blocks

SPACING = 1 / 3
"""Between nodes; the force's error falls with its fourth power."""
WIDER, MANY = 1 / 2, 320
"""What it grows to above so many nodes along the longest side: half the time."""
MIN_CELLS, MAX_CELLS, MAX_IN_SPACE = 32, 2048, 96
"""Nodes along the longest side of the points, the last on a map of three dimensions."""
_STEPS_OF_A_POINT = 64
"""What a point costs in a loop between it and the grid, in pairs of points."""
_NEAR = 16.0
"""Span below which the grid, small then, has float64."""
_STEP = 16
"""Sides of the grid are whole multiples of it, so that they seldom change."""
_LOG2 = 0.6931471805599453
AXES = (0, 2, 1)
"""Axes of the grid (rows, layers, columns) on which those of a map lie."""


@dataclass(frozen=True, eq=False)
class Grid:
    """A grid and the kernel on it.

    ``sides``: nodes along each axis between which points may lie; ``shape``: all nodes,
    twice as many, so that no point feels images.  ``transfer``: what the Fourier
    transform of the points is multiplied by.  ``near`` (4, 1 or 4, 4): the kernel
    between nodes 0 to 3 apart along each axis, doubled for each axis along which that
    is not 0.
    """

    spacing: float
    sides: tuple[int, int, int]
    shape: tuple[int, int, int]
    transfer: NDArray[np.floating]
    near: NDArray[np.floating]

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Type of the numbers on it."""
        return self.near.dtype

    @property
    def n_bands(self) -> int:
        """Of the rows of nodes that points may use, see :mod:`mesh_loops`."""
        return -(-self.sides[0] // mesh_loops.BAND)


def make_grid(
    kernel: PairFunction,
    spacing: float,
    sides: tuple[int, int, int],
    dtype: np.dtype[np.floating],
) -> Grid:
    """Return a grid with so many usable nodes along each axis."""
    rows, layers, columns = (
        next_fast_len(1 if n == 1 else 2 * n, real=True) for n in sides
    )
    shape = rows, layers, columns
    steps = [np.minimum(np.arange(n), n - np.arange(n)) * spacing for n in shape]
    down, deep, across = (step * step for step in np.ix_(*steps))
    values = down + deep + across
    mesh_loops.kernel_values(kernel, values.reshape(-1))
    spectrum = fft.forward(values)
    del values
    waves = (np.minimum(np.arange(n), n - np.arange(n)) / n for n in shape)
    splines = [((2 + cos(2 * np.pi * wave)) / 3) ** 2 for wave in waves]
    splines[2] = splines[2][: spectrum.shape[3]]
    for spline in np.ix_(*splines):
        spectrum[0] /= spline
    transfer = spectrum[0].astype(dtype)
    spectrum[1] = 0  # the kernel is even
    near = fft.backward(spectrum, shape[2], n_rows=4)[:, :4, :4]
    for often in np.ix_(*(np.minimum(np.arange(n) + 1, 2) for n in near.shape)):
        near = near * often
    return Grid(spacing, sides, shape, transfer, near.astype(dtype))


class Mesh:
    """The sum of one smooth kernel, about 1 wide, over all pairs of points.

    The nodes begin at the lowest of the points and are as far apart as suits their
    span, so that the sum jumps a little as they move.
    """

    def __init__(self, kernel: PairFunction) -> None:
        self._kernel = kernel
        self._grid: Grid | None = None

    def __call__(self, y: NDArray[np.floating]) -> tuple[float, NDArray[np.floating]]:
        """Return the sum of k over all pairs i != j and its (N, d) gradient."""
        grid, points, has_extent = self._located(y)
        x = points[0]
        potential = self._potential(grid, points)
        gradient, sums = np.empty_like(x), np.empty(grid.n_bands)
        arrays = points, potential, grid.near, gradient, sums
        self._run(mesh_loops.read, grid.n_bands, *arrays)
        by_axis = gradient[:, AXES[: y.shape[1]]] / grid.dtype.type(grid.spacing)
        # But for rounding, which would drive points off a line that they lie on.
        by_axis[:, ~has_extent] = 0
        return float(sums.sum()), np.ascontiguousarray(by_axis, y.dtype)

    def around(
        self, y: NDArray[np.float64], margin: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return the sum of k over the points at every node, and the nodes' spacing.

        The grid reaches ``margin`` beyond the points, but across a line.
        """
        grid, points, _ = self._located(y, margin)
        _, layers, columns = grid.sides
        potential = self._potential(grid, points)[:, :layers, :columns]
        return np.ascontiguousarray(potential, np.float64), grid.spacing

    def grid_for(
        self, spans: NDArray[np.floating], dtype: np.dtype[np.floating]
    ) -> Grid:
        """Return a grid for points that span so much; the last one if it is right."""
        span = float(spans.max())
        most = MAX_IN_SPACE if len(spans) == 3 else MAX_CELLS
        usual = min(max(SPACING, span / MANY), WIDER)
        spacing = max(min(usual, span / MIN_CELLS), span / most, 1e-12)
        if spacing != SPACING:  # in steps, so that it seldom changes
            eighths = math.ceil(8 * float(log(spacing / SPACING)) / _LOG2)
            spacing = SPACING * float(exp(eighths / 8 * _LOG2))
        if span < _NEAR:
            dtype = np.dtype(np.float64)
        sides = [mesh_loops.WIDTH + 1, 1, mesh_loops.WIDTH + 1]
        for axis, length in zip(AXES, spans, strict=False):
            nodes = int(length / spacing) + mesh_loops.WIDTH + 1
            sides[axis] = -(-nodes // _STEP) * _STEP
        request = spacing, (sides[0], sides[1], sides[2]), dtype
        grid = self._grid
        if grid is None or (grid.spacing, grid.sides, grid.dtype) != request:
            self._grid = grid = make_grid(self._kernel, *request)
        return grid

    def _located(
        self, y: NDArray[np.floating], margin: float = 0.0
    ) -> tuple[Grid, tuple[Any, ...], NDArray[np.bool_]]:
        """Return the grid, the points on it, and the axes along which they differ."""
        n, d = y.shape
        low, high = np.array([(axis.min(), axis.max()) for axis in y.T]).T
        has_extent = high > low
        margins = y.dtype.type(margin) * has_extent
        low, high = low - margins, high + margins
        grid = self.grid_for((high - low).astype(float), y.dtype)
        x = np.zeros((n, 3), grid.dtype)
        x[:, AXES[:d]] = (y - low) / grid.dtype.type(grid.spacing)
        starts, order = by_group(x[:, 0].astype(np.int64), grid.sides[0])
        layers = (0,) * min(grid.shape[1], mesh_loops.WIDTH)
        return grid, (x, order, starts, layers), has_extent

    def _potential(self, grid: Grid, points: tuple[Any, ...]) -> NDArray[np.floating]:
        """Return the sum of k over the points at the nodes, of rows with points."""
        mass = np.zeros(grid.shape, grid.dtype)
        for parity in (0, 1):
            n_bands = (grid.n_bands - parity + 1) // 2
            self._run(mesh_loops.spread, n_bands, points, mass, parity)
        spectrum = fft.forward(mass)
        spectrum *= grid.transfer
        return fft.backward(spectrum, grid.shape[2], grid.sides[0])

    def _run(self, loop: Any, n_bands: int, points: Any, *arrays: Any) -> None:
        work = _STEPS_OF_A_POINT * len(points[0])
        run_blocks(loop, n_bands, work, *points, *arrays)
