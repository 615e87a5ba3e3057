"""The nearest neighbours of every point: the graph that the game is played on.

Which search runs is decided by :func:`choose_search`, from this table
(``python benchmarks/neighbours.py`` measures it):

===========  ==========================================  ======================
search       used for                                    what it is
===========  ==========================================  ======================
exact        dense, euclidean or cosine, n^2 D <= 5e10   faiss, flat index
ivf          the same, larger                            faiss, inverted lists
hnsw         the same, where faiss is not installed      usearch
brute        any other metric, or sparse, n <= 5,000     scikit-learn
descent      any other metric, or sparse, larger         pynndescent
===========  ==========================================  ======================

Of a metric that only one of the last two knows, for dense or for sparse rows, it
searches any number of rows: pynndescent few too, scikit-learn many, which is slow.

faiss is not installed on macOS, where its OpenMP and torch's abort each other
in one process; there scikit-learn searches exactly and usearch above that.
Every search is deterministic: usearch is filled by one thread for that reason.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.threads import (
    PARALLEL,
    at_most_numba,
    resolve_n_jobs,
)

Search = Literal["exact", "ivf", "hnsw", "brute", "descent"]

EXACT_WORK = 5e10
"""Largest n^2 D for which exact search is used."""
BRUTE_ROWS = 5_000
"""Most rows that are searched exactly under a metric without an index."""
MOST_DENSE = 2**27
"""Numbers of sparse rows that are written out where a search cannot do without."""

Found = tuple[NDArray[Any], NDArray[Any]]
"""(N, k) row numbers and (N, k) distances, nearest first, the point itself included."""

_INDEXED_METRICS = ("euclidean", "cosine")
QUERIES = 4096
"""Rows that one thread searches for at a time."""
_BLAS = Lock()
"""Held while the number of BLAS's threads, which all of the process has, is changed."""
_SAFE = (1e-8, 1e15)
"""Sizes whose squares, and sums of them, float32 can hold."""
TOO_LARGE = (
    "The values are so large that distances between rows go beyond single precision "
    "(3e38): divide all of them by a common number."
)


@dataclass(frozen=True, slots=True)
class NeighborGraph:
    """The directed k-nearest-neighbour graph, each point's own self left out.

    Attributes
    ----------
    indices : (N, K) int32
        Row numbers of the neighbours, nearest first.
    distances : (N, K) float32
        Distances in the metric of the search.
    search : str
        Which search found them, a name from the table above.
    """

    indices: NDArray[np.int32]
    distances: NDArray[np.float32]
    search: Search

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
    n_jobs: int | None = None,
    search: Search | None = None,
) -> NeighborGraph:
    """Find the ``n_neighbors`` nearest other rows of every row.

    Parameters
    ----------
    X : (N, D) array or scipy sparse matrix
        Finite numbers.
    n_neighbors : int
        K, at least 1 and below N.
    metric : str
        Any that scikit-learn's brute search or pynndescent knows by name, for dense
        or for sparse rows as these are.
    random_state : int
        Seed of the searches that have one.
    n_jobs : int, optional
        Threads; None leaves one core to the window where there are more than two.
    search : str, optional
        A search from the module's table instead of :func:`choose_search`'s.

    Raises
    ------
    InputError
        Fewer than ``n_neighbors + 1`` rows, rows that are all the same, an
        unknown metric, or distances beyond single precision.
    """
    n_points, n_dims = X.shape
    check_rows(n_points, n_neighbors)
    check_varied(X)
    if search is None:
        search = choose_search(n_points, n_dims, metric, sparse.issparse(X))
    n_threads = resolve_n_jobs(n_jobs)
    # One more than asked for: a point is its own nearest neighbour.
    with np.errstate(over="ignore", invalid="ignore"):
        with_self = _SEARCHES[search](
            X, n_neighbors + 1, metric, random_state, n_threads
        )
    _check_reach(with_self[1])
    return NeighborGraph(*_without_self(*with_self, n_neighbors), search)


def check_rows(n_points: int, n_neighbors: int) -> None:
    """Raise :class:`InputError` unless every row can have ``n_neighbors`` others."""
    if not (isinstance(n_neighbors, (int, np.integer)) and n_neighbors >= 1):
        raise InputError(
            "The number of neighbours (K) must be a whole number, at least 1, "
            f"not {n_neighbors}."
        )
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


