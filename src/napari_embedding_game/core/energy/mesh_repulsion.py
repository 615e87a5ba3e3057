"""The sum of a kernel over all pairs of points, by a grid (particle-mesh).

The points are spread on a grid by cubic B-splines, convolved with the kernel by Fourier
transforms, and the potential is read back by the same splines; the force is the exact
gradient of the returned sum.  The kernel is divided by the splines' transfer function,
(2 + cos q) / 3 for each axis and spline, so that it is its interpolating spline, and
the self-interaction of points is subtracted.  Hockney and Eastwood (1988); FIt-SNE is
of the family (Linderman and others, 2019).  ``settings.fill_approximation`` decides
when it is the default.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len

from napari_embedding_game.core.elementary import cos, exp, log
from napari_embedding_game.core.energy import fft, mesh_loops
from napari_embedding_game.core.energy.pair_functions import PairFunction
from napari_embedding_game.core.energy.pair_loops import n_chunks
from napari_embedding_game.core.errors import make_runaway_error
from napari_embedding_game.core.threads import run_blocks

SPACING = 1 / 3
"""Between nodes; the force's error falls with its fourth power."""
WIDER, MANY = 1 / 2, 320
"""What it grows to above so many nodes along the longest side: half the time."""
MIN_CELLS, MAX_CELLS, MAX_IN_SPACE = 32, 2048, 96
"""Nodes along the longest side of the points, the last on a map of three dimensions."""
MAX_PAIRED = 20_000
"""Points of a wide map in space up to which all pairs are summed one by one, as exactly
and as quickly as by the finest grid that there is room for."""
GAP = 64.0
"""Width of an empty strip across the points above which those on both sides get a grid
each, where one for all would be too wide: the kernel is below 3e-4 there."""
_STRIPS = 4
"""In a gap: their width is how exactly gaps are found."""
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


def max_cells(n_axes: int) -> int:
    """Return the most nodes along the longest side of a map with so many axes."""
    return MAX_IN_SPACE if n_axes == 3 else MAX_CELLS


def widest_fine(n_axes: int) -> float:
    """Return the largest span of points for which nodes are ``WIDER`` apart or less."""
    return WIDER * max_cells(n_axes)


def split_at_gaps(y: NDArray[np.floating]) -> list[NDArray[np.intp]]:
    """Return the rows of the parts of points (N, d) that lie ``GAP`` apart, ascending.

    The part of the least coordinates comes first.
    """
    codes = np.zeros(len(y), np.int64)
    for axis in y.T:
        strips = ((axis - axis.min()) * (_STRIPS / GAP)).astype(np.int64)
        used = np.flatnonzero(np.bincount(strips))
        firsts = used[np.diff(used, prepend=-np.inf) > _STRIPS]
        codes = codes * len(firsts) + np.searchsorted(firsts, strips, "right") - 1
    part = np.unique(codes, return_inverse=True)[1]
    return [np.flatnonzero(part == number) for number in range(part.max() + 1)]


def is_summed_by_pairs(y: NDArray[np.floating]) -> bool:
    """Return whether points (N, d) are too wide for a grid and few enough for pairs."""
    is_few_in_space = y.shape[1] == 3 and len(y) <= MAX_PAIRED
    return is_few_in_space and float(np.ptp(y, axis=0).max()) > widest_fine(3)


def widest_spacing(y: NDArray[np.floating]) -> float:
    """Return how far apart nodes for points (N, d) have to be, at least, their widest.

    0 where pairs are summed one by one.
    """
    if is_summed_by_pairs(y):
        return 0.0
    span = float(np.ptp(y, axis=0).max())
    if span > widest_fine(y.shape[1]):
        span = max(float(np.ptp(y[rows], axis=0).max()) for rows in split_at_gaps(y))
    return span / max_cells(y.shape[1])


