"""Find exact nearest neighbours by comparing each query with every row.

1. Rows are compared by scores |y|^2 - 2 x.y, and the k + 4 smallest are kept.
2. Scores lose digits where rows lie close, so the candidates are ranked again by the
   differences of rows.
3. Queries much closer to their neighbours than to 0 are compared with every row by
   differences.

Of rows at the same distance those with the lowest numbers are taken.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph import search_loops
from napari_embedding_game.core.graph.rows import MAX_DENSE, Rows
from napari_embedding_game.core.threads import SEARCH_WORK, run_blocks

Neighbors = tuple[NDArray[np.int32], NDArray[np.float32]]
"""Row numbers of the neighbours (Q, k), nearest first, and squared distances (Q, k)."""
AnyRows = Rows | NDArray[np.float32]

_SPARE = 4
"""Number of candidates beyond k."""
_AT_ONCE, _QUERIES = 16_384, 512
_RANKED = 2_048


def run_in_chunks(job: Callable[[int, int], object], n: int, step: int) -> None:
    """Call ``job(begin, end)`` in threads, for chunks of ``step`` out of range(n).

    The last chunk may be shorter.
    """

    def run_chunks(begin: int, end: int) -> None:
        for i in range(begin, end):
            job(i * step, min((i + 1) * step, n))

    run_blocks(run_chunks, -(-n // step), SEARCH_WORK)


def find_exact_neighbors(
    rows: AnyRows,
    ids: NDArray[np.integer],
    k: int,
    queries: NDArray[np.float32] | None = None,
) -> Neighbors:
    """Return the ``k`` rows nearest to each query, among all rows but the query.

    The queries are the rows with numbers ``ids`` (Q,), or ``queries`` (Q, D), for which
    ``ids`` are -1, so that no row is left out.
    """
    n, at_once = len(rows), min(_AT_ONCE, max(1, MAX_DENSE // rows.shape[1]))
    step = min(_QUERIES, at_once)
    indices = np.full((len(ids), min(k + _SPARE, n)), -1, np.int32)
    scores = np.full(indices.shape, np.inf, np.float32)

    def compare_scores(begin: int, end: int) -> None:
        """Insert the rows ``some`` into the candidates of queries begin to end."""
        chunk = slice(begin, end)
        asked = rows[ids[chunk]] if queries is None else queries[chunk]
        search_loops.keep_nearest_by_scores(
            asked, ids[chunk], some, numbers, first, indices[chunk], scores[chunk]
        )

    for first in range(0, n, at_once):
        some = rows[first : first + at_once]
        numbers = np.arange(len(some), dtype=np.int32)
        run_in_chunks(compare_scores, len(ids), step)
    nearest, squared = rank_candidates(rows, ids, indices, k, queries)

    def compare_differences(begin: int, end: int) -> None:
        """Search again, by differences, those queries whose scores are too rough."""
        chunk = np.arange(begin, end)
        asked = rows[ids[chunk]] if queries is None else queries[chunk]
        is_rough = search_loops.find_rough_queries(asked, squared[chunk])
        chunk, asked = chunk[is_rough], asked[is_rough]
        found, lengths = nearest[chunk], np.full((len(chunk), k), np.inf, np.float32)
        for first in range(0, n if len(chunk) else 0, at_once):
            some = rows[first : first + at_once]
            search_loops.keep_nearest_by_differences(
                asked, ids[chunk], some, first, found, lengths
            )
        nearest[chunk], squared[chunk] = found, lengths

    run_in_chunks(compare_differences, len(ids), step)
    return nearest, squared


def rank_candidates(
    rows: AnyRows,
    ids: NDArray[np.integer],
    candidates: NDArray[np.int32],
    k: int,
    queries: NDArray[np.float32] | None = None,
) -> Neighbors:
    """Return the ``k`` nearest of each query's ``candidates`` (Q, M), -1 for no row.

    Queries are as in :func:`find_exact_neighbors`.  A query with fewer than k
    candidates has infinite distances in the remaining places.  The function is quick
    where consecutive queries have candidates in common.
    """
    indices = np.empty((len(ids), k), np.int32)
    squared = np.empty((len(ids), k), np.float32)

    def rank_chunk(begin: int, end: int) -> None:
        """Write the nearest candidates of queries begin to end."""
        chunk = slice(begin, end)
        asked = rows[ids[chunk]] if queries is None else queries[chunk]
        near, at = np.unique(candidates[chunk], return_inverse=True)
        at = at.reshape(end - begin, -1).astype(np.int32)
        if near[0] < 0:
            near, at = near[1:], at - 1
        search_loops.rank_by_differences(
            asked, rows[near], at, indices[chunk], squared[chunk]
        )
        # Rows too large for squares have no candidates.
        indices[chunk] = near[indices[chunk]] if len(near) else 0

    at_once = max(1, MAX_DENSE // (candidates.shape[1] * rows.shape[1]))
    run_in_chunks(rank_chunk, len(ids), min(_RANKED, at_once))
    return indices, squared
