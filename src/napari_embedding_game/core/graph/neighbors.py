"""Find the nearest neighbours of every row: the graph that the game is played on.

``python benchmarks/neighbours_scaling.py`` measures the searches:

===========  ============================================  =========================
search       used for                                      done by
===========  ============================================  =========================
exact        a metric of ``SEARCHED``, n^2 C <= 5e10, or   :mod:`exact`
             1.5e11 where D > 100
leaves       the same, larger                              :mod:`leaves`
projected    the same, larger, D > 100                     :mod:`principal_components`
brute        any other metric, n <= 5,000                  scikit-learn
descent      any other metric, larger                      pynndescent
precomputed  ``X`` are distances                           :mod:`precomputed`
===========  ============================================  =========================

A further metric is an entry of ``rows.SEARCHED`` and a branch of
``Rows._normalise_rows`` and ``Rows.to_distances``; :mod:`choices` has the registries of
affinities and starts.  C is D; for sparse rows C is about the number of columns that
are not 0 in one of two rows.  Sparse rows with more than ``MAX_DENSE`` numbers go to a
library where nearly all numbers are 0 or there are at most 5,000 rows.  A metric that
scikit-learn or pynndescent alone knows is searched by that library.  Where "leaves" or
"projected" finds less than 0.9 of the true neighbours of sampled rows, the next search
follows, in the order "projected", "leaves" (not for sparse rows with more than
``MAX_DENSE`` numbers), "exact" (up to n^2 C of 2e12), "descent".  Every search is
deterministic; our own searches have the same bits on any processor.  Of rows at the
same distance "exact" takes those with the lowest numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.precomputed import find_precomputed_neighbors
from napari_embedding_game.core.graph.rows import (
    MAX_DENSE,
    SEARCHED,
    TOO_LARGE,
    Rows,
    centre_for_library,
    sum_duplicate_entries,
)
from napari_embedding_game.core.threads import PARALLEL, count_threads

Search = Literal["precomputed", "exact", "leaves", "projected", "brute", "descent"]

EXACT_WORK, EXACT_LONG = 5e10, 1.5e11
"""Largest n^2 C for which exact search is used: for rows with up to ``SHORT_ROWS``
columns, and for longer rows."""
PATIENT_WORK = 2e12
"""Largest n^2 C for exact search after quicker searches have missed neighbours."""
SHORT_ROWS = 100
"""Most columns of rows that are searched without a projection."""
MIN_RECALL = 0.9
"""Least share of the true neighbours of sampled rows that a search must find."""
MIN_FILLED = 1 / 32
"""Share of numbers that are not 0 below which sparse rows of more than ``MAX_DENSE``
numbers go to a library: 4,000 rows of 10 words among 50,000 took 51 s instead of 2."""
BRUTE_ROWS = 5_000
"""Most rows that are searched exactly under a library's metric."""
NEED_MORE = ("mahalanobis", "seuclidean", "standardised_euclidean", "wminkowski",
             "weighted_minkowski")  # fmt: skip
"""Distances of pynndescent that are computed from more than two rows."""

_COMPARED = 100
"""About the number of pairs of rows by which distances of 0 are checked."""


@dataclass(frozen=True, slots=True, eq=False)
class NeighborGraph:
    """The directed k-nearest-neighbour graph, without self-edges.

    ``indices`` (N, K) int32, nearest first; ``distances`` (N, K) float32; ``search``: a
    name from the module's table; ``recall``: share of the true neighbours of sampled
    rows, None where it was not measured.
    """

    indices: NDArray[np.int32]
    distances: NDArray[np.float32]
    search: Search
    recall: float | None = None

    @property
    def n_points(self) -> int:
        """Number of points N."""
        return len(self.indices)

    @property
    def n_neighbors(self) -> int:
        """Number of neighbours K of each point."""
        return int(self.indices.shape[1])


