"""The same sum by a grid as :mod:`mesh`, in torch operations, for any torch device.

A device may add the points to the grid in any order, and so end in other last digits.
In a step it is waited for once: for the span of the points, which chooses the grid.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from napari_embedding_game.core.energy.mesh_repulsion import AXES, Grid, Mesh


def finest_type(device: torch.device) -> torch.dtype:
    """Return the most precise floating-point type that a device has."""
    return torch.float32 if device.type == "mps" else torch.float64


class TorchMesh:
    """The sum of one kernel over all pairs of points; ``mesh`` makes the grids."""

    def __init__(self, mesh: Mesh, device: torch.device) -> None:
        self._mesh = mesh
        self._device = device
        self._grid: Grid | None = None
        self._near = self._transfer = torch.empty(0)

    def __call__(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sum of k over all pairs i != j and its (N, d) gradient."""
        low, high = y.amin(dim=0), y.amax(dim=0)
        spans = (high - low).cpu().numpy().astype(float)
        grid = self._mesh.grid_for(spans, np.dtype(str(y.dtype).removeprefix("torch.")))
        near = self._hold(grid)
        axes = list(AXES[: y.shape[1]])
        x = near.new_zeros((len(y), 3))
        x[:, axes] = (y - low).to(near.dtype) / grid.spacing
        first = x.floor()
        with torch.enable_grad():
            t = (x - first).requires_grad_()
            weights = _splines(t, grid)
            spread = torch.einsum("na,nc,nb->nacb", *weights)
            places = _places(first.long(), weights, grid)
            mass = near.new_zeros(grid.shape).flatten()
            mass.index_add_(0, places.flatten(), spread.detach().flatten())
            spectrum = torch.fft.rfftn(mass.reshape(grid.shape)) * self._transfer
            here = torch.fft.irfftn(spectrum, s=grid.shape).flatten()[places]
            of_all = (spread * here).sum(dim=(1, 2, 3))
            own = torch.einsum("na,nc,nb,acb->n", *map(_overlap, weights), near)
            # A point is at both ends of each pair.
            (gradient,) = torch.autograd.grad((2 * of_all - own).sum(), t)
        total = (of_all - own).detach().sum(dtype=finest_type(self._device))
        # But for rounding, points that do not lie apart along an axis stay so.
        by_axis = gradient[:, axes] / grid.spacing * (high > low)
        return total, by_axis.to(y.dtype)

    def _hold(self, grid: Grid) -> Tensor:
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


def _places(first: Tensor, weights: list[Tensor], grid: Grid) -> Tensor:
    """Return the flat index of every node that a point stands on, (N, 4, 1 or 4, 4)."""
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
