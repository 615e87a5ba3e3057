"""Rows of any type of number as a search in float32 needs them, some at a time.

They are centred, or of length 1 and centred, in float64, and only then rounded: float32
loses the small differences of points far from the origin.  Equal numbers of different
types make the same rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError

SEARCHED = ("euclidean", "l2", "sqeuclidean", "cosine", "correlation")
"""Metrics by which rows are ranked as by euclidean distances of such rows."""
_OF_LENGTH_1 = ("cosine", "correlation")
_SAFE = (1e-8, 1e12)
"""Sizes whose squares, and sums of them over columns and rows, float32 can hold."""
_LARGEST_POWER = 40
"""Larger and smaller numbers are divided so that the largest is below 2 to this."""
_BLOCK = 4_096
_SAMPLED = 1_000
"""Rows that tell where the middle is."""
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
        One of ``SEARCHED``.

    Raises
    ------
    InputError
        A difference is infinite.
    """

    def __init__(self, X: Any, metric: str) -> None:
        X = np.asarray(X)
        self._X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        self._metric = metric
        self.unit = 1.0
        self.shape: tuple[int, int] = X.shape
        sample = self._plain(self._X[:: max(1, len(X) // _SAMPLED)])
        # Not the mean, which one value far larger than all others takes away.
        with np.errstate(over="ignore"):
            self._centre = np.median(sample, axis=0)
        if metric not in _OF_LENGTH_1:
            self.unit = self._safe_unit()

    def take(self, rows: NDArray[Any] | slice) -> NDArray[np.float32]:
        """Return the rows of these numbers, float32."""
        return self.prepared(self._X[rows])

    def prepared(self, X: Any) -> NDArray[np.float32]:
        """Return other rows (Q, D) as these are: their distances compare."""
        ready = np.empty(X.shape, np.float32)
        for begin in range(0, len(X), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            with np.errstate(over="ignore", invalid="ignore"):
                centred = self._plain(X[block]) - self._centre
                ready[block] = centred if self.unit == 1 else centred / self.unit
        return ready

    def distances(self, squared: NDArray[np.float32]) -> NDArray[Any]:
        """Turn squared euclidean distances of the rows into the metric's own."""
        if self._metric in _OF_LENGTH_1:
            return squared / 2
        unit = np.float64(self.unit) if self.unit != 1 else np.float32(1)
        if self._metric == "sqeuclidean":
            return squared * unit * unit
        return np.asarray(np.sqrt(squared) * unit)

    def _plain(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return rows in float64, for cosines of length 1; zeros stay zeros."""
        if self._metric not in _OF_LENGTH_1:
            return X.astype(np.float64)
        # By a power of two, which is exact, to where squares do not overflow.
        power = -np.frexp(np.abs(X).max(axis=1, keepdims=True))[1]
        rows: NDArray[np.float64] = np.ldexp(X.astype(np.float64), power)
        if self._metric == "correlation":
            rows -= rows.mean(axis=1, keepdims=True)
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        np.divide(rows, length, out=rows, where=length > 0)
        return rows

    def _safe_unit(self) -> float:
        """Return a power of two, so that nothing is rounded, to divide all by."""
        with np.errstate(over="ignore"):
            above = self._X.max(axis=0) - self._centre
            below = self._centre - self._X.min(axis=0)
            largest = float(max(above.max(), below.max()))
        if not np.isfinite(largest):
            raise InputError(TOO_LARGE)
        if largest == 0 or _SAFE[0] < largest < _SAFE[1]:
            return 1.0
        power = max(int(np.frexp(largest)[1]) - _LARGEST_POWER, -1_000)
        return float(np.ldexp(1.0, power))


def centred(X: Any, metric: str) -> Any:
    """Return rows whose distances libraries can rank, by squares in another unit.

    Only those in double precision may lie so far from 0 that squares would not tell.
    """
    is_far = metric == "euclidean" and not sparse.issparse(X) and X.dtype == np.float64
    return Rows(X, metric).take(slice(None)) if is_far else X


def without_sparsity(X: Any) -> Any:
    """Return sparse rows as an array where this takes no more memory, else as is."""
    if not sparse.issparse(X) or X.format != "csr":
        return X
    stored = X.data.nbytes + X.indices.nbytes
    return X.toarray() if np.prod(X.shape) * X.dtype.itemsize <= stored else X
