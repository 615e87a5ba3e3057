"""Compare two groups of cells by their samples: pseudobulk with moderated variances.

Cells of one donor are not independent of each other (Squair et al., Nature
Communications 12, 5692, 2021), so that samples are compared:

1. A profile is the mean of the cells that one sample has in one group.
2. Weakly expressed columns are left out by the rule of edgeR's ``filterByExpr`` (Chen,
   Lun and Smyth, F1000Research 5, 1438, 2016).
3. Profiles are scaled so that the median gene is equal in all (Anders and Huber, Genome
   Biology 11, R106, 2010).  A linear model is fitted to their log2, with a coefficient
   for the group and, where samples are in both groups, one for each sample (pairing).
4. The residual variance of each column is moderated by empirical Bayes (Smyth,
   Statistical Applications in Genetics and Molecular Biology 3, 3, 2004), towards a
   trend over the mean ("limma-trend": Law et al., Genome Biology 15, R29, 2014).

Step 2, the scaling and step 4 are for logarithms of expression, whose columns have one
unit, and the latter two for at least 30 of them.  Columns of other kinds are compared
by the same model with the variance of each column.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import digamma, polygamma, stdtr

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect.group_sums import (
    check_finite,
    compute_log_fold_changes,
    iter_group_figures,
)

MIN_CELLS = 10
"""Least cells of a sample in a group: the mean of fewer is too noisy."""
MIN_SAMPLES = 2
"""Least samples of each group, or pairs: one leaves no degree of freedom."""
MIN_COUNT, MIN_TOTAL_COUNT = 10.0, 15.0
"""Least counts of a tested column in enough profiles, and in all, as in edgeR."""
LARGE_GROUP, SHARE_OF_MORE = 10, 0.7
"""Enough profiles are those of the smaller group; of more than 10, 0.7 of the rest."""
MIN_MODERATED = 30
"""Columns from which on variances are moderated: fewer do not show their spread."""
_RAREST_SHARE = 0.25
"""Share of the columns, those in fewest cells, that tell what one count amounts to."""
_TREND_DEGREE = 3
"""Of the polynomial: without it, 2 pairs that do not differ have false genes in 8 of 20
draws; with it in 2."""
_CAUTION = 2.0
"""Standard errors added to the spread of variances.  Simulated, 2,000 genes, 0, 1 and
2: of 40 draws without a difference 4, 4 and 1 have genes (2 pairs; 2 against 2: 4, 1,
0); of 40 changed genes 31, 28 and 23 are found with 2.0, 0.9 and 0.0 false ones (2
against 2: 30, 29 and 27 with 1.8, 0.8 and 0.2)."""
_LEAST_VARIANCE = 1e-5
"""Of the median variance: what counts as least in the trend, as in limma."""
_ROUNDING = 1e-12
_TINY = np.finfo(np.float64).tiny
INSIDE, OUTSIDE = 0, 1

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Moderate = Callable[[FloatArray, int, FloatArray], tuple[FloatArray, float]]
"""Function of variances (G,), their degrees of freedom, and means (G,) that returns
moderated variances and degrees of freedom, as :func:`moderate_variances`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleDesign:
    """Which profile each row is part of, and how S profiles are compared."""

    profile_codes: NDArray[np.int64]
    """(N,) profile of each row; -1 for a row of none."""
    is_inside: BoolArray
    """(S,) whether a profile is of the chosen group; those of the chosen come first."""
    sample_codes: NDArray[np.int64]
    """(S,) number of the sample that a profile is of."""
    is_paired: bool
    """Whether all samples have a profile in both groups."""
    n_small: int
    """Parts of a sample in a group that are left out as they have few cells."""
    n_unpaired: int
    """Samples that are left out as they are in one group only."""

    @property
    def model_matrix(self) -> FloatArray:
        """(S, C) columns of the linear model, the group first.

        Then come a column for each sample where they are paired, else the intercept.
        """
        is_sample = self.sample_codes[:, None] == np.unique(self.sample_codes)
        others = is_sample if self.is_paired else np.ones((len(self.is_inside), 1))
        return np.column_stack([self.is_inside, others]).astype(np.float64)

    def describe(self, column: str, side: str = "group") -> str:
        """Return a sentence on pairing, the number of samples, and samples left out.

        ``column``: name of the column that names the samples.  ``side``: noun for what
        is compared, such as "condition".
        """
        n, n_inside = len(self.is_inside), int(self.is_inside.sum())
        text = f"Not paired: {n_inside:,} against {n - n_inside:,} samples."
        if self.is_paired:
            text = f"Paired by {column}: {n_inside:,} samples, {n:,} profiles."
        parts = [
            f"{number:,} {what}"
            for number, what in (
                (self.n_unpaired, f"in one {side} only"),
                (self.n_small, f"with fewer than {MIN_CELLS} cells in a {side}"),
            )
            if number
        ]
        return f"{text} Left out: {', '.join(parts)}." if parts else text


