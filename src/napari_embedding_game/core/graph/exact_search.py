"""Exact neighbours on the processor: every row is compared with every other one.

Candidates are found by matrix products, |y|^2 - 2 x.y, in blocks that stay in the
cache.  That loses digits where points lie close, so a few more than asked for are kept
and ranked by their differences.  Of rows at the same distance the first ones are taken.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph import neighbor_loops
from napari_embedding_game.core.graph.rows import Rows

_ROWS, _OTHERS = 256, 1_024
"""Rows of a block, and how many others they are compared with at a time."""
_SPARE = 4
"""Candidates more than asked for."""


def exact_search(
    source: Rows, k: int, pool: ThreadPoolExecutor
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the ``k`` nearest others of every row (N, k), and squared distances.

    BLAS must have one thread, as its sums depend on how many it has.
    """
    rows = source.take(slice(None))
    n = len(rows)
    lengths = np.einsum("ij,ij->i", rows, rows)
    indices, squared = np.empty((n, k), np.int32), np.empty((n, k), np.float32)

    def search(begin: int) -> None:
        own = np.arange(begin, min(begin + _ROWS, n))
        queries = -2 * rows[own]
        best = np.full((len(own), k + _SPARE), np.inf, np.float32)
        candidates = np.full(best.shape, -1, np.int32)
        for first in range(0, n, _OTHERS):
            others = slice(first, first + _OTHERS)
            scores = queries @ rows[others].T
            scores += lengths[others]
            neighbor_loops.smallest(scores, own, first, candidates, best)
        neighbor_loops.rank_rows(rows, begin, candidates, indices, squared)

    list(pool.map(search, range(0, n, _ROWS)))
    return indices, squared
