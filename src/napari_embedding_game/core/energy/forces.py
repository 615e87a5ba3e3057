"""The sums behind every energy, evaluated by compiled loops or by torch.

:class:`CompiledForces` on the CPU and :class:`TorchForces` on any torch device, with
the same methods, take and return torch tensors and need no autograd: ``attract`` along
the edges, ``repel`` of points y by landmarks z (its loop is in :mod:`pair_loops`),
``all_pairs``, and ``mesh`` by a grid;
``tests/core/test_methods.py`` holds them against a float64 autograd twin.
They become energies, and what moves points and landmarks (Eq. 3), in :mod:`objective`:
landmarks repel one another in ``Landmarks.sums``.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy import pair_functions, pair_loops
from napari_embedding_game.core.energy.mesh_repulsion import Mesh
from napari_embedding_game.core.energy.torch_forces import Number, Pairs, TorchForces
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.threads import run_blocks

_LOGARITHM = 4
"""What an edge with a logarithm costs, in edges without."""


class CompiledForces:
    """Compiled loops over numpy views of CPU tensors, for any attraction and kernel.

    ``edges.weights`` and the points must be of one type, float32 or float64.
    """

    def __init__(
        self, edges: Edges, attraction: str = "log1p", kernel: str = "cauchy"
    ) -> None:
        self.edges, self.attraction, self.kernel = edges, attraction, kernel
        self.device = torch.device("cpu")
        self.f = pair_functions.ATTRACTIONS[attraction]
        self.k = pair_functions.KERNELS[kernel]
        self.grid = Mesh(self.k)

    def repel(
        self, y: Tensor, z: Tensor, kernel: pair_functions.PairFunction | None = None
    ) -> tuple[Number, Tensor, Tensor]:
        """Return the sum of k over all y and z, and its gradients in y and in z.

        ``kernel``: another one than the method's.
        """
        points = y.detach().numpy()
        columns = np.ascontiguousarray(z.detach().numpy().T)
        gradient = np.empty_like(points)
        chunks = pair_loops.n_chunks(len(points))
        pull = np.zeros((chunks, *columns.shape), points.dtype)
        sums = np.empty(chunks)
        given = kernel or self.k, points, columns, gradient, pull, sums
        run_blocks(pair_loops.repel, chunks, len(points) * len(z), *given)
        both = torch.from_numpy(gradient), torch.from_numpy(pull.sum(axis=0).T.copy())
        return float(sums.sum()), *both

    def attract(self, y: Tensor) -> Tensor:
        """Return the (N, d) gradient of the sum over directed edges of w f."""
        points = y.detach().numpy()
        gradient = np.empty_like(points)
        given = self.f, self.edges.arrays, points, gradient
        run_blocks(pair_loops.attract, len(points), len(self.edges.indices), *given)
        return torch.from_numpy(gradient)

    def attraction_energy(self, y: Tensor) -> float:
        """Return the sum of w f over directed edges: half of that over entries."""
        points = y.detach().numpy()
        sums = np.empty(pair_loops.n_chunks(len(points)))
        work = _LOGARITHM * len(self.edges.indices)
        given = self.f, self.edges.arrays, points, sums
        run_blocks(pair_loops.edge_energy, len(sums), work, *given)
        return float(0.5 * sums.sum())

    def pair_repulsion(self, y: Tensor, pairs: Pairs) -> tuple[float, Tensor]:
        """Return the sum of k over random pairs, each once, and its gradient (N, d)."""
        points, (order, shifts) = y.detach().numpy(), (each.numpy() for each in pairs)
        columns = np.ascontiguousarray(np.tile(points[order].T, 2))
        gradient = np.empty(points.T.shape, points.dtype)
        sums = np.empty(pair_loops.n_chunks(len(points)))
        work = 2 * len(points) * len(shifts)
        given = self.k, shifts, columns, gradient, sums
        run_blocks(pair_loops.repel_partners, len(sums), work, *given)
        by_point = np.empty_like(points)
        by_point[order] = gradient.T
        return float(sums.sum()), torch.from_numpy(by_point)

    def mesh(self, y: Tensor) -> tuple[float, Tensor]:
        """Return the sum of k over all pairs i != j by a grid, its gradient (N, d)."""
        total, gradient = self.grid(y.detach().numpy())
        return total, torch.from_numpy(gradient)

    def all_pairs(
        self, y: Tensor, weights: NDArray[np.floating] | None = None
    ) -> tuple[float, Tensor]:
        """Return the sum of k over all pairs i != j and its gradient, (N, d).

        ``weights``: (N, N), symmetric, of each pair; 1 if there are none.
        """
        points = y.detach().numpy()
        n, d = points.shape
        columns, gradient = np.ascontiguousarray(points.T), np.empty_like(points)
        rows = pair_loops.triangle(n)
        across = np.empty((len(rows) - 1, d, n), points.dtype)
        sums = np.empty(len(across))
        given = rows, self.k, weights, points, columns, gradient, across, sums
        run_blocks(pair_loops.all_pairs, len(sums), n * n // 2, *given)
        for chunk, end in zip(across, rows[1:], strict=True):
            gradient[:end] += chunk[:, :end].T
        # Each pair counts twice.
        return 2 * float(sums.sum()), torch.from_numpy(2 * gradient)


Forces = CompiledForces | TorchForces
"""What an energy needs to know about points, edges and landmarks."""
