"""The sum of a kernel over all pairs of points, by a grid (particle-mesh).

The points' mass is spread on a grid by cubic B-splines and convolved with the kernel by
Fourier transforms; the potential is interpolated by the same splines, and the force is
the exact gradient of the returned sum.  The kernel is divided by the splines' transfer
function, (2 + cos q) / 3 for each axis and spline, so that it becomes its interpolating
spline; the self-interaction of points is subtracted.  Method: Hockney and Eastwood
(1988); FIt-SNE (Linderman and others, 2019) is related.
``settings.fill_approximation_by_size`` decides when the grid is the default.
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
from napari_embedding_game.core.energy.pair_loops import count_chunks
from napari_embedding_game.core.errors import make_runaway_error
from napari_embedding_game.core.threads import run_blocks

SPACING = 1 / 3
"""Distance of nodes; the force's error falls with its fourth power."""
WIDER, MANY = 1 / 2, 320
"""Largest spacing of a fine grid, and the number of nodes along the longest side above
which the spacing grows: this halves the time."""
MIN_NODES, MAX_NODES, MAX_NODES_IN_SPACE = 32, 2048, 96
"""Least and largest number of nodes along the longest side of the points; the last is
the largest in three dimensions."""
MAX_PAIRED = 20_000
"""Most points of a wide map in space whose pairs are summed one by one, as quickly as
by the finest possible grid, and exactly."""
GAP = 64.0
"""Width of an empty strip above which the points on both sides get separate grids,
where a common grid would be too coarse: the kernel is below 3e-4 there."""
_STRIPS = 4
"""Strips in a gap: their width is the precision with which gaps are found."""
_STEPS_OF_A_POINT = 64
"""Cost of a point in a loop between points and grid, in pairs of points."""
_NEAR = 16.0
"""Span below which the grid, then small, has the type float64."""
_STEP = 16
"""Sides of the grid are multiples of this number of nodes, so that they seldom
change."""
_LOG2 = 0.6931471805599453
AXES = (0, 2, 1)
"""Axes of the grid (rows, layers, columns) on which those of a map lie."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The shape and spacing of a grid, with the kernel between its nodes.

    ``sides``: nodes along each axis between which points may lie; ``shape``: all nodes,
    twice as many, so that periodic images have no effect.  ``transfer``: the factors of
    the mass's Fourier transform.  ``near`` (4, 1 or 4, 4): the kernel between nodes 0
    to 3 apart along each axis, doubled for each axis along which they are apart.
    """

    spacing: float
    sides: tuple[int, int, int]
    shape: tuple[int, int, int]
    transfer: NDArray[np.floating]
    near: NDArray[np.floating]

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Type of the numbers at the nodes."""
        return self.near.dtype

    @property
    def n_bands(self) -> int:
        """Number of bands of rows, see :mod:`mesh_loops`."""
        return -(-self.sides[0] // mesh_loops.BAND)


def make_grid(
    kernel: PairFunction,
    spacing: float,
    sides: tuple[int, int, int],
    dtype: np.dtype[np.floating],
) -> Grid:
    """Return a grid with ``sides`` usable nodes along rows, layers and columns.

    ``spacing``: distance of nodes; ``dtype``: type of the grid's numbers, which are
    computed in float64.
    """
    rows, layers, columns = (
        next_fast_len(1 if n == 1 else 2 * n, real=True) for n in sides
    )
    shape = rows, layers, columns
    steps = [np.minimum(np.arange(n), n - np.arange(n)) * spacing for n in shape]
    down, deep, across = (step * step for step in np.ix_(*steps))
    values = down + deep + across
    mesh_loops.apply_kernel(kernel, values.reshape(-1))
    spectrum = fft.forward_transform(values)
    del values
    waves = (np.minimum(np.arange(n), n - np.arange(n)) / n for n in shape)
    splines = [((2 + cos(2 * np.pi * wave)) / 3) ** 2 for wave in waves]
    splines[2] = splines[2][: spectrum.shape[3]]
    for spline in np.ix_(*splines):
        spectrum[0] /= spline
    transfer = spectrum[0].astype(dtype)
    spectrum[1] = 0  # the kernel is even
    near = fft.inverse_transform(spectrum, shape[2], n_rows=4)[:, :4, :4]
    for often in np.ix_(*(np.minimum(np.arange(n) + 1, 2) for n in near.shape)):
        near = near * often
    return Grid(spacing, sides, shape, transfer, near.astype(dtype))


def max_nodes_per_side(n_axes: int) -> int:
    """Return the most nodes along the longest side of a map of ``n_axes`` axes."""
    return MAX_NODES_IN_SPACE if n_axes == 3 else MAX_NODES


def max_fine_span(n_axes: int) -> float:
    """Return the largest span of points for which nodes are at most ``WIDER`` apart."""
    return WIDER * max_nodes_per_side(n_axes)


def split_rows_at_gaps(points: NDArray[np.floating]) -> list[NDArray[np.intp]]:
    """Return the rows of each island of ``points`` (N, d), one array for each island.

    Islands are separated along an axis by empty strips ``GAP`` wide together.  Rows
    ascend; the island of the least coordinates comes first.
    """
    codes = np.zeros(len(points), np.int64)
    for axis in points.T:
        strips = ((axis - axis.min()) * (_STRIPS / GAP)).astype(np.int64)
        used = np.flatnonzero(np.bincount(strips))
        firsts = used[np.diff(used, prepend=-np.inf) > _STRIPS]
        codes = codes * len(firsts) + np.searchsorted(firsts, strips, "right") - 1
    islands = np.unique(codes, return_inverse=True)[1]
    return [np.flatnonzero(islands == number) for number in range(islands.max() + 1)]


def is_summed_by_pairs(points: NDArray[np.floating]) -> bool:
    """Return whether the pairs of ``points`` (N, d) are summed one by one.

    They are for at most ``MAX_PAIRED`` points in space that are too wide for a fine
    grid.
    """
    is_few_in_space = points.shape[1] == 3 and len(points) <= MAX_PAIRED
    return is_few_in_space and float(np.ptp(points, axis=0).max()) > max_fine_span(3)


def required_spacing(points: NDArray[np.floating]) -> float:
    """Return the least possible spacing of the coarsest grid for points (N, d).

    The spacing is the span over the largest number of nodes.  The span is that of the
    widest island where a common grid would be too coarse.  Return 0 where pairs are
    summed one by one.
    """
    if is_summed_by_pairs(points):
        return 0.0
    span = float(np.ptp(points, axis=0).max())
    if span > max_fine_span(points.shape[1]):
        span = max(
            float(np.ptp(points[rows], axis=0).max())
            for rows in split_rows_at_gaps(points)
        )
    return span / max_nodes_per_side(points.shape[1])


class Potential:
    """The kernel summed over ``points`` (N, d), at the nodes of a grid around them.

    A potential is valid until its :class:`Mesh` computes another one, which overwrites
    the nodes, or until the points move.
    """

    def __init__(
        self,
        grid: Grid,
        points: NDArray[np.floating],
        low: NDArray[np.floating],
        has_extent: NDArray[np.bool_],
        mass: NDArray[np.floating],
        nodes: NDArray[np.floating],
    ) -> None:
        self.grid, self.nodes = grid, nodes
        """``nodes`` (rows, layers, columns) of ``grid.sides``, with padded layers."""
        self._points, self._has_extent, self._mass = points, has_extent, mass
        layers = (0,) * min(grid.shape[1], mesh_loops.WIDTH)
        self.placement = points, low, grid.dtype.type(grid.spacing), layers
        """Arguments y, low, spacing, layers of loops: see :mod:`mesh_loops`."""

    @cached_property
    def total(self) -> float:
        """The sum of the kernel over all pairs i != j, computed when first read.

        Each pair counts twice, as i, j and as j, i.
        """
        rows = np.empty(len(self.nodes))
        loop, work = mesh_loops.write_row_dot_products, self.nodes.size
        run_blocks(loop, len(rows), work, self._mass, self.nodes, rows)
        own, loop = (
            np.empty(count_chunks(len(self._points))),
            mesh_loops.write_self_potentials,
        )
        work = _STEPS_OF_A_POINT * len(self._points)
        run_blocks(loop, len(own), work, *self.placement, self.grid.near, own)
        return float(rows.sum() - own.sum())

    def add_gradient(self, factor: float, gradient: NDArray[np.floating]) -> None:
        """Add ``factor`` times the gradient of ``total`` to ``gradient`` in place.

        ``gradient``: (N, d), of the points' type.
        """
        # The point is at both ends of each pair.  Where all points share a coordinate,
        # rounding must not move them apart.
        rates = 2 * factor / self.grid.spacing * self._has_extent
        run_blocks(
            mesh_loops.add_potential_gradient,
            len(gradient),
            _STEPS_OF_A_POINT * len(gradient),
            *self.placement,
            self.nodes,
            self.grid.near,
            rates.astype(self.grid.dtype),
            gradient,
        )


class SplitPotential:
    """The potentials of islands of points, without forces between islands."""

    def __init__(
        self, potentials_by_rows: list[tuple[NDArray[np.intp], Potential]]
    ) -> None:
        self._potentials_by_rows = potentials_by_rows

    @property
    def total(self) -> float:
        """The sum of the kernel over all pairs i != j within islands."""
        return sum(potential.total for _, potential in self._potentials_by_rows)

    def add_gradient(self, factor: float, gradient: NDArray[np.floating]) -> None:
        """Add ``factor`` times the gradient of ``total`` to ``gradient`` in place.

        ``gradient``: (N, d), of the points' type.
        """
        for rows, potential in self._potentials_by_rows:
            some = gradient[rows]
            potential.add_gradient(factor, some)
            gradient[rows] = some


class Mesh:
    """The sum of one smooth kernel, about 1 wide, over all pairs of points.

    The grid begins at the points' least coordinates, and its spacing suits their span,
    so that the sum jumps slightly as the points move.
    """

    def __init__(self, kernel: PairFunction) -> None:
        self._kernel = kernel
        self._grid: Grid | None = None
        self._nodes: tuple[NDArray[np.floating], ...] = ()
        """Arrays that are reused: the points' mass, its spectrum, the potential."""
        self._order = np.empty(0, np.uint32)
        self._island_meshes: list[Mesh] = []

    def __call__(
        self, points: NDArray[np.floating]
    ) -> tuple[float, NDArray[np.floating]]:
        """Return the sum of k over all pairs i != j and its (N, d) gradient."""
        potential, gradient = self.compute_potential(points), np.zeros_like(points)
        potential.add_gradient(1.0, gradient)
        return potential.total, gradient

    def compute_potential(
        self, points: NDArray[np.floating]
    ) -> Potential | SplitPotential:
        """Return the potential of ``points`` (N, d), on a grid around them.

        Islands of points have separate grids where a common grid would be too coarse;
        their forces on one another are then left out.  A former potential of this mesh
        becomes invalid.  Raises InputError if positions are not finite.
        """
        ends = self._find_extent(points)
        if (ends[1] - ends[0]).max() > max_fine_span(points.shape[1]):
            islands = split_rows_at_gaps(points)
            if len(islands) > 1:
                return self._compute_split_potential(points, islands)
        return self._compute_on_one_grid(points, ends)

    def _compute_split_potential(
        self, points: NDArray[np.floating], islands: list[NDArray[np.intp]]
    ) -> SplitPotential:
        """Return the potentials of ``islands``, rows of ``points``, on a grid each.

        Each island has a mesh that is kept for the next call; the common grid is
        dropped.
        """
        self._grid = None
        n_more = max(0, len(islands) - len(self._island_meshes))
        self._island_meshes += [Mesh(self._kernel) for _ in range(n_more)]
        found = []
        for mesh, rows in zip(self._island_meshes, islands, strict=False):
            some = points[rows]
            found.append(
                (rows, mesh._compute_on_one_grid(some, mesh._find_extent(some)))
            )
        return SplitPotential(found)

    def compute_node_potential(
        self, points: NDArray[np.float64], margin: float
    ) -> tuple[NDArray[np.float64], float]:
        """Return the potential at every node (rows, layers, columns), and the spacing.

        All points share one grid, and the potential is a float64 copy.  The grid
        extends ``margin`` beyond the points along each axis, except an axis on which
        all points have the same coordinate.
        """
        potential = self._compute_on_one_grid(points, self._find_extent(points), margin)
        nodes = potential.nodes[:, : potential.grid.sides[1]]
        return np.array(nodes, np.float64, order="C"), potential.grid.spacing

    def choose_grid(
        self, spans: NDArray[np.floating], dtype: np.dtype[np.floating]
    ) -> Grid:
        """Return a grid for points that span ``spans`` (d,): the last grid if it fits.

        Otherwise a new grid replaces the last one and its arrays.  ``dtype`` becomes
        float64 for spans below 16.
        """
        span = float(spans.max())
        most = max_nodes_per_side(len(spans))
        usual = min(max(SPACING, span / MANY), WIDER)
        spacing = max(min(usual, span / MIN_NODES), span / most, 1e-12)
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
    def _find_extent(points: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the least and the largest coordinates of points, (2, d).

        Raises InputError if a coordinate is not finite.
        """
        ends = np.empty((2, count_chunks(len(points)), points.shape[1]), points.dtype)
        run_blocks(
            mesh_loops.write_chunk_extents, ends.shape[1], points.size, points, *ends
        )
        low, high = ends[0].min(axis=0), ends[1].max(axis=0)
        if not np.isfinite(high - low).all():
            raise make_runaway_error()
        return np.stack([low, high])

    def _compute_on_one_grid(
        self,
        points: NDArray[np.floating],
        ends: NDArray[np.floating],
        margin: float = 0.0,
    ) -> Potential:
        """Return the potential on a grid that extends ``margin`` beyond the points.

        ``ends`` (2, d): least and largest coordinates.  The nodes of this mesh's former
        potential are overwritten, unless the grid is new.
        """
        low, high = ends
        has_extent = high > low
        margins = points.dtype.type(margin) * has_extent
        low, high = low - margins, high + margins
        grid = self.choose_grid((high - low).astype(float), points.dtype)
        mass, spectrum, nodes = self._nodes
        potential = Potential(grid, points, low, has_extent, mass, nodes)
        self._spread_points(grid, potential.placement, mass)
        fft.convolve_with_kernel(mass, grid.transfer, grid.shape[2], spectrum, nodes)
        return potential

    def _spread_points(
        self, grid: Grid, placement: tuple[Any, ...], mass: NDArray[np.floating]
    ) -> None:
        """Overwrite ``mass`` (rows, layers, columns) by the points' mass at the nodes.

        ``placement``: see :class:`Potential`.  Mass is added up in the points' order.
        """
        points = placement[0]
        run_blocks(mesh_loops.clear_grid_rows, len(mass), mass.size, mass)
        counts = np.empty((count_chunks(len(points)), grid.n_bands), np.int32)
        run_blocks(
            mesh_loops.count_points_in_bands,
            len(counts),
            len(points),
            *placement,
            counts,
        )
        ends = counts.T.ravel().cumsum().reshape(grid.n_bands, -1).T
        places = np.ascontiguousarray(ends - counts)
        starts = np.append(places[0], len(points))
        if len(self._order) != len(points):
            self._order = np.empty(len(points), np.uint32)
        order, work = self._order, _STEPS_OF_A_POINT * len(points)
        run_blocks(
            mesh_loops.order_points_by_band,
            len(counts),
            len(points),
            *placement,
            places,
            order,
        )
        for parity in (0, 1):
            n_bands = (grid.n_bands - parity + 1) // 2
            run_blocks(
                mesh_loops.add_point_masses_to_grid,
                n_bands,
                work // 2,
                *placement,
                order,
                starts,
                parity,
                mass,
            )
