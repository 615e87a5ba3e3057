"""Exact neighbours: every row is compared with every other one.

Scores are |y|^2 - 2 x.y.  That loses digits where points lie close, so a few candidates
more than k are kept and ranked by their differences; rows that lie much closer
than they are far from 0 are compared by differences at once.  Of rows at the same
distance the first ones are taken.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph import search_loops
from napari_embedding_game.core.graph.rows import MAX_DENSE, Rows
from napari_embedding_game.core.threads import SEARCH_WORK, run_blocks

Neighbors = tuple[NDArray[np.int32], NDArray[np.float32]]
"""(Q, k) numbers of the neighbours, nearest first, and squared distances."""
AnyRows = Rows | NDArray[np.float32]

_SPARE = 4
"""Candidates beyond k."""
_AT_ONCE, _QUERIES = 16_384, 512
_RANKED = 2_048


def in_parts(job: Callable[[int, int], object], n: int, step: int) -> None:
    """Call ``job(begin, end)`` for parts of ``step`` of n, shared among threads."""

    def do(begin: int, end: int) -> None:
        for i in range(begin, end):
            job(i * step, min((i + 1) * step, n))

    run_blocks(do, -(-n // step), SEARCH_WORK)


def nearest_of_all(
    rows: AnyRows,
    ids: NDArray[np.integer],
    k: int,
    queries: NDArray[np.float32] | None = None,
) -> Neighbors:
    """Return the ``k`` nearest others of the rows ``ids`` (Q,) among all.

    Or of other ``queries`` (Q, D), with -1 for their ``ids``.
    """
    n, at_once = len(rows), min(_AT_ONCE, max(1, MAX_DENSE // rows.shape[1]))
    step = min(_QUERIES, at_once)
    indices = np.full((len(ids), min(k + _SPARE, n)), -1, np.int32)
    scores = np.full(indices.shape, np.inf, np.float32)

    def scan(begin: int, end: int) -> None:
        part = slice(begin, end)
        asked = rows[ids[part]] if queries is None else queries[part]
        lists = indices[part], scores[part]
        search_loops.scan(asked, ids[part], some, numbers, first, *lists)

    for first in range(0, n, at_once):
        some = rows[first : first + at_once]
        numbers = np.arange(len(some), dtype=np.int32)
        in_parts(scan, len(ids), step)
    nearest, squared = ranked(rows, ids, indices, k, queries)

    def look(begin: int, end: int) -> None:
        part = np.arange(begin, end)
        asked = rows[ids[part]] if queries is None else queries[part]
        is_lost = search_loops.are_lost(asked, squared[part])
        part, asked = part[is_lost], asked[is_lost]
        best = nearest[part], np.full((len(part), k), np.inf, np.float32)
        for first in range(0, n if len(part) else 0, at_once):
            some = rows[first : first + at_once]
            search_loops.look(asked, ids[part], some, first, *best)
        nearest[part], squared[part] = best

    in_parts(look, len(ids), step)
    return nearest, squared


def ranked(
    rows: AnyRows,
    ids: NDArray[np.integer],
    candidates: NDArray[np.int32],
    k: int,
    queries: NDArray[np.float32] | None = None,
) -> Neighbors:
    """Return the ``k`` nearest of candidates (Q, M), -1 for none, as above.

    Quick where consecutive queries have candidates in common.
    """
    indices = np.empty((len(ids), k), np.int32)
    squared = np.empty((len(ids), k), np.float32)

    def rank(begin: int, end: int) -> None:
        part = slice(begin, end)
        asked = rows[ids[part]] if queries is None else queries[part]
        near, at = np.unique(candidates[part], return_inverse=True)
        at = at.reshape(end - begin, -1).astype(np.int32)
        if near[0] < 0:
            near, at = near[1:], at - 1
        search_loops.rank(asked, rows[near], at, indices[part], squared[part])
        # Of rows too large for squares nothing is a candidate.
        indices[part] = near[indices[part]] if len(near) else 0

    at_once = max(1, MAX_DENSE // (candidates.shape[1] * rows.shape[1]))
    in_parts(rank, len(ids), min(_RANKED, at_once))
    return indices, squared