class Potential:
    """The kernel summed over points ``y`` (N, d), at the nodes of a grid around them.

    Of the last points of a :class:`Mesh` alone, and as long as they do not move: the
    nodes are used again.
    """

    def __init__(
        self,
        grid: Grid,
        y: NDArray[np.floating],
        low: NDArray[np.floating],
        has_extent: NDArray[np.bool_],
        mass: NDArray[np.floating],
        nodes: NDArray[np.floating],
    ) -> None:
        self.grid, self.nodes = grid, nodes
        """``nodes`` (rows, layers, columns) of ``grid.sides``, layers with zeros."""
        self._y, self._has_extent, self._mass = y, has_extent, mass
        layers = (0,) * min(grid.shape[1], mesh_loops.WIDTH)
        self.placed = y, low, grid.dtype.type(grid.spacing), layers
        """What the loops take to place points: see :mod:`mesh_loops`."""

    @cached_property
    def total(self) -> float:
        """The sum of the kernel over all pairs i != j."""
        rows = np.empty(len(self.nodes))
        loop, work = mesh_loops.multiply_rows, self.nodes.size
        run_blocks(loop, len(rows), work, self._mass, self.nodes, rows)
        own, loop = np.empty(n_chunks(len(self._y))), mesh_loops.sum_self_terms
        work = _STEPS_OF_A_POINT * len(self._y)
        run_blocks(loop, len(own), work, *self.placed, self.grid.near, own)
        return float(rows.sum() - own.sum())

    def add_gradient(self, factor: float, gradient: NDArray[np.floating]) -> None:
        """Add ``factor`` times the gradient of ``total`` to (N, d), in place."""
        # The point is at both ends of each pair.  But for rounding, points that do not
        # lie apart along an axis stay so.
        rates = 2 * factor / self.grid.spacing * self._has_extent
        given = self.nodes, self.grid.near, rates.astype(self.grid.dtype), gradient
        n, loop = len(gradient), mesh_loops.add_gradient
        run_blocks(loop, n, _STEPS_OF_A_POINT * n, *self.placed, *given)


class Potentials:
    """The potentials of parts of the points, which do not feel one another."""

    def __init__(self, parts: list[tuple[NDArray[np.intp], Potential]]) -> None:
        self._parts = parts

    @property
    def total(self) -> float:
        """The sum of the kernel over all pairs i != j within a part."""
        return sum(potential.total for _, potential in self._parts)

    def add_gradient(self, factor: float, gradient: NDArray[np.floating]) -> None:
        """Add ``factor`` times the gradient of ``total`` to (N, d), in place."""
        for rows, potential in self._parts:
            some = gradient[rows]
            potential.add_gradient(factor, some)
            gradient[rows] = some


