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
from napari_embedding_game.core.threads import ThreadChoice, resolve_n_jobs

_LOGARITHM = 4
"""What an edge with a logarithm costs, in edges without."""


@dataclass(frozen=True, slots=True)
class LandmarkForces:
    """One evaluation with q(u) = 1 / (1 + u^2) and f(u) = log(1 + u^2)."""

    attraction: Tensor
    """(N, d) gradient of the sum over edges of w f."""
    repulsion: Tensor
    """(N, d) gradient of S_yz in the points."""
    pull: Tensor
    """(L, d) gradient of S_yz in the landmarks."""
    push: Tensor
    """(L, d) gradient of S_zz."""
    s_yz: float
    """Sum over points and landmarks of q."""
    s_zz: float
    """Sum over landmarks and landmarks of q, the diagonal included."""

    @property
    def ratio(self) -> float:
        """S_yz / S_zz, the repulsion that one unit of landmark exerts."""
        return self.s_yz / self.s_zz


class Forces(Protocol):
    """What an energy needs to know about points, edges and landmarks."""

    edges: Edges

    def landmark_forces(self, y: Tensor, z: Tensor) -> LandmarkForces:
        """Return attraction along the edges and the landmark sum, with gradients."""

    def attraction_energy(self, y: Tensor) -> float:
        """Return the sum of f over the directed edges: half of that over entries."""

    def pair_repulsion(self, y: Tensor, pairs: Edges) -> tuple[float, Tensor]:
        """Return the sum of w q over directed ``pairs`` and its gradient, (N, d)."""


class CompiledForces:
    """Fused numba loops over numpy views of CPU tensors.

    ``edges.weights`` and the points must be of one type, float32 or float64.
    """

    def __init__(self, edges: Edges, n_jobs: int | None = None) -> None:
        self.edges = edges
        self._n_threads = resolve_n_jobs(n_jobs)
        self._choices: dict[str, ThreadChoice] = {}

    def _run(self, name: str, work: int, *arrays: Any) -> None:
        """Run a kernel over edge rows, serial or parallel, whichever is faster now."""
        choice = self._choices.setdefault(name, ThreadChoice(self._n_threads))
        with choice.threads_for(work) as n_threads:
            kind = "serial" if n_threads == 1 else "parallel"
            getattr(_kernels, f"{name}_{kind}")(*arrays)

    def landmark_forces(self, y: Tensor, z: Tensor) -> LandmarkForces:
        edges = self.edges
        points = y.detach().numpy()
        landmarks = np.ascontiguousarray(z.detach().numpy().T)
        chunks = _kernels.n_chunks(len(points))
        attraction = np.empty_like(points)
        repulsion = np.empty_like(points)
        pull = np.zeros((chunks, *landmarks.shape), points.dtype)
        s_yz = np.empty(chunks)
        work = len(points) * len(z) + len(edges.indices)
        self._run(
            "forces", work, edges.indptr, edges.indices, edges.weights, points,
            landmarks, attraction, repulsion, pull, s_yz,
        )  # fmt: skip
        push = np.zeros_like(landmarks)
        s_zz = _kernels.landmark_sum(landmarks, push)
        return LandmarkForces(
            torch.from_numpy(attraction),
            torch.from_numpy(repulsion),
            torch.from_numpy(pull.sum(axis=0).T.copy()),
            torch.from_numpy(push.T.copy()),
            float(s_yz.sum()),
            float(s_zz),
        )

    def attraction_energy(self, y: Tensor) -> float:
        edges = self.edges
        points = y.detach().numpy()
        sums = np.empty(_kernels.n_chunks(len(points)))
        rows = (edges.indptr, edges.indices, edges.weights)
        work = _LOGARITHM * len(edges.indices)
        self._run("edge_energy", work, *rows, points, sums)
        return float(0.5 * sums.sum())

    def pair_repulsion(self, y: Tensor, pairs: Edges) -> tuple[float, Tensor]:
        points = y.detach().numpy()
        repulsion = np.empty_like(points)
        sums = np.empty(_kernels.n_chunks(len(points)))
        rows = (pairs.indptr, pairs.indices, pairs.weights)
        self._run("pair_repulsion", len(pairs.indices), *rows, points, repulsion, sums)
        return float(0.5 * sums.sum()), torch.from_numpy(repulsion)


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
        ends = edges.indptr.astype(np.int64)
        heads = np.repeat(np.arange(edges.n_points), ends[1:] - ends[:-1])
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
        attraction = torch.zeros_like(y).index_add_(0, heads, strength[:, None] * along)
        repulsion = torch.empty_like(y)
        pull = torch.zeros_like(z)
        s_yz = 0.0
        block = max(1, self._block_elements // max(1, z.numel()))
        for part, out in zip(
            torch.split(y, block), torch.split(repulsion, block), strict=True
        ):
            apart = part[:, None, :] - z[None, :, :]
            q = 1 / (1 + apart.square().sum(dim=2))
            s_yz += float(q.sum())
            push = (2 * q.square())[:, :, None] * apart
            out.copy_(-push.sum(dim=1))
            pull += push.sum(dim=0)
        between = z[:, None, :] - z[None, :, :]
        q = 1 / (1 + between.square().sum(dim=2))
        push = (-4 * q.square()[:, :, None] * between).sum(dim=1)
        return LandmarkForces(attraction, repulsion, pull, push, s_yz, float(q.sum()))

    def attraction_energy(self, y: Tensor) -> float:
        heads, tails, weights = self._ends
        squared = (y.detach()[heads] - y.detach()[tails]).square().sum(dim=1)
        return float(0.5 * (weights * torch.log1p(squared)).sum())

    def pair_repulsion(self, y: Tensor, pairs: Edges) -> tuple[float, Tensor]:
        y = y.detach()
        heads, tails, weights = self._upload(pairs)
        apart = y[heads] - y[tails]
        q = 1 / (1 + apart.square().sum(dim=1))
        push = (-2 * weights * q.square())[:, None] * apart
        gradient = torch.zeros_like(y).index_add_(0, heads, push)
        return float(0.5 * (weights * q).sum()), gradient


def make_forces(
    edges: Edges, device: torch.device, n_jobs: int | None = None
) -> Forces:
    """Return the evaluator for ``device``."""
    if device.type == "cpu":
        return CompiledForces(edges, n_jobs)
    return TorchForces(edges, device)
