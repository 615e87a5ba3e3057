"""Cluster some of the rows anew: the neighbour graph among them alone.

By Leiden's method on the points, or by landmarks fitted to these points and merged
along their graph, as the landmarks of a map are.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import Edges, edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.clusters import (
    landmark_graph,
    leiden_clusters,
    merge_tree,
)

Way = Literal["landmarks", "leiden"]
FEWEST = 10
"""Points that can be clustered."""
FEWEST_LANDMARKS, MOST_LANDMARKS = 8, 200


def recluster(
    X: Any,
    way: Way,
    *,
    n_parts: int = 3,
    resolution: float | None = None,
    n_neighbors: int = 15,
    metric: str = "euclidean",
    random_state: int = 0,
    n_jobs: int | None = None,
) -> NDArray[np.int32]:
    """Return the part (m,) that each row is in, from 0, the largest first.

    Parameters
    ----------
    X : (m, D) array or CSR matrix
        The rows that are to be clustered, without any others.
    way : {"landmarks", "leiden"}
    n_parts : int
        At least 2.  By Leiden's method the nearest number that is found.
    resolution : float, optional
        Of Leiden's method, in place of the number of parts.
    n_neighbors : int
        Of the graph; of fewer rows as many as there are.
    metric : str
        Of the neighbours.
    random_state : int
    n_jobs : int, optional
        Threads of the search.

    Raises
    ------
    InputError
        Too few rows or parts, rows that are all the same, or Leiden's packages are
        not installed.
    """
    n_rows = X.shape[0]
    if n_rows < FEWEST:
        raise InputError(
            f"{n_rows} points are too few to be clustered: select {FEWEST} or more."
        )
    if not 2 <= n_parts <= n_rows:
        raise InputError(f"{n_parts} parts cannot be made of {n_rows} points.")
    graph = knn_graph(
        X,
        min(n_neighbors, n_rows - 1),
        metric=metric,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    among = edges(graph, "fuzzy", n_jobs=n_jobs)
    if way == "leiden":
        number = None if resolution is not None else n_parts
        found = leiden_clusters(
            among.matrix(),
            n_clusters=number,
            resolution=1.0 if resolution is None else resolution,
            random_state=random_state,
        )
    else:
        landmarks = _landmarks(X, metric, n_parts, random_state)
        found = _merged(among, landmarks, n_parts)
    return _by_size(found)


def _landmarks(
    X: Any, metric: str, n_parts: int, random_state: int
) -> NDArray[np.int32]:
    """Return the landmark (m,) of each row: middles that were fitted to the rows."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.preprocessing import normalize

    n_rows = X.shape[0]
    wanted = max(2 * n_parts, FEWEST_LANDMARKS, round(np.sqrt(n_rows)))
    n_landmarks = min(wanted, MOST_LANDMARKS + n_parts, n_rows)
    rows = normalize(X) if metric == "cosine" else X
    fitted = MiniBatchKMeans(
        n_landmarks, random_state=random_state, n_init=3, batch_size=1024
    ).fit(rows)
    labels: NDArray[np.int32] = fitted.labels_.astype(np.int32)
    return labels


def _merged(
    among: Edges, landmarks: NDArray[np.int32], n_parts: int
) -> NDArray[np.int32]:
    n_landmarks = int(landmarks.max()) + 1
    graph = landmark_graph(among, landmarks, n_landmarks)
    sizes = np.bincount(landmarks, minlength=n_landmarks)
    merged: NDArray[np.int32] = merge_tree(graph, sizes).cut(n_parts)[landmarks]
    return merged


def _by_size(parts: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the parts numbered by their size."""
    ids, places, sizes = np.unique(parts, return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty(len(ids), np.int32)
    rank[order] = np.arange(len(ids), dtype=np.int32)
    numbered: NDArray[np.int32] = rank[places]
    return numbered