def choose_search(n_points: int, n_dims: int, metric: str, is_sparse: bool) -> Search:
    """Return the search for this size and kind of data (the module's table)."""
    if is_sparse or metric not in _INDEXED_METRICS:
        return _without_index(n_points, n_dims, metric, is_sparse)
    is_small = n_points**2 * n_dims <= EXACT_WORK
    if find_spec("faiss") is not None:
        return "exact" if is_small else "ivf"
    return "brute" if is_small else "hnsw"


def _without_index(n_points: int, n_dims: int, metric: str, is_sparse: bool) -> Search:
    from sklearn.neighbors import VALID_METRICS, VALID_METRICS_SPARSE

    # Where it fits, a dense copy is quicker than what pynndescent compiles.
    is_small = not is_sparse or n_points * n_dims <= MOST_DENSE
    known = (VALID_METRICS if is_small else VALID_METRICS_SPARSE)["brute"]
    if n_points <= BRUTE_ROWS and metric in known:
        return "brute"
    # Imported only here, as it takes seconds.  What neither knows, scikit-learn names.
    from pynndescent.distances import named_distances
    from pynndescent.sparse import sparse_named_distances

    others = sparse_named_distances if is_sparse else named_distances
    return "descent" if metric in others else "brute"


def _check_reach(distances: NDArray[Any]) -> None:
    """Raise :class:`InputError` where a distance is too large for float32."""
    # Turned round, as a difference of two infinite squares is no number.
    if not (distances <= np.finfo(np.float32).max).all():
        raise InputError(TOO_LARGE)


