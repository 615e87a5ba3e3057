"""The sums of :mod:`forces` in torch operations, for any torch device.

A device may add numbers in any order, so that the last digits of sums vary.  A step on
a grid (:mod:`mesh_repulsion`) waits for the device once: for the span of the points,
which determines the grid.  Formulas are in :mod:`pair_functions`;
:func:`device.resolve_device` chooses the device.
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
"""A number, or a 0-dimensional tensor on a device, so that no step waits for it."""
Pairs = tuple[Tensor, Tensor]
"""Sampled pairs of points (Eq. 8): a random order of the points, (N,), and L shifts.

The point at position p of the order has the partners at p + shift and p - shift, modulo
N.  Scaled sums over these pairs are unbiased estimates of the sum over all pairs.
"""


def choose_most_precise_dtype(device: torch.device) -> torch.dtype:
    """Return the most precise floating-point type that a device supports."""
    return torch.float32 if device.type == "mps" else torch.float64


class TorchMesh:
    """The sum of a kernel over all pairs of points, by a grid, in torch operations.

    ``mesh`` chooses the grids.
    """

    def __init__(self, mesh: Mesh, device: torch.device) -> None:
        self._mesh, self._device = mesh, device
        self._grid: Grid | None = None
        self._near = self._transfer = torch.empty(0)

    def __call__(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of k over all pairs i != j and its (N, d) gradient."""
        low, high = points.amin(dim=0), points.amax(dim=0)
        spans = (high - low).cpu().numpy().astype(float)
        grid = self._mesh.choose_grid(
            spans, np.dtype(str(points.dtype).removeprefix("torch."))
        )
        near = self._load_grid(grid)
        axes = list(AXES[: points.shape[1]])
        x = near.new_zeros((len(points), 3))
        x[:, axes] = (points - low).to(near.dtype) / grid.spacing
        first = x.floor()
        with torch.enable_grad():
            t = (x - first).requires_grad_()
            weights = _compute_spline_weights(t, grid)
            spread = torch.einsum("na,nc,nb->nacb", *weights)
            nodes = _compute_node_indices(first.long(), weights, grid)
            mass = near.new_zeros(grid.shape).flatten()
            mass.index_add_(0, nodes.flatten(), spread.detach().flatten())
            spectrum = torch.fft.rfftn(mass.reshape(grid.shape)) * self._transfer
            here = torch.fft.irfftn(spectrum, s=grid.shape).flatten()[nodes]
            of_all = (spread * here).sum(dim=(1, 2, 3))
            self_terms = torch.einsum(
                "na,nc,nb,acb->n", *map(_compute_spline_overlaps, weights), near
            )
            # A point is at both ends of each pair.
            (gradient,) = torch.autograd.grad((2 * of_all - self_terms).sum(), t)
        total = (
            (of_all - self_terms)
            .detach()
            .sum(dtype=choose_most_precise_dtype(self._device))
        )
        # Where all points share a coordinate, rounding must not move them apart.
        by_axis = gradient[:, axes] / grid.spacing * (high > low)
        return total, by_axis.to(points.dtype)

    def _load_grid(self, grid: Grid) -> Tensor:
        """Return the grid's ``near`` on the device; copy the grid there if it is new.

        Only the last grid is kept on the device.
        """
        if grid is not self._grid:
            is_single = grid.dtype == np.float32
            kind = (
                torch.float32 if is_single else choose_most_precise_dtype(self._device)
            )
            self._near, self._transfer = (
                torch.from_numpy(each).to(kind).to(self._device)
                for each in (grid.near, grid.transfer)
            )
            self._grid = grid
        return self._near


def _compute_spline_weights(t: Tensor, grid: Grid) -> list[Tensor]:
    """Return the spline weights of each point's nodes, one (N, 1 or 4) for each axis.

    ``t`` (N, 3): offset of each point from the second of its four nodes, 0 to 1.  In
    the plane the layer's weight is 1.
    """
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


def _compute_node_indices(first: Tensor, weights: list[Tensor], grid: Grid) -> Tensor:
    """Return the flat indices of each point's nodes in the grid, (N, 4, 1 or 4, 4).

    ``first`` (N, 3): index of each point's first node along each axis.
    """
    rows, layers, columns = (
        first[:, axis, None] + torch.arange(one.shape[1], device=first.device)
        for axis, one in enumerate(weights)
    )
    flat = rows[:, :, None] * grid.shape[1] + layers[:, None, :]
    return flat[..., None] * grid.shape[2] + columns[:, None, None, :]


def _compute_spline_overlaps(weights: Tensor) -> Tensor:
    """Return the autocorrelation of each point's weights, (N, 1 or 4).

    Column m is the sum of the products of weights that lie m nodes apart.
    """
    n = weights.shape[1]
    shifted = [(weights[:, : n - by] * weights[:, by:]).sum(dim=1) for by in range(n)]
    return torch.stack(shifted, dim=1)