class Mesh:
    """The sum of one smooth kernel, about 1 wide, over all pairs of points.

    The nodes begin at the lowest of the points and are as far apart as suits their
    span, so that the sum jumps a little as they move.
    """

    def __init__(self, kernel: PairFunction) -> None:
        self._kernel = kernel
        self._grid: Grid | None = None
        self._nodes: tuple[NDArray[np.floating], ...] = ()
        """Arrays that are used again: the points' mass, its spectrum, the potential."""
        self._order = np.empty(0, np.uint32)
        self._of_parts: list[Mesh] = []

    def __call__(self, y: NDArray[np.floating]) -> tuple[float, NDArray[np.floating]]:
        """Return the sum of k over all pairs i != j and its (N, d) gradient."""
        potential, gradient = self.find_potential(y), np.zeros_like(y)
        potential.add_gradient(1.0, gradient)
        return potential.total, gradient

    def find_potential(self, y: NDArray[np.floating]) -> Potential | Potentials:
        """Return the sum of k over the points at the nodes of a grid around them.

        Parts that lie far apart have a grid each where one for all would be coarse.
        InputError: positions are not finite.
        """
        ends = self._find_ends(y)
        if (ends[1] - ends[0]).max() > widest_fine(y.shape[1]):
            parts = split_at_gaps(y)
            if len(parts) > 1:
                return self._find_of_parts(y, parts)
        return self._find_on_one_grid(y, ends)

    def _find_of_parts(
        self, y: NDArray[np.floating], parts: list[NDArray[np.intp]]
    ) -> Potentials:
        self._grid = None
        n_more = max(0, len(parts) - len(self._of_parts))
        self._of_parts += [Mesh(self._kernel) for _ in range(n_more)]
        found = []
        for mesh, rows in zip(self._of_parts, parts, strict=False):
            some = y[rows]
            found.append((rows, mesh._find_on_one_grid(some, mesh._find_ends(some))))
        return Potentials(found)

    def around(
        self, y: NDArray[np.float64], margin: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return the sum of k over the points at every node, and the nodes' spacing.

        The grid reaches ``margin`` beyond the points, but across a line.
        """
        potential = self._find_on_one_grid(y, self._find_ends(y), margin)
        nodes = potential.nodes[:, : potential.grid.sides[1]]
        return np.array(nodes, np.float64, order="C"), potential.grid.spacing

    def grid_for(
        self, spans: NDArray[np.floating], dtype: np.dtype[np.floating]
    ) -> Grid:
        """Return a grid for points that span so much; the last one if it is right."""
        span = float(spans.max())
        most = max_cells(len(spans))
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
            rows, columns, layers = grid.sides[0], grid.sides[2], grid.shape[1]
            shape, half = (rows, layers, columns), grid.transfer.shape[2]
            spectrum = np.empty((2, rows, layers, half), dtype)
            self._nodes = np.empty(shape, dtype), spectrum, np.empty(shape, dtype)
        return grid

    @staticmethod
    def _find_ends(y: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the least and the largest coordinates of points, (2, d)."""
        ends = np.empty((2, n_chunks(len(y)), y.shape[1]), y.dtype)
        run_blocks(mesh_loops.find_extent, ends.shape[1], y.size, y, *ends)
        low, high = ends[0].min(axis=0), ends[1].max(axis=0)
        if not np.isfinite(high - low).all():
            raise make_runaway_error()
        return np.stack([low, high])

    def _find_on_one_grid(
        self, y: NDArray[np.floating], ends: NDArray[np.floating], margin: float = 0.0
    ) -> Potential:
        """Return the potential on a grid that reaches ``margin`` beyond the points."""
        low, high = ends
        has_extent = high > low
        margins = y.dtype.type(margin) * has_extent
        low, high = low - margins, high + margins
        grid = self.grid_for((high - low).astype(float), y.dtype)
        mass, spectrum, nodes = self._nodes
        potential = Potential(grid, y, low, has_extent, mass, nodes)
        self._spread(grid, potential.placed, mass)
        fft.convolve(mass, grid.transfer, grid.shape[2], spectrum, nodes)
        return potential

    def _spread(
        self, grid: Grid, placed: tuple[Any, ...], mass: NDArray[np.floating]
    ) -> None:
        """Write the points' mass at the nodes."""
        y = placed[0]
        run_blocks(mesh_loops.clear_rows, len(mass), mass.size, mass)
        counts = np.empty((n_chunks(len(y)), grid.n_bands), np.int32)
        run_blocks(mesh_loops.count_in_bands, len(counts), len(y), *placed, counts)
        ends = counts.T.ravel().cumsum().reshape(grid.n_bands, -1).T
        places = np.ascontiguousarray(ends - counts)
        starts = np.append(places[0], len(y))
        if len(self._order) != len(y):
            self._order = np.empty(len(y), np.uint32)
        order, work = self._order, _STEPS_OF_A_POINT * len(y)
        run_blocks(mesh_loops.sort_by_band, len(counts), len(y), *placed, places, order)
        for parity in (0, 1):
            n_bands = (grid.n_bands - parity + 1) // 2
            given = order, starts, parity, mass
            run_blocks(mesh_loops.spread, n_bands, work // 2, *placed, *given)