class SampleFigures(NamedTuple):
    """What a comparison of samples found in the G columns that were tested, (G,) each.

    ``is_tested`` alone is of all columns.
    """

    is_tested: BoolArray
    scores: FloatArray
    """Moderated t, positive where the chosen group is higher."""
    pvals: FloatArray
    changes: FloatArray
    """Log2 fold change; NaN where there is none."""
    share_inside: FloatArray
    """Share of the chosen group's cells above 0."""
    share_outside: FloatArray


def explain_too_few_samples(n_samples: int, group: str) -> str:
    """Return a sentence that a group, such as "the chosen group", has too few samples.

    ``n_samples``: samples of the group with at least ``MIN_CELLS`` rows.
    """
    return (
        f"Too few samples to tell: {group} has {n_samples} "
        f"sample{'s' * (n_samples != 1)} with {MIN_CELLS} or more cells, but "
        f"{MIN_SAMPLES} are needed."
    )


def plan_sample_comparison(
    groups: NDArray[np.integer],
    samples: NDArray[Any],
    *,
    min_samples: int = MIN_SAMPLES,
) -> SampleDesign:
    """Decide which profiles are compared, and whether they are paired by sample.

    - A sample has a profile in a group where it has at least ``MIN_CELLS`` rows there.
    - Samples are paired where at least ``MIN_SAMPLES`` are in both groups, and more
      than are in one group only.  Samples in one group only are then left out.
    - Otherwise all profiles are compared without pairs: p-values are then too large
      rather than too small, as a sample resembles itself.

    ``groups`` (N,): INSIDE, OUTSIDE, or -1 for rows of no group.  ``samples`` (N,):
    name of the sample of each row, None or NaN for no sample.  ``min_samples``: least
    samples of a group; 0 for a design that only says which profiles there are.

    InputError: a group has fewer than ``min_samples`` samples of ``MIN_CELLS`` rows.
    """
    codes = pd.factorize(pd.Series(samples), sort=True)[0]
    n_codes = int(codes.max(initial=-1)) + 1
    sizes = np.zeros((2, n_codes), np.int64)
    for side in (INSIDE, OUTSIDE):
        sizes[side] = np.bincount(
            codes[(groups == side) & (codes >= 0)], minlength=n_codes
        )
    is_kept = sizes >= MIN_CELLS
    for side, name in ((INSIDE, "chosen"), (OUTSIDE, "compared")):
        if (n := int(is_kept[side].sum())) < min_samples:
            raise InputError(
                f"{explain_too_few_samples(n, f'the {name} group')} Choose another "
                "column of samples, a larger group, or a test of cells."
            )
    n_small = int(((sizes > 0) & ~is_kept).sum())
    is_both, is_one = is_kept.all(axis=0), is_kept.sum(axis=0) == 1
    is_paired = is_both.sum() >= max(MIN_SAMPLES, is_one.sum() + 1)
    if is_paired:
        is_kept &= is_both
    numbers = np.full((2, n_codes + 1), -1)  # the last is of rows without a sample
    numbers[:, :-1][is_kept] = np.arange(is_kept.sum())
    sides, sample_codes = np.nonzero(is_kept)
    return SampleDesign(
        profile_codes=np.where(groups >= 0, numbers[groups, codes], -1),
        is_inside=sides == INSIDE,
        sample_codes=sample_codes,
        is_paired=bool(is_paired),
        n_small=n_small,
        n_unpaired=int(is_one.sum()) if is_paired else 0,
    )


