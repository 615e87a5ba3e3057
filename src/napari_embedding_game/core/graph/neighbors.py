"""The nearest neighbours of every point: the graph that the game is played on.

``python benchmarks/neighbours_scaling.py`` measures the searches:

===========  ============================================  =========================
search       used for                                      what it is
===========  ============================================  =========================
exact        a metric of ``SEARCHED``, n^2 C <= 5e10, or   :mod:`exact`
             1.5e11 where D > 100
leaves       the same, larger                              :mod:`leaves`
projected    the same, larger, D > 100                     :mod:`principal_components`
brute        any other metric, n <= 5,000                  scikit-learn
descent      any other metric, larger                      pynndescent
precomputed  ``X`` are distances                           :mod:`precomputed`
===========  ============================================  =========================

A further metric is an entry of ``rows.SEARCHED`` and a branch of ``Rows._plain`` and
``Rows.distances``; :mod:`choices` has the lists of affinities and starts.  C is D, of
sparse rows the columns that are not of zeros in two of them.  Sparse rows that are more
than ``MAX_DENSE`` numbers, nearly all 0, or at most 5,000, go to a library.  A metric
that only one of the two knows is searched by that one.  Where "leaves" and "projected"
find less than 0.9 of the true neighbours of some rows, the next search of "projected",
"leaves" (not of sparse rows that are more than ``MAX_DENSE`` numbers), "exact" (to
n^2 C of 2e12), "descent" follows.  Every search is deterministic; our own have the
same bits on any processor.  Of rows at the same distance "exact" takes the first ones.
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
from napari_embedding_game.core.graph.precomputed import precomputed_neighbors
from napari_embedding_game.core.graph.rows import (
    MAX_DENSE,
    SEARCHED,
    TOO_LARGE,
    Rows,
    centred,
    summed,
)
from napari_embedding_game.core.threads import PARALLEL, count_threads

Search = Literal["precomputed", "exact", "leaves", "projected", "brute", "descent"]

EXACT_WORK, EXACT_LONG = 5e10, 1.5e11
"""Largest n^2 C for which exact search is used, of rows up to ``SHORT_ROWS`` columns
and of longer ones."""
PATIENT_WORK = 2e12
"""The same, where quicker searches have missed neighbours."""
SHORT_ROWS = 100
"""Most columns that are searched as they are."""
MIN_RECALL = 0.9
"""Share of the true neighbours that a search by lists must find, of some rows."""
MIN_FILLED = 1 / 32
"""Share of numbers that are not 0 below which more sparse ones than ``MAX_DENSE`` go to
a library: 4,000 rows of 10 words among 50,000 took 51 s instead of 2."""
BRUTE_ROWS = 5_000
"""Most rows that are searched exactly under a metric of a library."""
NEED_MORE = ("mahalanobis", "seuclidean", "standardised_euclidean", "wminkowski",
             "weighted_minkowski")  # fmt: skip
"""Distances that pynndescent knows and that need more than two rows."""

_COMPARED = 100
"""Pairs of rows by which distances of 0 are checked."""


@dataclass(frozen=True, slots=True, eq=False)
class NeighborGraph:
    """The directed k-nearest-neighbour graph, without self-edges.

    ``indices`` (N, K) int32, nearest first; ``distances`` (N, K) float32; ``search``: a
    name from the table above; ``recall``: share of the true neighbours, where it was
    measured.
    """

    indices: NDArray[np.int32]
    distances: NDArray[np.float32]
    search: Search
    recall: float | None = None

    @property
    def n_points(self) -> int:
        """N."""
        return len(self.indices)

    @property
    def n_neighbors(self) -> int:
        """K."""
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

    ``metric``: any that scikit-learn's brute search or pynndescent knows by name, or
    "precomputed", where ``X`` are distances, see :mod:`precomputed`.
    ``random_state``: seed of the searches that have one.  ``search``: one of the
    module's table instead of :func:`choose_search`'s.

    InputError: fewer than ``n_neighbors + 1`` rows, rows that are all the same, an
    unknown metric, or distances beyond single precision.
    """
    check_rows(X.shape[0], n_neighbors)
    if sparse.issparse(X):
        X = summed(X.tocsr())
    if metric == "precomputed":
        indices, distances = precomputed_neighbors(X, n_neighbors)
        search, recall = "precomputed", None
    else:
        check_varied(X)
        asked = n_neighbors, metric, random_state, search
        search, indices, distances, recall = _search_or_retry(X, *asked)
        _check_defined(metric, np.isnan(distances).sum(axis=1), X)
        _check_float32(X, metric, indices, distances)
    # Turned round, as a difference of two infinite squares is no number.
    if not (distances <= np.finfo(np.float32).max).all():
        raise InputError(TOO_LARGE)
    return NeighborGraph(indices, distances.astype(np.float32), search, recall)


