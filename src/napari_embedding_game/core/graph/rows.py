"""Rows of any type of number as a search in float32 needs them, some at a time.

They are centred, or of length 1 and centred, in float64, and only then rounded: float32
loses the small differences of points far from the origin.  Equal numbers of different
types make the same rows; of a sparse matrix only those in use are made dense.  NaN and
infinities are refused before (``estimator.EmbeddingGame._as_rows``; of files in
``data/validation.py``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError

SEARCHED = ("euclidean", "cosine", "correlation")
"""Metrics by which rows are ranked as by euclidean distances of such rows.

A further one needs its branch in ``Rows._plain`` and in ``Rows.distances``.
"""
_OF_DIFFERENCES = ("sqeuclidean", "minkowski", "l1", "manhattan", "cityblock",
                   "taxicab", "chebyshev")  # fmt: skip
"""Metrics of libraries that ask for nothing but the differences of rows."""
_FAR = 1e3
"""Widths of all rows that they may lie from 0 in a library."""
TOO_LARGE = (
    "Values are missing, or so large that distances between rows go beyond single "
    "precision (3e38): leave out rows with NaN, divide all of them by a common number."
)
MAX_DENSE = 2**27
"""Numbers of sparse rows that are written out at once."""
_MAX_POWER = 40
"""The largest number becomes 2 to this, of which float32 can hold sums of squares."""
_BLOCK, _BLOCK_NUMBERS = 4_096, 2**20
_SAMPLED = 1_000
"""Rows by which the centre is estimated."""


class Rows:
    """Rows (N, D) between which euclidean distances are what a metric asks for.

    Some of them are ``rows[numbers]``, as float32, without a common unit that
    :meth:`distances` knows.  InputError where values are too large for squares.
    """

    def __init__(self, X: Any, metric: str) -> None:
        X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        self._X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        self._metric = metric
        self._unit = 1.0
        # A row of zeros is at distance 1 from all others: by an extra column.
        self.has_zeros = metric == "cosine" and not are_filled(X).all()
        self.shape: tuple[int, int] = X.shape[0], X.shape[1] + self.has_zeros
        count = min(_SAMPLED, max(1, 4 * _BLOCK_NUMBERS // X.shape[1]))
        every = max(1, X.shape[0] // (count if self.are_many else _SAMPLED))
        sample = self._plain(self._X[::every])
        # Not the mean, which one value far larger than all others takes away.
        with np.errstate(over="ignore"):
            self._centre = np.median(sample, axis=0, overwrite_input=True)
        if metric == "euclidean":
            self._unit = self._power_of_two()

    @property
    def are_many(self) -> bool:
        """Whether they are sparse, and too many to be written out at once."""
        return bool(sparse.issparse(self._X) and math.prod(self._X.shape) > MAX_DENSE)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        return self.prepared(self._X[rows])

    def prepared(self, X: Any) -> NDArray[np.float32]:
        """Return other rows (Q, D) as these are: their distances compare."""
        ready = np.empty((X.shape[0], self.shape[1]), np.float32)
        step = max(1, min(_BLOCK, _BLOCK_NUMBERS // self.shape[1]))
        for begin in range(0, len(ready), step):
            block = slice(begin, begin + step)
            with np.errstate(over="ignore", invalid="ignore"):
                ready[block] = (self._plain(X[block]) - self._centre) / self._unit
        return ready

    def distances(self, squared: NDArray[np.float32]) -> NDArray[Any]:
        """Turn squared euclidean distances of the rows into those of the metric."""
        if self._metric == "euclidean":
            return np.asarray(np.sqrt(squared) * np.float64(self._unit))
        return squared / 2

    def _plain(self, X: Any) -> NDArray[np.float64]:
        """Return rows in float64, for cosines of length 1."""
        rows: NDArray[np.float64]
        is_new = sparse.issparse(X)
        rows = (X.toarray() if is_new else X).astype(np.float64, copy=not is_new)
        if self._metric == "euclidean":
            return rows
        # By a power of two, which is exact, to where squares do not overflow.
        rows = np.ldexp(rows, -np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1])
        if self._metric == "correlation":
            rows -= rows.mean(axis=1, keepdims=True)
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        np.divide(rows, length, out=rows, where=length > 0)
        return np.hstack([rows, length == 0]) if self.has_zeros else rows

    def _power_of_two(self) -> float:
        """Return what all rows are divided by, which rounds nothing."""
        low, high = (
            each.toarray().ravel() if sparse.issparse(each) else each
            for each in (self._X.min(axis=0), self._X.max(axis=0))
        )
        with np.errstate(over="ignore"):
            largest = max((high - self._centre).max(), (self._centre - low).max())
        if not np.isfinite(largest):
            raise InputError(TOO_LARGE)
        return float(np.ldexp(1.0, max(np.frexp(largest)[1] - _MAX_POWER, -1_000)))


def summed(X: Any) -> Any:
    """Return a sparse matrix with each entry once, in order; it stays as it is."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def mean_rows_of_groups(
    X: Any, group: NDArray[np.integer], n_groups: int
) -> NDArray[np.float64]:
    """Return the mean of the rows ``X`` (N, D) of each group, (n_groups, D).

    ``group`` (N,): number of each row's group, from 0; none is empty.
    """
    n, sizes = len(group), np.bincount(group, minlength=n_groups)
    members = sparse.csr_array((np.ones(n), (group, np.arange(n))), (n_groups, n))
    sums = members @ X
    sums = np.asarray(sums.toarray() if sparse.issparse(sums) else sums, np.float64)
    means: NDArray[np.float64] = sums / sizes[:, None]
    return means


def are_filled(X: Any) -> NDArray[np.bool_]:
    """Return which rows are not of zeros alone, (N,)."""
    if sparse.issparse(X):
        X = abs(X).max(axis=1).toarray().reshape(-1, 1)
    return np.asarray(X.any(axis=1))


def centred(X: Any, metric: str) -> Any:
    """Return rows centred and scaled, so that libraries can rank squared distances.

    Only double precision may be so far from 0 that squares lose the differences.
    """
    if sparse.issparse(X) or X.dtype != np.float64:
        return X
    if metric == "euclidean":
        return Rows(X, metric)[:]
    shifted = X - np.median(X, axis=0) if metric in _OF_DIFFERENCES else X
    return shifted if np.abs(X).max() > _FAR * np.abs(shifted).max() else X
