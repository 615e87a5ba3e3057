"""Nearest neighbours by lists of near rows, then by neighbours of neighbours.

1. Rows are halved into lists along their longest direction, and change to the nearest
   of near lists for some rounds (k-means).
2. Each row is compared with those of near lists.
3. Neighbours of neighbours are compared, until nearly all true ones of some rows are
   found.

Rows are kept in the order of the lists, so that what is compared lies together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph import exact, search_loops
from napari_embedding_game.core.graph.symmetric_rows import sort_by_target
from napari_embedding_game.core.threads import SEARCH_WORK, run_blocks

_MAX_LEAF = 256
"""Most rows of a list of the tree; twice as many where rows have changed lists."""
_KMEANS_ROUNDS, _MAX_ROUNDS = 3, 5
_NEAR_LISTS = 32
"""Lists that a row may change to, and half of those that it may be compared with."""
_CANDIDATES = 6_144
"""Rows that each row is compared with in step 2, at least."""
_ENOUGH, _MIN_START, _MIN_GAIN = 0.995, 0.5, 0.002
"""Share of the true neighbours that ends the rounds; without which they do not help, as
such data have no near lists; and that one must find to be followed by another."""
_CHECKED_ROWS = 500
_TIE = 1 + 1e-5
"""Relative to the last true neighbour, how far another one may be that is as near."""


Check = tuple[NDArray[np.intp], Callable[[NDArray[np.int32]], float]]
"""Numbers of some rows (S,), and what returns their recall in others (S, M)."""


def some_true(rows: exact.AnyRows, k: int, seed: int) -> Check:
    """Find the true neighbours of some rows, drawn by the seed."""
    n, rng = len(rows), np.random.default_rng(seed)
    some = np.sort(rng.choice(n, min(n, _CHECKED_ROWS), replace=False))
    farthest = exact.nearest_of_all(rows, some, k)[1][:, -1:] * _TIE

    def recall(indices: NDArray[np.int32]) -> float:
        _, squared = exact.ranked(rows, some, indices, min(k, indices.shape[1]))
        return float((squared <= farthest).sum() / (k * len(some)))

    return some, recall


def leaf_search(
    rows: NDArray[np.float32], k: int, check: Check
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32], float]:
    """Find ``k`` neighbours of every row, itself left out.

    Returns the order of the lists (N,), numbers of neighbours and squared distances (N,
    k) in that order, and the share of the true neighbours that ``check`` found.
    """
    some, recall = check
    order, bounds = lists(rows)
    rows = rows[order]
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=np.int32)
    checked = position[some]
    indices, squared = _compare_near_lists(rows, bounds, k)
    is_new = np.ones(indices.shape, np.uint8)
    share = recall(order[indices[checked]])
    for _ in range(_MAX_ROUNDS):
        if not _MIN_START <= (before := share) < _ENOUGH:
            break
        now = _neighbors_round(rows, indices, squared, is_new)
        indices, squared, is_new = now
        share = recall(order[indices[checked]])
        if share - before < _MIN_GAIN:
            break
    return order, order[indices], squared, share


def lists(rows: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return rows in the order of the lists (N,), and where each begins (M + 1,)."""
    order = np.arange(len(rows), dtype=np.int32)
    bounds = _halved(rows, order, np.array([0, len(rows)]), _MAX_LEAF)
    if len(bounds) == 2:
        return order, bounds
    for _ in range(_KMEANS_ROUNDS):
        in_order, chosen, of_row = rows[order], *np.empty((2, len(rows)), np.int32)
        near = _near_lists(in_order, bounds, _NEAR_LISTS)
        given = in_order, bounds, *near, chosen
        run_blocks(search_loops.choose, len(bounds) - 1, SEARCH_WORK, *given)
        sizes = np.bincount(chosen)
        bounds = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        of_row[order] = chosen  # rows of a list are sorted by number
        order = np.argsort(of_row, kind="stable").astype(np.int32)
    # Copies of one row all go to the same list.
    return order, _halved(rows, order, bounds, 2 * _MAX_LEAF)


def _halved(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    bounds: NDArray[np.int64],
    longest: int,
) -> NDArray[np.int64]:
    """Halve every list, in place, until none has more than ``longest`` rows."""
    while (np.diff(bounds) > longest).any():
        long = np.flatnonzero(np.diff(bounds) > longest)
        begins, ends = bounds[long], bounds[long + 1]
        given = rows, order, begins, ends
        run_blocks(search_loops.halve, len(long), SEARCH_WORK, *given)
        bounds = np.sort(np.concatenate([bounds, begins + (ends - begins) // 2]))
    return bounds


def mean_rows(
    rows: NDArray[np.float32], bounds: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the mean rows (M, D) of lists that lie one after another."""
    means = np.empty((len(bounds) - 1, rows.shape[1]), np.float32)
    run_blocks(search_loops.mean_rows, len(means), SEARCH_WORK, rows, bounds, means)
    return means


def _near_lists(
    rows: NDArray[np.float32], bounds: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return the lists' mean rows, and the lists nearest to each, itself first."""
    means = mean_rows(rows, bounds)
    ids = np.arange(len(means), dtype=np.int32)
    if len(ids) == 1:
        return means, ids[:, None]
    others, _ = exact.nearest_of_all(means, ids, min(count, len(ids)) - 1)
    return means, np.column_stack([ids, others])


def _compare_near_lists(
    rows: NDArray[np.float32], bounds: NDArray[np.int64], k: int
) -> exact.Neighbors:
    """Return the nearest rows (N, k) among those of near lists, and their distances."""
    _, near = _near_lists(rows, bounds, 2 * _NEAR_LISTS)
    nearest = np.empty((len(rows), k), np.int32), np.empty((len(rows), k), np.float32)
    given = rows, bounds, near, max(_CANDIDATES, 8 * k), *nearest
    run_blocks(search_loops.compare, len(near), SEARCH_WORK, *given)
    return nearest


def _neighbors_round(
    rows: NDArray[np.float32],
    indices: NDArray[np.int32],
    squared: NDArray[np.float32],
    is_new: NDArray[np.uint8],
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.uint8]]:
    """Return nearer rows among the neighbours of neighbours, and which are new."""
    n, k = indices.shape
    width = min(k, max(15, k // 3))
    begins, entries = sort_by_target(indices)
    reverse = np.empty((n, width), np.int32)
    pairs = begins, entries, squared, is_new, reverse
    run_blocks(search_loops.reverse_neighbors, n, indices.size, *pairs)
    nearer = np.empty_like(indices), np.empty_like(squared), np.empty_like(is_new)
    given = rows, indices, squared, is_new, reverse, *nearer
    run_blocks(search_loops.neighbors_of_neighbors, n, SEARCH_WORK, *given)
    return nearer