def choose_search(X: Any, metric: str) -> Search:
    """Return the search for this size and kind of data (the module's table)."""
    (n_points, n_dims), is_sparse = X.shape, sparse.issparse(X)
    if metric in SEARCHED and not (is_sparse and _is_thin(X)):
        is_long = n_dims > SHORT_ROWS
        if _exact_work(X) <= (EXACT_LONG if is_long else EXACT_WORK):
            return "exact"
        return "projected" if is_long else "leaves"
    if callable(metric):
        return _choose_search_by_function(n_points, metric)
    # First, as a thread that loads it meanwhile would break: python/cpython#83065.
    import sklearn.metrics  # noqa: F401
    from sklearn.neighbors import VALID_METRICS, VALID_METRICS_SPARSE

    # Where it fits, a dense copy is quicker than what pynndescent compiles.
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


def _choose_search_by_function(n_points: int, metric: Any) -> Search:
    """Return the search under a distance that is a function of two rows."""
    if n_points <= BRUTE_ROWS:
        return "brute"
    if hasattr(metric, "py_func"):
        return "descent"
    raise InputError(
        f"A distance that is a function of Python is computed for all pairs of at most "
        f"{BRUTE_ROWS:,} rows, and these are {n_points:,}: compile it by numba.njit."
    )


def _is_thin(X: Any) -> bool:
    """Return whether libraries take less time than to write sparse rows out."""
    n, size = X.shape[0], math.prod(X.shape)
    return size > MAX_DENSE and bool(n <= BRUTE_ROWS or X.nnz < MIN_FILLED * size)


def _exact_work(X: Any) -> float:
    """Return n^2 times the columns that are not of zeros in two rows, about."""
    n, n_dims = X.shape
    return float(n**2 * (min(n_dims, 2 * X.nnz / n) if sparse.issparse(X) else n_dims))


def check_rows(n_points: int, n_neighbors: int) -> None:
    """Raise :class:`InputError` unless every row can have ``n_neighbors`` others.

    ``estimator.EmbeddingGame._play`` lowers their number with a warning instead.
    """
    if n_points <= n_neighbors:
        raise InputError(
            f"The data have {n_points} row{'s' if n_points != 1 else ''}, but "
            f"{n_neighbors} neighbours need at least {n_neighbors + 1}: "
            "set a smaller number of neighbours (K) or load more rows."
        )


def check_varied(X: Any) -> None:
    """Raise :class:`InputError` when every row is the same."""
    first = X[:1]
    if sparse.issparse(X):
        is_same = (X.max(axis=0) - X.min(axis=0)).nnz == 0
    else:
        # Most data differ in the second row: look at all only when they do not.
        is_same = bool((X[1:2] == first).all() and (first == X).all())
    if is_same:
        raise InputError(
            f"All {X.shape[0]} rows are the same in all {X.shape[1]} columns, so there "
            "is nothing to lay out: choose other columns or another file."
        )


def check_spread(X: Any) -> None:
    """Raise :class:`InputError` where a row is constant: nothing correlates with it."""
    spread = X.max(axis=1) - X.min(axis=1)
    spread = spread.toarray() if sparse.issparse(X) else spread
    _check_defined("correlation", spread.ravel() == 0, np.zeros(1))


def _check_defined(metric: str, n_undefined: NDArray[Any], X: Any) -> None:
    """Raise :class:`InputError` where some rows (N,) have no distances."""
    # Squares of very large values are infinite, which is another error.
    if n_undefined.any() and abs(X).max() < 1e9:
        raise InputError(
            f"The distance {metric!r} is not defined for row {n_undefined.argmax()} of "
            f"the data (counted from 0; such rows: {np.count_nonzero(n_undefined):,})"
            ", as where all values of a row are the same: leave it out, or choose "
            'another, as "euclidean".'
        )


