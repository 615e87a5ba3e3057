"""Signed edges: how neighbours make up a point (LLE; paper 3, section 3.2, Lemma 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.graph.edges import Edges, directed
from napari_embedding_game.core.graph.neighbors import NeighborGraph

REGULARIZATION = 1e-3
"""Of the local Gram matrices, relative to their trace: scikit-learn's."""
_BLOCK_NUMBERS = 2**24
"""Numbers of a block of neighbours that are held at once."""


def signed_edges(graph: NeighborGraph, X: Any) -> Edges:
    """Return W + W^T - W^T W without its diagonal (Lemma 4) as edges, some below 0.

    Parameters
    ----------
    graph : NeighborGraph
    X : (N, D) array or sparse matrix
    """
    matrix = directed(graph, reconstruction_weights(X, graph.indices))
    signed = matrix + matrix.T - matrix.T @ matrix
    signed = sparse.csr_matrix(signed - sparse.diags(signed.diagonal()))
    signed.eliminate_zeros()
    # Both i-j and j-i count in the sum over the matrix, and half of the entries
    # in the energy.
    return Edges.from_matrix(sparse.csr_matrix(2 * signed, dtype=np.float32))


def new_weights(X: Any, fitted: Any, found: NDArray[np.integer]) -> NDArray[np.float32]:
    """Return the weights of new rows' edges, (Q, K): they make up no fitted row."""
    # Both i-j and j-i count in the sum over the matrix.
    return 2 * reconstruction_weights(X, found, fitted=fitted)


def reconstruction_weights(
    X: Any,
    indices: NDArray[np.integer],
    regularization: float = REGULARIZATION,
    *,
    fitted: Any = None,
) -> NDArray[np.float32]:
    """Return w that minimises |x_i - sum_j w_ij x_j|^2, each row summing to 1.

    Parameters
    ----------
    X : (N, D) array or sparse matrix
    indices : (N, K) array
        Neighbours of each row, by their numbers in ``fitted``.
    regularization : float
        Added to the diagonal of each Gram matrix, times its trace.
    fitted : (M, D) array or sparse matrix, optional
        The neighbours, where they are not rows of ``X``.

    Returns
    -------
    (N, K) float32
    """
    n, k = indices.shape
    weights = np.empty((n, k), np.float32)
    rows = max(1, _BLOCK_NUMBERS // (k * X.shape[1]))
    for begin in range(0, n, rows):
        block = slice(begin, begin + rows)
        points, others = X[block], X if fitted is None else fitted
        weights[block] = _solve(points, others, indices[block], regularization)
    return weights


def _solve(
    rows: Any, others: Any, indices: NDArray[np.integer], regularization: float
) -> NDArray[np.floating]:
    points = _dense(rows)
    near = _dense(others[indices.ravel()]).reshape(*indices.shape, -1)
    apart = near - points[:, None]
    gram = apart @ apart.transpose(0, 2, 1)
    trace = np.trace(gram, axis1=1, axis2=2)
    ridge = regularization * np.where(trace > 0, trace, 1.0)
    diagonal = np.arange(indices.shape[1])
    gram[:, diagonal, diagonal] += ridge[:, None]
    weights = np.linalg.solve(gram, np.ones((*indices.shape, 1)))[..., 0]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _dense(rows: Any) -> NDArray[np.float64]:
    if sparse.issparse(rows):
        rows = rows.toarray()
    return np.asarray(rows, dtype=np.float64)
