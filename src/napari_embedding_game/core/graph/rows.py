"""Dense rows as a search in float32 needs them: centred or of length 1, some at a time.

So a search may go without a second copy of the data.  :mod:`leaf_search` keeps one all
the same, in float32 and in the order of its lists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError

_SAFE = (1e-8, 1e15)
"""Sizes whose squares, and sums of them, float32 can hold."""
_BLOCK = 4_096
TOO_LARGE = (
    "The values are so large that distances between rows go beyond single precision "
    "(3e38): divide all of them by a common number."
)


class Rows:
    """Rows between which euclidean distances are what a metric asks for.

    Parameters
    ----------
    X : (N, D) array
        Finite numbers.
    metric : str
        "euclidean" or "cosine".

    Raises
    ------
    InputError
        A mean or a difference is infinite.
    """

    def __init__(self, X: Any, metric: str) -> None:
        X = np.asarray(X)
        self._X = X if X.dtype.kind == "f" else X.astype(np.float64)
        self._is_cosine = metric == "cosine"
        self._unit = 1.0
        if not self._is_cosine:
            # Centred: float32 loses the small differences of points far from the
            # origin.
            self._mean = mean_row(self._X)
            with np.errstate(over="ignore"):
                largest = max(
                    float((self._X.max(axis=0) - self._mean).max()),
                    float((self._mean - self._X.min(axis=0)).max()),
                )
            if not np.isfinite(largest):
                raise InputError(TOO_LARGE)
            if not _SAFE[0] < largest < _SAFE[1]:
                # A power of two, so that nothing is rounded.
                self._unit = float(np.ldexp(0.5, np.frexp(largest)[1]))

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        return len(self._X), int(self._X.shape[1])

    def take(self, rows: NDArray[Any] | slice) -> NDArray[np.float32]:
        """Return the rows of these numbers, float32."""
        if self._is_cosine:
            return np.ascontiguousarray(unit_rows(self._X[rows]))
        taken = self._X[rows] - self._mean
        if self._unit != 1.0:
            taken /= self._unit
        return np.ascontiguousarray(taken, dtype=np.float32)

    def scaled(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the data as they are, and what each row is to be multiplied by (N,).

        Differences of these products are those of the rows.
        """
        if self._is_cosine:
            scale = np.empty(len(self._X))
            for begin in range(0, len(scale), _BLOCK):
                block = slice(begin, begin + _BLOCK)
                scale[block] = _one_by_length(self._X[block])
        else:
            scale = np.full(len(self._X), 1 / self._unit)
        if scale.max() <= np.finfo(self._X.dtype).max:
            scale = scale.astype(self._X.dtype)
        return self._X, scale

    def distances(self, squared: NDArray[np.float32]) -> NDArray[Any]:
        """Turn squared euclidean distances of the rows into the metric's own."""
        squared = np.maximum(squared, 0)
        if self._is_cosine:
            return squared / 2
        distances: NDArray[Any] = np.sqrt(squared)
        if self._unit != 1.0:
            distances = distances.astype(np.float64) * self._unit
        return distances


def unit_rows(X: NDArray[Any]) -> NDArray[np.float32]:
    """Scale rows to length 1, on which euclidean neighbours are cosine ones."""
    largest = np.maximum(X.max(axis=1, keepdims=True), -X.min(axis=1, keepdims=True))
    # By a power of two, which is exact, to where float32 can hold their squares.
    rows: NDArray[np.float32] = np.ldexp(X, -np.frexp(largest)[1]).astype(np.float32)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, length, out=rows, where=length > 0)
    return rows


def _one_by_length(X: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 by the length of each row, 0 for a row of zeros."""
    largest = np.abs(X).max(axis=1)
    power = np.frexp(largest)[1]
    length = np.linalg.norm(np.ldexp(X.astype(np.float64), -power[:, None]), axis=1)
    found = np.zeros(len(X))
    np.divide(np.ldexp(1.0, -power), length, out=found, where=length > 0)
    return found


def mean_row(X: NDArray[Any]) -> NDArray[Any]:
    """Return the mean of every column, or raise InputError where it is infinite."""
    with np.errstate(over="ignore"):
        mean: NDArray[Any] = X.mean(axis=0)
    if not np.isfinite(mean).all():
        raise InputError(TOO_LARGE)
    return mean
