"""The sums behind every energy, evaluated by compiled loops or by torch.

Evaluators with one face: :class:`CompiledForces` on the CPU and
:class:`TorchForces` on any torch device, both for any attraction and kernel,
and :class:`FusedForces`, which is quicker for those of the embedding game and
of t-SNE.  All take and return torch tensors and none needs autograd;
``tests/core/test_methods.py`` holds them against a float64 autograd twin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy import game_kernels, pair_kernels
from napari_embedding_game.core.energy.pair_functions import ATTRACTIONS, KERNELS, SHAPE
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.threads import ThreadChoice, resolve_n_jobs

_LOGARITHM = 4
"""What an edge with a logarithm costs, in edges without."""
_ROW_STEPS = 4
"""What a pair costs in the loops that go row by row, in fused pairs."""


@dataclass(frozen=True, slots=True)
class LandmarkForces:
    """One evaluation of the attraction f and of the landmark sums of the kernel k."""

    attraction: Tensor
    """(N, d) gradient of the sum over edges of w f."""
    repulsion: Tensor
    """(N, d) gradient of S_yz in the points."""
    pull: Tensor
    """(L, d) gradient of S_yz in the landmarks."""
    push: Tensor
    """(L, d) gradient of S_zz."""
    s_yz: float
    """Sum over points and landmarks of k."""
    s_zz: float
    """Sum over landmarks and landmarks of k, the diagonal included."""

    @property
    def ratio(self) -> float:
        """S_yz / S_zz, the repulsion that one unit of landmark exerts."""
        return self.s_yz / self.s_zz


class Forces(Protocol):
    """What an energy needs to know about points, edges and landmarks."""

    edges: Edges
    attraction: str
    kernel: str
    device: torch.device
    n_jobs: int | None

    def landmark_forces(self, y: Tensor, z: Tensor) -> LandmarkForces:
        """Return attraction along the edges and the landmark sum, with gradients."""

    def attract(self, y: Tensor) -> Tensor:
        """Return the (N, d) gradient of the sum over edges of w f."""

    def attraction_energy(self, y: Tensor) -> float:
        """Return the sum of w f over the directed edges: half of that over entries."""

    def pair_repulsion(self, y: Tensor, pairs: Edges) -> tuple[float, Tensor]:
        """Return the sum of w k over directed ``pairs`` and its gradient, (N, d)."""

    def all_pairs(
        self, y: Tensor, weights: NDArray[np.floating] | None = None
    ) -> tuple[float, Tensor]:
        """Return the sum of k over all pairs i != j and its gradient, (N, d).

        ``weights``: (N, N), symmetric, of each pair; 1 if there are none.
        """


class CompiledForces:
    """Compiled loops over numpy views of CPU tensors, for any attraction and kernel.

    ``edges.weights`` and the points must be of one type, float32 or float64.
    """

    def __init__(
        self,
        edges: Edges,
        n_jobs: int | None = None,
        attraction: str = "log1p",
        kernel: str = "cauchy",
    ) -> None:
        self.edges = edges
        self.attraction = attraction
        self.kernel = kernel
        self.device = torch.device("cpu")
        self.n_jobs = n_jobs
        self._f = ATTRACTIONS[attraction].number
        self._k = KERNELS[kernel].number
        self._shape = np.array(SHAPE, edges.weights.dtype)
        self._n_threads = resolve_n_jobs(n_jobs)
        self._choices: dict[str, ThreadChoice] = {}

    def _run(self, module: Any, name: str, work: int, *arrays: Any) -> None:
        """Run a kernel over rows, serial or parallel, whichever is faster now."""
        choice = self._choices.setdefault(name, ThreadChoice(self._n_threads))
        with choice.threads_for(work) as n_threads:
            kind = "serial" if n_threads == 1 else "parallel"
            getattr(module, f"{name}_{kind}")(*arrays)

    @property
    def _rows(self) -> tuple[Any, ...]:
        return self.edges.indptr, self.edges.indices, self.edges.weights

    def landmark_forces(self, y: Tensor, z: Tensor) -> LandmarkForces:
        s_yz, repulsion = self._field(y, z)
        _, pull = self._field(z, y)
        s_zz, push = self._field(z, z)
        return LandmarkForces(self.attract(y), repulsion, pull, 2 * push, s_yz, s_zz)

    def attract(self, y: Tensor) -> Tensor:
        points = y.detach().numpy()
        gradient = np.empty_like(points)
        chunks = np.empty(pair_kernels.n_chunks(len(points)))
        work = _ROW_STEPS * len(self.edges.indices)
        own = (self._f, self._shape, *self._rows, points, gradient, chunks)
        self._run(pair_kernels, "attract", work, *own)
        return torch.from_numpy(gradient)

    def attraction_energy(self, y: Tensor) -> float:
        own = (self._f, self._shape, *self._rows, y.detach().numpy())
        return 0.5 * float(pair_kernels.attraction_energy(*own))

    def pair_repulsion(self, y: Tensor, pairs: Edges) -> tuple[float, Tensor]:
        points = y.detach().numpy()
        gradient = np.empty_like(points)
        sums = np.empty(pair_kernels.n_chunks(len(points)))
        rows = (pairs.indptr, pairs.indices, pairs.weights)
        work = _ROW_STEPS * len(pairs.indices)
        own = (self._k, self._shape, *rows, points, gradient, sums)
        self._run(pair_kernels, "pairs", work, *own)
        return float(0.5 * sums.sum()), torch.from_numpy(gradient)

    def all_pairs(
        self, y: Tensor, weights: NDArray[np.floating] | None = None
    ) -> tuple[float, Tensor]:
        points = y.detach().numpy()
        n, d = points.shape
        columns = np.ascontiguousarray(points.T)
        n_rows = pair_kernels.triangle(n)
        own = np.empty_like(points)
        across = np.empty((len(n_rows) - 1, d, n), points.dtype)
        sums = np.empty(len(across))
        far = np.empty((0, 0), points.dtype) if weights is None else weights
        work = _ROW_STEPS * n * n // 2
        rows = (n_rows, self._k, self._shape, far, points, columns)
        self._run(pair_kernels, "between", work, *rows, own, across, sums)
        for chunk, end in zip(across, n_rows[1:], strict=True):
            own[:end] += chunk[:, :end].T
        # Each pair counts twice, and each of the two is felt by both of its points.
        return 2 * float(sums.sum()), torch.from_numpy(4 * own)

    def _field(self, targets: Tensor, others: Tensor) -> tuple[float, Tensor]:
        """Return the sum of k over targets and others, its gradient in the targets."""
        points = targets.detach().numpy()
        columns = np.ascontiguousarray(others.detach().numpy().T)
        gradient = np.empty_like(points)
        sums = np.empty(pair_kernels.n_chunks(len(points)))
        work = _ROW_STEPS * len(targets) * len(others)
        rows = (self._k, self._shape, points, columns)
        self._run(pair_kernels, "field", work, *rows, gradient, sums)
        return float(sums.sum()), torch.from_numpy(gradient)


class FusedForces(CompiledForces):
    """One pass for f(u) = log(1 + u^2) and q(u) = 1 / (1 + u^2)."""

    def landmark_forces(self, y: Tensor, z: Tensor) -> LandmarkForces:
        edges = self.edges
        points = y.detach().numpy()
        landmarks = np.ascontiguousarray(z.detach().numpy().T)
        chunks = game_kernels.n_chunks(len(points))
        attraction = np.empty_like(points)
        repulsion = np.empty_like(points)
        pull = np.zeros((chunks, *landmarks.shape), points.dtype)
        s_yz = np.empty(chunks)
        work = len(points) * len(z) + len(edges.indices)
        self._run(
            game_kernels, "forces", work, *self._rows, points,
            landmarks, attraction, repulsion, pull, s_yz,
        )  # fmt: skip
        push = np.zeros_like(landmarks)
        s_zz = game_kernels.landmark_sum(landmarks, push)
        return LandmarkForces(
            torch.from_numpy(attraction),
            torch.from_numpy(repulsion),
            torch.from_numpy(pull.sum(axis=0).T.copy()),
            torch.from_numpy(push.T.copy()),
            float(s_yz.sum()),
            float(s_zz),
        )

    def attraction_energy(self, y: Tensor) -> float:
        points = y.detach().numpy()
        sums = np.empty(game_kernels.n_chunks(len(points)))
        work = _LOGARITHM * len(self.edges.indices)
        self._run(game_kernels, "edge_energy", work, *self._rows, points, sums)
        return float(0.5 * sums.sum())

    def pair_repulsion(self, y: Tensor, pairs: Edges) -> tuple[float, Tensor]:
        points = y.detach().numpy()
        repulsion = np.empty_like(points)
        sums = np.empty(game_kernels.n_chunks(len(points)))
        rows = (pairs.indptr, pairs.indices, pairs.weights)
        work = len(pairs.indices)
        own = (*rows, points, repulsion, sums)
        self._run(game_kernels, "pair_repulsion", work, *own)
        return float(0.5 * sums.sum()), torch.from_numpy(repulsion)


class TorchForces:
    """The same sums in torch operations, for CUDA and MPS devices.

    Points go through in blocks, so that the (block, L, d) differences stay
    within ``block_elements`` numbers whatever N is.  CUDA adds the forces along
    edges in any order (``index_add_``), so that there the last digits of a map, and
    with them the map, differ from one run to the next.
    """

    def __init__(
        self,
        edges: Edges,
        device: torch.device,
        attraction: str = "log1p",
        kernel: str = "cauchy",
        block_elements: int = 2**26,
    ) -> None:
        self.edges = edges
        self.attraction = attraction
        self.kernel = kernel
        self._f = ATTRACTIONS[attraction]
        self._k = KERNELS[kernel]
        self.device = device
        self.n_jobs: int | None = None
        self._block_elements = block_elements
        self._ends = self._upload(edges)
        self._pairs: tuple[Edges, tuple[Tensor, Tensor, Tensor]] | None = None

    def _upload(self, edges: Edges) -> tuple[Tensor, Tensor, Tensor]:
        ends = edges.indptr.astype(np.int64)
        heads = np.repeat(np.arange(edges.n_points), ends[1:] - ends[:-1])
        return (
            torch.as_tensor(heads, device=self.device),
            torch.as_tensor(edges.indices.astype(np.int64), device=self.device),
            torch.as_tensor(edges.weights, device=self.device),
        )

    def landmark_forces(self, y: Tensor, z: Tensor) -> LandmarkForces:
        s_yz, repulsion = self._field(y, z)
        _, pull = self._field(z, y)
        s_zz, push = self._field(z, z)
        return LandmarkForces(self.attract(y), repulsion, pull, 2 * push, s_yz, s_zz)

    def attract(self, y: Tensor) -> Tensor:
        _, gradient = self._along(y, self._ends, self._f.slope)
        return gradient

    def attraction_energy(self, y: Tensor) -> float:
        heads, tails, weights = self._ends
        squared = (y.detach()[heads] - y.detach()[tails]).square().sum(dim=1)
        return float(0.5 * (weights * self._f.value(squared)).sum())

    def pair_repulsion(self, y: Tensor, pairs: Edges) -> tuple[float, Tensor]:
        if self._pairs is None or self._pairs[0] is not pairs:
            self._pairs = pairs, self._upload(pairs)
        squared, gradient = self._along(y, self._pairs[1], self._k.slope)
        weights = self._pairs[1][2]
        return float(0.5 * (weights * self._k.value(squared)).sum()), gradient

    def all_pairs(
        self, y: Tensor, weights: NDArray[np.floating] | None = None
    ) -> tuple[float, Tensor]:
        total, gradient = self._field(y, y, weights)
        if weights is None:
            total -= len(y) * float(self._k.value(y.new_zeros(())))
        return total, 2 * gradient

    def _along(self, y: Tensor, ends: Any, slope: Any) -> tuple[Tensor, Tensor]:
        """Return squared lengths of edges, and the gradient of their sum."""
        y = y.detach()
        heads, tails, weights = ends
        along = y[heads] - y[tails]
        squared = along.square().sum(dim=1)
        force = (2 * weights * slope(squared))[:, None] * along
        return squared, torch.zeros_like(y).index_add_(0, heads, force)

    def _field(
        self, targets: Tensor, others: Tensor, far: NDArray[np.floating] | None = None
    ) -> tuple[float, Tensor]:
        """Return the sum of k over targets and others, its gradient in the targets."""
        targets, others = targets.detach(), others.detach()
        gradient = torch.empty_like(targets)
        total = 0.0
        block = max(1, self._block_elements // max(1, others.numel()))
        for begin in range(0, len(targets), block):
            part = slice(begin, begin + block)
            apart = targets[part, None, :] - others[None, :, :]
            squared = apart.square().sum(dim=2)
            value, slope = self._k.value(squared), 2 * self._k.slope(squared)
            if far is not None:
                weights = torch.as_tensor(far[part], device=self.device)
                value, slope = weights * value, weights * slope
            total += float(value.sum())
            gradient[part] = (slope[:, :, None] * apart).sum(dim=1)
        return total, gradient


def make_forces(
    edges: Edges,
    device: torch.device,
    n_jobs: int | None = None,
    attraction: str = "log1p",
    kernel: str = "cauchy",
) -> Forces:
    """Return the evaluator for ``device``."""
    if device.type != "cpu":
        return TorchForces(edges, device, attraction, kernel)
    if (attraction, kernel) == ("log1p", "cauchy"):
        return FusedForces(edges, n_jobs)
    return CompiledForces(edges, n_jobs, attraction, kernel)
