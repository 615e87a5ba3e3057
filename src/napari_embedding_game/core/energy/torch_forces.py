"""The sums of :mod:`forces` in torch operations, for any torch device.

A device may add in any order, and so end in other last digits.  In a step on a grid
(:mod:`mesh_repulsion`) it is waited for once: for the span of the points, which
chooses the grid.  Formulas: :mod:`pair_functions`; the device is chosen by
:func:`device.resolve_device`.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy import pair_functions
from napari_embedding_game.core.energy.mesh_repulsion import AXES, Grid, Mesh
from napari_embedding_game.core.graph.edges import Edges

Number = float | Tensor
"""A number, or a tensor of one on a device that is not to be waited for."""
Pairs = tuple[Tensor, Tensor]
"""Random pairs of points (Eq. 8): the point at each place, (N,), and L shifts.

Partners of the point at place p are those at p + shift and p - shift, round the end:
sums over them are unbiased for the sum over all pairs.
"""


def finest_type(device: torch.device) -> torch.dtype:
    """Return the most precise floating-point type that a device has."""
    return torch.float32 if device.type == "mps" else torch.float64


class TorchMesh:
    """The sum of one kernel over all pairs of points; ``mesh`` makes the grids."""

    def __init__(self, mesh: Mesh, device: torch.device) -> None:
        self._mesh, self._device = mesh, device
        self._grid: Grid | None = None
        self._near = self._transfer = torch.empty(0)

    def __call__(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of k over all pairs i != j and its (N, d) gradient."""
        low, high = y.amin(dim=0), y.amax(dim=0)
        spans = (high - low).cpu().numpy().astype(float)
        grid = self._mesh.grid_for(spans, np.dtype(str(y.dtype).removeprefix("torch.")))
        near = self._to_device(grid)
        axes = list(AXES[: y.shape[1]])
        x = near.new_zeros((len(y), 3))
        x[:, axes] = (y - low).to(near.dtype) / grid.spacing
        first = x.floor()
        with torch.enable_grad():
            t = (x - first).requires_grad_()
            weights = _splines(t, grid)
            spread = torch.einsum("na,nc,nb->nacb", *weights)
            nodes = _node_indices(first.long(), weights, grid)
            mass = near.new_zeros(grid.shape).flatten()
            mass.index_add_(0, nodes.flatten(), spread.detach().flatten())
            spectrum = torch.fft.rfftn(mass.reshape(grid.shape)) * self._transfer
            here = torch.fft.irfftn(spectrum, s=grid.shape).flatten()[nodes]
            of_all = (spread * here).sum(dim=(1, 2, 3))
            self_terms = torch.einsum("na,nc,nb,acb->n", *map(_overlap, weights), near)
            # A point is at both ends of each pair.
            (gradient,) = torch.autograd.grad((2 * of_all - self_terms).sum(), t)
        total = (of_all - self_terms).detach().sum(dtype=finest_type(self._device))
        # But for rounding, points that do not lie apart along an axis stay so.
        by_axis = gradient[:, axes] / grid.spacing * (high > low)
        return total, by_axis.to(y.dtype)

    def _to_device(self, grid: Grid) -> Tensor:
        """Bring a grid to the device unless it is there; return its ``near``."""
        if grid is not self._grid:
            is_single = grid.dtype == np.float32
            kind = torch.float32 if is_single else finest_type(self._device)
            self._near, self._transfer = (
                torch.from_numpy(each).to(kind).to(self._device)
                for each in (grid.near, grid.transfer)
            )
            self._grid = grid
        return self._near


def _splines(t: Tensor, grid: Grid) -> list[Tensor]:
    """Return the weights of the nodes along each axis, three of (N, 1 or 4)."""
    r = 1 - t
    nodes = (
        r**3 / 6,
        (t * t * (3 * t - 6) + 4) / 6,
        (r * r * (3 * r - 6) + 4) / 6,
        t**3 / 6,
    )
    weights = list(torch.stack(nodes, dim=2).unbind(1))
    if grid.shape[1] == 1:
        weights[1] = torch.ones_like(weights[1][:, :1])
    return weights


def _node_indices(first: Tensor, weights: list[Tensor], grid: Grid) -> Tensor:
    """Return the flat index of every node of a point, (N, 4, 1 or 4, 4)."""
    rows, layers, columns = (
        first[:, axis, None] + torch.arange(one.shape[1], device=first.device)
        for axis, one in enumerate(weights)
    )
    flat = rows[:, :, None] * grid.shape[1] + layers[:, None, :]
    return flat[..., None] * grid.shape[2] + columns[:, None, None, :]


