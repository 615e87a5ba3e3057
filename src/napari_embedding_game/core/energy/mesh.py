"""The sum of a kernel over all pairs of points in the plane, by a grid (particle-mesh).

The sum over j of k(|x - y_j|^2) is the convolution of the points with the kernel.  The
points are spread on a grid by cubic B-splines, convolved by one pair of Fourier
transforms, and the potential is read back at the points by the same splines; its
derivative is taken of the splines, so that the force is the gradient of the very sum
that is returned.  Time: N + G log G for a grid of G nodes, whatever the number of pairs.

Between nodes the kernel is then its interpolating cubic spline: its values at the nodes
are divided by the splines' own transfer function, (2 + cos q) / 3 for each axis and each
of the two splines.  What a point adds to its own potential is taken off exactly.

Known as particle-mesh in physics (Hockney and Eastwood, 1988); FIt-SNE is of the same
family (Linderman and others, 2019).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import fft

from napari_embedding_game.core.energy import mesh_loops
from napari_embedding_game.core.energy.pair_functions import PairFunction
from napari_embedding_game.core.threads import Loops

SPACING = 0.5
"""Between nodes, where the grid is not too large; kernels are about 1 wide."""
FEWEST, MOST = 32, 2048
"""Nodes along the longer side of the points."""
_NEAR = 16.0
"""Span below which the grid, small then, has float64."""
_STEP = 16
"""Sides of the grid are whole multiples of it, so that they seldom change."""


@dataclass(frozen=True)
class Grid:
    """A grid and the kernel on it.

    Attributes
    ----------
    spacing : float
    shape : tuple of int
        Nodes along both axes, those between images of the points included.
    transfer : (shape[0], shape[1] // 2 + 1) array
        What the Fourier transform of the points is multiplied by.
    near : (4, 4) array
        The kernel between nodes that are 0 to 3 nodes apart along each axis, as often as
        there are such: twice where that is not 0, four times where neither is.
    """

    spacing: float
    shape: tuple[int, int]
    transfer: NDArray[np.floating]
    near: NDArray[np.floating]


def make_grid(
    kernel: PairFunction, spacing: float, sides: tuple[int, int], dtype: np.dtype
) -> Grid:
    """Return the grid for points that cover ``sides`` cells."""
    # Twice as long, so that no point feels the images of the others.
    shape = fft.next_fast_len(2 * sides[0]), fft.next_fast_len(2 * sides[1], real=True)
    steps = [np.minimum(np.arange(n), n - np.arange(n)) * spacing for n in shape]
    squared = steps[0][:, None] ** 2 + steps[1] ** 2
    values = kernel.value(torch.from_numpy(squared)).numpy()
    across = fft.fftfreq(shape[0]), fft.rfftfreq(shape[1])
    splines = [((2 + np.cos(2 * np.pi * q)) / 3) ** 2 for q in across]
    transfer = fft.rfft2(values).real / (splines[0][:, None] * splines[1])
    between = fft.irfft2(transfer, s=shape)
    often = np.array([1, 2, 2, 2])
    near = (between[:4, :4] * often[:, None] * often).astype(dtype)
    return Grid(spacing, shape, transfer.astype(dtype), near)


class Mesh:
    """The sum of one kernel over all pairs of points, again and again.

    Parameters
    ----------
    kernel : PairFunction
        Smooth at 0, and about 1 wide.
    loops : Loops
    """

    def __init__(self, kernel: PairFunction, loops: Loops) -> None:
        self._kernel = kernel
        self._loops = loops
        self._grid: Grid | None = None
        self._sides = 0, 0

    def __call__(self, y: NDArray[np.floating]) -> tuple[float, NDArray[np.floating]]:
        """Return the sum of k over all pairs i != j and its gradient.

        Parameters
        ----------
        y : (N, 1) or (N, 2) float32 or float64, C-contiguous
        """
        n, d = y.shape
        low, high = np.empty(d, y.dtype), np.empty(d, y.dtype)
        mesh_loops.bounds(y, low, high)
        span = float((high - low).max())
        spacing = max(min(SPACING, span / FEWEST), span / MOST, 1e-12)
        if spacing != SPACING:  # by steps, for the same reason
            spacing = SPACING * 2 ** (np.ceil(8 * np.log2(spacing / SPACING)) / 8)
        # Where the points are near each other, their potentials hardly differ.
        dtype = np.dtype(float) if span < _NEAR else y.dtype
        x = np.zeros((n, 2), dtype)
        x[:, :d] = (y - low) / dtype.type(spacing)
        grid = self._grid_for(spacing, (high - low) / spacing, dtype)
        rows = self._sides[0]
        starts, order = np.empty(rows + 1, np.int64), np.empty(n, np.int64)
        mesh_loops.sort_by_row(x, starts, order)
        n_bands = -(-rows // mesh_loops.BAND)
        mass = np.zeros(grid.shape, dtype)
        work = 64 * n
        run = self._loops.run
        run(mesh_loops, "spread", work, n_bands, x, order, starts, mass)
        workers = self._loops.n_threads
        spectrum = fft.rfft2(mass, workers=workers, overwrite_x=True)
        spectrum *= grid.transfer
        potential = fft.irfft2(
            spectrum, s=grid.shape, workers=workers, overwrite_x=True
        )
        gradient, sums = np.empty((n, 2), dtype), np.empty(n_bands)
        run(
            mesh_loops, "read", 8 * work, x, order, starts, potential, grid.near,
            gradient, sums,
        )  # fmt: skip
        gradient = (gradient[:, :d] / dtype.type(spacing)).astype(y.dtype)
        return float(sums.sum()), np.ascontiguousarray(gradient)

    def _grid_for(
        self, spacing: float, reach: NDArray[np.floating], dtype: np.dtype
    ) -> Grid:
        """Return a grid for points that reach so far, in nodes; the last one if it is."""
        cells = np.zeros(2, int)
        cells[: len(reach)] = reach
        cells += mesh_loops.WIDTH + 1
        sides = int(-(-cells[0] // _STEP) * _STEP), int(-(-cells[1] // _STEP) * _STEP)
        known = self._grid
        if known is None or (known.spacing, self._sides, known.near.dtype) != (
            spacing,
            sides,
            dtype,
        ):
            self._sides = sides
            known = make_grid(self._kernel, spacing, sides, dtype)
        self._grid = known
        return known
