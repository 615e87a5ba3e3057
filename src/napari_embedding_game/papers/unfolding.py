"""Isomap and locally linear embedding, by scikit-learn, as starts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from napari_embedding_game.core.graph.edges import directed
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.start import filled, pca

from .eigenmaps import Rows, Vectors, by_parts

_DENSE_ROWS = 1_000


def isomap(X: Any, n_components: int, n_neighbors: int, random_state: int) -> Vectors:
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
    return filled(model.fit_transform(-0.5 * along**2), n_components)


def lle(X: Any, n_components: int, n_neighbors: int, random_state: int) -> Vectors:
    """Keep how each of (N, D) rows is made up of its neighbours, (N, d).

    Each part of the graph is laid out on its own; a part with too few rows
    for that gets its principal components.
    """
    from sklearn.manifold import LocallyLinearEmbedding

    graph = knn_graph(X, n_neighbors)
    pairs = directed(graph, np.ones(graph.indices.shape, np.float32))
    n = min(n_components, X.shape[1])

    def lay_out(rows: Rows) -> Vectors:
        if len(rows) <= max(n_neighbors, n + 1):
            return pca(X[rows], n_components, random_state)
        model = LocallyLinearEmbedding(
            n_neighbors=n_neighbors,
            n_components=n,
            eigen_solver="dense" if len(rows) <= _DENSE_ROWS else "arpack",
            random_state=random_state,
        )
        return np.asarray(model.fit_transform(X[rows]))

    return by_parts(pairs, X, n_components, lay_out)
