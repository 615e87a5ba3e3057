"""From neighbours to edges: who pulls whom, and how hard.

``uniform`` is the paper's: each directed neighbour pair pulls with weight 1.
``fuzzy`` is UMAP's: near neighbours pull harder, relative to each point's own
surroundings, scaled to the same total so that lambda keeps its meaning.
``mixed``, the default, is between the two: each directed neighbour pair pulls
with UMAP's membership, two parts of it to one part of weight 1.  So pairs that
are each other's neighbours pull twice, as in the paper and unlike in UMAP's
union.  ``python benchmarks/quality.py`` compares the three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core import _kernels
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph import NeighborGraph
from napari_embedding_game.core.types import AFFINITIES, Affinity

_MEMBERSHIP_SHARE = np.float32(2 / 3)


@dataclass(frozen=True, slots=True)
class Edges:
    """Symmetric weighted edges in compressed rows; each edge stands in both rows.

    The attraction of a map is *half* the sum over all entries: a directed
    neighbour pair (i, j) adds its weight to the entries (i, j) and (j, i).

    Attributes
    ----------
    indptr : (N + 1,) uint32
    indices : (E,) uint32
        Column of each entry; sorted within a row.
    weights : (E,) float32
        Their sum is 2 N K.
    """

    indptr: NDArray[np.uint32]
    indices: NDArray[np.uint32]
    weights: NDArray[np.floating]

    @property
    def n_points(self) -> int:
        """N."""
        return len(self.indptr) - 1

    def matrix(self) -> sparse.csr_matrix:
        """Return the edges as a scipy matrix that shares the weights."""
        shape = (self.n_points, self.n_points)
        parts = (
            self.weights,
            self.indices.astype(np.int32),
            self.indptr.astype(np.int32),
        )
        return sparse.csr_matrix(parts, shape=shape)

    @classmethod
    def from_matrix(cls, matrix: Any) -> Edges:
        """Take a symmetric scipy matrix."""
        matrix = sparse.csr_matrix(matrix)
        matrix.sum_duplicates()
        return cls(
            matrix.indptr.astype(np.uint32),
            matrix.indices.astype(np.uint32),
            np.ascontiguousarray(matrix.data),
        )


def edges(graph: NeighborGraph, affinity: Affinity = "uniform") -> Edges:
    """Return the symmetric edges of ``graph``, their weights summing to 2 N K.

    Raises
    ------
    InputError
        ``affinity`` is not one of ``types.AFFINITIES``.
    """
    if affinity == "uniform":
        directed = np.ones(graph.indices.shape, dtype=np.float32)
        matrix = _matrix(graph, directed)
        return Edges.from_matrix(matrix + matrix.T)
    if affinity == "fuzzy":
        return Edges.from_matrix(_fuzzy(graph))
    if affinity == "mixed":
        matrix = _matrix(graph, _mixed_weights(graph))
        return Edges.from_matrix(matrix + matrix.T)
    raise InputError(f"The affinity must be one of {AFFINITIES}, not {affinity!r}.")


def _matrix(graph: NeighborGraph, weights: NDArray[np.float32]) -> sparse.csr_matrix:
    n, k = graph.indices.shape
    indptr = np.arange(0, n * k + 1, k)
    return sparse.csr_matrix(
        (weights.ravel(), graph.indices.ravel(), indptr), shape=(n, n)
    )


def _mixed_weights(graph: NeighborGraph) -> NDArray[np.float32]:
    """Return (N, K) weights of the directed pairs, 1 on average."""
    memberships = _kernels.fuzzy_memberships(graph.distances)
    memberships /= memberships.mean()
    weights: NDArray[np.float32] = _MEMBERSHIP_SHARE * memberships + (
        1 - _MEMBERSHIP_SHARE
    )
    return weights


def _fuzzy(graph: NeighborGraph) -> sparse.csr_matrix:
    """Return the fuzzy union P + P^T - P * P^T of UMAP, scaled to the sum 2 N K.

    Like umap-learn's ``fuzzy_simplicial_set`` for K + 1 neighbours with the
    point itself among them, as umap-learn counts.
    """
    memberships = _kernels.fuzzy_memberships(graph.distances)
    matrix = _matrix(graph, memberships)
    union = matrix + matrix.T - matrix.multiply(matrix.T)
    union *= 2 * graph.indices.size / union.sum()
    return sparse.csr_matrix(union, dtype=np.float32)