def _without_self(
    indices: NDArray[Any], distances: NDArray[Any], n_neighbors: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Drop each row's own number, or its last entry where the search missed it.

    Duplicated rows may come back in any order, so the own number is looked for
    and not assumed to stand first.
    """
    is_self = indices == np.arange(len(indices))[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    shape = (len(indices), n_neighbors)
    return (
        indices[~is_self].reshape(shape).astype(np.int32),
        distances[~is_self].reshape(shape).astype(np.float32),
    )


def _unit_rows(X: Any) -> NDArray[np.float32]:
    """Scale rows to length 1, on which euclidean neighbours are cosine ones."""
    X = np.asarray(X)
    X = X if X.dtype.kind == "f" else X.astype(np.float64)
    largest = np.maximum(X.max(axis=1, keepdims=True), -X.min(axis=1, keepdims=True))
    # By a power of two, which is exact, to where float32 can hold their squares.
    rows: NDArray[np.float32] = np.ldexp(X, -np.frexp(largest)[1]).astype(np.float32)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, length, out=rows, where=length > 0)
    return rows


def _centred(X: Any) -> NDArray[Any]:
    """Take the means of the columns from dense rows."""
    X = np.asarray(X)
    with np.errstate(over="ignore"):
        mean = X.mean(axis=0)
    if not np.isfinite(mean).all():
        raise InputError(TOO_LARGE)
    centred: NDArray[Any] = X - mean
    return centred


def _index_input(X: Any, metric: str) -> tuple[NDArray[np.float32], float]:
    """Return rows for a euclidean index in float32, and their unit of length."""
    if metric == "cosine":
        return np.ascontiguousarray(_unit_rows(X)), 1.0
    # Centred: float32 loses the small differences of points far from the origin.
    X = _centred(X)
    largest = float(max(X.max(), -X.min()))
    if _SAFE[0] < largest < _SAFE[1]:
        return np.ascontiguousarray(X, dtype=np.float32), 1.0
    return np.ascontiguousarray(X / largest, dtype=np.float32), largest


def _metric_distances(
    squared: NDArray[np.float32], metric: str, unit: float
) -> NDArray[Any]:
    """Turn squared euclidean distances of the index into the metric's own."""
    squared = np.maximum(squared, 0)
    if metric == "cosine":
        return squared / 2
    distances: NDArray[Any] = np.sqrt(squared).astype(np.float64) * unit
    return distances


def _search_faiss(
    X: Any, k: int, metric: str, random_state: int, n_threads: int, n_lists: int
) -> Found:
    """Search a flat index (``n_lists`` = 1) or inverted lists, 16 of them a query.

    BLAS rounds a product by how many threads share it: it has one here, and blocks
    of queries are shared among the threads instead.
    """
    import faiss
    from threadpoolctl import threadpool_limits

    rows, unit = _index_input(X, metric)
    with _BLAS, threadpool_limits(1, user_api="blas"):
        faiss.omp_set_num_threads(1)
        index: Any = faiss.IndexFlatL2(rows.shape[1])
        if n_lists > 1:
            index = faiss.IndexIVFFlat(index, rows.shape[1], n_lists)
            index.cp.seed = random_state % 2**31
            index.nprobe = min(16, n_lists)
            index.train(rows[:: max(1, len(rows) // (64 * n_lists))])
        index.add(rows)
        squared, indices = _search_blocks(index, rows, k, n_threads)
        short = np.flatnonzero((indices < 0).any(axis=1))
        if len(short):  # the lists these rows looked into held fewer than k rows
            index.nprobe = n_lists
            squared[short], indices[short] = index.search(rows[short], k)
    return indices, _metric_distances(squared, metric, unit)


def _search_blocks(
    index: Any, rows: NDArray[np.float32], k: int, n_threads: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return squared distances and row numbers (N, k), the same for any n_threads."""
    import faiss

    squared = np.empty((len(rows), k), np.float32)
    indices = np.empty((len(rows), k), np.int64)

    def search(begin: int) -> None:
        faiss.omp_set_num_threads(1)  # counts for the thread that says so
        block = slice(begin, begin + QUERIES)
        squared[block], indices[block] = index.search(rows[block], k)

    begins = range(0, len(rows), QUERIES)
    if n_threads == 1:
        for begin in begins:
            search(begin)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(search, begins))
    return squared, indices


def _search_exact(
    X: Any, k: int, metric: str, random_state: int, n_threads: int
) -> Found:
    return _search_faiss(X, k, metric, random_state, n_threads, n_lists=1)


def _search_ivf(
    X: Any, k: int, metric: str, random_state: int, n_threads: int
) -> Found:
    n_lists = 2 ** round(np.log2(np.sqrt(X.shape[0])))
    return _search_faiss(X, k, metric, random_state, n_threads, n_lists)


def _search_hnsw(
    X: Any, k: int, metric: str, random_state: int, n_threads: int
) -> Found:
    from usearch.index import Index

    rows, unit = _index_input(X, metric)
    index = Index(
        ndim=rows.shape[1],
        metric="l2sq",
        dtype="f32",
        connectivity=16,
        expansion_add=64,
        expansion_search=64,
    )
    index.add(np.arange(len(rows)), rows, threads=1)
    matches = index.search(rows, k, threads=n_threads)
    distances = _metric_distances(matches.distances, metric, unit)
    return matches.keys.astype(np.int64), distances


def _search_brute(
    X: Any, k: int, metric: str, random_state: int, n_threads: int
) -> Found:
    from sklearn.neighbors import VALID_METRICS_SPARSE, NearestNeighbors

    is_dense_only = metric not in VALID_METRICS_SPARSE["brute"]
    if sparse.issparse(X) and is_dense_only and np.prod(X.shape) <= MOST_DENSE:
        X = X.toarray()
    if metric == "euclidean" and not sparse.issparse(X):
        # It works with squares, of which points far from the origin have large ones.
        X = _centred(X)
    search = NearestNeighbors(
        n_neighbors=k, metric=metric, algorithm="brute", n_jobs=n_threads
    )
    try:
        distances, indices = search.fit(X).kneighbors(X)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"The distance {metric!r} cannot be used on these data: {error}"
        ) from error
    return indices, distances


def _search_descent(
    X: Any, k: int, metric: str, random_state: int, n_threads: int
) -> Found:
    from pynndescent import NNDescent

    try:
        with PARALLEL:
            index = NNDescent(
                X,
                metric=metric,
                n_neighbors=k,
                random_state=random_state,
                n_jobs=at_most_numba(n_threads),
            )
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"The distance {metric!r} cannot be used on these data: {error}"
        ) from error
    neighbors: Found = index.neighbor_graph
    if (neighbors[0] < 0).any():  # it found none
        raise InputError(
            f"Fewer than {k - 1} neighbours of some rows were found under the distance "
            f"{metric!r}: set a smaller number of neighbours (K) or choose another "
            "distance."
        )
    return neighbors


_SEARCHES: dict[Search, Callable[[Any, int, str, int, int], Found]] = {
    "exact": _search_exact,
    "ivf": _search_ivf,
    "hnsw": _search_hnsw,
    "brute": _search_brute,
    "descent": _search_descent,
}
