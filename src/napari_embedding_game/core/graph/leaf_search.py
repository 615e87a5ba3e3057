"""Neighbours in near-linear time: lists of some hundred rows, then their neighbours.

1. A tree of halves along the longest direction of each half puts the rows into lists.
   A few rounds of k-means among near lists alone make them compact.
2. Every row is compared with the rows of the lists next to its own, by one matrix
   product for each list.
3. Rounds of neighbours of neighbours, in both directions, find what the lists missed
   (Dong, Moses and Li, 2011).  After each round the neighbours of some rows are
   compared with their true ones, and when nearly all were found, that was the last.

A copy of the rows is kept in the order of the lists, so that what is compared lies
together: in the order of the data a round of neighbours of neighbours takes four times
as long (250,000 x 50, 7.8 for 1.9 processor seconds).  No
list is longer than ``_LONGEST`` whatever the data, copies of one row among them.  The
result does not depend on the number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph import neighbor_loops

_LONGEST = 256
"""Most rows of a list of the tree; twice as many after k-means."""
_KMEANS_ROUNDS = 3
_NEAR_LISTS = 32
"""Lists that a row may change to in a round of k-means."""
_CANDIDATES = 4_096
"""Rows that each row is compared with in step 2, at least."""
_SAMPLED_ROWS = 512
"""Rows that a half's longest direction is from."""
_POWER_ITERATIONS = 6
_MOST_LISTS = 16_384
"""Lists up to which each is compared with each other one."""
_MOST_ROUNDS = 5
_ENOUGH = 0.992
"""Share of the true neighbours that ends the rounds."""
_LEAST_START = 0.5
"""Share of them without which rounds do not help: lists say little of such data."""
_LEAST_GAIN = 0.002
"""What a round must find of them, to be followed by another one."""
_CHECKED_ROWS = 500
_BLOCK = 4_096
_TIE = 1 + 1e-5
"""Relative to the last true neighbour, how far another one may be that is as near."""


class Source(Protocol):
    """Where rows come from, see :class:`rows.Rows`."""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""

    def take(self, rows: NDArray[Any] | slice) -> NDArray[np.float32]:
        """Return the rows of these numbers."""


class Check:
    """The true distance of the k-th neighbour of some rows, to measure a recall with.

    Parameters
    ----------
    source : Source
    k : int
        Neighbours, the row itself not counted.
    seed : int
        Of the rows that are drawn.
    pool : ThreadPoolExecutor
        Whose threads share the work.
    """

    def __init__(
        self, source: Source, k: int, seed: int, pool: ThreadPoolExecutor
    ) -> None:
        n = source.shape[0]
        rng = np.random.default_rng(seed)
        self._source = source
        self.rows = np.sort(rng.choice(n, min(n, _CHECKED_ROWS), replace=False))
        self._own = source.take(self.rows)
        self._k = k
        # By a product first, then what is near by differences.
        near = nearest_by_product(source, self.rows, min(2 * k, n - 1), pool)
        self._farthest = np.sort(self._squared(near), axis=1)[:, k - 1 : k]

    def _squared(self, others: NDArray[Any]) -> NDArray[np.float32]:
        """Return squared distances (S, M) from the checked rows to ``others``."""
        squared = np.empty(others.shape, np.float32)
        for at, (own, row) in enumerate(zip(self._own, others, strict=True)):
            squared[at] = np.square(self._source.take(row) - own).sum(axis=1)
        return squared

    def recall(self, others: NDArray[Any]) -> float:
        """Return the share of the true neighbours among ``others`` (S, M)."""
        is_near = self._squared(others) <= self._farthest * _TIE
        return float(np.minimum(is_near.sum(axis=1), self._k).mean() / self._k)


def nearest_by_product(
    source: Source, rows: NDArray[Any], count: int, pool: ThreadPoolExecutor
) -> NDArray[np.int32]:
    """Return the ``count`` nearest others (S, count) of some rows, nearest first.

    Of all rows, by |x|^2 - 2 x y, which rounds more than differences do.
    """
    own = -2 * source.take(rows)

    def nearest(block: slice) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        others = source.take(block)
        scores = own @ others.T
        scores += np.einsum("ij,ij->i", others, others)
        best = np.full((len(own), count), np.inf, np.float32)
        numbers = np.full(best.shape, -1, np.int32)
        neighbor_loops.smallest(scores, rows, block.start, numbers, best)
        return best, numbers

    parts = _each(pool, nearest, _blocks(source.shape[0]))
    best, numbers = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    if best.shape[1] > count:
        some = np.argpartition(best, count - 1, axis=1)[:, :count]
        best = np.take_along_axis(best, some, axis=1)
        numbers = np.take_along_axis(numbers, some, axis=1)
    ranked = best.argsort(axis=1, kind="stable")
    return np.take_along_axis(numbers, ranked, axis=1)


