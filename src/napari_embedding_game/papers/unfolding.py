"""Isomap and locally linear embedding, by scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.start import pca

from .eigenmaps import by_parts

_DENSE_ROWS = 1_000
Layout = NDArray[np.float64]


def isomap(X: Any, n_components: int, n_neighbors: int, random_state: int) -> Layout:
    """Keep the distances of (N, D) rows along the neighbour graph, (N, d).

    Paper 2, Alg. 2.  Parts of the graph are joined where they come nearest
    to each other.
    """
    from sklearn.decomposition import KernelPCA
    from sklearn.manifold import Isomap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there were parts to join
        along = Isomap(n_neighbors=n_neighbors, n_components=1).fit(X).dist_matrix_
    # Isomap's own eigenvectors start from a vector that takes no seed.
    n = min(n_components, X.shape[0] - 1)
    model = KernelPCA(n, kernel="precomputed", random_state=random_state)
    layout = model.fit_transform(-0.5 * along**2)
    return np.pad(layout, ((0, 0), (0, n_components - layout.shape[1])))


def lle(X: Any, n_components: int, n_neighbors: int, random_state: int) -> Layout:
    """Keep how each of (N, D) rows is made up of its neighbours, (N, d).

    Each part of the graph is laid out on its own; a part with too few rows
    for that gets its principal components.
    """
    graph = knn_graph(X, n_neighbors)
    n, k = graph.indices.shape
    pairs = (np.ones(n * k), graph.indices.ravel(), np.arange(0, n * k + 1, k))

    def lay_out(rows: NDArray[np.intp]) -> Layout:
        return _one_part(X[rows], n_components, n_neighbors, random_state)

    return by_parts(sparse.csr_matrix(pairs, (n, n)), X, n_components, lay_out)


def _one_part(
    X: NDArray[Any], n_components: int, n_neighbors: int, random_state: int
) -> Layout:
    from sklearn.manifold import LocallyLinearEmbedding

    n_points, n_dims = X.shape
    n = min(n_components, n_dims)
    if n_points <= max(n_neighbors, n + 1):
        return pca(X, n_components, random_state)
    model = LocallyLinearEmbedding(
        n_neighbors=n_neighbors,
        n_components=n,
        eigen_solver="dense" if n_points <= _DENSE_ROWS else "arpack",
        random_state=random_state,
    )
    return np.asarray(model.fit_transform(X))
