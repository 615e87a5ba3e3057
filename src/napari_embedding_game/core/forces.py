"""The sums behind every energy, evaluated by compiled loops or by torch.

Two evaluators with one face: :class:`CompiledForces` on the CPU and
:class:`TorchForces` on any torch device.  Both take and return torch tensors
and neither needs autograd; ``tests/core/test_objective.py`` holds both against
a float64 autograd twin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from napari_embedding_game.core import _kernels
from napari_embedding_game.core.affinities import Edges
from napari_embedding_game.core.threads import numba_threads, threads_for


@dataclass(frozen=True, slots=True)
class LandmarkForces:
    """One evaluation with q(u) = 1 / (1 + u^2) and f(u) = log(1 + u^2)."""

    attraction: Tensor
    """(N, d) gradient of the sum over edges of w f."""
    repulsion: Tensor
    """(N, d) gradient of S_yz in the points."""
    pull: Tensor
    """(L, d) gradient of S_yz in the landmarks."""
    s_yz: Tensor
    """() sum over points and landmarks of q."""


class Forces(Protocol):
    """What an energy needs to know about points, edges and landmarks."""

    edges: Edges

    def landmark_forces(self, y: Tensor, z: Tensor) -> LandmarkForces:
        """Return attraction along the edges and the landmark sum, with gradients."""

    def attraction_energy(self, y: Tensor) -> Tensor:
        """Return the sum of f over the directed edges: half of that over entries."""

    def pair_repulsion(self, y: Tensor, pairs: Edges) -> tuple[Tensor, Tensor]:
        """Return the sum of w q over directed ``pairs`` and its gradient, (N, d)."""


class CompiledForces:
    """Fused numba loops over numpy views of CPU tensors.

    ``edges.weights`` and the points must be of one type, float32 or float64.
    """

    def __init__(self, edges: Edges, n_jobs: int | None = None) -> None:
        self.edges = edges
        self._n_jobs = n_jobs

    def _run(self, name: str, work: int, *arrays: Any) -> None:
        n_threads = threads_for(work, self._n_jobs)
        if n_threads == 1:
            getattr(_kernels, f"{name}_serial")(*arrays)
            return
        with numba_threads(n_threads):
            getattr(_kernels, f"{name}_parallel")(*arrays)

    def _edge_arrays(self, edges: Edges) -> tuple[Any, Any, Any]:
        return edges.indptr, edges.indices, edges.weights

    def landmark_forces(self, y: Tensor, z: Tensor) -> LandmarkForces:
        points = y.detach().numpy()
        landmarks = np.ascontiguousarray(z.detach().numpy().T)
        n, d = points.shape
        chunks = _kernels.n_chunks(n)
        attraction = np.empty_like(points)
        repulsion = np.empty_like(points)
        pull = np.zeros((chunks, *landmarks.shape), points.dtype)
        s_yz = np.empty(chunks)
        work = n * landmarks.shape[1] + len(self.edges.indices)
        self._run(
            "forces", work, *self._edge_arrays(self.edges), points, landmarks,
            attraction, repulsion, pull, s_yz,
        )  # fmt: skip
        return LandmarkForces(
            torch.from_numpy(attraction),
            torch.from_numpy(repulsion),
            torch.from_numpy(np.ascontiguousarray(pull.sum(axis=0).T)),
            torch.tensor(s_yz.sum(), dtype=torch.float64),
        )

    def attraction_energy(self, y: Tensor) -> Tensor:
        points = y.detach().numpy()
        sums = np.empty(_kernels.n_chunks(len(points)))
        work = len(self.edges.indices)
        self._run("edge_energy", work, *self._edge_arrays(self.edges), points, sums)
        return torch.tensor(0.5 * sums.sum(), dtype=torch.float64)

    def pair_repulsion(self, y: Tensor, pairs: Edges) -> tuple[Tensor, Tensor]:
        points = y.detach().numpy()
        repulsion = np.empty_like(points)
        sums = np.empty(_kernels.n_chunks(len(points)))
        self._run(
            "pair_repulsion", len(pairs.indices), *self._edge_arrays(pairs), points,
            repulsion, sums,
        )  # fmt: skip
        total = torch.tensor(0.5 * sums.sum(), dtype=torch.float64)
        return total, torch.from_numpy(repulsion)


class TorchForces:
    """The same sums in torch operations, for CUDA and MPS devices.

    Points go through in blocks, so that the (block, L, d) differences stay
    within ``block_elements`` numbers whatever N is.
    """

    def __init__(
        self, edges: Edges, device: torch.device, block_elements: int = 2**26
    ) -> None:
        self.edges = edges
        self._device = device
        self._block_elements = block_elements
        self._ends = self._upload(edges)

    def _upload(self, edges: Edges) -> tuple[Tensor, Tensor, Tensor]:
        counts = np.diff(edges.indptr.astype(np.int64))
        heads = np.repeat(np.arange(edges.n_points), counts)
        return (
            torch.as_tensor(heads, device=self._device),
            torch.as_tensor(edges.indices.astype(np.int64), device=self._device),
            torch.as_tensor(edges.weights, device=self._device),
        )

    def landmark_forces(self, y: Tensor, z: Tensor) -> LandmarkForces:
        y, z = y.detach(), z.detach()
        heads, tails, weights = self._ends
        along = y[heads] - y[tails]
        strength = 2 * weights / (1 + along.square().sum(dim=1))
        attraction = torch.zeros_like(y).index_add_(
            0, heads, strength[:, None] * along
        )
        repulsion = torch.empty_like(y)
        pull = torch.zeros_like(z)
        s_yz = torch.zeros((), dtype=y.dtype, device=y.device)
        block = max(1, self._block_elements // max(1, z.numel()))
        for part, out in zip(y.split(block), repulsion.split(block), strict=True):
            apart = part[:, None, :] - z[None, :, :]
            q = 1 / (1 + apart.square().sum(dim=2))
            s_yz += q.sum()
            push = (2 * q.square())[:, :, None] * apart
            out.copy_(-push.sum(dim=1))
            pull += push.sum(dim=0)
        return LandmarkForces(attraction, repulsion, pull, s_yz)

    def attraction_energy(self, y: Tensor) -> Tensor:
        heads, tails, weights = self._ends
        squared = (y.detach()[heads] - y.detach()[tails]).square().sum(dim=1)
        return 0.5 * (weights * torch.log1p(squared)).sum()

    def pair_repulsion(self, y: Tensor, pairs: Edges) -> tuple[Tensor, Tensor]:
        y = y.detach()
        heads, tails, weights = self._upload(pairs)
        apart = y[heads] - y[tails]
        q = 1 / (1 + apart.square().sum(dim=1))
        push = (-2 * weights * q.square())[:, None] * apart
        gradient = torch.zeros_like(y).index_add_(0, heads, push)
        return 0.5 * (weights * q).sum(), gradient


def make_forces(
    edges: Edges, device: torch.device, n_jobs: int | None = None
) -> Forces:
    """Return the evaluator for ``device``."""
    if device.type == "cpu":
        return CompiledForces(edges, n_jobs)
    return TorchForces(edges, device)