def knn_graph(
    X: Any,
    n_neighbors: int = 15,
    *,
    metric: str = "euclidean",
    random_state: int = 0,
    search: Search | None = None,
) -> NeighborGraph:
    """Find the ``n_neighbors`` nearest other rows of every row of ``X`` (N, D).

    Parameters
    ----------
    X
        Rows, dense or sparse; distances (N, N) for the metric "precomputed", see
        :mod:`precomputed`.
    n_neighbors
        Number of neighbours K, without the row itself.
    metric
        A name that scikit-learn's brute search or pynndescent knows, "precomputed", or
        a function of two rows.
    random_state
        Seed of the searches that have one.
    search
        A search of the module's table; by default that of :func:`choose_search`.

    Raises
    ------
    InputError
        Fewer than ``n_neighbors + 1`` rows, all rows the same, an unknown metric,
        undefined distances, or distances that single precision cannot hold.
    """
    validate_row_count(X.shape[0], n_neighbors)
    if sparse.issparse(X):
        X = sum_duplicate_entries(X.tocsr())
    if metric == "precomputed":
        indices, distances = find_precomputed_neighbors(X, n_neighbors)
        search, recall = "precomputed", None
    else:
        validate_rows_differ(X)
        search, indices, distances, recall = _search_or_retry(
            X, n_neighbors, metric, random_state, search
        )
        _validate_distances_defined(metric, np.isnan(distances).sum(axis=1), X)
        _validate_float32_distances(X, metric, indices, distances)
    # Not ">": NaN, the difference of two infinite squares, must be found as well.
    if not (distances <= np.finfo(np.float32).max).all():
        raise InputError(TOO_LARGE)
    return NeighborGraph(indices, distances.astype(np.float32), search, recall)


def choose_search(X: Any, metric: str) -> Search:
    """Return the search of the module's table for the rows' size and the metric.

    No row is compared.  InputError: no library knows the metric, or a Python function
    has too many rows.
    """
    (n_points, n_dims), is_sparse = X.shape, sparse.issparse(X)
    if metric in SEARCHED and not (is_sparse and _is_library_faster(X)):
        is_long = n_dims > SHORT_ROWS
        if _estimate_exact_work(X) <= (EXACT_LONG if is_long else EXACT_WORK):
            return "exact"
        return "projected" if is_long else "leaves"
    if callable(metric):
        return _choose_search_for_callable(n_points, metric)
    # Imported first: a thread that loads it meanwhile fails, python/cpython#83065.
    import sklearn.metrics  # noqa: F401
    from sklearn.neighbors import VALID_METRICS, VALID_METRICS_SPARSE

    # Where a dense copy fits into memory, it is quicker than compiling pynndescent.
    is_small = not is_sparse or n_points * n_dims <= MAX_DENSE
    metrics = (VALID_METRICS if is_small else VALID_METRICS_SPARSE)["brute"]
    if n_points <= BRUTE_ROWS and metric in metrics:
        return "brute"
    from pynndescent.distances import named_distances  # takes seconds
    from pynndescent.sparse import sparse_named_distances

    metrics = sparse_named_distances if is_sparse else named_distances
    if metric in metrics and metric not in NEED_MORE:
        return "descent"
    if metric in VALID_METRICS["brute"]:
        return "brute"
    raise InputError(
        f'There is no distance {metric!r}: choose another; usual ones are "euclidean", '
        '"cosine", "correlation" and "manhattan".'
    )


def _choose_search_for_callable(n_points: int, metric: Any) -> Search:
    """Return "brute" for at most 5,000 rows, else "descent" for a compiled function.

    InputError: more rows and a function that numba has not compiled.
    """
    if n_points <= BRUTE_ROWS:
        return "brute"
    if hasattr(metric, "py_func"):
        return "descent"
    raise InputError(
        f"A distance that is a function of Python is computed for all pairs of at most "
        f"{BRUTE_ROWS:,} rows, and these are {n_points:,}: compile it by numba.njit."
    )


def _is_library_faster(X: Any) -> bool:
    """Return whether a library searches sparse rows faster than we do by dense ones.

    It does where a dense copy exceeds ``MAX_DENSE`` numbers, and there are at most
    ``BRUTE_ROWS`` rows or few numbers other than 0.
    """
    n, size = X.shape[0], math.prod(X.shape)
    return size > MAX_DENSE and bool(n <= BRUTE_ROWS or X.nnz < MIN_FILLED * size)


