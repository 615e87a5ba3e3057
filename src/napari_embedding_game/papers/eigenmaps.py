"""Compute Laplacian eigenmaps with the weights of paper 2: LE, ALE and VRLE.

An eigenmap consists of the bottom eigenvectors of D - W without the constant
eigenvector, for a graph of weighted neighbours W (Proposition 3.2).  Pairs that are no
neighbours have the weight 0, as in Alg. 1.  The components of a graph are arranged side
by side.  The start of the engine, ``init="spectral"``, is in ``core/graph/start.py``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import eigsh, lobpcg

from napari_embedding_game.core.graph.edges import to_directed_matrix
from napari_embedding_game.core.graph.neighbors import NeighborGraph, knn_graph
from napari_embedding_game.core.graph.start import arrange_components

MAX_TIMES_AVERAGE = 10
"""Largest number of neighbours in VRLE, relative to that of the average point."""
_DENSE_ROWS = 500
"""Number of rows below which a dense solver is quicker."""
_FACTORED_ROWS = 3_000
"""Number of rows above which the factors may fill the memory."""
_ITERATIONS = 300
_SPARE = 3  # additional vectors, with which the wanted eigenvectors converge sooner
Vectors = NDArray[np.float64]


def heat_weights(X: Any, n_neighbors: int) -> sparse.csr_matrix:
    """Return the weights of LE (Alg. 1), a symmetric sparse matrix (N, N).

    The weight of a pair is exp(-d^2 / sigma^2) where either row is a neighbour of the
    other.  The paper leaves sigma open; here it is the root mean square of the
    distances.
    """
    graph = knn_graph(X, n_neighbors)
    squared = _squared_distances(graph)
    weights = _to_sparse_matrix(
        graph, np.exp(-squared / max(float(squared.mean()), 1e-300))
    )
    return weights.maximum(weights.T)


def compute_local_scales(graph: NeighborGraph) -> Vectors:
    """Return A_i = sqrt(sum of squared distances to t neighbours) / t, (N,) (Def. 3.5).

    A_i is at least a millionth of the mean.
    """
    lengths = np.sqrt(_squared_distances(graph).sum(axis=1)) / graph.n_neighbors
    # Not 0 for copies of a row, because distances are divided by the scale.
    return np.asarray(np.maximum(lengths, max(1e-6 * lengths.mean(), 1e-100)))


def averaged_heat_weights(X: Any, n_neighbors: int) -> sparse.csr_matrix:
    """Return the weights of ALE (Def. 3.5), a symmetric sparse matrix (N, N).

    The weight of a pair is exp(-d^2 / (t A_i A_j)) where the rows are neighbours of
    each other.
    """
    graph = knn_graph(X, n_neighbors)
    scaled = _scaled_weights(graph, compute_local_scales(graph), n_neighbors)
    weights = _to_sparse_matrix(graph, scaled)
    return weights.minimum(weights.T)


def variable_radius_weights(X: Any, n_neighbors: int) -> sparse.csr_matrix:
    """Return the weights of VRLE (Def. 3.6), a symmetric sparse matrix (N, N).

    Weights are those of ALE, but points in denser places have more neighbours, and a
    pair has a weight where either row is a neighbour of the other.  Both t and the mean
    radius R are ``n_neighbors``.
    """
    scale = compute_local_scales(knn_graph(X, n_neighbors))
    radius = count_variable_neighbors(scale, n_neighbors, X.shape[0])
    graph = knn_graph(X, int(radius.max()))
    scaled = _scaled_weights(graph, scale, n_neighbors)
    scaled[np.arange(graph.n_neighbors) >= radius[:, None]] = 0
    weights = _to_sparse_matrix(graph, scaled)
    return weights.maximum(weights.T)


def count_variable_neighbors(scale: Vectors, n_neighbors: int, n_points: int) -> Any:
    """Return the number of neighbours of each point in VRLE, (N,) intp.

    It is 1 + R exp(1 / A_i) / Z with R = ``n_neighbors``, rounded down, at most ten
    times the mean and N - 1.  Z makes R the mean of the second term.  ``scale`` (N,):
    A, see :func:`compute_local_scales`; ``n_points``: N.
    """
    shares = np.exp(1 / scale - (1 / scale).max())  # the same after division by Z
    radius = 1 + n_neighbors * shares / shares.mean()
    most = min(n_points - 1, MAX_TIMES_AVERAGE * (1 + n_neighbors))
    return np.asarray(np.minimum(radius, most), dtype=np.intp)


def eigenmap(
    weights: sparse.csr_matrix, X: Any, n_components: int, random_state: int
) -> Vectors:
    """Return the bottom eigenvectors of D - W, (N, d), components side by side.

    ``weights`` (N, N): W; ``X`` (N, D): rows, by which the components of the graph are
    arranged.  Each component has its own eigenvectors; where it has too few rows for d
    of them, further coordinates are 0.
    """
    matrix = sparse.csr_matrix(laplacian(weights), dtype=np.float64)
    n_connected, component = connected_components(weights, directed=False)
    layout = np.zeros((weights.shape[0], n_components))
    for each in range(n_connected):
        rows = np.flatnonzero(component == each)
        laid = _find_bottom_eigenvectors(
            matrix[rows][:, rows], n_components, random_state
        )
        layout[rows, : laid.shape[1]] = laid
    if n_connected == 1:
        return layout
    return arrange_components(layout, component, n_connected, X, n_components)


def _compute_start(
    weigh: Callable[[Any, int], sparse.csr_matrix],
    X: Any,
    n_components: int,
    n_neighbors: int,
    random_state: int,
) -> Vectors:
    """Return the eigenmap of ``X`` (N, D) by the weights of ``weigh``, (N, d).

    ``weigh``: takes ``X`` and ``n_neighbors``, and returns weights (N, N).
    """
    return eigenmap(weigh(X, n_neighbors), X, n_components, random_state)


le = partial(_compute_start, heat_weights)
ale, vrle = (
    partial(_compute_start, averaged_heat_weights),
    partial(_compute_start, variable_radius_weights),
)
"""Laplacian eigenmaps as starts: plain (Alg. 1), averaged, and of variable radius."""


def _find_bottom_eigenvectors(
    matrix: sparse.csr_matrix, n_components: int, random_state: int
) -> Vectors:
    """Return the eigenvectors of the smallest eigenvalues without the first, (n, d).

    ``matrix`` (n, n): Laplacian of a connected graph.  Fewer than d are returned for n
    <= d.  The solver depends on n: dense, by factors, or above ``_FACTORED_ROWS``
    lobpcg, which may end without convergence after ``_ITERATIONS``.
    """
    n = matrix.shape[0]
    count = min(n_components + 1, n)
    if n < max(_DENSE_ROWS, 4 * count):
        return np.asarray(np.linalg.eigh(matrix.toarray())[1][:, 1:count])
    start = np.random.default_rng(random_state).normal(size=(n, n_components + _SPARE))
    if n <= _FACTORED_ROWS:
        # The shift keeps the matrix regular: its least eigenvalue is 0.
        shift = -1e-6 * float(matrix.diagonal().mean())
        values, vectors = eigsh(matrix, count, sigma=shift, v0=start[:, 0])
        return np.asarray(vectors[:, np.argsort(values)[1:]])
    with warnings.catch_warnings():
        # lobpcg warns where it does not converge, as for long and thin data.
        warnings.simplefilter("ignore")
        values, vectors = lobpcg(
            matrix,
            start,
            Y=np.ones((n, 1)),
            M=sparse.diags(1 / matrix.diagonal()),
            largest=False,
            maxiter=_ITERATIONS,
            tol=1e-5,
        )
    return np.asarray(vectors[:, np.argsort(values)[:n_components]])


def _squared_distances(graph: NeighborGraph) -> Vectors:
    """Return the squared distances of a graph's neighbours, (N, K) float64."""
    return np.asarray(graph.distances.astype(np.float64) ** 2)


def _scaled_weights(graph: NeighborGraph, scale: Vectors, t: int) -> Vectors:
    """Return exp(-d^2 / (t A_i A_j)) for each pair of the graph, (N, K).

    ``scale`` (N,): A, see :func:`compute_local_scales`.
    """
    squared = _squared_distances(graph) / (scale[:, None] * scale[graph.indices])
    return np.asarray(np.exp(-squared / t))


def _to_sparse_matrix(graph: NeighborGraph, weights: Any) -> sparse.csr_matrix:
    """Return the weights (N, K) as a sparse matrix (N, N) without stored zeros."""
    matrix = to_directed_matrix(graph, weights)
    matrix.eliminate_zeros()
    return matrix
