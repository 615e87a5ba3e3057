"""The sums behind every energy, evaluated by compiled loops or by torch.

:class:`CompiledForces` on the CPU and :class:`TorchForces` on any torch device have the
same methods, take and return torch tensors and need no autograd.  Loops are in
:mod:`pair_loops`; ``tests/core/test_methods.py`` compares the sums with a float64
autograd twin.  :mod:`objective` makes energies of the sums, and the gradients that move
points and landmarks (Eq. 3); landmarks repel one another in
``LandmarkBound.compute_sums``.
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
"""Cost of an edge whose energy has a logarithm, in edges without."""


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
        self.mesh = Mesh(self.k)

    def kernel_sum_and_gradients(
        self,
        targets: Tensor,
        sources: Tensor,
        kernel: pair_functions.PairFunction | None = None,
    ) -> tuple[Number, Tensor, Tensor]:
        """Return the sum of k over pairs of a target and a source, and two gradients.

        The first gradient (N, d) is by the positions of ``targets`` (N, d), the second
        (L, d) by those of ``sources`` (L, d).  ``kernel`` replaces the method's kernel
        k.
        """
        positions = targets.detach().numpy()
        columns = np.ascontiguousarray(sources.detach().numpy().T)
        target_gradient = np.empty_like(positions)
        n_chunks = pair_loops.count_chunks(len(positions))
        source_gradients = np.zeros((n_chunks, *columns.shape), positions.dtype)
        sums = np.empty(n_chunks)
        run_blocks(
            pair_loops.write_landmark_repulsion,
            n_chunks,
            len(positions) * len(sources),
            kernel or self.k,
            positions,
            columns,
            target_gradient,
            source_gradients,
            sums,
        )
        source_gradient = torch.from_numpy(source_gradients.sum(axis=0).T.copy())
        return float(sums.sum()), torch.from_numpy(target_gradient), source_gradient

    def attraction_gradient(self, points: Tensor) -> Tensor:
        """Return the (N, d) gradient of the sum over directed edges of w f."""
        positions = points.detach().numpy()
        gradient = np.empty_like(positions)
        run_blocks(
            pair_loops.write_attraction_gradient,
            len(positions),
            len(self.edges.indices),
            self.f,
            self.edges.arrays,
            positions,
            gradient,
        )
        return torch.from_numpy(gradient)

    def attraction_energy(self, points: Tensor) -> float:
        """Return the sum of w f over directed edges: half of the sum over entries."""
        positions = points.detach().numpy()
        sums = np.empty(pair_loops.count_chunks(len(positions)))
        run_blocks(
            pair_loops.write_edge_energies,
            len(sums),
            _LOGARITHM * len(self.edges.indices),
            self.f,
            self.edges.arrays,
            positions,
            sums,
        )
        return float(0.5 * sums.sum())

    def repulsion_of_sampled_pairs(
        self, points: Tensor, pairs: Pairs
    ) -> tuple[float, Tensor]:
        """Return the sum of k over sampled pairs, each once, and its (N, d) gradient.

        ``pairs``: see :data:`torch_forces.Pairs`.
        """
        positions, (order, shifts) = (
            points.detach().numpy(),
            (each.numpy() for each in pairs),
        )
        columns = np.ascontiguousarray(np.tile(positions[order].T, 2))
        gradient = np.empty(positions.T.shape, positions.dtype)
        sums = np.empty(pair_loops.count_chunks(len(positions)))
        run_blocks(
            pair_loops.write_partner_repulsion,
            len(sums),
            2 * len(positions) * len(shifts),
            self.k,
            shifts,
            columns,
            gradient,
            sums,
        )
        by_point = np.empty_like(positions)
        by_point[order] = gradient.T
        return float(sums.sum()), torch.from_numpy(by_point)

    def repulsion_on_grid(self, points: Tensor) -> tuple[float, Tensor]:
        """Return the sum of k over pairs i != j, by a grid, and its (N, d) gradient.

        Pairs of distant islands are left out: see :meth:`Mesh.compute_potential`.
        Raises InputError if positions are not finite.
        """
        total, gradient = self.mesh(points.detach().numpy())
        return total, torch.from_numpy(gradient)

    def repulsion_of_all_pairs(
        self, points: Tensor, weights: NDArray[np.floating] | None = None
    ) -> tuple[float, Tensor]:
        """Return the sum of w k over all pairs i != j, and its (N, d) gradient.

        ``weights`` (N, N): symmetric weights w of the pairs; None is 1.
        """
        positions = points.detach().numpy()
        n, d = positions.shape
        columns, gradient = np.ascontiguousarray(positions.T), np.empty_like(positions)
        rows = pair_loops.split_triangle_rows(n)
        partner_gradient = np.empty((len(rows) - 1, d, n), positions.dtype)
        sums = np.empty(len(partner_gradient))
        run_blocks(
            pair_loops.write_all_pair_repulsion,
            len(sums),
            n * n // 2,
            rows,
            self.k,
            weights,
            positions,
            columns,
            gradient,
            partner_gradient,
            sums,
        )
        for chunk, end in zip(partner_gradient, rows[1:], strict=True):
            gradient[:end] += chunk[:, :end].T
        # Each pair counts twice.
        return 2 * float(sums.sum()), torch.from_numpy(2 * gradient)


Forces = CompiledForces | TorchForces
"""The forces on a device, with the sums over pairs that energies are made of."""