def _estimate_exact_work(X: Any) -> float:
    """Return n^2 times D, the cost of comparing all rows.

    For sparse rows D is replaced by the columns that are not 0 in one of two rows.
    """
    n, n_dims = X.shape
    return float(n**2 * (min(n_dims, 2 * X.nnz / n) if sparse.issparse(X) else n_dims))


def validate_row_count(n_points: int, n_neighbors: int) -> None:
    """Raise :class:`InputError` unless every row can have ``n_neighbors`` neighbours.

    A row is no neighbour of itself.  The estimator lowers ``n_neighbors`` with a
    warning before, so that only other callers get this error.
    """
    if n_points <= n_neighbors:
        raise InputError(
            f"The data have {n_points} row{'s' if n_points != 1 else ''}, but "
            f"{n_neighbors} neighbours need at least {n_neighbors + 1}: "
            "set a smaller number of neighbours (K) or load more rows."
        )


def validate_rows_differ(X: Any) -> None:
    """Raise :class:`InputError` where all rows of ``X`` are the same."""
    first = X[:1]
    if sparse.issparse(X):
        is_same = (X.max(axis=0) - X.min(axis=0)).nnz == 0
    else:
        # The second row of most data differs, so that all rows are seldom compared.
        is_same = bool((X[1:2] == first).all() and (first == X).all())
    if is_same:
        raise InputError(
            f"All {X.shape[0]} rows are the same in all {X.shape[1]} columns, so there "
            "is nothing to lay out: choose other columns or another file."
        )


def validate_rows_not_constant(X: Any) -> None:
    """Raise :class:`InputError` where a row is constant and has no correlations."""
    spread = X.max(axis=1) - X.min(axis=1)
    spread = spread.toarray() if sparse.issparse(X) else spread
    _validate_distances_defined("correlation", spread.ravel() == 0, np.zeros(1))


def _validate_distances_defined(metric: str, n_undefined: NDArray[Any], X: Any) -> None:
    """Raise :class:`InputError` where rows have undefined distances.

    ``n_undefined`` (N,): number of undefined distances of each row.  Values of 1e9 and
    more are left to a later check.
    """
    # Squares of very large values are infinite, which raises another error later.
    if n_undefined.any() and abs(X).max() < 1e9:
        raise InputError(
            f"The distance {metric!r} is not defined for row {n_undefined.argmax()} of "
            f"the data (counted from 0; such rows: {np.count_nonzero(n_undefined):,})"
            ", as where all values of a row are the same: leave it out, or choose "
            'another, as "euclidean".'
        )


