"""Find nearest neighbours by lists of near rows, then by neighbours of neighbours.

1. Rows are halved into lists along their longest direction, and move to the nearest
   of near lists for some rounds (k-means).
2. Each row is compared with the rows of near lists.
3. Each row is compared with the neighbours of its neighbours, until nearly all true
   neighbours of a sample of rows are found.

Rows are kept in the order of the lists, so that compared rows lie together in memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph import exact, search_loops
from napari_embedding_game.core.graph.symmetric_rows import sort_entries_by_target
from napari_embedding_game.core.threads import SEARCH_WORK, run_blocks

_MAX_LEAF = 256
"""Most rows of a list after halving; twice as many after rows moved between lists."""
_KMEANS_ROUNDS, _MAX_ROUNDS = 3, 5
_NEAR_LISTS = 32
"""Lists that a row may move to; it is compared with the rows of twice as many."""
_CANDIDATES = 6_144
"""Least number of rows that each row is compared with in step 2."""
_ENOUGH, _MIN_START, _MIN_GAIN = 0.995, 0.5, 0.002
"""Recall at which the rounds of step 3 end; recall below which they are not begun, as
such data have no near lists; gain of a round below which no other follows."""
_CHECKED_ROWS = 500
_TIE = 1 + 1e-5
"""Largest distance, relative to the last true neighbour's, of a row that is as near."""


RecallCheck = tuple[NDArray[np.intp], Callable[[NDArray[np.int32]], float]]
"""Numbers of sampled rows (S,), and a function that returns the recall of (S, M)."""


def make_recall_check(rows: exact.AnyRows, k: int, seed: int) -> RecallCheck:
    """Find the ``k`` true neighbours of sampled rows, for measuring recall.

    Returns the numbers of at most 500 sampled rows (S,), ascending, and a function:
    neighbours found (S, M) -> share of the true neighbours among them.  Rows as near as
    the last true neighbour count as true.
    """
    n, rng = len(rows), np.random.default_rng(seed)
    some = np.sort(rng.choice(n, min(n, _CHECKED_ROWS), replace=False))
    farthest = exact.find_exact_neighbors(rows, some, k)[1][:, -1:] * _TIE

    def recall(indices: NDArray[np.int32]) -> float:
        """Return the share of the true neighbours among ``indices`` (S, M)."""
        found = min(k, indices.shape[1])
        _, squared = exact.rank_candidates(rows, some, indices, found)
        return float((squared <= farthest).sum() / (k * len(some)))

    return some, recall


def search_by_leaves(
    rows: NDArray[np.float32], k: int, check: RecallCheck
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32], float]:
    """Find ``k`` neighbours of every row (N, D), without the row itself.

    Neighbours of neighbours are searched for at most five rounds, as long as the recall
    by ``check`` is from 0.5 to 0.995 and grows.  Returns the row numbers in the order
    of the lists (N,); in that order the row numbers of the neighbours and their squared
    distances, (N, k) each; and the recall.
    """
    some, recall = check
    order, bounds = split_into_lists(rows)
    rows = rows[order]
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=np.int32)
    checked = position[some]
    indices, squared = _find_neighbors_in_near_lists(rows, bounds, k)
    is_new = np.ones(indices.shape, np.uint8)
    share = recall(order[indices[checked]])
    for _ in range(_MAX_ROUNDS):
        if not _MIN_START <= (before := share) < _ENOUGH:
            break
        now = _improve_by_neighbors_of_neighbors(rows, indices, squared, is_new)
        indices, squared, is_new = now
        share = recall(order[indices[checked]])
        if share - before < _MIN_GAIN:
            break
    return order, order[indices], squared, share