def leaf_search(
    source: Source,
    k: int,
    random_state: int,
    pool: ThreadPoolExecutor,
    check: Check,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32], float]:
    """Find ``k`` neighbours of every row, itself left out.

    BLAS must have one thread, as its sums depend on how many it has.

    Returns
    -------
    order : (N,) int32
        Numbers of the rows in the order of the lists.
    indices : (N, k) int32
        *Places in that order* of the neighbours of each row in it, nearest first.
    squared : (N, k) float32
        Their squared distances.
    recall : float
        What ``check`` says of them.
    """
    n = source.shape[0]
    order, bounds = _lists(source, random_state, pool)
    rows = _taken(source, order, pool)
    indices, squared = _compare_near_lists(rows, bounds, k, pool)
    place = np.empty(n, np.int32)
    place[order] = np.arange(n, dtype=np.int32)

    def recall() -> float:
        return check.recall(order[indices[place[check.rows]]])

    found = recall()
    is_new = np.ones(indices.shape, np.uint8)
    for _ in range(_MOST_ROUNDS):
        before = found
        if found >= _ENOUGH or found < _LEAST_START:
            break
        indices, squared, is_new = _neighbors_round(
            rows, indices, squared, is_new, pool
        )
        found = recall()
        if found - before < _LEAST_GAIN:
            break
    return order, indices, squared, found


def _blocks(n: int, step: int = _BLOCK) -> list[slice]:
    return [slice(begin, min(begin + step, n)) for begin in range(0, n, step)]


def _each(
    pool: ThreadPoolExecutor, function: Callable[[Any], Any], items: Any
) -> list[Any]:
    return list(pool.map(function, items))


def _taken(
    source: Source, order: NDArray[np.int32], pool: ThreadPoolExecutor
) -> NDArray[np.float32]:
    rows = np.empty(source.shape, np.float32)

    def take(block: slice) -> None:
        rows[block] = source.take(order[block])

    _each(pool, take, _blocks(len(order)))
    return rows


# --- The lists


