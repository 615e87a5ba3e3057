"""Laplacian eigenmaps with the weights of paper 2: LE, ALE and VRLE.

Each takes a graph of weighted neighbours W to the bottom eigenvectors of D - W, the
constant one left out (Proposition 3.2).  Pairs that are no neighbours have the weight
0, as in Alg. 1.  The parts of a graph are set side by side.  The start of the engine,
``init="spectral"``, is ``core/graph/start.py``.
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
"""Neighbours of a point in VRLE, at most, to those of the average point."""
_DENSE_ROWS = 500
"""Below this a dense solver is the quicker."""
_FACTORED_ROWS = 3_000
"""Above this the factors may fill the memory."""
_ITERATIONS = 300
_SPARE = 3  # are iterated along, so that the wanted eigenvectors settle sooner
Vectors = NDArray[np.float64]


def heat_weights(X: Any, n_neighbors: int) -> sparse.csr_matrix:
    """Weights of LE (Alg. 1): exp(-d^2 / sigma^2) where one is the other's neighbour.

    The paper leaves sigma open; here it is the root mean square of the distances.
    """
    graph = knn_graph(X, n_neighbors)
    squared = _squared(graph)
    weights = _directed(graph, np.exp(-squared / max(float(squared.mean()), 1e-300)))
    return weights.maximum(weights.T)


def average_distances(graph: NeighborGraph) -> Vectors:
    """Return A_i = sqrt(sum of squared distances to t neighbours) / t (Def. 3.5)."""
    lengths = np.sqrt(_squared(graph).sum(axis=1)) / graph.n_neighbors
    # Copies of a row are 0 apart; their distances still have to be divided by this.
    return np.asarray(np.maximum(lengths, max(1e-6 * lengths.mean(), 1e-100)))


def averaged_weights(X: Any, n_neighbors: int) -> sparse.csr_matrix:
    """Weights of ALE (Def. 3.5): exp(-d^2 / (t A_i A_j)) between mutual neighbours."""
    graph = knn_graph(X, n_neighbors)
    scaled = _scaled_weights(graph, average_distances(graph), n_neighbors)
    weights = _directed(graph, scaled)
    return weights.minimum(weights.T)


def variable_weights(X: Any, n_neighbors: int) -> sparse.csr_matrix:
    """Weights of VRLE (Def. 3.6): as ALE's, but denser points have more neighbours.

    Both t and the average radius R are ``n_neighbors``.  Point i has 1 + R exp(1 / A_i)
    / Z neighbours, ten times the average at most; pairs count where one is the other's
    neighbour.
    """
    scale = average_distances(knn_graph(X, n_neighbors))
    radius = variable_radius(scale, n_neighbors, X.shape[0])
    graph = knn_graph(X, int(radius.max()))
    scaled = _scaled_weights(graph, scale, n_neighbors)
    scaled[np.arange(graph.n_neighbors) >= radius[:, None]] = 0
    weights = _directed(graph, scaled)
    return weights.maximum(weights.T)


def variable_radius(scale: Vectors, n_neighbors: int, n_points: int) -> Any:
    """Return how many neighbours each point has in VRLE, (N,) of intp."""
    shares = np.exp(1 / scale - (1 / scale).max())  # the same after division by Z
    radius = 1 + n_neighbors * shares / shares.mean()
    most = min(n_points - 1, MAX_TIMES_AVERAGE * (1 + n_neighbors))
    return np.asarray(np.minimum(radius, most), dtype=np.intp)


def eigenmap(
    weights: sparse.csr_matrix, X: Any, n_components: int, random_state: int
) -> Vectors:
    """Return the bottom eigenvectors of D - W, (N, d), parts side by side."""
    matrix = sparse.csr_matrix(laplacian(weights), dtype=np.float64)
    n_parts, part = connected_components(weights, directed=False)
    layout = np.zeros((weights.shape[0], n_components))
    for each in range(n_parts):
        rows = np.flatnonzero(part == each)
        laid = _bottom(matrix[rows][:, rows], n_components, random_state)
        layout[rows, : laid.shape[1]] = laid
    whole = n_parts == 1
    return (
        layout if whole else arrange_components(layout, part, n_parts, X, n_components)
    )


def _start(
    weigh: Callable[[Any, int], sparse.csr_matrix],
    X: Any,
    n_components: int,
    n_neighbors: int,
    random_state: int,
) -> Vectors:
    return eigenmap(weigh(X, n_neighbors), X, n_components, random_state)


le = partial(_start, heat_weights)
ale, vrle = partial(_start, averaged_weights), partial(_start, variable_weights)
"""Laplacian eigenmaps as starts: plain (Alg. 1), averaged, of variable radius."""


def _bottom(matrix: sparse.csr_matrix, n_components: int, random_state: int) -> Vectors:
    """Return eigenvectors of the least eigenvalues, the first of all left out."""
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
        # It did not get all the way, as where data are long and thin.
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


def _squared(graph: NeighborGraph) -> Vectors:
    return np.asarray(graph.distances.astype(np.float64) ** 2)


def _scaled_weights(graph: NeighborGraph, scale: Vectors, t: int) -> Vectors:
    """Return exp(-d^2 / (t A_i A_j)) for each pair of the graph, (N, K)."""
    squared = _squared(graph) / (scale[:, None] * scale[graph.indices])
    return np.asarray(np.exp(-squared / t))


def _directed(graph: NeighborGraph, weights: Any) -> sparse.csr_matrix:
    """Return the (N, N) matrix of the graph's pairs; weights of 0 are no pairs."""
    matrix = to_directed_matrix(graph, weights)
    matrix.eliminate_zeros()
    return matrix
