"""Score how unlike new rows are to all fitted rows, by distances or by residuals.

The likeness of a row is the share of the fitted rows that score at least as high: a
small likeness says that a row is unlike the fitted rows.  There are two scores.

1. For rows of any kind, the distance ratio:

    score  =  m  /  mean over the nearest fitted rows j of m_j

   with m the mean distance of a row to its nearest fitted rows.

2. For expression, residuals of principal components, the expression that these do not
   explain:

    score  =  log | mean of the residuals of K rows |  -  value expected at their depth

   The mean over a row and its nearest new rows cancels the noise of counting.  Scores
   are calibrated on fitted rows: components are fitted to a half of the rows, and
   scores are computed for the other half, and the reverse.

Where new rows are added to a map together, :func:`measure_apartness` says whether they
are of kinds that the map has not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.transfer import compute_share_at_least_as_high
from napari_embedding_game.core.new_rows.search import FittedSearch

UNLIKE = 0.01
"""Likeness below which a row is called unlike all fitted rows: so is this share of rows
that are like the fitted rows."""
_MAX_CHANCE = 0.001
"""Probability of so many unlike rows by chance, below which a warning is worth it."""
_MIN_FACTOR = 2.0
"""Least share of unlike rows for a warning, as a multiple of ``UNLIKE``: among many
rows a smaller excess is not chance either, but not worth a warning."""
_FAR = 2.0
"""Distance ratio, as a multiple of the largest of fitted rows, above which even a
single row is worth a warning."""
MANY_APART = 0.3
"""Apartness from which rows that were added make a map worth fitting again: batches
drawn at random have at most 0.03, batches of which half are of a class that the map
does not have 0.3 to 0.4, batches of such a class 0.6 to 0.9."""
MAX_ROWS = 8_192
"""Most fitted rows for calibration, and most new rows that are scored together."""
MIN_ROWS = 60
"""Fewest fitted rows for calibration."""
_N_COMPONENTS = 30
"""Number of components in which the nearest new rows are searched."""


class DistanceScorer:
    """Score of new rows by their distances to fitted rows, calibrated on fitted rows.

    Parameters
    ----------
    neighbors, distances
        (N, K) nearest other rows of each fitted row, nearest first, and distances.
    """

    def __init__(
        self, neighbors: NDArray[np.integer], distances: NDArray[np.floating]
    ) -> None:
        self._n_nearest = distances.shape[1]
        self._means = distances.mean(axis=1, dtype=np.float64)
        self._fitted_ratios = np.sort(self.compute_ratios(neighbors, distances))

    def compute_ratios(
        self, neighbors: NDArray[np.integer], distances: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Return the distance ratio of each new row, (Q,): about 1, 0 and more.

        It is 1 where all distances are 0, and infinite where only those among the
        nearest fitted rows are.  ``neighbors``, ``distances`` (Q, M): nearest fitted
        rows, nearest first, of which the first K are used.
        """
        near = neighbors[:, : self._n_nearest]
        means = distances[:, : self._n_nearest].mean(axis=1, dtype=np.float64)
        ratios = np.ones(len(means))
        with np.errstate(divide="ignore"):
            np.divide(
                means, self._means[near].mean(axis=1), out=ratios, where=means > 0
            )
        return ratios

    def __call__(self, ratios: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the likeness of new rows with these distance ratios, (Q,), 0 to 1."""
        return compute_share_at_least_as_high(ratios, self._fitted_ratios)

    def describe_unlike_rows(self, ratios: NDArray[np.floating]) -> str:
        """Return a sentence on new rows that are unlike all fitted rows, or "".

        It is "" where chance explains their number, or almost.  A row is unlike if its
        likeness is below ``UNLIKE`` or its ratio is above ``_FAR`` times the largest
        finite one of fitted rows.  Of rows like the fitted rows, the number of the
        former has a beta-binomial distribution, whatever the distribution of the rows.

        ``ratios`` (Q,): distance ratios of all new rows.
        """
        n_fitted, n_new = len(self._fitted_ratios), len(ratios)
        is_low = self(ratios) < UNLIKE
        finite = self._fitted_ratios[np.isfinite(self._fitted_ratios)]
        is_far = ratios > _FAR * finite.max(initial=1.0)
        is_unlike = is_low | is_far
        if not is_unlike.any():
            return ""
        if not is_far.any():
            from scipy.stats import betabinom

            # A likeness below UNLIKE is a ratio above this many-th largest fitted one.
            rank = math.ceil(UNLIKE * (1 + n_fitted)) - 1
            by_chance = betabinom(n_new, rank, 1 + n_fitted - rank)
            is_chance = by_chance.sf(is_low.sum() - 1) >= _MAX_CHANCE
            if is_chance or is_low.mean() < _MIN_FACTOR * UNLIKE:
                return ""
        worst, n_unlike = int(ratios.argmax()), int(is_unlike.sum())
        return (
            f"{n_unlike:,} of {n_new:,} new rows ({100 * n_unlike / n_new:.3g}%) are "
            f"unlike all fitted rows; of rows like these it would be {UNLIKE:.0%}. The "
            f"most unlike is row {worst:,} (counted from 0), {ratios[worst]:.3g} times "
            "as far from its nearest fitted rows as these are from theirs. Positions "
            "of such rows say nothing: check that the new rows were prepared as the "
            "fitted ones, and find the unlike rows by score_samples(X) < "
            f"{UNLIKE}."
        )


def measure_apartness(neighbors: NDArray[np.integer], n_fitted: int) -> float:
    """Return how far new rows, added together, are apart from the fitted rows.

    It is 0 where new rows are among their neighbours as often as by chance, which rows
    of the same kinds are, 1 where all their neighbours are new rows, and below 0 where
    they are rarer.  This is the statistic of Schilling (1986) and Henze (1988).

    ``neighbors`` (Q, K): nearest other rows of each new row, fitted and new ones; rows
    with numbers from ``n_fitted`` on are new.
    """
    n_new = len(neighbors)
    share = float((neighbors >= n_fitted).mean())
    expected = (n_new - 1) / (n_fitted + n_new - 1)
    return (share - expected) / (1 - expected)


def describe_apart_rows(apartness: float, n_new: int) -> str:
    """Return a sentence on rows that were added and are far apart, or "".

    ``apartness``: of :func:`measure_apartness`; ``n_new``: number of new rows.
    """
    if apartness < MANY_APART:
        return ""
    return (
        f"About half of the {n_new:,} new rows or more are of kinds that the map lacks "
        f"(apartness {apartness:.2f}; rows like its own have about 0). There is no "
        "room for them: fit all rows again."
    )


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
        return compute_share_at_least_as_high(scores, self._fitted_scores)

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
