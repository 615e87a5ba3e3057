"""The nearest fitted rows of new rows, of which none changes the answer of another.

* Dense rows under a metric of ``rows.SEARCHED``: the loops of the fit's own search,
  over all rows, or above ``MOST_FLAT`` rows over the ``N_PROBES`` nearest of the lists
  that k-means puts them into (inverted lists: Jegou, Douze and Schmid, 2011).
* Any other metric that scikit-learn's ``pairwise_distances`` knows, and sparse rows:
  distances to all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph import loops
from napari_embedding_game.core.graph.exact import shared
from napari_embedding_game.core.graph.neighbors import MOST_DENSE
from napari_embedding_game.core.graph.rows import SEARCHED, Rows, without_sparsity

MOST_FLAT = 8_192
"""Fitted rows up to which all of them are looked at."""
N_PROBES = 16
"""Lists that are searched for each new row."""
_ROWS_OF_LIST, _MOST_LISTS = 256, 4_096
_SAMPLES, _ROUNDS = 32, 6
"""Of k-means: rows for each list, and rounds."""
_SPARE = 4
"""Candidates more than asked for, as scores are less exact than distances."""
_LOST = 1e-4
"""Squared distance, relative to a row's length, below which scores are too rough."""
_QUERIES = 1_024
"""Rows that a thread takes at a time."""
_NUMBERS_AT_ONCE = 2**24
_OF_ALL_ROWS = ("seuclidean", "mahalanobis")
"""Metrics whose parameters are those of the rows, new ones among them."""

Found = tuple[NDArray[np.int64], NDArray[np.float32]]
"""(Q, M) row numbers and distances, nearest first."""


