"""Convert rows of any number type to the centred float32 rows that searches compare.

Rows are centred (for cosines, scaled to length 1 and then centred) in float64, and only
then rounded: float32 loses the small differences of points far from the origin.  Equal
numbers of different types give the same rows.  Of a sparse matrix only the requested
rows are made dense.  NaN and infinities are refused before, in
``estimator.EmbeddingGame._validate_rows`` and, for files, in ``data/validation.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError

SEARCHED = ("euclidean", "cosine", "correlation")
"""Metrics that rank rows as euclidean distances of converted rows do.

A further metric needs a branch in ``Rows._normalise_rows`` and in
``Rows.to_distances``.
"""
_OF_DIFFERENCES = ("sqeuclidean", "minkowski", "l1", "manhattan", "cityblock",
                   "taxicab", "chebyshev")  # fmt: skip
"""Metrics of libraries that depend on the differences of rows alone."""
_FAR = 1e3
"""Largest distance from 0, in widths of all rows, at which libraries take rows."""
TOO_LARGE = (
    "Values are missing, or so large that distances between rows go beyond single "
    "precision (3e38): leave out rows with NaN, divide all of them by a common number."
)
MAX_DENSE = 2**27
"""Most numbers of sparse rows that are made dense at once."""
_MAX_POWER = 40
"""Larger numbers are scaled down to 2 to this power, so that float32 holds squares."""
_BLOCK, _BLOCK_NUMBERS = 4_096, 2**20
_SAMPLED = 1_000
"""Number of rows that the centre is estimated from."""


class Rows:
    """Rows (N, D) whose euclidean distances rank as a metric does.

    ``rows[numbers]`` converts those rows to float32, divided by a common unit that
    :meth:`to_distances` multiplies back.  InputError where values are too large for
    squares.
    """

    def __init__(self, X: Any, metric: str) -> None:
        X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        self._X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        self._metric = metric
        self._unit = 1.0
        # An extra column puts rows of zeros at distance 1 from all other rows.
        self.has_zero_rows = metric == "cosine" and not find_nonzero_rows(X).all()
        self.shape: tuple[int, int] = X.shape[0], X.shape[1] + self.has_zero_rows
        count = min(_SAMPLED, max(1, 4 * _BLOCK_NUMBERS // X.shape[1]))
        every = max(1, X.shape[0] // (count if self.exceeds_dense_limit else _SAMPLED))
        sample = self._normalise_rows(self._X[::every])
        # Not the mean, which a single very large value would move far away.
        with np.errstate(over="ignore"):
            self._centre = np.median(sample, axis=0, overwrite_input=True)
        if metric == "euclidean":
            self._unit = self._find_power_of_two_unit()

    @property
    def exceeds_dense_limit(self) -> bool:
        """Whether the rows are sparse and too many to be made dense at once."""
        return bool(sparse.issparse(self._X) and math.prod(self._X.shape) > MAX_DENSE)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        return self.convert(self._X[rows])

    def convert(self, X: Any) -> NDArray[np.float32]:
        """Return other rows (Q, D) centred, scaled and rounded as these rows are.

        Values too large for float32 become infinite.
        """
        ready = np.empty((X.shape[0], self.shape[1]), np.float32)
        step = max(1, min(_BLOCK, _BLOCK_NUMBERS // self.shape[1]))
        for begin in range(0, len(ready), step):
            block = slice(begin, begin + step)
            with np.errstate(over="ignore", invalid="ignore"):
                shifted = self._normalise_rows(X[block]) - self._centre
                ready[block] = shifted / self._unit
        return ready

    def to_distances(self, squared: NDArray[np.float32]) -> NDArray[Any]:
        """Return distances by the metric from squared distances of converted rows.

        For "cosine" and "correlation" they are half the squares; else roots times the
        unit.
        """
        if self._metric == "euclidean":
            return np.asarray(np.sqrt(squared) * np.float64(self._unit))
        return squared / 2

    def _normalise_rows(self, X: Any) -> NDArray[np.float64]:
        """Return rows in float64, scaled to length 1 unless the metric is euclidean.

        Rows are centred first for "correlation"; rows of zeros stay 0.  A column that
        marks rows of zeros is appended where there are such rows.
        """
        rows: NDArray[np.float64]
        is_new = sparse.issparse(X)
        rows = (X.toarray() if is_new else X).astype(np.float64, copy=not is_new)
        if self._metric == "euclidean":
            return rows
        # Dividing by a power of two is exact and keeps squares from overflowing.
        rows = np.ldexp(rows, -np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1])
        if self._metric == "correlation":
            rows -= rows.mean(axis=1, keepdims=True)
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        np.divide(rows, length, out=rows, where=length > 0)
        return np.hstack([rows, length == 0]) if self.has_zero_rows else rows

    def _find_power_of_two_unit(self) -> float:
        """Return a power of two that all rows are divided by, without rounding.

        Raises InputError where a value is not finite after centring.
        """
        low, high = (
            each.toarray().ravel() if sparse.issparse(each) else each
            for each in (self._X.min(axis=0), self._X.max(axis=0))
        )
        with np.errstate(over="ignore"):
            largest = max((high - self._centre).max(), (self._centre - low).max())
        if not np.isfinite(largest):
            raise InputError(TOO_LARGE)
        return float(np.ldexp(1.0, max(np.frexp(largest)[1] - _MAX_POWER, -1_000)))


def sum_duplicate_entries(X: Any) -> Any:
    """Return a sparse matrix with sorted entries, and duplicates summed.

    ``X`` is not changed; it is returned itself where it has that form.
    """
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def compute_mean_rows_of_groups(
    X: Any, group: NDArray[np.integer], n_groups: int
) -> NDArray[np.float64]:
    """Return the mean row of each group, (n_groups, D) float64.

    ``X`` (N, D): rows, dense or sparse; ``group`` (N,): the number of each row's group,
    from 0.  No group may be empty.
    """
    n, sizes = len(group), np.bincount(group, minlength=n_groups)
    members = sparse.csr_array((np.ones(n), (group, np.arange(n))), (n_groups, n))
    sums = members @ X
    sums = np.asarray(sums.toarray() if sparse.issparse(sums) else sums, np.float64)
    means: NDArray[np.float64] = sums / sizes[:, None]
    return means


def find_nonzero_rows(X: Any) -> NDArray[np.bool_]:
    """Return for each row whether it has a value other than 0, (N,) bool."""
    if sparse.issparse(X):
        X = abs(X).max(axis=1).toarray().reshape(-1, 1)
    return np.asarray(X.any(axis=1))


def centre_for_library(X: Any, metric: str) -> Any:
    """Return rows near enough to 0 for a library's squared distances.

    Only float64 can lie so far from 0 that squares lose the differences, so that sparse
    rows and other types are returned unchanged.  Under "euclidean" float64 rows are
    centred, scaled and rounded to float32.  Under other metrics of differences they are
    centred if they lie more than 1,000 widths from 0; under all others they are
    unchanged.
    """
    if sparse.issparse(X) or X.dtype != np.float64:
        return X
    if metric == "euclidean":
        return Rows(X, metric)[:]
    shifted = X - np.median(X, axis=0) if metric in _OF_DIFFERENCES else X
    return shifted if np.abs(X).max() > _FAR * np.abs(shifted).max() else X
