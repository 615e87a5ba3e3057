"""Principal components, and by them the neighbours of long rows.

Candidates are found in few components and ranked in all columns.  Some rows are
searched exactly first: they give the number of candidates that contains nearly all
true neighbours, if there is one.  Noise, and data of many equal dimensions, have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph import exact, search_loops
from napari_embedding_game.core.graph.leaves import leaf_search, some_true
from napari_embedding_game.core.graph.rows import Rows

N_PRINCIPAL = 100
"""Principal components that candidates are searched in."""
_SHARES = (1.5, 2.0, 2.5, 3.0, 4.0)
"""Candidates for each neighbour that are tried."""
_ENOUGH = 0.995
"""Share of the true neighbours that must be among them."""
_MAX_SAMPLED, _MAX_NUMBERS = 16_384, 2**26
"""Rows, and numbers in them, that the components are worked out from."""
_POWERS, START_POWERS = 3, 20
"""Of directions that candidates are searched in, and of those of a start."""
_BLOCK = 2_048


def pca(X: Any, n_components: int, random_state: int) -> NDArray[np.float64]:
    """Project (N, D) rows on about the directions of largest variance, (N, d)."""
    n, rows = min(n_components, *X.shape), Rows(X, "euclidean")
    scores = principal_components(rows, n, random_state, START_POWERS)
    return pad_columns(scores.astype(np.float64), n_components)


def pad_columns(scores: NDArray[np.float64], n_components: int) -> NDArray[np.float64]:
    """Pad with columns of zeros to ``n_components``."""
    missing = n_components - scores.shape[1]
    return np.pad(scores, ((0, 0), (0, missing)))


def principal_components(
    rows: Rows, n_components: int, seed: int, powers: int = _POWERS
) -> NDArray[np.float32]:
    """Return rows by about their first principal components, (N, n_components).

    The directions are those of a sample of rows.
    """
    n, n_dims = rows.shape
    most = max(4 * n_components, _MAX_NUMBERS // n_dims)
    count, rng = min(n, _MAX_SAMPLED, most), np.random.default_rng(seed)
    sample = rows[np.sort(rng.choice(n, count, replace=False))]
    mean = sample.mean(axis=0)
    sample -= mean
    basis = directions(sample, n_components, seed, powers)
    values = np.empty((n, n_components), np.float32)

    def project(begin: int, end: int) -> None:
        search_loops.project(rows[begin:end] - mean, basis, values[begin:end])

    exact.in_parts(project, n, _at_once(n_dims))
    return values


def directions(
    rows: NDArray[np.float32], count: int, seed: int, powers: int
) -> NDArray[np.float32]:
    """Return about the longest directions of rows around 0, (count, D), orthonormal.

    By powers of random ones (Halko, Martinsson and Tropp, 2011).
    """
    (n, n_dims), rows = rows.shape, np.ascontiguousarray(rows)
    rng, step = np.random.default_rng(seed), _at_once(n_dims)
    basis = (rng.random((count, n_dims)) - 0.5).astype(np.float32)

    def add_up(begin: int, end: int) -> None:
        search_loops.power_pass(rows[begin:end], basis, sums[begin // step])

    for _ in range(powers):
        # Added in the order of the blocks, whoever was first.
        sums = np.zeros((-(-n // step), *basis.shape), np.float32)
        exact.in_parts(add_up, n, step)
        search_loops.orthonormalize(sums.sum(axis=0, dtype=np.float64), basis)
    return basis


def _at_once(n_dims: int) -> int:
    return max(1, min(_BLOCK, 2**23 // n_dims))


def projected_search(
    rows: Rows, k: int, seed: int
) -> tuple[*exact.Neighbors, float] | None:
    """Find ``k`` neighbours of every row, and which share of the true ones; or None."""
    some, share_of = check = some_true(rows, k, seed)
    values = principal_components(rows, N_PRINCIPAL, seed)
    counts = [min(int(share * k), len(rows) - 1) for share in _SHARES]
    nearest, _ = exact.nearest_of_all(values, some, counts[-1])
    enough = (m for m in counts if share_of(nearest[:, :m]) >= _ENOUGH)
    if (count := next(enough, None)) is None:
        return None
    order, candidates, _, recall = leaf_search(values, count, check)
    indices, squared = exact.ranked(rows, order, candidates, k)
    back = np.argsort(order)
    return indices[back], squared[back], recall
