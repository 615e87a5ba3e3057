"""Turn neighbour graphs into weighted symmetric edges.

The affinity ``uniform`` is the paper's: each directed neighbour pair pulls with weight
1.  ``fuzzy`` is UMAP's, scaled to the same total.  ``mixed``, the game's default, is
three parts of UMAP's membership to two parts of weight 1 (``python
benchmarks/quality.py`` compares the affinities).  ``entropic`` is the affinity of SNE
and t-SNE.  The bandwidth of each row is found in :mod:`edge_loops`:
``compute_conditional_probabilities`` for a perplexity, ``compute_fuzzy_memberships``
for UMAP.  :mod:`symmetric_rows` makes rows symmetric.  Further affinities register in
:mod:`choices`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.graph import edge_loops
from napari_embedding_game.core.graph.choices import ROW_AFFINITIES
from napari_embedding_game.core.graph.coordinates import Coordinates
from napari_embedding_game.core.graph.neighbors import NeighborGraph
from napari_embedding_game.core.graph.symmetric_rows import (
    join_directions,
    permute_rows,
)
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP, run_blocks

N_NEAREST = 15
"""Most neighbours that isolation is measured by."""
MEMBERSHIP_SHARE = np.float32(0.6)
"""Share of the memberships in mixed weights."""


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Symmetric weighted edges in compressed rows; each edge is stored in both rows.

    The attraction of a map is *half* the sum over all entries: a directed
    neighbour pair (i, j) adds its weight to the entries (i, j) and (j, i).

    ``indptr`` (N + 1,): uint64 where there are more entries than uint32 counts;
    ``indices`` (E,): the column of each entry, sorted within a row; ``weights`` (E,):
    their sum is 2 N K, unless some are below 0; ``scale``: the factor by which the
    affinity's symmetric weights were multiplied.  ``nearest`` (N, k): the nearest
    neighbours of each point, ``N_NEAREST`` at most, nearest first.  ``isolation`` (N,):
    see :mod:`inspect.isolation`.  ``coordinates``: the rows of the points.  These three
    are None where the edges come from a matrix.  ``remix`` returns the edges for
    another share of the second space; None where there is one space.
    """

    indptr: NDArray[np.uint32] | NDArray[np.uint64]
    indices: NDArray[np.uint32]
    weights: NDArray[np.floating]
    scale: float = 1.0
    nearest: NDArray[np.int32] | None = None
    isolation: NDArray[np.float32] | None = None
    coordinates: Coordinates | None = None
    remix: Callable[[float], Edges] | None = None

    def mix_by_share(self, share: float) -> Edges:
        """Return the edges for a share of the second space.

        Edges of a single space are returned as they are.
        """
        return self if self.remix is None else self.remix(share)

    @property
    def n_points(self) -> int:
        """Number of points N."""
        return len(self.indptr) - 1

    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """``indptr``, ``indices`` and ``weights``, as compiled loops take them."""
        return self.indptr, self.indices, self.weights

    def to_csr_matrix(self) -> sparse.csr_matrix:
        """Return the edges as a scipy matrix (N, N) that shares the weights' memory.

        Indices are int32, or int64 where there are too many entries.
        """
        shape = (self.n_points, self.n_points)
        # scipy needs one signed type for indptr and indices.
        fits = len(self.indices) <= np.iinfo(np.int32).max
        indices = self.indices.view(np.int32) if fits else self.indices.astype(np.int64)
        rows = self.weights, indices, self.indptr.astype(indices.dtype)
        return sparse.csr_matrix(rows, shape=shape)

    def reorder_points(self, order: NDArray[np.integer]) -> Edges:
        """Return edges whose point i is the former point ``order[i]``.

        The edges themselves are returned if the order is already so; otherwise all
        fields from ``nearest`` on are None in the result.
        """
        if (order == np.arange(len(order))).all():
            return self
        return Edges(*permute_rows(self.arrays, order), self.scale)

    @classmethod
    def from_symmetric_matrix(cls, matrix: Any, scale: float = 1.0) -> Edges:
        """Return the edges of a symmetric scipy matrix (N, N).

        Symmetry is not checked; duplicate entries are summed.  ``scale``: see
        :class:`Edges`.
        """
        matrix = sparse.csr_matrix(matrix)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # it shares memory with the caller's
            matrix.sum_duplicates()
        fits = matrix.nnz <= np.iinfo(np.uint32).max
        return cls(
            matrix.indptr.astype(np.uint32 if fits else np.uint64),
            matrix.indices.astype(np.int32, copy=False).view(np.uint32),
            np.ascontiguousarray(matrix.data),
            scale,
        )


