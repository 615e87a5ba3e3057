"""Compute principal components, and search neighbours of long rows by components.

1. Neighbours of sampled rows are searched exactly, which gives the number of candidates
   that contains nearly all true neighbours.  Noise and data of many equal dimensions
   have no such number.
2. Candidates of every row are found in few components, and ranked in all columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph import exact, search_loops
from napari_embedding_game.core.graph.leaves import make_recall_check, search_by_leaves
from napari_embedding_game.core.graph.rows import Rows

N_PRINCIPAL = 100
"""Number of principal components that candidates are searched in."""
_SHARES = (1.5, 2.0, 2.5, 3.0, 4.0)
"""Numbers of candidates per neighbour that are tried."""
_ENOUGH = 0.995
"""Share of the true neighbours that the candidates must contain."""
_MAX_SAMPLED, _MAX_NUMBERS = 16_384, 2**26
"""Most sampled rows, and most numbers in them, that components are computed from."""
_POWERS, START_POWERS = 3, 20
"""Power iterations: for components of candidates, and for components of a start."""
_BLOCK = 2_048


def pca(X: Any, n_components: int, random_state: int) -> NDArray[np.float64]:
    """Return about the first principal components of rows (N, D), (N, d) float64.

    Components that the rows do not have are 0.
    """
    n, rows = min(n_components, *X.shape), Rows(X, "euclidean")
    scores = principal_components(rows, n, random_state, START_POWERS)
    return pad_columns(scores.astype(np.float64), n_components)


def pad_columns(scores: NDArray[np.float64], n_components: int) -> NDArray[np.float64]:
    """Append columns of zeros up to ``n_components`` columns."""
    missing = n_components - scores.shape[1]
    return np.pad(scores, ((0, 0), (0, missing)))


def principal_components(
    rows: Rows, n_components: int, seed: int, powers: int = _POWERS
) -> NDArray[np.float32]:
    """Return about the first principal components of rows, (N, n_components) float32.

    The directions are computed from a random sample of rows and centred by its mean.
    ``powers``: number of power iterations.
    """
    n, n_dims = rows.shape
    most = max(4 * n_components, _MAX_NUMBERS // n_dims)
    count, rng = min(n, _MAX_SAMPLED, most), np.random.default_rng(seed)
    sample = rows[np.sort(rng.choice(n, count, replace=False))]
    mean = sample.mean(axis=0)
    sample -= mean
    basis = compute_principal_directions(sample, n_components, seed, powers)
    values = np.empty((n, n_components), np.float32)

    def project(begin: int, end: int) -> None:
        search_loops.project(rows[begin:end] - mean, basis, values[begin:end])

    exact.run_in_chunks(project, n, _choose_rows_per_block(n_dims))
    return values


def compute_principal_directions(
    rows: NDArray[np.float32], count: int, seed: int, powers: int
) -> NDArray[np.float32]:
    """Return about the directions of largest spread around 0, (count, D), orthonormal.

    ``rows`` (N, D) are not centred here.  ``powers`` power iterations of random
    directions (Halko, Martinsson and Tropp, 2011); a direction without spread is 0.
    """
    (n, n_dims), rows = rows.shape, np.ascontiguousarray(rows)
    rng, step = np.random.default_rng(seed), _choose_rows_per_block(n_dims)
    basis = (rng.random((count, n_dims)) - 0.5).astype(np.float32)

    def add_up(begin: int, end: int) -> None:
        search_loops.add_gram_products(rows[begin:end], basis, sums[begin // step])

    for _ in range(powers):
        # Blocks are summed in their order, so that threads do not change the bits.
        sums = np.zeros((-(-n // step), *basis.shape), np.float32)
        exact.run_in_chunks(add_up, n, step)
        search_loops.orthonormalize(sums.sum(axis=0, dtype=np.float64), basis)
    return basis


def _choose_rows_per_block(n_dims: int) -> int:
    """Return how many rows of ``n_dims`` numbers are processed at a time."""
    return max(1, min(_BLOCK, 2**23 // n_dims))


def search_by_projection(
    rows: Rows, k: int, seed: int
) -> tuple[*exact.Neighbors, float] | None:
    """Return ``k`` neighbours of every row, (N, k), squared distances, and the recall.

    Return None where even four candidates for each neighbour, the most that are tried,
    contain less than 0.995 of the true neighbours of sampled rows.
    """
    some, share_of = check = make_recall_check(rows, k, seed)
    values = principal_components(rows, N_PRINCIPAL, seed)
    counts = [min(int(share * k), len(rows) - 1) for share in _SHARES]
    nearest, _ = exact.find_exact_neighbors(values, some, counts[-1])
    enough = (m for m in counts if share_of(nearest[:, :m]) >= _ENOUGH)
    if (count := next(enough, None)) is None:
        return None
    order, candidates, _, recall = search_by_leaves(values, count, check)
    indices, squared = exact.rank_candidates(rows, order, candidates, k)
    back = np.argsort(order)
    return indices[back], squared[back], recall
