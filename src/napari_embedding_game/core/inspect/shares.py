"""Compare the shares of groups of cells between two conditions, over samples.

The share of a cluster among the cells of a sample differs from donor to donor by more
than chance draws of cells do.  So samples are compared, and each counts once:

1. The cells of each group are counted in each sample of a condition.
2. Shares are transformed to logits with half a count added, as propeller does (Phipson
   et al., Bioinformatics 38, 4720, 2022), and compared by the linear model of
   :mod:`sample_comparison`, paired where more samples are in both conditions than in
   one.
3. The variances of at least ``MIN_MODERATED_GROUPS`` groups are moderated towards one
   value.  This prior weighs no more than the samples themselves.

The same is done on the map.  Landmarks tile the cells, so that they are what Milo
samples, neighbourhoods (Dann et al., Nature Biotechnology 40, 245, 2022).  A landmark
has few cells of a sample; so it is counted together with the landmarks that the
neighbour graph connects with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.inspect.sample_comparison import (
    MIN_SAMPLES,
    BoolArray,
    FloatArray,
    SampleDesign,
    adjust_p_values,
    compare_profiles,
    explain_too_few_samples,
    moderate_variances,
    plan_sample_comparison,
)

MIN_MODERATED_GROUPS = 5
"""Groups from which on variances are moderated: of fewer, whose shares add up to one,
the variances depend too much on each other (simulated, 2 against 2 samples that do not
differ: p < 0.05 in 6 to 8 % of 3 and 4 groups, and in 6 % of 5 or more)."""
MAX_FDR = 0.1
"""False discovery rate up to which landmarks are said to have changed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShareComparison:
    """K groups counted in P profiles, a sample in a condition each, and compared.

    Scores and p-values are NaN where there are too few samples.
    """

    design: SampleDesign
    sample_names: NDArray[Any]
    """(P,) sample of each profile."""
    counts: NDArray[np.int64]
    """(P, K) rows of each group."""
    levels: tuple[str, str]
    """The condition whose shares are compared, and that it is compared with."""
    scores: FloatArray
    """(K,) moderated t, positive where the share is larger in the first condition."""
    pvals: FloatArray
    pvals_adj: FloatArray

    @property
    def shares(self) -> FloatArray:
        """(P, K) share of each group among the counted rows of a profile."""
        totals = self.counts.sum(axis=1, keepdims=True)
        shares: FloatArray = self.counts / np.maximum(totals, 1)
        return shares

    @property
    def refusal(self) -> str:
        """Sentence on why nothing was tested; "" where the shares were tested."""
        return _explain_refusal(self.design, self.levels)

    def describe(self, samples: str) -> str:
        """Return a sentence on how the samples were compared, or why they were not.

        ``samples``: name of the column that names the samples.
        """
        return self.refusal or self.design.describe(samples, "condition")

    def to_frame(self) -> pd.DataFrame:
        """Return the figures of the groups, (K rows), in the order of the groups.

        - "share_first", "share_second": mean over the samples of a condition, 0 to 1;
          NaN for a condition without samples.
        - "log2_fold_change": log2 of the ratio of the two means, with half a row added
          to each count.
        - "score", "pval", "pval_adj": moderated t, and p by Benjamini and Hochberg.
        """
        first = self.design.is_inside
        means = [_compute_mean_of_rows(self.shares, rows) for rows in (first, ~first)]
        totals = self.counts.sum(axis=1)
        return pd.DataFrame(
            {
                "share_first": means[0],
                "share_second": means[1],
                "log2_fold_change": compute_share_changes(self.counts, totals, first),
                "score": self.scores,
                "pval": self.pvals,
                "pval_adj": self.pvals_adj,
            }
        )


def compare_shares(
    codes: NDArray[np.integer],
    n_groups: int,
    conditions: NDArray[np.integer],
    samples: NDArray[Any],
    levels: tuple[str, str],
) -> ShareComparison:
    """Compare the shares of K groups between two conditions, over samples.

    ``codes`` (N,): group of each row, below K = ``n_groups``; -1 for a row of none,
    which is not counted.  ``conditions`` (N,): INSIDE for the first condition, OUTSIDE
    for the second, -1 for neither.  ``samples`` (N,): name of each row's sample, None
    or NaN for none.  ``levels``: names of the two conditions.

    Profiles of fewer than 10 counted rows are left out.  With fewer than two samples in
    a condition nothing is tested: see :attr:`ShareComparison.refusal`.
    """
    is_counted = np.asarray(codes) >= 0
    conditions = np.where(is_counted, conditions, -1)
    design = plan_sample_comparison(conditions, samples, min_samples=0)
    counts = count_rows(design, codes, n_groups)
    names = pd.factorize(pd.Series(samples), sort=True)[1]
    comparison = ShareComparison(
        design=design,
        sample_names=np.asarray(names)[design.sample_codes],
        counts=counts,
        levels=levels,
        **dict.fromkeys(("scores", "pvals", "pvals_adj"), np.full(n_groups, np.nan)),
    )
    if comparison.refusal:
        return comparison
    others = counts.sum(axis=1, keepdims=True) - counts
    scores, pvals = _compare_values(np.log((counts + 0.5) / (others + 0.5)), design)
    adjusted = adjust_p_values(pvals)
    return replace(comparison, scores=scores, pvals=pvals, pvals_adj=adjusted)