def _validate_float32_distances(
    X: Any, metric: str, indices: NDArray[np.int32], distances: NDArray[Any]
) -> None:
    """Raise :class:`InputError` where most distances become 0 in float32.

    It is raised only if most of about 100 sampled pairs at such a distance do differ.
    """
    is_lost = distances < np.finfo(np.float32).tiny
    if metric != "euclidean":  # rows that differ may have a distance of 0
        is_lost &= distances > 0
    if 2 * np.count_nonzero(is_lost) <= is_lost.size:
        return
    rows, at = (each[:: max(1, len(each) // _COMPARED)] for each in np.nonzero(is_lost))
    differences = abs(X[rows] - X[indices[rows, at]]).sum(axis=1)
    if 2 * np.count_nonzero(differences) > len(rows):
        raise InputError(
            "Most distances between rows are lost in single precision: they are below "
            f"1e-38, or so small beside the largest value, {abs(X).max():.3g}, that it "
            "cannot hold both. Multiply all values by a common number, or correct "
            "those that are far larger than all others."
        )


_SearchResult = tuple[NDArray[np.int32], NDArray[Any], float | None]
"""Row numbers (N, K), distances (N, K), and the recall or None."""


def _search_or_retry(
    X: Any, k: int, metric: str, seed: int, search: Search | None
) -> tuple[Search, *_SearchResult]:
    """Search; use the next search where the recall is below ``MIN_RECALL``.

    Returns the search whose result it is, and its result.  ``search`` None is chosen by
    :func:`choose_search`.  The order of searches is in the module's docstring.
    """
    first = search or choose_search(X, metric)
    if metric not in SEARCHED:
        X = centre_for_library(X, metric)
    if first == "brute":
        return first, *_search_by_sklearn(X, k, metric), None
    if first == "descent":
        return first, *_search_by_pynndescent(X, k, metric, seed), None
    if metric == "correlation":
        validate_rows_not_constant(X)
    rows, turns = Rows(X, metric), list[Search](["projected", "leaves", "exact"])
    for each in turns[turns.index(first) :]:
        is_retry = each != first
        if each == "exact" and is_retry and _estimate_exact_work(X) > PATIENT_WORK:
            break
        if each == "leaves" and is_retry and rows.exceeds_dense_limit:
            continue
        result = _search_by_compiled_loops(rows, k, seed, each)
        if result and (result[2] is None or result[2] >= MIN_RECALL):
            return each, result[0], rows.to_distances(result[1]), result[2]
    if rows.exceeds_dense_limit:
        return "descent", *_search_by_pynndescent(X, k, metric, seed), None
    indices, squared = _search_by_pynndescent(rows[:], k, "sqeuclidean", seed)
    return "descent", indices, rows.to_distances(squared), None


def _search_by_compiled_loops(
    rows: Rows, k: int, seed: int, search: Search
) -> _SearchResult | None:
    """Search ``k`` neighbours by our compiled loops; return squared distances.

    The recall is None for "exact".  The result is None where "projected" finds no
    number of candidates that contains the neighbours.
    """
    from napari_embedding_game.core.graph import exact, leaves, principal_components

    if search == "projected":
        return principal_components.search_by_projection(rows, k, seed)
    if search == "exact":
        ids = np.arange(len(rows), dtype=np.int32)
        every = rows if rows.exceeds_dense_limit else rows[:]
        return *exact.find_exact_neighbors(every, ids, k), None
    values = rows[:]
    check = leaves.make_recall_check(values, k, seed)
    order, indices, squared, recall = leaves.search_by_leaves(values, k, check)
    back = np.argsort(order)
    return indices[back], squared[back], recall


def _search_by_sklearn(
    X: Any, k: int, metric: str
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return row numbers and distances (N, k) by scikit-learn's brute search.

    Sparse rows are made dense where the metric takes no others.
    """
    from sklearn.neighbors import VALID_METRICS_SPARSE, NearestNeighbors

    if sparse.issparse(X) and metric not in VALID_METRICS_SPARSE["brute"]:
        X = X.toarray()
    how = {"algorithm": "brute", "metric": metric, "n_jobs": count_threads()}
    with explain_metric_errors(metric):
        distances, indices = NearestNeighbors(n_neighbors=k, **how).fit(X).kneighbors()
    return indices.astype(np.int32), distances


def _search_by_pynndescent(
    X: Any, k: int, metric: str, seed: int
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return row numbers and distances (N, k) by pynndescent, without the row itself.

    Where copies of a row displace it, the farthest neighbour found is left out instead.
    InputError: fewer than ``k`` neighbours of some row were found.
    """
    from numba import config
    from pynndescent import NNDescent

    n_jobs = min(count_threads(), config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    options = {"n_neighbors": k + 1, "random_state": seed, "n_jobs": n_jobs}
    with explain_metric_errors(metric), PARALLEL:
        index = NNDescent(X, metric, **options)
    indices, distances = index.neighbor_graph
    if (indices < 0).any():  # -1: no neighbour was found
        raise InputError(
            f"Fewer than {k} neighbours of some rows were found under the distance "
            f"{metric!r}: set a smaller number of neighbours (K) or choose another "
            "distance."
        )
    # The row itself is removed; where copies displace it, the last entry is removed.
    is_other = indices != np.arange(len(indices))[:, None]
    is_other[is_other.all(axis=1), -1] = False
    others, lengths = indices[is_other], distances[is_other]
    return others.reshape(-1, k).astype(np.int32), lengths.reshape(-1, k)


@contextmanager
def explain_metric_errors(metric: str) -> Iterator[None]:
    """Turn a library's errors about a metric or its rows into :class:`InputError`.

    These are ValueError, TypeError and KeyError inside the ``with`` block; numpy's
    warnings of overflow and invalid values are silent there.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"The distance {metric!r} cannot be used on these data: {error}"
        ) from error