def _check_float32(
    X: Any, metric: str, indices: NDArray[np.int32], distances: NDArray[Any]
) -> None:
    """Raise :class:`InputError` where float32 takes most distances for 0."""
    is_lost = distances < np.finfo(np.float32).tiny
    if metric != "euclidean":  # by which other rows may be the same
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
"""Numbers (N, K), distances (N, K) and, where it was measured, the recall."""


def _search_or_retry(
    X: Any, k: int, metric: str, seed: int, search: Search | None
) -> tuple[Search, *_SearchResult]:
    """Search, and search in another way where too few true neighbours are found."""
    first = search or choose_search(X, metric)
    if metric not in SEARCHED:
        X = centred(X, metric)
    if first == "brute":
        return first, *_brute(X, k, metric), None
    if first == "descent":
        return first, *_descent(X, k, metric, seed), None
    if metric == "correlation":
        check_spread(X)
    rows, turns = Rows(X, metric), list[Search](["projected", "leaves", "exact"])
    for each in turns[turns.index(first) :]:
        if each == "exact" and first != "exact" and _exact_work(X) > PATIENT_WORK:
            break
        if each == "leaves" and first != "leaves" and rows.are_many:
            continue
        result = _compiled_search(rows, k, seed, each)
        if result and (result[2] is None or result[2] >= MIN_RECALL):
            return each, result[0], rows.distances(result[1]), result[2]
    if rows.are_many:
        return "descent", *_descent(X, k, metric, seed), None
    indices, squared = _descent(rows[:], k, "sqeuclidean", seed)
    return "descent", indices, rows.distances(squared), None


def _compiled_search(
    rows: Rows, k: int, seed: int, search: Search
) -> _SearchResult | None:
    """Search by the compiled loops; squared distances; None where it cannot."""
    from napari_embedding_game.core.graph import exact, leaves, principal_components

    if search == "projected":
        return principal_components.projected_search(rows, k, seed)
    if search == "exact":
        ids = np.arange(len(rows), dtype=np.int32)
        every = rows if rows.are_many else rows[:]
        return *exact.nearest_of_all(every, ids, k), None
    values = rows[:]
    check = leaves.some_true(values, k, seed)
    order, indices, squared, recall = leaves.leaf_search(values, k, check)
    back = np.argsort(order)
    return indices[back], squared[back], recall


def _brute(X: Any, k: int, metric: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
    from sklearn.neighbors import VALID_METRICS_SPARSE, NearestNeighbors

    if sparse.issparse(X) and metric not in VALID_METRICS_SPARSE["brute"]:
        X = X.toarray()
    how = {"algorithm": "brute", "metric": metric, "n_jobs": count_threads()}
    with named(metric):
        distances, indices = NearestNeighbors(n_neighbors=k, **how).fit(X).kneighbors()
    return indices.astype(np.int32), distances


def _descent(
    X: Any, k: int, metric: str, seed: int
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    from numba import config
    from pynndescent import NNDescent

    n_jobs = min(count_threads(), config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    options = {"n_neighbors": k + 1, "random_state": seed, "n_jobs": n_jobs}
    with named(metric), PARALLEL:
        index = NNDescent(X, metric, **options)
    indices, distances = index.neighbor_graph
    if (indices < 0).any():  # it found none
        raise InputError(
            f"Fewer than {k} neighbours of some rows were found under the distance "
            f"{metric!r}: set a smaller number of neighbours (K) or choose another "
            "distance."
        )
    # A row is not its own neighbour; where copies hide it the last entry goes.
    is_other = indices != np.arange(len(indices))[:, None]
    is_other[is_other.all(axis=1), -1] = False
    others, lengths = indices[is_other], distances[is_other]
    return others.reshape(-1, k).astype(np.int32), lengths.reshape(-1, k)


@contextmanager
def named(metric: str) -> Iterator[None]:
    """Say by its name that a library does not know a distance, or take the rows."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"The distance {metric!r} cannot be used on these data: {error}"
        ) from error