def split_into_lists(
    rows: NDArray[np.float32],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Split rows (N, D) into lists of near rows, of at most 512 rows each.

    Returns the row numbers in the order of the lists (N,), and where each list begins
    (M + 1,).  At most 256 rows are one list in their order.
    """
    order = np.arange(len(rows), dtype=np.int32)
    bounds = _halve_long_lists(rows, order, np.array([0, len(rows)]), _MAX_LEAF)
    if len(bounds) == 2:
        return order, bounds
    for _ in range(_KMEANS_ROUNDS):
        in_order, chosen, of_row = rows[order], *np.empty((2, len(rows)), np.int32)
        means, near = _find_near_lists(in_order, bounds, _NEAR_LISTS)
        choose = search_loops.choose_nearest_lists
        work = SEARCH_WORK
        run_blocks(choose, len(means), work, in_order, bounds, means, near, chosen)
        sizes = np.bincount(chosen)
        bounds = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        of_row[order] = chosen  # rows of a list are sorted by number
        order = np.argsort(of_row, kind="stable").astype(np.int32)
    # Copies of one row all move to the same list, which may be long.
    return order, _halve_long_lists(rows, order, bounds, 2 * _MAX_LEAF)


def _halve_long_lists(
    rows: NDArray[np.float32],
    order: NDArray[np.int32],
    bounds: NDArray[np.int64],
    longest: int,
) -> NDArray[np.int64]:
    """Halve lists until none has more than ``longest`` rows; return the new bounds.

    ``bounds`` (M + 1,): where each list of row numbers begins in ``order`` (N,), which
    is sorted within the lists, in place.
    """
    while (np.diff(bounds) > longest).any():
        long = np.flatnonzero(np.diff(bounds) > longest)
        begins, ends = bounds[long], bounds[long + 1]
        halve = search_loops.halve_lists
        run_blocks(halve, len(long), SEARCH_WORK, rows, order, begins, ends)
        bounds = np.sort(np.concatenate([bounds, begins + (ends - begins) // 2]))
    return bounds


def compute_mean_rows_of_lists(
    rows: NDArray[np.float32], bounds: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the mean row of each list, (M, D) float32.

    ``rows`` (N, D) are in the order of the lists; ``bounds`` (M + 1,): where they
    begin.
    """
    means = np.empty((len(bounds) - 1, rows.shape[1]), np.float32)
    write = search_loops.write_mean_rows
    run_blocks(write, len(means), SEARCH_WORK, rows, bounds, means)
    return means


def _find_near_lists(
    rows: NDArray[np.float32], bounds: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return the lists' mean rows (M, D), and numbers of near lists (M, count).

    The first near list of each list is the list itself, then the nearest come.
    ``count`` is lowered to the number of lists.
    """
    means = compute_mean_rows_of_lists(rows, bounds)
    ids = np.arange(len(means), dtype=np.int32)
    if len(ids) == 1:
        return means, ids[:, None]
    others, _ = exact.find_exact_neighbors(means, ids, min(count, len(ids)) - 1)
    return means, np.column_stack([ids, others])


def _find_neighbors_in_near_lists(
    rows: NDArray[np.float32], bounds: NDArray[np.int64], k: int
) -> exact.Neighbors:
    """Return the ``k`` nearest rows of each row among the rows of near lists.

    Rows are in the order of the lists; about 6,000 rows, or 8 k, are compared with
    each.
    """
    _, near = _find_near_lists(rows, bounds, 2 * _NEAR_LISTS)
    indices = np.empty((len(rows), k), np.int32)
    squared = np.empty((len(rows), k), np.float32)
    fewest, compare = max(_CANDIDATES, 8 * k), search_loops.compare_near_lists
    found = indices, squared
    run_blocks(compare, len(near), SEARCH_WORK, rows, bounds, near, fewest, *found)
    return found


def _improve_by_neighbors_of_neighbors(
    rows: NDArray[np.float32],
    indices: NDArray[np.int32],
    squared: NDArray[np.float32],
    is_new: NDArray[np.uint8],
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.uint8]]:
    """Run a round of NN-descent: compare each row with its neighbours' neighbours.

    Arguments are the result of the round before, which is not changed.  Returns the
    nearest rows found so far, their squared distances, and 1 where a neighbour is new,
    (N, k) each.
    """
    n, k = indices.shape
    width = min(k, max(15, k // 3))
    begins, entries = sort_entries_by_target(indices)
    reverse = np.empty((n, width), np.int32)
    write = search_loops.write_reverse_neighbors
    run_blocks(write, n, indices.size, begins, entries, squared, is_new, reverse)
    found = np.empty_like(indices), np.empty_like(squared), np.empty_like(is_new)
    search, pairs = search_loops.search_neighbors_of_neighbors, (indices, squared)
    run_blocks(search, n, SEARCH_WORK, rows, *pairs, is_new, reverse, *found)
    return found