def _overlap(weights: Tensor) -> Tensor:
    """Return the sums of products of weights with those 0, 1, ... nodes further."""
    n = weights.shape[1]
    shifted = [(weights[:, : n - by] * weights[:, by:]).sum(dim=1) for by in range(n)]
    return torch.stack(shifted, dim=1)


class TorchForces:
    """The same sums in torch operations, for CUDA and MPS devices.

    Sums stay on the device, so that no step waits for a number; points go through in
    blocks of ``block_elements`` numbers.  CUDA adds the forces along edges in any
    order, so that there maps differ from one run to the next.
    """

    def __init__(
        self,
        edges: Edges,
        device: torch.device,
        attraction: str = "log1p",
        kernel: str = "cauchy",
        block_elements: int = 2**26,
    ) -> None:
        self.edges, self.attraction, self.kernel = edges, attraction, kernel
        self.f = pair_functions.ATTRACTIONS[attraction]
        self.k = pair_functions.KERNELS[kernel]
        self.device = device
        self._mesh = TorchMesh(Mesh(self.k), device)
        self._block_elements = block_elements
        ends = edges.indptr.astype(np.int64)
        heads = np.repeat(np.arange(edges.n_points), ends[1:] - ends[:-1])
        self._heads = torch.as_tensor(heads, device=device)
        self._tails = torch.as_tensor(edges.indices.astype(np.int64), device=device)
        self._weights = torch.as_tensor(edges.weights, device=device)
        self._sum_type = finest_type(device)

    def repel(
        self, y: Tensor, z: Tensor, kernel: pair_functions.PairFunction | None = None
    ) -> tuple[Number, Tensor, Tensor]:
        return *self._field(y, z, kernel=kernel), self._field(z, y, kernel=kernel)[1]

    def attract(self, y: Tensor) -> Tensor:
        y = y.detach()
        along = y[self._heads] - y[self._tails]
        slope = self.f.slope(along.square().sum(dim=1))
        force = (2 * self._weights * slope)[:, None] * along
        return torch.zeros_like(y).index_add_(0, self._heads, force)

    def attraction_energy(self, y: Tensor) -> float:
        y = y.detach()
        squared = (y[self._heads] - y[self._tails]).square().sum(dim=1)
        energies = self._weights * self.f.value(squared)
        return float(0.5 * energies.sum(dtype=self._sum_type))

    def pair_repulsion(self, y: Tensor, pairs: Pairs) -> tuple[Number, Tensor]:
        y, order, shifts = y.detach(), pairs[0], torch.cat([pairs[1], -pairs[1]])
        points, gradient, total = y[order], torch.empty_like(y), self._zero()
        size = max(1, self._block_elements // max(1, len(shifts) * y.shape[1]))
        for begin in range(0, len(y), size):
            end = min(begin + size, len(y))
            part = torch.arange(begin, end, device=self.device)
            partners = (part[:, None] + shifts) % len(y)
            differences = points[part, None, :] - points[partners]
            squared = differences.square().sum(dim=2)
            total += 0.5 * self.k.value(squared).sum(dtype=self._sum_type)
            slope = 2 * self.k.slope(squared)
            gradient[order[part]] = (slope[:, :, None] * differences).sum(dim=1)
        return total, gradient

    def mesh(self, y: Tensor) -> tuple[Number, Tensor]:
        return self._mesh(y.detach())

    def all_pairs(
        self, y: Tensor, weights: NDArray[np.floating] | None = None
    ) -> tuple[Number, Tensor]:
        total, gradient = self._field(y, y, weights)
        if weights is None:
            total -= len(y) * float(self.k.value(torch.zeros((), dtype=y.dtype)))
        return total, 2 * gradient

    def _field(
        self,
        targets: Tensor,
        sources: Tensor,
        far: NDArray[np.floating] | None = None,
        kernel: pair_functions.PairFunction | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the sum of k over targets and others, its gradient in the targets."""
        targets, sources = targets.detach(), sources.detach()
        gradient, total = torch.empty_like(targets), self._zero()
        k = kernel or self.k
        block = max(1, self._block_elements // max(1, sources.numel()))
        for begin in range(0, len(targets), block):
            part = slice(begin, begin + block)
            differences = targets[part, None, :] - sources[None, :, :]
            squared = differences.square().sum(dim=2)
            value, slope = k.value(squared), 2 * k.slope(squared)
            if far is not None:
                weights = torch.as_tensor(far[part], device=self.device)
                value, slope = weights * value, weights * slope
            total += value.sum(dtype=self._sum_type)
            gradient[part] = (slope[:, :, None] * differences).sum(dim=1)
        return total, gradient

    def _zero(self) -> Tensor:
        return torch.zeros((), dtype=self._sum_type, device=self.device)
