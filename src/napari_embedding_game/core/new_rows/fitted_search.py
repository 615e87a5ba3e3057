"""The nearest fitted rows of new rows, of which none changes the answer of another.

Libraries find distances by products of matrices, which BLAS rounds by how many rows
there are.  Here every distance is a sum of its own, so that the order and the size of
batches change nothing:

* euclidean and cosine, dense: compiled loops over all rows, or above ``MOST_FLAT``
  rows over the ``N_PROBES`` nearest of the lists that k-means puts them into
  (inverted lists: Jegou, Douze and Schmid, 2011);
* any other metric that scikit-learn's ``pairwise_distances`` knows, and sparse rows:
  distances to all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.neighbors import MOST_DENSE
from napari_embedding_game.core.graph.rows import Rows, without_sparsity
from napari_embedding_game.core.new_rows import search_loops
from napari_embedding_game.core.new_rows.search_loops import BLOCK
from napari_embedding_game.core.threads import run_blocks

MOST_FLAT = 8_192
"""Fitted rows up to which all of them are looked at."""
N_PROBES = 16
"""Lists that are searched for each new row."""
_ROWS_OF_LIST, _MOST_LISTS = 256, 4_096
_SAMPLES, _ROUNDS = 32, 6
"""Of k-means: rows for each list, and rounds."""
_NUMBERS_AT_ONCE = 2**24
_OF_ALL_ROWS = ("seuclidean", "mahalanobis")
"""Metrics whose parameters are those of the rows, new ones among them."""

Found = tuple[NDArray[np.int64], NDArray[np.float32]]
"""(Q, M) row numbers and (Q, M) distances, nearest first."""


class FittedSearch:
    """A search among fitted rows.

    Parameters
    ----------
    X : (N, D) array or csr matrix
        The fitted rows: finite numbers.
    metric : str or callable
        As in the fit.
    n_threads : int
    random_state : int
        Seed of k-means.

    Raises
    ------
    InputError
        Distances of new rows are not defined under the metric.
    """

    def __init__(
        self, X: Any, metric: Any, n_threads: int = 1, random_state: int = 0
    ) -> None:
        check_metric(metric)
        self._X = X = without_sparsity(X)
        self._metric = metric
        self._n_threads = n_threads
        is_indexed = metric in ("euclidean", "cosine") and not sparse.issparse(X)
        self._index = _Index(X, metric, n_threads, random_state) if is_indexed else None

    def __call__(self, X: Any, n_neighbors: int) -> Found:
        """Return the nearest fitted rows of ``X`` (Q, D) and their distances.

        Of rows at the same distance the one of the lower number comes first.

        Raises
        ------
        InputError
            Values of ``X`` are too large, or the metric does not take such rows.
        """
        X = _alike(X, self._X)
        if self._index is not None:
            found, distances = self._index(X, n_neighbors)
        else:
            found, distances = self._all_distances(X, n_neighbors)
        if not (distances <= np.finfo(np.float32).max).all():
            raise InputError(
                "The values of new rows are so large that distances go beyond single "
                "precision (3e38): prepare them as the fitted rows were."
            )
        return found, distances.astype(np.float32)

    def _all_distances(self, X: Any, n_neighbors: int) -> Found:
        from sklearn.metrics import pairwise_distances
        from sklearn.neighbors import VALID_METRICS_SPARSE

        fitted = self._X
        if sparse.issparse(fitted) and not (
            self._metric in VALID_METRICS_SPARSE["brute"]
            or np.prod(fitted.shape) > MOST_DENSE
        ):
            X, fitted = X.toarray(), fitted.toarray()
        n, n_rows = X.shape[0], fitted.shape[0]
        found = np.empty((n, n_neighbors), np.int64)
        distances = np.empty((n, n_neighbors), np.float32)
        step = max(1, _NUMBERS_AT_ONCE // n_rows)
        for begin in range(0, n, step):
            block = slice(begin, begin + step)
            try:
                apart = pairwise_distances(X[block], fitted, metric=self._metric)
            except (ValueError, TypeError) as error:
                raise InputError(
                    f"New rows cannot be placed under the distance {self._metric!r}: "
                    f"{error}"
                ) from error
            for q, row in enumerate(apart, begin):
                farthest = np.partition(row, n_neighbors - 1)[n_neighbors - 1]
                near = np.flatnonzero(row <= farthest)
                order = np.argsort(row[near], kind="stable")[:n_neighbors]
                found[q] = near[order]
                distances[q] = row[found[q]]
        return found, distances


def check_metric(metric: Any) -> None:
    """Raise InputError for a metric under which new rows have no distances."""
    if metric == "precomputed":
        raise InputError(
            "New rows cannot be placed on a map of precomputed distances: fit the rows "
            "themselves, with the metric that the distances are of."
        )
    if callable(metric):
        return
    from sklearn.metrics import pairwise_distances  # noqa: F401  (as it loads scipy's)
    from sklearn.neighbors import VALID_METRICS

    if metric in _OF_ALL_ROWS or metric not in VALID_METRICS["brute"]:
        raise InputError(
            f"New rows cannot be placed under the distance {metric!r}: fit with "
            "another, such as euclidean, cosine, correlation or manhattan."
        )


def _alike(X: Any, fitted: Any) -> Any:
    """Return new rows as an array or as a sparse matrix, as the fitted rows are."""
    if sparse.issparse(fitted):
        return sparse.csr_matrix(X)
    return X.toarray() if sparse.issparse(X) else X


class _Index:
    """Dense rows in blocks, by lists."""

    def __init__(self, X: Any, metric: str, n_threads: int, random_state: int) -> None:
        self._n_threads = n_threads
        self._rows = Rows(X, metric)
        rows = self._rows.take(slice(None))
        self._centres = np.zeros((1, rows.shape[1], BLOCK), np.float32)
        labels = np.zeros(len(rows), np.int64)
        if len(rows) > MOST_FLAT:
            self._centres, labels = self._lists(rows, random_state)
        self._first, self._blocks, self._numbers = _blocks(rows, labels)

    def __call__(self, X: NDArray[Any], n_neighbors: int) -> Found:
        found, squared = _nearest(
            self._rows.prepared(X), n_neighbors, self._n_threads, self._centres,
            self._first, self._blocks, self._numbers,
        )  # fmt: skip
        return found, self._rows.distances(squared)

    def _lists(
        self, rows: NDArray[np.float32], random_state: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the centres of lists in blocks, and the list of each row."""
        n_lists = min(len(rows) // _ROWS_OF_LIST, _MOST_LISTS)
        centres = k_means(rows, n_lists, self._n_threads, random_state)
        labels, _ = nearest_centre(rows, centres, self._n_threads)
        return _in_blocks(centres)[0], labels


def k_means(
    rows: NDArray[np.float32], n_centres: int, n_threads: int = 1, random_state: int = 0
) -> NDArray[np.float32]:
    """Return centres of rows (N, D) by some rounds of k-means on a sample, (C, D).

    The same for any number of threads.
    """
    rng = np.random.default_rng(random_state)
    size = min(len(rows), _SAMPLES * n_centres)
    sample = rows[np.sort(rng.choice(len(rows), size, replace=False))]
    centres = sample[rng.choice(size, n_centres, replace=False)]
    for _ in range(_ROUNDS):
        labels, _ = nearest_centre(sample, centres, n_threads)
        counts = np.bincount(labels, minlength=n_centres)
        order = np.argsort(labels, kind="stable")
        used = np.flatnonzero(counts)
        starts = np.concatenate([[0], np.cumsum(counts[used])[:-1]])
        sums = np.add.reduceat(sample[order].astype(np.float64), starts, axis=0)
        centres[used] = (sums / counts[used, None]).astype(np.float32)
    return centres


def nearest_centre(
    rows: NDArray[np.float32], centres: NDArray[np.float32], n_threads: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the nearest centre of each row, and its squared distance: (N,) each."""
    blocks, numbers = _in_blocks(centres)
    one = np.zeros((1, rows.shape[1], BLOCK), np.float32)
    first = np.array([0, len(blocks)])
    found, squared = _nearest(rows, 1, n_threads, one, first, blocks, numbers)
    return found[:, 0], squared[:, 0]


def _nearest(
    queries: NDArray[np.float32],
    k: int,
    n_threads: int,
    centres: NDArray[np.float32],
    first: NDArray[np.int64],
    blocks: NDArray[np.float32],
    numbers: NDArray[np.int64],
) -> Found:
    """Run the compiled search: row numbers and squared distances, (Q, k)."""
    found = np.empty((len(queries), k), np.int64)
    squared = np.empty((len(queries), k), np.float32)
    run_blocks(
        search_loops.nearest_rows, len(queries), len(queries) * blocks.size, n_threads,
        queries, centres, N_PROBES, first, blocks, numbers, found, squared,
    )  # fmt: skip
    return found, squared


def _in_blocks(
    rows: NDArray[np.float32], numbers: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return rows in blocks, column by column, and their numbers."""
    n, n_dims = rows.shape
    n_blocks = -(-n // BLOCK)
    padded = np.zeros((n_blocks * BLOCK, n_dims), np.float32)
    padded[:n] = rows
    by_block = padded.reshape(n_blocks, BLOCK, n_dims).transpose(0, 2, 1)
    of_rows = np.full(n_blocks * BLOCK, -1)
    of_rows[:n] = np.arange(n) if numbers is None else numbers
    return np.ascontiguousarray(by_block), of_rows.reshape(n_blocks, BLOCK)


def _blocks(
    rows: NDArray[np.float32], labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Return where the blocks of each list begin, the blocks and their numbers."""
    sizes = np.bincount(labels)
    first = np.concatenate([[0], np.cumsum(-(-sizes // BLOCK))])
    blocks = np.zeros((first[-1], rows.shape[1], BLOCK), np.float32)
    numbers = np.full((first[-1], BLOCK), -1)
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    for each, begin, end in zip(members, first[:-1], first[1:], strict=True):
        blocks[begin:end], numbers[begin:end] = _in_blocks(rows[each], each)
    return first, blocks, numbers
