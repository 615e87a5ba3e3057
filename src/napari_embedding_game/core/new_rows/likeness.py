"""Score how unlike new rows are to all fitted rows, by residuals of components.

    score  =  log | mean of the residuals of K rows |  -  value expected at their depth

The residual of a row is the expression that principal components do not explain.  The
mean over a row and its nearest new rows cancels the noise of counting.  Scores are
calibrated on fitted rows: components are fitted to a half of the rows, and scores are
computed for the other half, and the reverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.transfer import share_at_least_as_high
from napari_embedding_game.core.new_rows.search import FittedSearch

MAX_ROWS = 8_192
"""Most fitted rows for calibration, and most new rows that are scored together."""
MIN_ROWS = 60
"""Fewest fitted rows for calibration."""
_N_COMPONENTS = 30
"""Number of components in which the nearest new rows are searched."""


class ResidualScorer:
    """Score of new rows by their residuals, calibrated on fitted rows.

    Parameters
    ----------
    values
        (N, G) scaled expression of at least ``MIN_ROWS`` fitted rows.
    depth
        (N,) number of genes found in each row.
    n_components
        Number of principal components that explain expression.
    n_neighbors
        Number of rows whose residuals are averaged, at most the number of new rows,
        because the mean of fewer residuals is larger.
    """

    def __init__(
        self,
        values: NDArray[np.float32],
        depth: NDArray[np.floating],
        n_components: int,
        n_neighbors: int = 15,
    ) -> None:
        order = np.random.default_rng(0).permutation(len(values))
        halves = np.array_split(order[:MAX_ROWS], 2)
        self._n_neighbors = min(n_neighbors, len(halves[1]))
        parts = []
        for fitted, left_out in (halves, halves[::-1]):
            held_out = values[left_out]
            model = _fit_components(values[fitted], n_components)
            residuals = held_out - model.inverse_transform(model.transform(held_out))
            parts.append(
                self._measure_neighborhoods(held_out, residuals, depth[left_out])
            )
        sizes, depths = np.concatenate(parts, axis=1)
        self._range = depths.min(), depths.max()
        degree = min(2, len(np.unique(depths)) - 1)
        self._expected = np.polynomial.Polynomial.fit(depths, sizes, degree)
        self._fitted_scores = sizes - self._expected(depths)

    def __call__(
        self,
        values: NDArray[np.float32],
        residuals: NDArray[np.float32],
        depth: NDArray[np.floating],
    ) -> NDArray[np.float64]:
        """Return the share of fitted rows that score at least as high, (n,), 0 to 1.

        A small share says that a row is unlike the fitted rows; it is never 0.
        ``values`` (n, G): scaled expression of at most ``MAX_ROWS`` new rows, among
        which neighbours are searched; ``residuals`` (n, G): values that the components
        do not explain; ``depth`` (n,): number of genes found in each row.
        """
        sizes, around = self._measure_neighborhoods(values, residuals, depth)
        scores = sizes - self._expected(np.clip(around, *self._range))
        return share_at_least_as_high(scores, self._fitted_scores)

    def _measure_neighborhoods(
        self,
        values: NDArray[np.float32],
        residuals: NDArray[np.float32],
        depth: NDArray[np.floating],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the log length of mean residuals, and the mean log depths, (n,) each.

        Means are over each row and its nearest rows, ``n_neighbors`` in all, or over
        the row alone where there are fewer than 3.  Parameters: see :meth:`__call__`.
        """
        n = len(values)
        k = min(self._n_neighbors, n)
        if k < 3:  # too few rows for a mean
            near = np.arange(n)[:, None]
        else:
            model = _fit_components(values, _N_COMPONENTS)
            projected = model.transform(values).astype(np.float32)
            near, _ = FittedSearch(projected, "euclidean")(projected, k)
        total = np.zeros(residuals.shape, np.float64)
        for column in near.T:
            total += residuals[column]
        size = np.linalg.norm(total / near.shape[1], axis=1)
        around = np.log(np.maximum(depth, 1.0))[near].mean(axis=1)
        return np.log(np.maximum(size, 1e-12)), around


def _fit_components(values: NDArray[np.float32], n_components: int) -> Any:
    """Return scikit-learn's PCA fitted to ``values`` (n, G).

    It has ``n_components`` components, but fewer than there are rows or columns.
    """
    from sklearn.decomposition import PCA

    most = min(n_components, min(values.shape) - 1)
    return PCA(most, svd_solver="randomized", random_state=0).fit(values)