def find_landmark_changes(
    labels: NDArray[np.integer],
    graph: sparse.csr_matrix,
    conditions: NDArray[np.integer],
    samples: NDArray[Any],
    levels: tuple[str, str],
) -> tuple[FloatArray, str]:
    """Return the change of each landmark's share, (L,), and why nothing was tested.

    A change is the log2 fold change of the share of the cells at and around a landmark,
    in the first condition against the second, and NaN where its false discovery rate
    (Benjamini and Hochberg over landmarks) is ``MAX_FDR`` or more.  Where there are too
    few samples all changes are NaN, and the second value is a sentence; otherwise "".

    ``labels`` (N,): landmark of each row.  ``graph`` (L, L): weights between landmarks,
    see :func:`clusters.landmark_graph`.  Other parameters: see :func:`compare_shares`.
    """
    n_landmarks = graph.shape[0]
    design = plan_sample_comparison(conditions, samples, min_samples=0)
    if refusal := _explain_refusal(design, levels):
        return np.full(n_landmarks, np.nan), refusal
    counts = count_rows(design, labels, n_landmarks)
    sizes = np.bincount(labels, minlength=n_landmarks)
    pooled, totals = pool_neighbors(counts, graph, sizes), counts.sum(axis=1)
    is_tested = pooled.sum(axis=0) > 0
    # Not logits: an effective number may exceed the rows of a sample.
    values = np.log((pooled[:, is_tested] + 0.5) / (totals[:, None] + 1))
    _, pvals = _compare_values(values, design)
    changes = compute_share_changes(pooled, totals, design.is_inside)
    has_changed = np.zeros(n_landmarks, bool)
    has_changed[is_tested] = adjust_p_values(pvals) < MAX_FDR
    return np.where(has_changed, changes, np.nan), ""


def count_rows(
    design: SampleDesign, codes: NDArray[np.integer], n_groups: int
) -> NDArray[np.int64]:
    """Return the number of rows of each group in each profile of a design, (P, K).

    ``codes`` (N,): group of each row, below K = ``n_groups``; -1 for none.
    """
    is_counted = (design.profile_codes >= 0) & (codes >= 0)
    n_profiles = len(design.is_inside)
    cells = design.profile_codes[is_counted] * n_groups + codes[is_counted]
    counts = np.bincount(cells, minlength=n_profiles * n_groups)
    return counts.reshape(n_profiles, n_groups)


def pool_neighbors(
    counts: NDArray[np.integer],
    graph: sparse.csr_matrix,
    sizes: NDArray[np.integer],
) -> FloatArray:
    """Return counts of each landmark and its neighbours, as effective numbers, (P, L).

    A landmark's count is a weighted sum over landmarks: by the share of its edge weight
    that leads to a cell of each.  It is scaled so that its variance is that of a count:
    for weights w of the cells to sum(w)^2 / sum(w^2) cells in all.

    ``counts`` (P, L) of profiles; ``graph`` (L, L): weights between landmarks, the
    diagonal included; ``sizes`` (L,): cells of each landmark.
    """
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    weights = sparse.diags(1 / np.where(degrees > 0, degrees, 1)) @ graph
    weights = (weights @ sparse.diags(1 / np.maximum(sizes, 1))).tocsr()
    first, second = weights @ sizes, weights.multiply(weights) @ sizes
    scales = np.divide(first, second, np.zeros(len(first)), where=second > 0)
    pooled: FloatArray = (weights @ counts.T).T * scales
    return pooled


def compute_share_changes(
    counts: NDArray[np.number], totals: NDArray[np.integer], is_first: BoolArray
) -> FloatArray:
    """Return log2 of the ratio of mean shares in two conditions, (K,).

    ``counts`` (P, K) and ``totals`` (P,) of profiles; half a count is added to each
    count.  ``is_first`` (P,): profiles of the first condition.  NaN where a condition
    has no profile.
    """
    shares = np.asarray((counts + 0.5) / (totals[:, None] + 1), np.float64)
    means = (_compute_mean_of_rows(shares, rows) for rows in (is_first, ~is_first))
    return np.log2(next(means)) - np.log2(next(means))


def _compute_mean_of_rows(values: FloatArray, rows: BoolArray) -> FloatArray:
    """Return the means (K,) of some rows (P,) of values (P, K); NaN without rows."""
    if not rows.any():
        return np.full(values.shape[1], np.nan)
    means: FloatArray = values[rows].mean(axis=0)
    return means


def _compare_values(
    values: FloatArray, design: SampleDesign
) -> tuple[FloatArray, FloatArray]:
    """Return moderated t and two-sided p of transformed shares (P, K), (K,) each.

    The variances of fewer than ``MIN_MODERATED_GROUPS`` groups are not moderated.
    """
    model = design.model_matrix
    moderate = partial(
        moderate_variances, trend_degree=0, max_prior_df=len(model) - model.shape[1]
    )
    is_moderated = values.shape[1] >= MIN_MODERATED_GROUPS
    return compare_profiles(values, design, moderate if is_moderated else None)[1:]


def _explain_refusal(design: SampleDesign, levels: tuple[str, str]) -> str:
    """Return a sentence on which condition has too few samples; "" for none."""
    for level, profiles in zip(
        levels, (design.is_inside, ~design.is_inside), strict=True
    ):
        if (n := int(profiles.sum())) < MIN_SAMPLES:
            return explain_too_few_samples(n, level)
    return ""