class TorchForces:
    """The sums of ``forces.CompiledForces`` in torch operations, for CUDA and MPS.

    Methods have the same names, arguments and results.  Sums stay on the device, so
    that no step waits for a number; points are processed in blocks of
    ``block_elements`` numbers.  CUDA adds the forces along edges in any order, so that
    maps differ from run to run.
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
        self._sum_type = choose_most_precise_dtype(device)

    def kernel_sum_and_gradients(
        self,
        targets: Tensor,
        sources: Tensor,
        kernel: pair_functions.PairFunction | None = None,
    ) -> tuple[Number, Tensor, Tensor]:
        """Return the kernel's sum over target-source pairs, and both gradients of it.

        The first gradient (N, d) is by ``targets`` (N, d), the second (L, d) by
        ``sources`` (L, d).  ``kernel`` replaces the method's kernel k.  See
        :meth:`forces.CompiledForces.kernel_sum_and_gradients`.
        """
        total, target_gradient = self._kernel_sum_and_gradient(
            targets, sources, kernel=kernel
        )
        _, source_gradient = self._kernel_sum_and_gradient(
            sources, targets, kernel=kernel
        )
        return total, target_gradient, source_gradient

    def attraction_gradient(self, points: Tensor) -> Tensor:
        """Return the (N, d) gradient of the sum over directed edges of w f."""
        points = points.detach()
        along = points[self._heads] - points[self._tails]
        slope = self.f.slope(along.square().sum(dim=1))
        force = (2 * self._weights * slope)[:, None] * along
        return torch.zeros_like(points).index_add_(0, self._heads, force)

    def attraction_energy(self, points: Tensor) -> float:
        """Return the sum of w f over directed edges; this waits for the device."""
        points = points.detach()
        squared = (points[self._heads] - points[self._tails]).square().sum(dim=1)
        energies = self._weights * self.f.value(squared)
        return float(0.5 * energies.sum(dtype=self._sum_type))

    def repulsion_of_sampled_pairs(
        self, points: Tensor, pairs: Pairs
    ) -> tuple[Number, Tensor]:
        """Return the sum of k over sampled pairs, each once, and its gradient (N, d).

        ``pairs``: see :data:`Pairs`.
        """
        points, order, shifts = (
            points.detach(),
            pairs[0],
            torch.cat([pairs[1], -pairs[1]]),
        )
        ordered, gradient, total = (
            points[order],
            torch.empty_like(points),
            self._make_zero_sum(),
        )
        size = max(1, self._block_elements // max(1, len(shifts) * points.shape[1]))
        for begin in range(0, len(points), size):
            end = min(begin + size, len(points))
            part = torch.arange(begin, end, device=self.device)
            partners = (part[:, None] + shifts) % len(points)
            differences = ordered[part, None, :] - ordered[partners]
            squared = differences.square().sum(dim=2)
            total += 0.5 * self.k.value(squared).sum(dtype=self._sum_type)
            slope = 2 * self.k.slope(squared)
            gradient[order[part]] = (slope[:, :, None] * differences).sum(dim=1)
        return total, gradient

    def repulsion_on_grid(self, points: Tensor) -> tuple[Number, Tensor]:
        return self._mesh(points.detach())

    def repulsion_of_all_pairs(
        self, points: Tensor, weights: NDArray[np.floating] | None = None
    ) -> tuple[Number, Tensor]:
        """Return the sum of w k over all pairs i != j, and its (N, d) gradient.

        ``weights`` (N, N): symmetric weights w of the pairs; None is 1.
        """
        total, gradient = self._kernel_sum_and_gradient(points, points, weights)
        of_same = len(points) if weights is None else float(np.trace(weights))
        total -= of_same * float(self.k.value(torch.zeros((), dtype=points.dtype)))
        return total, 2 * gradient

    def _kernel_sum_and_gradient(
        self,
        targets: Tensor,
        sources: Tensor,
        pair_weights: NDArray[np.floating] | None = None,
        kernel: pair_functions.PairFunction | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the sum of w k over pairs of a target and a source, and a gradient.

        The gradient (n, d) is by the positions of ``targets`` (n, d).
        ``pair_weights``: w (n, m) for ``sources`` (m, d), None is 1; ``kernel``
        replaces the method's kernel k.
        """
        targets, sources = targets.detach(), sources.detach()
        gradient, total = torch.empty_like(targets), self._make_zero_sum()
        k = kernel or self.k
        block = max(1, self._block_elements // max(1, sources.numel()))
        for begin in range(0, len(targets), block):
            part = slice(begin, begin + block)
            differences = targets[part, None, :] - sources[None, :, :]
            squared = differences.square().sum(dim=2)
            value, slope = k.value(squared), 2 * k.slope(squared)
            if pair_weights is not None:
                weights = torch.as_tensor(pair_weights[part], device=self.device)
                value, slope = weights * value, weights * slope
            total += value.sum(dtype=self._sum_type)
            gradient[part] = (slope[:, :, None] * differences).sum(dim=1)
        return total, gradient

    def _make_zero_sum(self) -> Tensor:
        return torch.zeros((), dtype=self._sum_type, device=self.device)