def _lists(
    source: Source, seed: int, pool: ThreadPoolExecutor
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return rows in the order of the lists (N,), and where each begins (M + 1,)."""
    n = source.shape[0]
    order = np.arange(n, dtype=np.int32)
    bounds = _halved(source, order, np.array([0, n]), _LONGEST, seed, pool)
    if len(bounds) == 2:
        return order, bounds
    for _ in range(_KMEANS_ROUNDS):
        order, bounds = _kmeans_round(source, order, bounds, pool)
    # Copies of one row all go to the same list.
    bounds = _halved(source, order, bounds, 2 * _LONGEST, seed, pool)
    return order, bounds


def _halved(
    source: Source,
    order: NDArray[np.int32],
    bounds: NDArray[np.int64],
    longest: int,
    seed: int,
    pool: ThreadPoolExecutor,
) -> NDArray[np.int64]:
    """Halve every list, in place, until none has more than ``longest`` rows."""

    def halve(part: tuple[int, int]) -> int:
        begin, end = part
        members = order[begin:end]
        direction = _longest_direction(source, members, seed)
        along = np.empty(len(members), np.float32)
        for block in _blocks(len(members)):
            along[block] = source.take(members[block]) @ direction
        middle = len(members) // 2
        order[begin:end] = members[np.argpartition(along, middle)]
        return begin + middle

    while (np.diff(bounds) > longest).any():
        long = np.flatnonzero(np.diff(bounds) > longest)
        parts = [(int(bounds[at]), int(bounds[at + 1])) for at in long]
        bounds = np.sort(np.concatenate([bounds, _each(pool, halve, parts)]))
    return bounds


def _longest_direction(
    source: Source, members: NDArray[np.int32], seed: int
) -> NDArray[np.float32]:
    """Return about the first principal component of some of the rows, by powers."""
    rng = np.random.default_rng([seed, len(members)])
    if len(members) > _SAMPLED_ROWS:
        members = members[rng.choice(len(members), _SAMPLED_ROWS, replace=False)]
    rows = source.take(members)
    rows -= rows.mean(axis=0)
    vector: NDArray[np.float32] = rng.standard_normal((rows.shape[1],), np.float32)
    for _ in range(_POWER_ITERATIONS):
        vector = rows.T @ (rows @ vector)
        # Copies of one row have no direction: any half of them will do.
        length = float(np.linalg.norm(vector.astype(np.float64)))
        np.divide(vector, max(length, 1e-30), out=vector)
    return vector


def _kmeans_round(
    source: Source,
    order: NDArray[np.int32],
    bounds: NDArray[np.int64],
    pool: ThreadPoolExecutor,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Let every row go to the nearest of the lists that are near its own."""
    n_lists = len(bounds) - 1
    centres = np.empty((n_lists, source.shape[1]), np.float32)

    def centre(at: int) -> None:
        rows = source.take(order[bounds[at] : bounds[at + 1]])
        centres[at] = rows.mean(axis=0)

    _each(pool, centre, range(n_lists))
    near = _near_lists(centres, _NEAR_LISTS, pool)
    size = np.einsum("ij,ij->i", centres, centres)
    chosen = np.empty(len(order), np.int32)

    def choose(at: int) -> None:
        members = order[bounds[at] : bounds[at + 1]]
        scores = size[near[at]] - 2 * (source.take(members) @ centres[near[at]].T)
        chosen[members] = near[at][scores.argmin(axis=1)]

    _each(pool, choose, range(n_lists))
    sizes = np.bincount(chosen, minlength=n_lists)
    bounds = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
    return np.argsort(chosen, kind="stable").astype(np.int32), bounds


def _near_lists(
    centres: NDArray[np.float32], count: int, pool: ThreadPoolExecutor
) -> NDArray[np.int64]:
    """Return the ``count`` lists nearest to each (M, count), nearest first, itself too.

    Of very many lists, by :func:`leaf_search` itself.
    """
    n_lists = len(centres)
    count = min(count, n_lists)
    near = np.empty((n_lists, count), np.int64)
    if n_lists > _MOST_LISTS:
        order, bounds = _lists(_Given(centres), 0, pool)
        rows = centres[order]
        found, _ = _compare_near_lists(rows, bounds, count - 1, pool)
        near[order, 0] = order
        near[order, 1:] = order[found]
        return near
    size = np.einsum("ij,ij->i", centres, centres)

    def find(block: slice) -> None:
        scores = size - 2 * (centres[block] @ centres.T)
        best = np.argpartition(scores, count - 1, axis=1)[:, :count]
        ranked = np.take_along_axis(scores, best, axis=1).argsort(axis=1, kind="stable")
        near[block] = np.take_along_axis(best, ranked, axis=1)

    _each(pool, find, _blocks(n_lists, 512))
    return near


class _Given:
    """Rows that are there already."""

    def __init__(self, rows: NDArray[np.float32]) -> None:
        self._rows = rows
        self.shape: tuple[int, int] = (len(rows), rows.shape[1])

    def take(self, rows: NDArray[Any] | slice) -> NDArray[np.float32]:
        return self._rows[rows]


# --- The neighbours


def _compare_near_lists(
    rows: NDArray[np.float32],
    bounds: NDArray[np.int64],
    k: int,
    pool: ThreadPoolExecutor,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the nearest rows (N, k) among those of near lists, and their distances."""
    n = len(rows)
    indices = np.empty((n, k), np.int32)
    squared = np.empty((n, k), np.float32)
    lengths = np.diff(bounds)
    centres = np.add.reduceat(rows, bounds[:-1], axis=0) / lengths[:, None]
    near = _near_lists(centres.astype(np.float32), 2 * _NEAR_LISTS, pool)
    size = np.einsum("ij,ij->i", rows, rows)
    wanted = max(_CANDIDATES, 8 * k)

    def compare(at: int) -> None:
        count = int(np.searchsorted(np.cumsum(lengths[near[at]]), wanted)) + 1
        parts = near[at][:count]
        if lengths[parts].sum() <= k:  # lists of a row each: look into all
            parts = np.arange(len(lengths))
        numbers = np.concatenate(
            [np.arange(bounds[p], bounds[p + 1], dtype=np.int32) for p in parts]
        )
        begin, end = int(bounds[at]), int(bounds[at + 1])
        scores = (-2 * rows[begin:end]) @ rows[numbers].T
        scores += size[numbers]
        neighbor_loops.nearest_candidates(
            scores, numbers, rows, begin, indices, squared
        )

    _each(pool, compare, range(len(lengths)))
    return indices, squared


def _neighbors_round(
    rows: NDArray[np.float32],
    indices: NDArray[np.int32],
    squared: NDArray[np.float32],
    is_new: NDArray[np.uint8],
    pool: ThreadPoolExecutor,
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.uint8]]:
    """Return nearer rows among the neighbours of neighbours, and which are new."""
    n, k = indices.shape
    width = min(k, max(15, k // 3))
    reverse = neighbor_loops.reverse_neighbors(indices, squared, is_new, width)
    nearer, distances = np.empty_like(indices), np.empty_like(squared)
    found = np.empty_like(is_new)
    local = threading.local()

    def look(block: slice) -> None:
        if not hasattr(local, "seen"):
            local.seen = np.full(n, -1, np.int32)
        neighbor_loops.neighbors_of_neighbors(
            rows,
            indices,
            squared,
            is_new,
            reverse,
            block.start,
            block.stop,
            local.seen,
            nearer,
            distances,
            found,
        )

    _each(pool, look, _blocks(n))
    return nearer, distances, found
