"""What sets a group of rows apart: its marker genes, or columns of any kind.

Figures and names are those of ``scanpy.tl.rank_genes_groups``: scores (Wilcoxon's
standardised rank sum, or Welch's t), pvals, pvals_adj (Benjamini-Hochberg),
logfoldchanges (log2 of the ratio of means, log1p undone), pts and pts_rest (shares
above 0).  Only where a column is the same in all rows of a group scanpy may say
otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import comb

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect import marker_loops as loops
from napari_embedding_game.core.inspect.group_sums import (
    check_finite,
    compute_log_fold_changes,
    compute_moments,
    iter_group_figures,
    run_to_result,
)
from napari_embedding_game.core.inspect.sample_comparison import (
    INSIDE,
    OUTSIDE,
    SampleDesign,
    adjust_p_values,
    iter_sample_figures,
    plan_sample_comparison,
)

MarkerMethod = Literal["wilcoxon", "t-test"]
MARKER_METHODS: tuple[MarkerMethod, ...] = ("wilcoxon", "t-test")
MIN_FOLD = 1.0
"""Log2 fold change of a leading marker of expression: others are everywhere."""
MIN_ROWS = 2
"""That a test needs on each side."""
_FIGURES = [
    *("names", "scores", "logfoldchanges", "pvals", "pvals_adj", "pts", "pts_rest")
]
_NO_SPREAD = 1e9
"""Of t: what rounding leaves of variances that are 0."""

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkerTable:
    """Tested columns by falling score; see the module for the figures."""

    method: MarkerMethod
    n_inside: int
    n_outside: int
    design: SampleDesign | None
    """How samples were compared; None for a test of rows."""
    n_untested: int
    """Columns left out as too few cells express them; 0 for a test of rows."""
    columns: NDArray[np.int64]
    """Where in the data each column is."""
    names: NDArray[Any]
    scores: FloatArray
    logfoldchanges: FloatArray
    pvals: FloatArray
    pvals_adj: FloatArray
    pts: FloatArray
    pts_rest: FloatArray

    def __len__(self) -> int:
        """Return the number of columns in the table."""
        return len(self.columns)

    def to_frame(self) -> pd.DataFrame:
        """Return the table with the columns of ``scanpy.get.rank_genes_groups_df``.

        ``pct_nz_group`` and ``pct_nz_reference`` are shares of rows above 0, 0 to 1.
        """
        table = pd.DataFrame({name: getattr(self, name) for name in _FIGURES})
        shares = {"pts": "pct_nz_group", "pts_rest": "pct_nz_reference"}
        return table.rename(columns=shares)


def markers(*given: Any, **options: Any) -> MarkerTable:
    """Run :func:`iter_markers` with the same arguments, and return its table."""
    return run_to_result(iter_markers(*given, **options))


def iter_markers(
    X: Any,
    inside: BoolArray,
    outside: BoolArray | None = None,
    names: Sequence[str] | None = None,
    *,
    method: MarkerMethod = "wilcoxon",
    tie_correct: bool = False,
    samples: NDArray[Any] | None = None,
    n_top: int | None = 20,
    log1p: bool = True,
) -> Generator[float, None, MarkerTable]:
    """Yield the share done, 0 to 1; return the table of the highest-scoring columns.

    Close the generator to cancel; at most the blocks under way are finished.

    - ``X`` (N, G): an array or sparse matrix.
    - ``inside``, ``outside`` (N,): rows of the group, and rows to compare with, by
      default all other rows.
    - ``names`` (G,) of the columns, by default their numbers.
    - ``method``: rank sums with the normal approximation, or Welch's t-test; not used
      with ``samples``.
    - ``tie_correct``: whether the variance of rank sums is that of ranks with ties, as
      in scanpy.  Without it p-values of columns with many equal values, such as genes
      that few cells have, are too large.
    - ``samples`` (N,): name of each row's sample, None or NaN for no sample.
    - ``n_top``: most columns of the table, by falling score; None for all.
    - ``log1p``: whether the values are log(1 + x).  Then the fold change is that of
      exp(mean) - 1, and means of samples are means of x.

    P-values are adjusted for all tested columns, also those that ``n_top`` leaves out.

    With ``samples`` the means of samples are compared: see :mod:`sample_comparison`.
    ``n_inside`` of the table then counts samples, ``scores`` are moderated t, ``pts``
    are shares of the samples' cells, and columns that too few cells express are not in
    the table.

    InputError: groups that overlap, have fewer than 2 rows, or cells of fewer than 2
    samples; values that are no finite numbers; an unknown method.  AssertionError:
    masks or samples of another length than N.
    """
    if method not in MARKER_METHODS:
        raise InputError(f"The method must be one of {MARKER_METHODS}, not {method!r}.")
    groups = _encode_groups(inside, outside, samples, X.shape[0])
    if samples is not None:
        design = plan_sample_comparison(groups, samples)
        found = yield from iter_sample_figures(X, design, names, log1p=log1p)
        n_inside, method = int(design.is_inside.sum()), "t-test"
        sizes, tested = (n_inside, len(design.is_inside) - n_inside), found.is_tested
        scores, pvals, changes = found.scores, found.pvals, found.changes
        shares = [found.share_inside, found.share_outside]
    else:
        design, tested = None, np.ones(X.shape[1], bool)
        compute_figures = _compute_moments_and_ranks if method == "wilcoxon" else None
        figures = yield from iter_group_figures(
            X, groups, 2, compute_figures=compute_figures
        )
        sizes = int((groups == INSIDE).sum()), int((groups == OUTSIDE).sum())
        check_finite(figures[0], np.array(sizes), names)
        sides = [_Side(*figures[:4, side]) for side in range(2)]
        if method == "t-test":
            scores, pvals = _test_by_welch(*sides)
        else:
            scores, pvals = _test_by_ranks(figures[4], sizes, tie_correct)
        changes = compute_log_fold_changes(sides[0].mean, sides[1].mean, log1p=log1p)
        shares = [side.positive / side.n for side in sides]
    top = np.argsort(-scores, kind="stable")[:n_top]
    columns = np.flatnonzero(tested)[top]
    named = columns if names is None else [names[column] for column in columns]
    return MarkerTable(
        method=method,
        n_inside=sizes[0],
        n_outside=sizes[1],
        design=design,
        n_untested=int((~tested).sum()),
        columns=columns,
        names=np.array(named, dtype=str),
        scores=scores[top],
        logfoldchanges=changes[top],
        pvals=pvals[top],
        pvals_adj=adjust_p_values(pvals)[top],
        pts=shares[0][top],
        pts_rest=shares[1][top],
    )


def _test_by_ranks(
    ranks: FloatArray, sizes: tuple[int, int], tie_correct: bool
) -> tuple[FloatArray, FloatArray]:
    """Return standardised rank sums and two-sided p, (G,) each.

    ``ranks`` (2, G): rank sums inside, and ties (:func:`marker_loops.write_rank_sums`).
    ``sizes``: rows inside and outside.  ``tie_correct``: whether ties lower the
    variance; a column of equal values then has the score 0 and p = 1.
    """
    n, m = sizes
    variances = np.full(ranks.shape[1], n * m * (n + m + 1) / 12)
    if tie_correct:
        variances *= 1 - ranks[1] / ((n + m) ** 3.0 - (n + m))
    above = ranks[0] - n * (n + m + 1) / 2
    is_spread = variances > 0
    scores = np.divide(above, np.sqrt(variances), np.zeros(len(above)), where=is_spread)
    return scores, 2 * _import_scipy_stats().norm.sf(np.abs(scores))


def _compute_moments_and_ranks(
    values: Any, begin: Any, end: Any, sizes: Any
) -> FloatArray:
    """Return figures of a block of columns for two groups, (5, 2, columns).

    Four are those of :func:`compute_moments`; the fifth has the rank sum of the first
    group, and ties.  The values of each column and group are sorted in place.
    """
    ranks = np.zeros((1, 2, len(begin)))
    figures = np.concatenate([compute_moments(values, begin, end, sizes), ranks])
    for first, last in zip(begin.ravel(), end.ravel(), strict=True):
        values[first:last].sort()
    loops.write_rank_sums(values, begin, end, sizes, figures[4])
    return figures


def iter_leading_markers(
    X: Any, codes: NDArray[np.integer], n_groups: int, *, log1p: bool = True
) -> Generator[float, None, list[NDArray[np.intp]]]:
    """Yield the share done, 0 to 1, and return the leading markers of every group.

    Each group is compared with all other rows, those of code -1 included.  Its leading
    markers are the numbers (m,) of the columns that are higher inside, by falling
    score, and with ``log1p`` at least twice as high.  Scores are those of
    ``scanpy.tl.rank_genes_groups`` with its default "t-test".  A group of fewer than
    ``MIN_ROWS`` rows, or with fewer other rows, has none.

    ``X`` (N, G): an array or sparse matrix; ``codes`` (N,): group of each row.
    """
    groups = np.where(codes < 0, n_groups, codes)  # one more for all others
    figures = yield from iter_group_figures(X, groups, n_groups + 1)
    sides = [_Side(*figures[:, group]) for group in range(n_groups + 1)]
    none = _Side(*np.zeros((4, X.shape[1])))
    before = itertools.accumulate(sides, _merge_sides, initial=none)
    after = [*itertools.accumulate(reversed(sides[1:]), _merge_sides, initial=none)][
        ::-1
    ]
    return [
        _find_leading_columns(side, _merge_sides(some, others), log1p)
        for side, some, others in zip(sides[:-1], before, after, strict=False)
    ]


def _find_leading_columns(
    inside: _Side, outside: _Side, log1p: bool
) -> NDArray[np.intp]:
    """Return the numbers (m,) of the columns that are higher inside, by falling score.

    With ``log1p`` the columns with a log2 fold change of ``MIN_FOLD`` or more.  Columns
    with fewer than ``MIN_ROWS`` known values on a side are left out.
    """
    scores, _ = _test_by_welch(inside, outside)
    is_higher = scores > 0
    is_higher &= np.minimum(inside.n, outside.n) >= MIN_ROWS
    if log1p:
        changes = compute_log_fold_changes(inside.mean, outside.mean, log1p=True)
        is_higher &= changes >= MIN_FOLD
    order = np.argsort(-scores, kind="stable")
    leading: NDArray[np.intp] = order[is_higher[order]]
    return leading


def _encode_groups(
    inside: BoolArray, outside: BoolArray | None, samples: Any, n_rows: int
) -> NDArray[np.int32]:
    """Check two groups of rows; return INSIDE, OUTSIDE or -1 of each row, (N,) int32.

    ``outside`` None: all other rows.  ``samples`` and ``n_rows`` are only compared with
    the length of the groups.  InputError: the groups overlap, all rows are
    inside, or a group has fewer than ``MIN_ROWS`` rows.
    """
    if outside is None and inside.all():
        raise InputError("All rows are chosen, none is left to compare: choose less.")
    outside = ~inside if outside is None else outside
    assert len(inside) == len(outside) == n_rows
    assert samples is None or len(samples) == n_rows
    if n_both := np.count_nonzero(inside & outside):
        raise InputError(
            f"{n_both} rows are in both groups: compare groups that have no row in "
            "common."
        )
    for name, rows in (("chosen", inside), ("compared", outside)):
        if (n := np.count_nonzero(rows)) < MIN_ROWS:
            raise InputError(
                f"The {name} group has {n} row{'s' if n != 1 else ''}, but a test "
                f"needs at least {MIN_ROWS}: choose a larger group."
            )
    return np.where(inside, INSIDE, np.where(outside, OUTSIDE, -1)).astype(np.int32)


class _Side(NamedTuple):
    """Figures of some rows, each (G,): see :func:`marker_loops.write_moments`."""

    n: FloatArray
    mean: FloatArray
    squares: FloatArray
    positive: FloatArray


def _merge_sides(first: _Side, other: _Side) -> _Side:
    """Return the figures of the rows of both sides together, merged by their means.

    Sums of squares are not subtracted from one another, which would lose digits.
    """
    n = first.n + other.n
    share = other.n / np.maximum(n, 1)
    difference = other.mean - first.mean
    squares = first.squares + other.squares + difference**2 * first.n * share
    return _Side(
        n, first.mean + difference * share, squares, first.positive + other.positive
    )


def _import_scipy_stats() -> Any:
    """Return ``scipy.stats``, imported at its first use, as this takes a second."""
    from scipy import stats

    return stats


def _test_by_welch(inside: _Side, outside: _Side) -> tuple[FloatArray, FloatArray]:
    """Return t and two-sided p of Welch's test, (G,) each.

    Where all values of both sides are equal, t is 0 and p is 1.  Where the values of
    each side are equal but the sides differ, p is that of a permutation test: two over
    the number of ways to choose the inside rows.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        both = [
            (s.mean, np.sqrt(s.squares / (s.n - 1)), s.n) for s in (inside, outside)
        ]
        t_test = _import_scipy_stats().ttest_ind_from_stats
        scores, pvals = t_test(*both[0], *both[1], equal_var=False)
    among = comb(inside.n + outside.n, inside.n)
    pvals = np.where(np.abs(scores) > _NO_SPREAD, np.minimum(2 / among, 1), pvals)
    # Where all values are equal there is no difference.
    is_same = np.isnan(scores)
    return np.where(is_same, 0.0, scores), np.where(np.isnan(pvals), 1.0, pvals)
