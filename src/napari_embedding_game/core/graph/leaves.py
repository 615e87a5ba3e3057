"""Neighbours in near-linear time: lists of some hundred rows, then their neighbours.

1. A tree of halves along the longest direction of each half puts the rows into lists.
   A few rounds of k-means among near lists alone make them compact.
2. Every row is compared with the rows of the lists next to its own.
3. Rounds of neighbours of neighbours, in both directions, find what the lists missed
   (Dong, Moses and Li, 2011).  After each round the neighbours of some rows are
   compared with their true ones, and when nearly all were found, that was the last.

A copy of the rows is kept in the order of the lists, so that what is compared lies
together.  No list is longer than ``_LONGEST`` whatever the data, copies of one row
among them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph import loops
from napari_embedding_game.core.graph.exact import (
    Each,
    Found,
    Take,
    nearest_of_all,
    ranked,
)

_LONGEST = 256
"""Most rows of a list of the tree; twice as many after k-means."""
_KMEANS_ROUNDS = 3
_NEAR_LISTS = 32
"""Lists that a row may change to in a round of k-means."""
_CANDIDATES = 3_072
"""Rows that each row is compared with in step 2, at least."""
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
_TIE = 1 + 1e-5
"""Relative to the last true neighbour, how far another one may be that is as near."""


class Check:
    """The true distance of the k-th neighbour of some rows, to measure a recall with.

    Parameters
    ----------
    take, n, each : see :mod:`exact`
    k : int
        Neighbours, the row itself not counted.
    seed : int
        Of the rows that are drawn.
    """

    def __init__(self, take: Take, n: int, k: int, seed: int, each: Each) -> None:
        rng = np.random.default_rng(seed)
        self.rows = np.sort(rng.choice(n, min(n, _CHECKED_ROWS), replace=False))
        self._take, self._k, self._each = take, k, each
        self._farthest = nearest_of_all(take, n, self.rows, k, each)[1][:, -1:] * _TIE

    def recall(self, others: NDArray[np.int32]) -> float:
        """Return the share of the true neighbours among ``others`` (S, M)."""
        count = min(self._k, others.shape[1])
        squared = ranked(self._take, self.rows, others, count, self._each)[1]
        return float((squared <= self._farthest).sum() / (self._k * len(self.rows)))


def leaf_search(
    rows: NDArray[np.float32], k: int, check: Check, each: Each
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32], float]:
    """Find ``k`` neighbours of every row, itself left out.

    Returns
    -------
    order : (N,) int32
        Numbers of the rows in the order of the lists.
    indices : (N, k) int32
        The neighbours of each row *in that order*, nearest first.
    squared : (N, k) float32
        Their squared distances.
    recall : float
        What ``check`` says of them.
    """
    order, bounds = _lists(rows, each)
    rows = rows[order]
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=np.int32)
    checked = place[check.rows]
    indices, squared = _compare_near_lists(rows, bounds, k, each)
    is_new = np.ones(indices.shape, np.uint8)
    found = check.recall(order[indices[checked]])
    for _ in range(_MOST_ROUNDS):
        before = found
        if found >= _ENOUGH or found < _LEAST_START:
            break
        indices, squared, is_new = _neighbors_round(
            rows, indices, squared, is_new, each
        )
        found = check.recall(order[indices[checked]])
        if found - before < _LEAST_GAIN:
            break
    return order, order[indices], squared, found


def _lists(
    rows: NDArray[np.float32], each: Each
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return rows in the order of the lists (N,), and where each begins (M + 1,)."""
    order = np.arange(len(rows), dtype=np.int32)
    bounds = _halved(rows, order, np.array([0, len(rows)]), _LONGEST, each)
    if len(bounds) == 2:
        return order, bounds
    for _ in range(_KMEANS_ROUNDS):
        order, bounds = _kmeans_round(rows, order, bounds, each)
    # Copies of one row all go to the same list.
    return order, _halved(rows, order, bounds, 2 * _LONGEST, each)


def _halved(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    bounds: NDArray[np.int64],
    longest: int,
    each: Each,
) -> NDArray[np.int64]:
    """Halve every list, in place, until none has more than ``longest`` rows."""
    while (np.diff(bounds) > longest).any():
        long = np.flatnonzero(np.diff(bounds) > longest)
        begins, ends = bounds[long], bounds[long + 1]
        each(partial(loops.halve, rows, order, begins, ends), len(long), 1)
        bounds = np.sort(np.concatenate([bounds, begins + (ends - begins) // 2]))
    return bounds


def _kmeans_round(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    bounds: NDArray[np.int64],
    each: Each,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Let every row go to the nearest of the lists that are near its own."""
    chosen = np.empty(len(order), np.int32)
    centres, near = _near_lists(rows, order, bounds, _NEAR_LISTS, each)
    each(
        partial(loops.choose, rows, order, bounds, centres, near, chosen), len(near), 16
    )
    sizes = np.bincount(chosen)
    bounds = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
    return np.argsort(chosen, kind="stable").astype(np.int32), bounds


def _near_lists(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    bounds: NDArray[np.int64],
    count: int,
    each: Each,
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return the lists' centres, and the ``count`` lists nearest to each, itself first.

    Of very many lists, by lists of them.
    """
    n_lists = len(bounds) - 1
    centres = np.empty((n_lists, rows.shape[1]), np.float32)
    each(partial(loops.mean_rows, rows, order, bounds, centres), n_lists, 64)
    own, k = np.arange(n_lists, dtype=np.int32), min(count, n_lists) - 1
    if k == 0:
        return centres, own[:, None]
    if n_lists > _MOST_LISTS:
        order, bounds = _lists(centres, each)
        found = _compare_near_lists(centres[order], bounds, k, each)[0]
        near = np.empty_like(found)
        near[order] = order[found]
    else:
        near = nearest_of_all(centres.__getitem__, n_lists, own, k, each)[0]
    return centres, np.column_stack([own, near])


def _compare_near_lists(
    rows: NDArray[np.float32], bounds: NDArray[np.int64], k: int, each: Each
) -> Found:
    """Return the nearest rows (N, k) among those of near lists, and their distances."""
    n = len(rows)
    indices, squared = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    order = np.arange(n, dtype=np.int32)
    near = _near_lists(rows, order, bounds, 2 * _NEAR_LISTS, each)[1]
    wanted = max(_CANDIDATES, 8 * k)
    each(
        partial(loops.compare, rows, bounds, near, wanted, indices, squared),
        len(near),
        4,
    )
    return indices, squared


def _neighbors_round(
    rows: NDArray[np.float32],
    indices: NDArray[np.int32],
    squared: NDArray[np.float32],
    is_new: NDArray[np.uint8],
    each: Each,
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.uint8]]:
    """Return nearer rows among the neighbours of neighbours, and which are new."""
    n, k = indices.shape
    width = min(k, max(15, k // 3))
    reverse = loops.reverse_neighbors(indices, squared, is_new, width)
    nearer = np.empty_like(indices), np.empty_like(squared), np.empty_like(is_new)
    look = partial(
        loops.neighbors_of_neighbors, rows, indices, squared, is_new, reverse, *nearer
    )
    each(look, n, max(4_096, n // 32))
    return nearer
