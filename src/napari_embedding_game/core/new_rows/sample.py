"""A sample of many rows that keeps rare groups.

A row is drawn with a probability in proportion to its sensitivity (Feldman and
Langberg, 2011; Bachem, Lucic and Krause, 2018), of three parts:

    1 / N  +  1 / (C n_c)  +  d^2 / sum d^2

C centres come from k-means of a uniform sample, n_c rows have the same nearest centre
as the row, and d is the distance to it.  So small cells are kept, and rows far from
every centre, which are of groups too rare to have got one.

The draw is without replacement (Efraimidis and Spirakis, 2006): a row's key is an
exponential random number divided by its sensitivity, and the smallest keys win.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def reference_rows(
    labels: NDArray[np.integer],
    squared: NDArray[np.floating],
    n_rows: int,
    random_state: int = 0,
) -> NDArray[np.int64]:
    """Return the numbers of drawn rows, ascending.

    Parameters
    ----------
    labels : (N,) int
        Nearest centre of each row.
    squared : (N,) float
        Squared distance to it.
    n_rows : int
        At most N; all rows where there are not more.
    random_state : int
    """
    n = len(labels)
    if n_rows >= n:
        return np.arange(n)
    counts = np.bincount(labels)
    n_cells = np.count_nonzero(counts)
    sensitivity = 1 / n + 1 / (n_cells * counts[labels])
    total = squared.sum(dtype=np.float64)
    if total > 0:
        sensitivity += squared / total
    numbers = np.random.default_rng(random_state).exponential(size=n)
    return np.sort(np.argpartition(numbers / sensitivity, n_rows - 1)[:n_rows])