class FittedSearch:
    """A search among fitted rows.

    Parameters
    ----------
    X : (N, D) array or csr matrix
        The fitted rows: finite numbers.
    metric : str or callable
        As in the fit.
    n_jobs : int, optional
        Threads, see :func:`threads.resolve_n_jobs`.
    random_state : int
        Seed of k-means.

    Raises
    ------
    InputError
        Distances of new rows are not defined under the metric.
    """

    def __init__(
        self, X: Any, metric: Any, n_jobs: int | None = 1, random_state: int = 0
    ) -> None:
        check_metric(metric)
        self._X = X = without_sparsity(X)
        self._metric = metric
        self._n_jobs = n_jobs
        self._source: Rows | None = None
        if metric in SEARCHED and not sparse.issparse(X):
            self._source = Rows(X, metric)
            self._rows = self._source.take(slice(None))
            self._lists = _lists(self._rows, n_jobs, random_state)

    def __call__(self, X: Any, n_neighbors: int) -> Found:
        """Return the nearest fitted rows of ``X`` (Q, D) and their distances.

        Of rows at the same distance the one of the lower number comes first.

        Raises
        ------
        InputError
            Values of ``X`` are too large, or the metric does not take such rows.
        """
        if sparse.issparse(self._X):
            X = sparse.csr_matrix(X)
        elif sparse.issparse(X):
            X = X.toarray()
        if self._source is None:
            found, distances = self._all_distances(X, n_neighbors)
        else:
            queries = self._source.prepared(X)
            numbers, squared = _nearest(
                queries, self._rows, n_neighbors, self._n_jobs, *self._lists
            )
            found = numbers.astype(np.int64)
            distances = self._source.distances(squared)
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
        found = np.empty((X.shape[0], n_neighbors), np.int64)
        distances = np.empty(found.shape, np.float32)
        step = max(1, _NUMBERS_AT_ONCE // fitted.shape[0])
        for begin in range(0, len(found), step):
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


def k_means(
    rows: NDArray[np.float32],
    n_centres: int,
    n_jobs: int | None = 1,
    random_state: int = 0,
) -> NDArray[np.float32]:
    """Return centres of rows (N, D) by some rounds of k-means on a sample, (C, D).

    The same for any number of threads.
    """
    rng = np.random.default_rng(random_state)
    size = min(len(rows), _SAMPLES * n_centres)
    sample = rows[np.sort(rng.choice(len(rows), size, replace=False))]
    centres = sample[rng.choice(size, n_centres, replace=False)]
    for _ in range(_ROUNDS):
        labels, _ = nearest_centre(sample, centres, n_jobs)
        counts = np.bincount(labels, minlength=n_centres)
        order = np.argsort(labels, kind="stable")
        used = np.flatnonzero(counts)
        starts = np.concatenate([[0], np.cumsum(counts[used])[:-1]])
        sums = np.add.reduceat(sample[order].astype(np.float64), starts, axis=0)
        centres[used] = (sums / counts[used, None]).astype(np.float32)
    return centres


def nearest_centre(
    rows: NDArray[np.float32], centres: NDArray[np.float32], n_jobs: int | None = 1
) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
    """Return the nearest centre of each row, and its squared distance: (N,) each."""
    found, squared = _nearest(rows, centres, 1, n_jobs)
    return found[:, 0], squared[:, 0]


_Lists = tuple[NDArray[np.float32], list[NDArray[np.integer]]]
"""Centres of lists (L, D), and the numbers of the rows in each."""


def _lists(
    rows: NDArray[np.float32], n_jobs: int | None, random_state: int
) -> _Lists | tuple[()]:
    """Return the lists that rows are searched by, none where they are few."""
    if len(rows) <= MOST_FLAT:
        return ()
    n_lists = min(len(rows) // _ROWS_OF_LIST, _MOST_LISTS)
    centres = k_means(rows, n_lists, n_jobs, random_state)
    labels, _ = nearest_centre(rows, centres, n_jobs)
    ends = np.cumsum(np.bincount(labels, minlength=n_lists))[:-1]
    order = np.argsort(labels, kind="stable").astype(np.int32)
    return centres, np.split(order, ends)


def _nearest(
    queries: NDArray[np.float32],
    rows: NDArray[np.float32],
    k: int,
    n_jobs: int | None,
    centres: NDArray[np.float32] | None = None,
    members: Any = (),
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the ``k`` nearest rows of each query, and their squared distances.

    Those of the lists with the nearest centres, where there are lists; of all of them
    for a query whose lists do not hold as many.
    """
    n, everything = len(rows), np.arange(len(rows), dtype=np.int32)
    found = np.empty((len(queries), k), np.int32)
    squared = np.empty(found.shape, np.float32)
    probed = None
    if centres is not None and len(members) > N_PROBES:
        probed, _ = _nearest(queries, centres, N_PROBES, n_jobs)
        sizes = np.array([len(each) for each in members])

    def look(begin: int, end: int) -> None:
        part = queries[begin:end]
        near = np.full((len(part), min(k + _SPARE, n)), -1, np.int32)
        scores = np.full(near.shape, np.inf, np.float32)

        def scan(some: NDArray[np.integer], numbers: NDArray[np.int32]) -> None:
            lists = near[some], scores[some]
            nobody = np.full(len(some), -1, np.int32)
            loops.scan(part[some], nobody, rows, numbers, 0, *lists)
            near[some], scores[some] = lists

        if probed is None:
            scan(np.arange(len(part)), everything)
        else:
            of = probed[begin:end]
            is_short = sizes[of].sum(axis=1) < near.shape[1]
            for lists in (of[:, :1], of[:, 1:]):  # then few others are near enough
                asked = lists.ravel()
                order = np.argsort(asked, kind="stable")
                for some in np.split(order, np.flatnonzero(np.diff(asked[order])) + 1):
                    few = some // lists.shape[1]
                    scan(few[~is_short[few]], members[asked[some[0]]])
            scan(np.flatnonzero(is_short), everything)
        candidates, at = np.unique(near, return_inverse=True)
        at = at.reshape(near.shape).astype(np.int32)
        if candidates[0] < 0:
            candidates, at = candidates[1:], at - 1
        loops.rank(part, rows[candidates], at, found[begin:end], squared[begin:end])
        found[begin:end] = candidates[found[begin:end]]
        # So near each other, beside their distance from the middle, that scores say
        # nothing: rows at distance 0 are found in any case.
        lengths = np.einsum("ij,ij->i", part, part)
        farthest = squared[begin:end, -1]
        lost = np.flatnonzero((farthest > 0) & (farthest < _LOST * lengths))
        for q in lost + begin:
            one = slice(q, q + 1)
            loops.rank(queries[one], rows, everything[None], found[one], squared[one])

    shared(n_jobs)(look, len(queries), _QUERIES)
    return found, squared
