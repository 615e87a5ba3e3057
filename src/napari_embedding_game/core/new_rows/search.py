"""Search the nearest fitted rows of new rows, each independently of the others.

Under a metric of ``rows.SEARCHED`` all fitted rows are compared, or above ``MAX_FLAT``
rows those of the ``N_PROBES`` nearest lists of :mod:`leaves`.  Under a metric that is a
function scikit-learn compares all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph import exact, leaves, search_loops
from napari_embedding_game.core.graph.neighbors import validate_rows_not_constant
from napari_embedding_game.core.graph.rows import (
    MAX_DENSE,
    SEARCHED,
    Rows,
    find_nonzero_rows,
)
from napari_embedding_game.core.threads import run_blocks

MAX_FLAT = 8_192
"""Largest number of fitted rows that are all compared."""
N_PROBES = 16
"""Number of lists that are searched for each new row."""
_WORK = 10_000
"""Cost of a search, in pairs of points."""

Neighbors = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Row numbers and distances (Q, M), nearest first."""


class FittedSearch:
    """Search among fitted rows (N, D), by the metric of the fit.

    InputError: the metric is neither in ``rows.SEARCHED`` nor a function, or the sparse
    rows are too many to be made dense.
    """

    def __init__(self, X: Any, metric: Any) -> None:
        validate_metric(metric)
        self._sklearn_index: Any = None
        if callable(metric):
            from sklearn.neighbors import NearestNeighbors

            self._sklearn_index = NearestNeighbors(algorithm="brute", metric=metric)
            self._sklearn_index.fit(_to_dense(X))
            return
        if np.prod(X.shape) > MAX_DENSE and hasattr(X, "toarray"):
            raise InputError(
                "New rows cannot be placed among so many sparse ones: fit their "
                "principal components."
            )
        self._metric, self._rows = metric, Rows(X, metric)
        values, n = self._rows[:], X.shape[0]
        order, bounds = np.arange(n, dtype=np.int32), np.array([0, n])
        if n > MAX_FLAT:
            order, bounds = leaves.split_into_lists(values)
            values = values[order]
        means = leaves.compute_mean_rows_of_lists(values, bounds)
        self._lists = values, order, bounds, means, min(N_PROBES, len(means))

    def __call__(self, X: Any, n_neighbors: int) -> Neighbors:
        """Return the nearest fitted rows of new rows ``X`` (Q, D), and their distances.

        Both are (Q, M) with M = ``n_neighbors``, nearest first.  Of rows at the same
        distance the lower number comes first.  Under "cosine" a new row of zeros is at
        distance 1 from all fitted rows, and gets the first M of them if none of the
        fitted rows is zero.

        InputError: values are too large, or a row is constant under "correlation".
        """
        if not X.shape[0]:
            shape = 0, n_neighbors
            return np.empty(shape, np.int64), np.empty(shape, np.float32)
        if self._sklearn_index is not None:
            distances, numbers = self._sklearn_index.kneighbors(
                _to_dense(X), n_neighbors
            )
            return numbers, distances.astype(np.float32)
        if self._metric == "correlation":
            validate_rows_not_constant(X)
        indices = np.empty((X.shape[0], n_neighbors), np.int64)
        squared = self._search_lists(self._rows.convert(X), indices)
        distances = self._rows.to_distances(squared)
        if self._metric == "cosine" and not self._rows.has_zero_rows:
            is_zero = ~find_nonzero_rows(X)  # at distance 1 from every row
            indices[is_zero], distances[is_zero] = np.arange(n_neighbors), 1
        if not (distances <= np.finfo(np.float32).max).all():
            raise InputError(
                "The values of new rows are so large that distances go beyond single "
                "precision (3e38): prepare them as the fitted rows were."
            )
        return indices, distances.astype(np.float32)

    def _search_lists(
        self, queries: NDArray[np.float32], indices: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Write row numbers to ``indices`` (Q, M), and return squared distances (Q, M).

        ``queries`` (Q, D): new rows, converted as the fitted rows.
        """
        rows, *_, n_probes = self._lists
        if n_probes == 1:  # for a single list the comparison by scores is quicker
            nobody = np.full(len(indices), -1, np.int32)
            indices[:], squared = exact.find_exact_neighbors(
                rows, nobody, indices.shape[1], queries
            )
            return squared
        squared, n = np.empty(indices.shape, np.float32), len(queries)
        found = queries, *self._lists, indices, squared
        run_blocks(search_loops.search_lists, n, n * _WORK, *found)
        return squared


def _to_dense(X: Any) -> Any:
    """Return a sparse matrix as an array, and other rows unchanged."""
    return X.toarray() if hasattr(X, "toarray") else X


def validate_metric(metric: Any) -> None:
    """Raise InputError for a metric that new rows cannot be searched by.

    Allowed are the names in ``rows.SEARCHED``, and functions.
    """
    if metric == "precomputed":
        raise InputError(
            "New rows cannot be placed on a map of precomputed distances: fit the rows "
            "themselves, with the metric that the distances are of."
        )
    if metric not in SEARCHED and not callable(metric):
        raise InputError(
            f"New rows cannot be placed under the distance {metric!r}: fit with one of "
            f"{', '.join(SEARCHED)}."
        )
