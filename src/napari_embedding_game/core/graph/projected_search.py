"""Neighbours of long rows: found in few principal components, ranked in all columns.

Some rows are searched exactly first.  They tell how many candidates from the
components it takes to have nearly all true neighbours among them, and whether there
is such a number at all: components say little of noise, or of data whose dimensions
are all alike.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph import neighbor_loops
from napari_embedding_game.core.graph.leaf_search import (
    Check,
    leaf_search,
    nearest_by_product,
)
from napari_embedding_game.core.graph.rows import Rows

N_PRINCIPAL = 100
"""Principal components that candidates are searched in."""
_SHARES = (1.5, 2.0, 2.5, 3.0, 4.0)
"""Candidates for each neighbour that are tried."""
_ENOUGH = 0.995
"""Share of the true neighbours that must be among them."""
_MOST_SAMPLED = 16_384
_MOST_NUMBERS = 2**26
"""Rows, and numbers in them, that the components are worked out from."""
_POWERS = 3
_BLOCK = 2_048


class Principal:
    """Rows by their first principal components.

    The subspace is that of a sample of rows, by powers of a random one (Halko,
    Martinsson and Tropp, 2011).
    """

    def __init__(
        self, source: Rows, n_principal: int, seed: int, pool: ThreadPoolExecutor
    ) -> None:
        n, n_dims = source.shape
        n_principal = min(n_principal, n_dims)
        rng = np.random.default_rng(seed)
        count = min(n, _MOST_SAMPLED, max(4 * n_principal, _MOST_NUMBERS // n_dims))
        sample = source.take(np.sort(rng.choice(n, count, replace=False)))
        mean = sample.mean(axis=0)
        sample -= mean
        basis = rng.normal(size=(n_dims, n_principal)).astype(np.float32)

        def powers(begin: int) -> NDArray[np.float32]:
            block = sample[begin : begin + _BLOCK]
            return block.T @ (block @ basis)

        for _ in range(_POWERS):
            # Added in the order of the blocks, whoever was first.
            basis, _ = np.linalg.qr(sum(pool.map(powers, range(0, count, _BLOCK))))
        self.shape: tuple[int, int] = (n, n_principal)
        self._values = np.empty(self.shape, np.float32)

        def project(begin: int) -> None:
            block = slice(begin, begin + _BLOCK)
            self._values[block] = (source.take(block) - mean) @ basis

        list(pool.map(project, range(0, n, _BLOCK)))

    def take(self, rows: NDArray[Any] | slice) -> NDArray[np.float32]:
        """Return the components of the rows of these numbers."""
        return self._values[rows]


def projected_search(
    source: Rows, k: int, random_state: int, pool: ThreadPoolExecutor
) -> tuple[NDArray[np.int32], NDArray[np.float32], float] | None:
    """Find ``k`` neighbours of every row, itself left out.

    BLAS must have one thread, see :func:`leaf_search`.

    Returns
    -------
    indices : (N, k) int32
        Nearest first.
    squared : (N, k) float32
        Squared distances in all D columns.
    recall : float
        Share of the true neighbours found, of some rows.

    None where the components do not tell who is near.
    """
    n = source.shape[0]
    check = Check(source, k, random_state, pool)
    principal = Principal(source, N_PRINCIPAL, random_state, pool)
    count = _candidates(principal, check, k, pool)
    if count is None:
        return None
    order, candidates, _, recall = leaf_search(
        principal, count, random_state, pool, check
    )
    indices = np.empty((n, k), np.int32)
    squared = np.empty((n, k), np.float32)
    X, scale = source.scaled()

    def rank(begin: int) -> None:
        neighbor_loops.rank(
            X,
            scale,
            order,
            begin,
            min(begin + _BLOCK, n),
            candidates,
            indices,
            squared,
        )

    list(pool.map(rank, range(0, n, _BLOCK)))
    back = np.empty(n, np.int32)
    back[order] = np.arange(n, dtype=np.int32)
    return indices[back], squared[back], recall


def _candidates(
    principal: Principal, check: Check, k: int, pool: ThreadPoolExecutor
) -> int | None:
    """Return how many candidates it takes, or None where more than are tried."""
    counts = [int(share * k) for share in _SHARES]
    most = min(counts[-1], principal.shape[0] - 1)
    nearest = nearest_by_product(principal, check.rows, most, pool)
    for count in counts:
        if check.recall(nearest[:, :count]) >= _ENOUGH:
            return count
    return None
