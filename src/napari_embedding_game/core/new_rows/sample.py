"""Sample reference rows from many rows such that rare groups are kept.

A row is sampled with a probability in proportion to its sensitivity (Feldman and
Langberg, 2011; Bachem, Lucic and Krause, 2018), 1 / N + 1 / (C n_c) + d^2 / sum d^2,
where n_c rows have the same nearest of C centres as the row, and d is the row's
distance to that centre.  Rows are sampled without replacement (Efraimidis and
Spirakis, 2006).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.new_rows.search import FittedSearch

_SAMPLES, _ROUNDS = 32, 6
"""Number of sampled rows for each centre of k-means, and number of rounds."""


def sample_by_sensitivity(
    labels: NDArray[np.integer],
    squared: NDArray[np.floating],
    n_rows: int,
    random_state: int = 0,
) -> NDArray[np.int64]:
    """Return the numbers of ``n_rows`` sampled rows, or of all rows, ascending.

    All rows where ``n_rows`` is at least N.  ``labels`` (N,): the nearest centre of
    each row; ``squared`` (N,): the squared distance of each row to its nearest centre.
    """
    n = len(labels)
    if n_rows >= n:
        return np.arange(n)
    counts = np.bincount(labels)
    n_clusters = np.count_nonzero(counts)
    sensitivity = 1 / n + 1 / (n_clusters * counts[labels])
    total = squared.sum(dtype=np.float64)
    if total > 0:
        sensitivity += squared / total
    numbers = np.random.default_rng(random_state).exponential(size=n)
    return np.sort(np.argpartition(numbers / sensitivity, n_rows - 1)[:n_rows])


def find_k_means_centres(
    rows: NDArray[np.float32], n_centres: int, random_state: int = 0
) -> NDArray[np.float32]:
    """Return the centres of rows (N, D) by k-means on a random sample, (C, D).

    The sample has ``_SAMPLES`` rows for each centre, or all rows, of which there must
    be at least C = ``n_centres``.  Centres begin at sampled rows; after ``_ROUNDS``
    rounds they are returned.  A centre without rows stays where it is.
    """
    rng = np.random.default_rng(random_state)
    size = min(len(rows), _SAMPLES * n_centres)
    sample = rows[np.sort(rng.choice(len(rows), size, replace=False))]
    centres = sample[rng.choice(size, n_centres, replace=False)]
    for _ in range(_ROUNDS):
        labels, _ = find_nearest_centres(sample, centres)
        order = np.argsort(labels, kind="stable")
        used, starts, counts = np.unique(labels[order], True, return_counts=True)
        sums = np.add.reduceat(sample[order].astype(np.float64), starts, axis=0)
        centres[used] = (sums / counts[:, None]).astype(np.float32)
    return centres


def find_nearest_centres(
    rows: NDArray[np.float32], centres: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the nearest centre of each row, and the squared distance to it, (N,) each.

    ``rows`` (N, D), ``centres`` (C, D).
    """
    indices, distances = FittedSearch(centres, "euclidean")(rows, 1)
    return indices[:, 0], distances[:, 0] ** 2