def iter_sample_figures(
    X: Any, design: SampleDesign, names: Sequence[str] | None = None, *, log1p: bool
) -> Generator[float, None, SampleFigures]:
    """Yield the share done, 0 to 1; return the figures of all columns that are tested.

    ``X`` (N, G): an array or sparse matrix.  ``names`` (G,) of its columns, for an
    error.  ``log1p``: whether the values are log(1 + x) of expression.  Then columns
    that too few cells express are not tested, and variances are moderated; otherwise
    all columns are tested, each with its own variance.

    InputError: values are no finite numbers; no column is expressed enough to be
    tested.
    """
    sizes = np.bincount(design.profile_codes[design.profile_codes >= 0])
    steps = iter_group_figures(X, design.profile_codes, len(sizes), is_logged=log1p)
    n_finite, means, _, n_positive = yield from steps
    check_finite(n_finite, sizes, names)
    sides = design.is_inside, ~design.is_inside
    shares = [n_positive[rows].sum(axis=0) / sizes[rows].sum() for rows in sides]
    is_tested = np.ones(means.shape[1], bool)
    if log1p:
        count = _estimate_value_of_a_count(means, n_positive, sizes)
        is_tested = find_expressed(means, sizes, count, design.is_inside)
        if not is_tested.any():
            raise InputError(
                f"No gene has {MIN_COUNT:g} counts in enough samples: choose a larger "
                "group, or a test of cells."
            )
        # Half a count is added, as limma's voom does, so that 0 has a logarithm.
        half = 0.5 * count / sizes.mean()
        values = np.log2(np.maximum(means[:, is_tested], 0.0) + half)
        is_many = values.shape[1] >= MIN_MODERATED
        if is_many:
            # Most genes do not differ; a few strong ones would lower all the others.
            values -= np.median(values - values.mean(axis=0), axis=1, keepdims=True)
        changes, scores, pvals = compare_profiles(
            values, design, moderate_variances if is_many else None
        )
    else:
        changes = compute_log_fold_changes(
            *(means[rows].mean(axis=0) for rows in sides)
        )
        _, scores, pvals = compare_profiles(means, design)
    inside, outside = (share[is_tested] for share in shares)
    return SampleFigures(is_tested, scores, pvals, changes, inside, outside)


def _estimate_value_of_a_count(
    means: FloatArray, n_positive: FloatArray, sizes: NDArray[np.integer]
) -> float:
    """Return the mean normalised expression of a gene with one count in a cell.

    In a gene that few cells have, a cell that has it mostly has one count.  So this is
    the mean of the values above 0 in the quarter of the genes that the fewest cells
    have (1 where no cell has any gene).  Files of counts and files of their logarithms
    then give the same figures.  ``means``, ``n_positive`` (S, G), ``sizes`` (S,): of
    profiles.
    """
    totals, n_cells = (sizes[:, None] * means).sum(axis=0), n_positive.sum(axis=0)
    order = np.argsort(n_cells, kind="stable")
    seen = order[n_cells[order] > 0]
    rarest = seen[: int(np.ceil(_RAREST_SHARE * len(seen)))]
    n_values = n_cells[rarest].sum()
    return float(totals[rarest].sum() / n_values) if n_values else 1.0


def find_expressed(
    means: FloatArray,
    sizes: NDArray[np.integer],
    count: float,
    is_inside: BoolArray,
) -> BoolArray:
    """Return which columns (G,) have enough counts to be tested: ``filterByExpr``.

    A column needs 10 counts in a profile of median size, or the same share in others,
    in as many profiles as the smaller group has (of more than 10: 10 and 0.7 of the
    rest), and 15 counts in all.

    ``means`` (S, G) and ``sizes`` (S,) of the profiles; ``count``: what one count is
    worth; ``is_inside`` (S,): profiles of the chosen group.
    """
    counts = means * sizes[:, None] / count
    depths = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, depths, np.zeros_like(counts), where=depths > 0)
    n_enough = float(min(is_inside.sum(), (~is_inside).sum()))
    if n_enough > LARGE_GROUP:
        n_enough = LARGE_GROUP + SHARE_OF_MORE * (n_enough - LARGE_GROUP)
    least_share = MIN_COUNT / max(float(np.median(depths)), 1.0)
    n_above = (shares >= least_share * (1 - _ROUNDING)).sum(axis=0)
    has_total = counts.sum(axis=0) >= MIN_TOTAL_COUNT * (1 - _ROUNDING)
    is_expressed: BoolArray = (n_above >= n_enough - _ROUNDING) & has_total
    return is_expressed


