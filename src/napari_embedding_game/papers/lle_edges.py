"""Signed edges: how neighbours make up a point (LLE; paper 3, section 3.2, Lemma 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.graph.edges import Edges, to_directed_matrix
from napari_embedding_game.core.graph.neighbors import NeighborGraph

REGULARIZATION = 1e-3
"""Of the local Gram matrices, relative to their trace: scikit-learn's."""
_BLOCK_NUMBERS = 2**24
"""Numbers of a block of neighbours that are held at once."""


def signed_edges(graph: NeighborGraph, X: Any) -> Edges:
    """Return W + W^T - W^T W of (N, D) rows without its diagonal (Lemma 4) as edges.

    Some of them are below 0.
    """
    matrix = to_directed_matrix(graph, reconstruction_weights(X, graph.indices))
    signed = matrix + matrix.T - matrix.T @ matrix
    signed = sparse.csr_matrix(signed - sparse.diags(signed.diagonal()))
    signed.eliminate_zeros()
    # Both i-j and j-i count in the sum over the matrix, half of it in the energy.
    return Edges.from_matrix(sparse.csr_matrix(2 * signed, dtype=np.float32))


def reconstruction_weights(X: Any, indices: NDArray[np.integer]) -> NDArray[np.float32]:
    """Return w that minimises |x_i - sum_j w_ij x_j|^2, each row summing to 1.

    ``X`` (N, D) array or sparse matrix; ``indices`` (N, K): neighbours of each row.
    Returns (N, K) float32.
    """
    n, k = indices.shape
    weights = np.empty((n, k), np.float32)
    size = max(1, _BLOCK_NUMBERS // (k * X.shape[1]))
    for begin in range(0, n, size):
        block = slice(begin, begin + size)
        near = _as_dense(X[indices[block].ravel()])
        offsets = near.reshape(*indices[block].shape, -1) - _as_dense(X[block])[:, None]
        gram = offsets @ offsets.transpose(0, 2, 1)
        trace = np.trace(gram, axis1=1, axis2=2)
        ridge = REGULARIZATION * np.where(trace > 0, trace, 1.0)
        gram += ridge[:, None, None] * np.eye(k)
        solved = np.linalg.solve(gram, np.ones((len(gram), k, 1)))[..., 0]
        weights[block] = solved / solved.sum(axis=1, keepdims=True)
    return weights


def _as_dense(rows: Any) -> NDArray[np.float64]:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, np.float64)
