"""Whether two groups of rows are one, by the rows that are missing between them.

Any rule divides any cloud, and its parts differ.  So rows are scored along the line
from one group to the other, by a discriminant that was learned from other rows.  If
both groups together have a log-concave density, as single Gaussian, skewed or flat
groups have, then so have the scores.  The two are one group unless more rows are
missing where they meet, next to the closest log-concave histogram, than are missing
anywhere in samples of that histogram.

Two clusters together seldom are a convex part of a density: others may take the place
beside a neck where they meet.  So rows of other clusters count as rows that are there,
in a convex region around the two.

Bent groups are not log-concave: the ends of an arc count as two groups.
``docs/statistics.md`` has the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp, expm1
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.rows import Rows
from napari_embedding_game.core.inspect.dip import has_two_modes
from napari_embedding_game.core.inspect.log_concave import (
    find_emptiest_interval,
    fit_log_concave,
)
from napari_embedding_game.core.threads import use_one_blas_thread

ALPHA = 0.01
"""Probability below which two groups are two."""
MIN_ROWS, MAX_ROWS = 10, 3_000
"""Rows that a group must have; rows of both together that are compared."""
MAX_COLUMNS = 50
"""Columns that are compared; of rows with more the principal components."""
_SPLITS, _BINS, _WINDOW = 5, 60, (-1.0, 2.0)
"""Of the rows into halves; of the histogram of scores, and its ends: the groups' means
are at 0 and 1."""
_FEW_SAMPLES, _CLEARLY_ONE, _SAMPLES = 5, 0.25, 20
"""Samples of the fitted histogram after which a p above this probability ends them, and
the most of all: of 20 p is known to 22 %."""
_REGION = 0.5
"""Share of the rows of the two groups that are inside."""
_AT_ONCE = 20_000
"""Rows of other clusters whose columns are held at once."""
_LEAST_RANGE = 1e-6
"""Range of the scores below which they count as the same."""

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Separation:
    """Whether two groups of rows are one group, and what lies between them."""

    p: float
    """Probability that as many rows are missing in a sample of one group."""
    depth: float
    """Share of the rows of one group that are missing where the two meet, 0 to 1."""
    has_gap: bool
    """Whether there are fewer rows where the two meet than on both sides of it."""

    @property
    def is_firm(self) -> bool:
        """Whether these are two groups, at ``ALPHA``."""
        return self.p < ALPHA

    @property
    def p_text(self) -> str:
        """The probability in a sentence, on one line: "p = 0.002", or "p < 0.0001"."""
        text = f"p = {self.p:.1g}" if self.p >= 1e-4 else "p < 0.0001"
        return text.replace(" ", "\u00a0")

    def __str__(self) -> str:
        """Return the answer to "Are these two one group?"."""
        answer = (_GAP if self.has_gap else _NO_GAP) if self.is_firm else _ONE_GROUP
        return answer.format(depth=self.depth, p=self.p_text)


_DEPTH = (
    "where they meet, the data are {depth:.0%} sparser than those of one group would "
    "be ({p})"
)
_GAP = f"A gap lies between them: {_DEPTH}."
_NO_GAP = (
    f"Different, but without a gap: {_DEPTH}, yet no sparser than on either side. They "
    "may be stages of one development, or the ends of a curved one."
)
_ONE_GROUP = (
    "Not told apart: they may be one group ({p}). Markers of one against the "
    "other may only show where the line was drawn, however small their p-values are."
)


def measure_separation(
    X: Any,
    first: NDArray[np.integer],
    second: NDArray[np.integer],
    *,
    others: NDArray[np.integer] | None = None,
    metric: str = "euclidean",
    random_state: int = 0,
) -> Separation:
    """Test whether two groups of rows of ``X`` (N, D) are one group or distinct.

    - ``first``, ``second``: row numbers of the groups, (m,) and (n,).  Above
      ``MAX_ROWS`` in all, rows are drawn at random, in proportion to the groups.
    - ``others``: row numbers (k,) of all other clusters, of which the same share is
      drawn.  Those near the line between the two groups fill the place between them.
      They are not asked where rows have more than ``MAX_COLUMNS`` columns.
    - ``metric``: for "cosine" and "correlation" rows are brought to the same length,
      for the latter less their mean; for any other, rows are compared as they are.

    Where the means of the groups are the same, ``p`` is 1 and ``depth`` 0.  ``has_gap``
    is False where ``p`` is not below ``ALPHA``.

    InputError: a group has fewer than ``MIN_ROWS`` rows, or of the rows that are drawn.
    """
    rng, groups = np.random.default_rng(random_state), (first, second)
    share = min(1.0, MAX_ROWS / (len(first) + len(second)))
    counts = [round(share * len(rows)) for rows in groups]
    if min(counts) < MIN_ROWS:
        raise InputError(
            f"Too few rows to tell: the smaller group has {min(map(len, groups)):,}, "
            f"but {ceil(MIN_ROWS / share):,} or more are needed. Choose larger groups."
        )
    pairs = zip(groups, counts, strict=True)
    sampled = np.concatenate([rng.choice(rows, n, replace=False) for rows, n in pairs])
    is_second = np.arange(len(sampled)) >= counts[0]
    of_others = np.empty(0)
    with use_one_blas_thread():
        points, to_columns = _to_columns(X[sampled], metric)
        scores = _score_along_line(points, is_second, rng)
        if scores is None:
            return Separation(1.0, 0.0, False)
        if others is not None and len(others) and to_columns is not None:
            drawn = rng.choice(others, round(share * len(others)), replace=False)
            region = _Region(points, is_second)
            chunks = np.split(drawn, range(_AT_ONCE, len(drawn), _AT_ONCE))
            of_others = np.concatenate(
                [region.locate_inside(to_columns(X[rows])) for rows in chunks]
            )
    p, depth = _test_scores(scores, is_second, of_others, rng)
    return Separation(p, depth, p < ALPHA and _has_gap(scores, is_second))


def _to_columns(
    rows: Any, metric: str
) -> tuple[FloatArray, Callable[[Any], FloatArray] | None]:
    """Return rows as centred numbers, (m, C), and a function that converts other rows.

    Of more than ``MAX_COLUMNS`` columns the principal components are returned, and None
    instead of the function: components of some rows do not tell how far others are.
    Under "cosine" and "correlation" rows are first brought to the same length.
    """

    def to_numbers(rows: Any) -> FloatArray:
        """Return rows as an array of float64, of one length where the metric asks."""
        if metric in ("cosine", "correlation"):
            rows = Rows(rows, metric)[:]
        matrix = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
        return np.asarray(matrix, np.float64)

    points = to_numbers(rows)
    mean = points.mean(axis=0)
    points = points - mean
    if points.shape[1] <= MAX_COLUMNS:
        return points, lambda others: to_numbers(others) - mean
    from sklearn.decomposition import PCA

    n_columns = min(MAX_COLUMNS, len(points) - 1)
    pca = PCA(n_columns, svd_solver="randomized", random_state=0)
    return np.asarray(pca.fit_transform(points)), None


class _Region:
    """A convex region: a cylinder around the line through the means of two groups.

    Distances to the line are measured in units of the covariance inside of the groups,
    shrunk as by Ledoit and Wolf (2004).  The radius holds ``_REGION`` of the rows.
    """

    def __init__(self, points: FloatArray, is_second: BoolArray) -> None:
        self._mean = points[~is_second].mean(axis=0)
        inside = points - self._mean
        way = inside[is_second].mean(axis=0)
        inside[is_second] -= way
        covariance = _estimate_shrunk_covariance(inside, way)
        assert covariance is not None
        self._whitening = np.linalg.inv(np.linalg.cholesky(covariance)).T
        self._way = way @ self._whitening
        self._radius = float(np.quantile(self._measure_from_line(points)[0], _REGION))

    def locate_inside(self, points: FloatArray) -> FloatArray:
        """Return the positions along the line of those points (m, C) that are inside.

        The means of the groups are at 0 and 1.
        """
        away, along = self._measure_from_line(points)
        return along[away <= self._radius]

    def _measure_from_line(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the distances of points (m, C) from the line and along it, (m,)."""
        white = (points - self._mean) @ self._whitening
        along = white @ self._way / (self._way @ self._way)
        squares = (white**2).sum(axis=1) - along**2 * (self._way @ self._way)
        return np.sqrt(np.maximum(squares, 0.0)), along