def compare_profiles(
    values: FloatArray, design: SampleDesign, moderate: Moderate | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit the linear model to profiles; return differences, t and two-sided p, (G,).

    ``values`` (S, G): logarithms, or other values.  A difference is the mean of the
    chosen group minus that of the other, or the mean over pairs.  Where it is 0 but for
    rounding, t is 0 and p is 1.  ``moderate``: function that moderates the variances of
    the columns; None for the variance of each column by itself.
    """
    model = design.model_matrix
    inverse = np.linalg.pinv(model)
    coefficients = inverse @ values
    df = len(model) - model.shape[1]
    variances = ((values - model @ coefficients) ** 2).sum(axis=0) / df
    total_df: float = df
    if moderate is not None:
        variances, total_df = moderate(variances, df, values.mean(axis=0))
    differences = coefficients[0]
    # The first row of the pseudoinverse weighs the profiles in the difference.
    errors = np.sqrt(variances * (inverse[0] ** 2).sum())
    tiny = _ROUNDING * np.abs(values).max(axis=0, initial=0.0)
    is_same = np.abs(differences) <= tiny
    scores = np.where(is_same, 0.0, differences / np.maximum(errors, tiny + _TINY))
    return differences, scores, 2 * stdtr(total_df, -np.abs(scores))


def moderate_variances(
    variances: FloatArray,
    df: int,
    means: FloatArray,
    *,
    trend_degree: int = _TREND_DEGREE,
    max_prior_df: float = np.inf,
) -> tuple[FloatArray, float]:
    """Return variances (G,) drawn towards their trend, and their degrees of freedom.

    A variance s^2 of d degrees of freedom becomes (d0 s0^2 + d s^2) / (d0 + d).  log
    s0^2 is a cubic polynomial of the rank of the mean (limma: a spline of the mean).
    d0 is found from the variance of log s^2 around it, which is that of log F:
    trigamma(d0 / 2) + trigamma(d / 2).  Unlike limma, d0 is of that variance plus two
    standard errors, so that few columns do not seem to have one variance.

    Where the variances differ no more than by chance, d0 is ``max_prior_df``, or
    without a limit the trend is returned.  The degrees of freedom are at most those of
    all columns together.

    ``variances`` (G,) of ``df`` degrees of freedom each; ``means`` (G,) of the columns.
    ``trend_degree``: of the polynomial; 0 draws all variances towards one value.
    """
    n = len(variances)
    floor = _LEAST_VARIANCE * np.median(variances)
    known = np.maximum(variances, floor if floor > 0 else _TINY)
    logs = np.log(known) - digamma(df / 2) + np.log(df / 2)
    ranks = np.empty(n)
    ranks[np.argsort(means, kind="stable")] = np.linspace(-1, 1, n)
    powers = np.polynomial.legendre.legvander(ranks, trend_degree)
    trend = powers @ np.linalg.lstsq(powers, logs, rcond=None)[0]
    squares = (logs - trend) ** 2
    spread = squares.sum() / (n - powers.shape[1])
    error = squares.std() / np.sqrt(n)
    excess = spread + _CAUTION * error - polygamma(1, df / 2)
    prior_df = 2 * invert_trigamma(excess) if excess > 0 else np.inf
    prior_df = min(prior_df, max_prior_df)
    if prior_df == np.inf:  # all differ as chance has it: each has the trend's variance
        return np.exp(trend), float(df * n)
    prior = np.exp(trend + digamma(prior_df / 2) - np.log(prior_df / 2))
    moderated = (prior_df * prior + df * variances) / (prior_df + df)
    return moderated, float(min(prior_df + df, df * n))


def invert_trigamma(value: float) -> float:
    """Return the y above 0 whose trigamma is ``value`` (above 0), by Newton's method.

    As in the appendix of Smyth (2004): 1 / trigamma is convex and nearly linear.  It
    ends after 50 steps at most.
    """
    y = 0.5 + 1 / value
    for _ in range(50):
        trigamma = polygamma(1, y)
        step = trigamma * (1 - trigamma / value) / polygamma(2, y)
        y += step
        if abs(step) < 1e-9 * y:
            break
    return float(y)


def adjust_p_values(pvals: FloatArray) -> FloatArray:
    """Return p-values (G,) adjusted by Benjamini and Hochberg, as scipy does.

    scipy's own function would ask dask, which another thread may just be importing,
    whether the values are dask arrays.
    """
    order, n = np.argsort(pvals), len(pvals)
    ranked, adjusted = pvals[order] * (n / np.arange(1, n + 1)), np.empty(n)
    adjusted[order] = np.minimum.accumulate(ranked[::-1])[::-1]
    return np.minimum(adjusted, 1.0)