def build_edges(
    graph: NeighborGraph,
    affinity: str = "uniform",
    *,
    X: Any = None,
    perplexity: float | None = None,
) -> Edges:
    """Return the symmetric weighted edges of a neighbour graph.

    ``affinity``: one of ``choices.AFFINITIES`` or of ``choices.ROW_AFFINITIES``, which
    need the rows ``X`` (N, D).  ``perplexity``: for "entropic" only, at most and by
    default a third of the number of neighbours.  The result has ``nearest``; its
    isolation and coordinates are not filled in here.
    """
    if affinity in ROW_AFFINITIES:
        weighted: Edges = ROW_AFFINITIES[affinity].compute(graph, X)
    else:
        most = graph.n_neighbors / 3
        perplexity = min(perplexity or most, most)
        weights = compute_directed_weights(graph.distances, affinity, perplexity)
        if affinity == "mixed":
            weights = mix_memberships(weights, weights.mean())
        weighted = _symmetrise_weights(graph, weights, affinity)
    nearest = np.ascontiguousarray(graph.indices[:, :N_NEAREST])
    return replace(weighted, nearest=nearest)


def compute_directed_weights(
    distances: NDArray[np.float32], affinity: str, perplexity: float
) -> NDArray[np.float32]:
    """Return the weight of each row's neighbours, (N, K) float32.

    The weights are not yet symmetric or scaled.  For "mixed" they are fuzzy
    memberships, not yet mixed.  ``perplexity`` is used for "entropic" alone.
    """
    if affinity == "uniform":
        return np.ones(distances.shape, np.float32)
    if affinity == "entropic":
        return edge_loops.compute_conditional_probabilities(distances, perplexity)
    return edge_loops.compute_fuzzy_memberships(distances)


def mix_memberships(memberships: NDArray[np.float32], mean: Any) -> NDArray[np.float32]:
    """Return mixed weights: 0.6 of membership / mean, and 0.4.

    ``mean``: the mean membership of the fitted graph, for which the weight is 1.
    """
    share = MEMBERSHIP_SHARE
    weights: NDArray[np.float32] = share * (memberships / mean) + (1 - share)
    return weights


def _symmetrise_weights(
    graph: NeighborGraph, weights: NDArray[np.float32], affinity: str
) -> Edges:
    """Return symmetric edges that join the weights of both directions of each pair.

    "uniform" and "mixed" weights are not scaled.  "fuzzy" edges are scaled as
    umap-learn's ``fuzzy_simplicial_set`` for K + 1 neighbours, with the point itself
    among them; "entropic" ones as openTSNE's ``PerplexityBasedNN``; then both to a sum
    of 2 N K.
    """
    rows, total = join_directions(graph.indices, weights, affinity == "fuzzy")
    if affinity in ("uniform", "mixed"):
        return Edges(*rows)
    divisor = 2 * graph.n_points if affinity == "entropic" else 1
    scale = 2 * weights.size * divisor / total
    np.multiply(rows[2], np.float32(scale / divisor), out=rows[2])
    return Edges(*rows, scale)


def to_directed_matrix(
    graph: NeighborGraph, weights: NDArray[np.floating]
) -> sparse.csr_matrix:
    """Return the weights (N, K) of a graph's pairs as a sparse matrix (N, N).

    Entry (i, j) is the weight that row i gives its neighbour j; other entries are 0.
    """
    n, k = graph.indices.shape
    indptr = np.arange(0, n * k + 1, k)
    return sparse.csr_matrix(
        (weights.ravel(), graph.indices.ravel(), indptr), shape=(n, n)
    )


def sum_absolute_weights(
    indptr: NDArray[np.integer], weights: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the sum of |w| over each compressed row, (N,) float64."""
    sums = np.empty(len(indptr) - 1)
    run_blocks(_sum_absolute_weights, len(sums), len(weights), indptr, weights, sums)
    return sums


@njit(**LOOP)
def _sum_absolute_weights(begin, end, indptr, weights, sums):
    """Write the sum of |w| of compressed rows begin to end to ``sums`` (N,)."""
    for i in range(begin, end):
        sums[i] = 0
        for at in range(indptr[i], indptr[i + 1]):
            sums[i] += abs(weights[at])
