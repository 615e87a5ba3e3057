"""Cluster a subset of the rows again, by landmarks that are fitted to the subset.

The landmarks are merged along the neighbour graph of the subset, as the landmarks of a
map are merged by :func:`clusters.build_merge_tree`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.rows import SEARCHED, Rows
from napari_embedding_game.core.inspect.clusters import build_merge_tree, landmark_graph

MIN_ROWS = 10
"""Fewest rows that can be clustered."""
MIN_LANDMARKS, MAX_LANDMARKS = 8, 200


def recluster_rows(
    X: Any,
    n_parts: int = 3,
    *,
    n_neighbors: int = 15,
    metric: str = "euclidean",
    random_state: int = 0,
) -> NDArray[np.int32]:
    """Cluster rows ``X`` (m, D) into ``n_parts`` parts; return the part of each row.

    Parts (m,) are numbered from 0, the largest first.  There are fewer where k-means
    finds fewer landmarks than ``n_parts``.  ``n_neighbors``: neighbours of a row in the
    graph, at most m - 1.

    InputError: fewer rows than ``MIN_ROWS``, fewer parts than 2 or more than rows, or
    all rows the same.
    """
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.preprocessing import normalize

    n_rows = X.shape[0]
    if n_rows < MIN_ROWS:
        raise InputError(
            f"{n_rows} points are too few to be clustered: select {MIN_ROWS} or more."
        )
    if not 2 <= n_parts <= n_rows:
        raise InputError(f"{n_parts} parts cannot be made of {n_rows} points.")
    k = min(n_neighbors, n_rows - 1)
    graph = knn_graph(X, k, metric=metric, random_state=random_state)
    usual = max(2 * n_parts, MIN_LANDMARKS, round(np.sqrt(n_rows)))
    n_landmarks = min(usual, MAX_LANDMARKS + n_parts, n_rows)
    kmeans = MiniBatchKMeans(
        n_landmarks, random_state=random_state, n_init=3, batch_size=1024
    )
    if metric == "correlation" or (metric in SEARCHED and not sparse.issparse(X)):
        X = Rows(X, metric)[:]
    elif metric == "cosine":
        X = normalize(X)  # stays sparse
    landmarks = kmeans.fit_predict(X)
    sizes = np.bincount(landmarks)
    weighted = build_edges(graph, "fuzzy")
    between = landmark_graph(weighted, landmarks, len(sizes))
    parts = build_merge_tree(between, sizes).cut(n_parts)[landmarks]
    rank = np.argsort(np.argsort(-np.bincount(parts), kind="stable"))
    by_size: NDArray[np.int32] = rank.astype(np.int32)[parts]
    return by_size
