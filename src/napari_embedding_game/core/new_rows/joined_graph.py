"""Add new rows to the neighbour graph of fitted rows, in both directions.

A new row gets its nearest neighbours among all rows, and comes into the list of each
fitted row that it is nearer to than the farthest neighbour there.  So the graph is that
of a search among all rows, as far as :class:`search.FittedSearch` is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.graph.neighbors import NeighborGraph
from napari_embedding_game.core.new_rows.search import FittedSearch


def stack_rows(fitted_rows: Any, new_rows: Any) -> Any:
    """Return fitted rows (N, D) followed by new rows (Q, D), sparse as the fitted are.

    Of float32 and float64 the result is float64.
    """
    if sparse.issparse(fitted_rows):
        return sparse.vstack([fitted_rows, sparse.csr_matrix(new_rows)], format="csr")
    dense = new_rows.toarray() if sparse.issparse(new_rows) else new_rows
    return np.concatenate([fitted_rows, dense])


def add_rows_to_graph(graph: NeighborGraph, X: Any, metric: Any) -> NeighborGraph:
    """Return the neighbour graph of the rows ``X`` (N + Q, D), new rows last.

    ``graph``: of the first N rows, by ``metric``.  Of rows at the same distance the
    lower number comes first.  InputError: as of :class:`search.FittedSearch`.
    """
    n, k = graph.n_points, graph.n_neighbors
    new_rows, numbers = X[n:], np.arange(n, X.shape[0])
    indices, distances = FittedSearch(X, metric)(new_rows, k + 1)
    is_other = indices != numbers[:, None]
    is_other[is_other.all(axis=1), -1] = False  # copies of the row took its place
    near, apart = FittedSearch(new_rows, metric)(X[:n], min(k, len(numbers)))
    indices_of_fitted = np.concatenate([graph.indices, near + n], axis=1)
    distances_of_fitted = np.concatenate([graph.distances, apart], axis=1)
    order = np.argsort(distances_of_fitted, axis=1, kind="stable")[:, :k]
    return NeighborGraph(
        _stack_lists(indices_of_fitted, order, indices[is_other], np.int32),
        _stack_lists(distances_of_fitted, order, distances[is_other], np.float32),
        graph.search,
    )


def _stack_lists(
    lists: NDArray[Any], order: NDArray[np.intp], new: NDArray[Any], kind: Any
) -> NDArray[Any]:
    """Return the entries ``order`` (N, K) of ``lists`` (N, M), then lists ``new``.

    ``new`` (Q K,) are the lists of the new rows, one after the other; ``kind``: type of
    the result, (N + Q, K).
    """
    chosen = np.take_along_axis(lists, order, axis=1)
    return np.concatenate([chosen, new.reshape(-1, order.shape[1])]).astype(kind)
