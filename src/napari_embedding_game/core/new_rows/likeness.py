"""Rows that are unlike all fitted ones, by what principal components leave unexplained.

    score  =  log | mean of the residuals of K rows |  -  what their depth lets expect

The mean over a row and its nearest new rows cancels the noise of counting.  Scores are
calibrated on fitted rows: components of one half of them, scores of the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.transfer import tail_share
from napari_embedding_game.core.new_rows.search import FittedSearch

MAX_ROWS = 8_192
"""Fitted rows that the scores are calibrated on, and new rows that see one another."""
MIN_ROWS = 60
"""Fitted rows without which there is no calibration."""
_N_COMPONENTS = 30
"""In which the nearest new rows are searched."""


class Unexplained:
    """Scores of new rows, calibrated on fitted ones.

    ``values`` (N, G): scaled expression of the fitted rows; ``depth`` (N,): genes found
    in each, ``MIN_ROWS`` at least; ``n_neighbors``: residuals that are averaged, no
    more than there will be new rows: the mean of fewer is larger.
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
            model = _components(values[fitted], n_components)
            residuals = held_out - model.inverse_transform(model.transform(held_out))
            parts.append(self._common(held_out, residuals, depth[left_out]))
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

        ``values`` (n, G): of new rows, ``MAX_ROWS`` at most, which see one another;
        ``residuals``: less what the components explain; ``depth`` (n,): genes found.
        """
        sizes, around = self._common(values, residuals, depth)
        scores = sizes - self._expected(np.clip(around, *self._range))
        return tail_share(scores, self._fitted_scores)

    def _common(
        self,
        values: NDArray[np.float32],
        residuals: NDArray[np.float32],
        depth: NDArray[np.floating],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the log size of the mean residual around rows, and the log depth."""
        n = len(values)
        k = min(self._n_neighbors, n)
        if k < 3:  # nothing to average over
            near = np.arange(n)[:, None]
        else:
            model = _components(values, _N_COMPONENTS)
            projected = model.transform(values).astype(np.float32)
            near, _ = FittedSearch(projected, "euclidean")(projected, k)
        total = np.zeros(residuals.shape, np.float64)
        for column in near.T:
            total += residuals[column]
        size = np.linalg.norm(total / near.shape[1], axis=1)
        around = np.log(np.maximum(depth, 1.0))[near].mean(axis=1)
        return np.log(np.maximum(size, 1e-12)), around


def _components(values: NDArray[np.float32], n_components: int) -> Any:
    from sklearn.decomposition import PCA

    most = min(n_components, min(values.shape) - 1)
    return PCA(most, svd_solver="randomized", random_state=0).fit(values)