def _score_along_line(
    points: FloatArray, is_second: BoolArray, rng: np.random.Generator
) -> FloatArray | None:
    """Return where rows (m,) lie between the means of the groups, at 0 and 1.

    A score is the mean over ``_SPLITS`` random halvings of the rows.  In each a linear
    discriminant is learned from the half that the row is not in.  None where the means
    of the groups are the same.
    """
    scores = np.zeros(len(points))
    for _ in range(_SPLITS):
        is_first_half = np.empty(len(points), bool)
        for group in (is_second, ~is_second):
            rows = np.flatnonzero(group)
            is_first_half[rng.permutation(rows)] = np.arange(len(rows)) % 2 == 0
        for half in (is_first_half, ~is_first_half):
            learned = _learn_direction(
                points[half & ~is_second], points[half & is_second]
            )
            if learned is None:
                return None
            origin, direction = learned
            scores[~half] += (points[~half] - origin) @ direction
    return scores / _SPLITS


def _learn_direction(
    first: FloatArray, second: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return the first group's mean (C,) and Fisher's discriminant direction (C,).

    The direction maps the way from the first mean to the second one to 1.  The
    covariance inside of the groups is shrunk as by Ledoit and Wolf (2004).  None where
    the means of the groups are the same.
    """
    mean, way = first.mean(axis=0), second.mean(axis=0) - first.mean(axis=0)
    covariance = _estimate_shrunk_covariance(
        np.vstack([first - mean, second - mean - way]), way
    )
    if covariance is None:
        return None
    direction = np.linalg.solve(covariance, way)
    return mean, direction / (direction @ way)


def _estimate_shrunk_covariance(
    inside: FloatArray, way: FloatArray
) -> FloatArray | None:
    """Return the covariance (C, C) of rows (m, C) around their means, invertible.

    ``way`` (C,): from one group's mean to the other's.  None where it is 0.
    """
    from sklearn.covariance import ledoit_wolf

    covariance: FloatArray = ledoit_wolf(inside, assume_centered=True)[0]
    scale = np.trace(covariance) / len(way) + way @ way
    if not way @ way > 1e-12 * scale:
        return None
    covariance += 1e-9 * scale * np.eye(len(way))  # where columns are constant
    return covariance


def _test_scores(
    scores: FloatArray,
    is_second: BoolArray,
    of_others: FloatArray,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return p and the share of missing rows where the groups meet, for scores (m,).

    ``of_others`` (k,): scores of rows of neither group.  They count in 1 only.

    1. The evidence is measured that rows are missing at the border of the groups.
    2. The same is measured in samples of the closest log-concave histogram, anywhere
       between the means, since the border was chosen from the rows that are tested.
    3. p is the probability of 1 under a Gumbel distribution of scale 1 that fits 2, so
       that a p far below 1 / ``_SAMPLES`` is not that of a fitted spread: evidence is a
       logarithm of a likelihood ratio, and above its quantile of 0.8 its mean excess
       was 1.00 in the samples of 212 pairs of Gaussian groups.

    Samples end early where p is clearly above ``ALPHA``.  Scores outside ``_WINDOW``
    are left out.
    """
    is_seen = (scores > _WINDOW[0]) & (scores < _WINDOW[1])
    if not is_seen.any() or np.ptp(scores[is_seen]) < _LEAST_RANGE:
        return 1.0, 0.0  # rows far apart, or the same, in groups that do not differ
    ends = scores[is_seen].min(), scores[is_seen].max()
    counts, edges = np.histogram(scores[is_seen], _BINS, ends)
    begin = max(int(np.searchsorted(edges, 0.0)) - 1, 0)
    end = min(int(np.searchsorted(edges, 1.0)), _BINS)
    of_second, _ = np.histogram(scores[is_seen & is_second], _BINS, ends)
    border = _find_border(counts - of_second, of_second, begin, end)
    n, probabilities = int(counts.sum()), fit_log_concave(counts)
    # The region holds a share of the rows; those of others in it stand for all.
    there = counts + np.histogram(of_others, _BINS, ends)[0] / _REGION
    found = find_emptiest_interval(there, n * probabilities, begin, end, border)
    chances, p = 0.0, 1.0
    for n_samples in range(1, _SAMPLES + 1):
        sample = rng.multinomial(n, probabilities)
        fitted = n * fit_log_concave(sample)
        empty = find_emptiest_interval(sample, fitted, begin, end)
        chances += exp(-empty.evidence)
        # exp(-location) of the Gumbel distribution is estimated by the mean.
        p = -expm1(-exp(-found.evidence) * n_samples / chances)
        if n_samples >= _FEW_SAMPLES and p > _CLEARLY_ONE:
            break
    return p, found.missing


def _find_border(
    first: NDArray[np.integer], second: NDArray[np.integer], begin: int, end: int
) -> int:
    """Return the edge, ``begin`` to ``end``, with fewest rows on the wrong side.

    ``first``, ``second`` (m,): rows of the first and second group in each bin; the
    first group belongs before the edge.  Of equal edges the first is taken.
    """
    n_wrong = np.zeros(len(first) + 1, int)
    n_wrong[1:] += np.cumsum(second)
    n_wrong[:-1] += np.cumsum(first[::-1])[::-1]
    return begin + int(n_wrong[begin : end + 1].argmin())


def _has_gap(scores: FloatArray, is_second: BoolArray) -> bool:
    """Return whether scores have two modes, one in each group (dip test at 0.01).

    All rows of the smaller group are tested, with as many rows of the larger group,
    those nearest to the smaller one.  Other modes of the larger group would hide or
    feign the gap.
    """
    towards_smaller = scores if is_second.sum() <= len(scores) / 2 else -scores
    is_smaller = is_second if towards_smaller is scores else ~is_second
    of_larger = np.sort(towards_smaller[~is_smaller])[-is_smaller.sum() :]
    return has_two_modes(towards_smaller[towards_smaller >= of_larger[0]])
