"""Compute signed edges from LLE's reconstruction weights (paper 3, 3.2, Lemma 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.graph.edges import Edges, to_directed_matrix
from napari_embedding_game.core.graph.neighbors import NeighborGraph

REGULARIZATION = 1e-3
"""Regularisation of local Gram matrices, relative to the trace, as in scikit-learn."""
_BLOCK_NUMBERS = 2**24
"""Most numbers of a block of neighbours."""


def build_signed_edges(graph: NeighborGraph, X: Any) -> Edges:
    """Return the edges W + W^T - W^T W of rows (N, D), without the diagonal (Lemma 4).

    W are the reconstruction weights of each row by its neighbours in ``graph``.  Edges
    hold twice the matrix, as their energy is half the sum.  Some weights are below 0.
    """
    matrix = to_directed_matrix(graph, reconstruction_weights(X, graph.indices))
    signed = matrix + matrix.T - matrix.T @ matrix
    signed = sparse.csr_matrix(signed - sparse.diags(signed.diagonal()))
    signed.eliminate_zeros()
    # The factor 2, because the energy is half the sum over the matrix.
    return Edges.from_symmetric_matrix(sparse.csr_matrix(2 * signed, dtype=np.float32))


def reconstruction_weights(X: Any, indices: NDArray[np.integer]) -> NDArray[np.float32]:
    """Return the w that minimise |x_i - sum_j w_ij x_j|^2, (N, K) float32.

    Each row of w sums to 1.  ``X`` (N, D): array or sparse matrix; ``indices`` (N, K):
    the neighbours j of each row.  Local Gram matrices are regularised by
    ``REGULARIZATION``.  Rows are computed in blocks of at most ``_BLOCK_NUMBERS``
    values.
    """
    n, k = indices.shape
    weights = np.empty((n, k), np.float32)
    size = max(1, _BLOCK_NUMBERS // (k * X.shape[1]))
    for begin in range(0, n, size):
        block = slice(begin, begin + size)
        near = _to_dense(X[indices[block].ravel()])
        offsets = near.reshape(*indices[block].shape, -1) - _to_dense(X[block])[:, None]
        gram = offsets @ offsets.transpose(0, 2, 1)
        trace = np.trace(gram, axis1=1, axis2=2)
        ridge = REGULARIZATION * np.where(trace > 0, trace, 1.0)
        gram += ridge[:, None, None] * np.eye(k)
        solved = np.linalg.solve(gram, np.ones((len(gram), k, 1)))[..., 0]
        weights[block] = solved / solved.sum(axis=1, keepdims=True)
    return weights


def _to_dense(rows: Any) -> NDArray[np.float64]:
    """Return rows as a dense float64 array."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, np.float64)
