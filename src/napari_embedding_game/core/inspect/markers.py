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
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import comb

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect import marker_loops as loops
from napari_embedding_game.core.inspect.group_sums import (
    compute_moments,
    iter_group_figures,
    run_to_result,
)

MarkerMethod = Literal["wilcoxon", "t-test"]
MARKER_METHODS: tuple[MarkerMethod, ...] = ("wilcoxon", "t-test")
MIN_FOLD = 1.0
"""Log2 fold change of a leading marker of expression: others are everywhere."""
MIN_ROWS = 2
"""That a test needs on each side."""
MIN_CELLS = 10
"""Least cells of a sample in a group: the mean of fewer is too noisy."""
MIN_SAMPLES = 2
_INSIDE, _OUTSIDE = 0, 1
_NO_SPREAD = 1e9
"""Of t: what rounding leaves of variances that are 0."""

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkerTable:
    """Columns by falling score; see the module for the figures."""

    method: MarkerMethod
    n_inside: int
    n_outside: int
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
        """Number of columns in the table."""
        return len(self.columns)

    def frame(self) -> pd.DataFrame:
        """Return it with the names of ``scanpy.get.rank_genes_groups_df``.

        ``pct_nz_group`` and ``pct_nz_reference`` are shares of rows above 0, 0 to 1.
        """
        figures = [each.name for each in fields(self)][4:]
        table = pd.DataFrame({name: getattr(self, name) for name in figures})
        shares = {"pts": "pct_nz_group", "pts_rest": "pct_nz_reference"}
        return table.rename(columns=shares)


def markers(*given: Any, **options: Any) -> MarkerTable:
    """Return at once what :func:`iter_markers` returns in the end."""
    return run_to_result(iter_markers(*given, **options))


def iter_markers(
    X: Any,
    inside: BoolArray,
    outside: BoolArray | None = None,
    names: Sequence[str] | None = None,
    *,
    method: MarkerMethod = "wilcoxon",
    samples: NDArray[Any] | None = None,
    n_top: int | None = 20,
    log1p: bool = True,
) -> Generator[float, None, MarkerTable]:
    """Yield the share done, 0 to 1; return the columns that are highest in some rows.

    Close the generator to cancel; at most the blocks under way are finished.

    Cells of one donor are not independent of each other (Squair et al., Nature
    Communications 12, 5692, 2021): with ``samples`` the cells that a sample has in a
    group become one profile, their mean, and Welch's t-test compares the profiles.
    ``n_inside`` of the table then counts samples; ``pts`` are shares of their cells.

    ``X`` (N, G): an array or sparse matrix.  ``inside``, ``outside`` (N,): rows of the
    group, and those to compare with, all others by default.  ``names`` of the columns,
    by default their numbers.  ``method``: rank sums with the normal approximation, or
    Welch's t-test.  ``samples`` (N,): name of the sample that each row is of; None or
    NaN where it is of none.  ``n_top``: rows of the table; None is all.  ``log1p``:
    whether the values are log(1 + x), which the fold change undoes, and of which
    samples take the means of x.

    InputError: groups that overlap, have fewer than 2 rows, or cells of fewer than 2
    samples; values that are no finite numbers; an unknown method.
    """
    if method not in MARKER_METHODS:
        raise InputError(f"The method must be one of {MARKER_METHODS}, not {method!r}.")
    groups = _checked_groups(inside, outside, samples, X.shape[0])
    shares = None
    if samples is not None:
        X, groups, shares = yield from _of_samples(X, groups, samples, log1p)
        method = "t-test"
    compute_figures = _moments_and_ranks if method == "wilcoxon" else None
    figures = yield from iter_group_figures(
        X, groups, 2, compute_figures=compute_figures
    )
    sides = [_Side(*figures[:4, side]) for side in range(2)]
    _check_groups(sides, np.bincount(groups[groups >= 0]), names)
    if method == "t-test":
        scores, pvals = _welch(*sides)
    else:
        n, m = (side.n for side in sides)
        spread = np.sqrt(n * m * (n + m + 1) / 12)
        scores = (figures[4, 0] - n * (n + m + 1) / 2) / spread
        pvals = 2 * _stats().norm.sf(np.abs(scores))
    if shares is None:
        shares = [side.positive / side.n for side in sides]
    top = np.argsort(-scores, kind="stable")[:n_top]
    named = top if names is None else [names[column] for column in top]
    of_columns = {
        "scores": scores,
        "logfoldchanges": _log_fold_changes(*sides, log1p=log1p),
        "pvals": pvals,
        "pvals_adj": _adjusted(pvals),
        "pts": shares[0],
        "pts_rest": shares[1],
    }
    return MarkerTable(
        method=method,
        n_inside=int((groups == _INSIDE).sum()),
        n_outside=int((groups == _OUTSIDE).sum()),
        columns=top,
        names=np.array(named, dtype=str),
        **{name: figure[top] for name, figure in of_columns.items()},
    )


def _of_samples(
    X: Any, groups: NDArray[np.int32], samples: NDArray[Any], log1p: bool
) -> Generator[float, None, tuple[FloatArray, NDArray[np.int32], list[FloatArray]]]:
    """Return profiles (S, G), those of one group after the other's, and their group.

    And the share of the cells of each group that are above 0, (G,) each.
    """
    of_samples = pd.factorize(pd.Series(samples), sort=True)[0]
    profiles, n_profiles = np.full(len(groups), -1), [0]
    for side, name in ((_INSIDE, "chosen"), (_OUTSIDE, "compared")):
        codes = np.where(groups == side, of_samples, -1)
        kept = np.flatnonzero(np.bincount(codes[codes >= 0]) >= MIN_CELLS)
        if (n := len(kept)) < MIN_SAMPLES:
            raise InputError(
                f"The {name} group has {n} sample{'s' if n != 1 else ''} with "
                f"{MIN_CELLS} or more cells, and {MIN_SAMPLES} are needed: "
                "choose another column, a larger group, or a test of cells."
            )
        profile_of = np.full(of_samples.max() + 2, -1)  # of no sample is the last
        profile_of[kept] = n_profiles[-1] + np.arange(n)
        profiles = np.where(groups == side, profile_of[codes], profiles)
        n_profiles.append(n_profiles[-1] + n)
    figures = yield from iter_group_figures(
        X, profiles, n_profiles[-1], is_logged=log1p
    )
    counts, means, _, positive = figures
    means[counts < np.bincount(profiles[profiles >= 0])[:, None]] = np.nan
    of_side = (np.arange(n_profiles[-1]) >= n_profiles[1]).astype(np.int32)
    parts = [of_side == side for side in (_INSIDE, _OUTSIDE)]
    shares = [positive[p].sum(0) / np.maximum(counts[p].sum(0), 1) for p in parts]
    return np.log1p(means) if log1p else means, of_side, shares


def _moments_and_ranks(values: Any, begin: Any, end: Any, sizes: Any) -> FloatArray:
    """Return (5, 2, columns): figures of both groups, and the rank sum inside."""
    ranks = np.zeros((1, 2, len(begin)))
    figures = np.concatenate([compute_moments(values, begin, end, sizes), ranks])
    for first, last in zip(begin.ravel(), end.ravel(), strict=True):
        values[first:last].sort()
    loops.write_rank_sums(values, begin, end, sizes, figures[4, 0])
    return figures


def iter_leading(
    X: Any, codes: NDArray[np.integer], n_groups: int, *, log1p: bool = True
) -> Generator[float, None, list[NDArray[np.intp]]]:
    """Yield the share done, 0 to 1, and return the leading markers of every group.

    For each group the columns (m,) that are higher inside, by falling score; with
    ``log1p`` at least twice as high.  Scores are those of
    ``scanpy.tl.rank_genes_groups`` with its default "t-test".  Rows of code -1 count to
    the others.
    """
    groups = np.where(codes < 0, n_groups, codes)  # one more for all others
    figures = yield from iter_group_figures(X, groups, n_groups + 1)
    sides = [_Side(*figures[:, group]) for group in range(n_groups + 1)]
    none = _Side(*np.zeros((4, X.shape[1])))
    before = itertools.accumulate(sides, _joined, initial=none)
    after = [*itertools.accumulate(reversed(sides[1:]), _joined, initial=none)][::-1]
    return [
        _leading(side, _joined(some, others), log1p)
        for side, some, others in zip(sides[:-1], before, after, strict=False)
    ]


def _leading(inside: _Side, outside: _Side, log1p: bool) -> NDArray[np.intp]:
    """Return the columns that are higher inside, by falling score."""
    scores, _ = _welch(inside, outside)
    is_higher = scores > 0
    is_higher &= np.minimum(inside.n, outside.n) >= MIN_ROWS
    if log1p:
        is_higher &= _log_fold_changes(inside, outside, log1p=True) >= MIN_FOLD
    order = np.argsort(-scores, kind="stable")
    leading: NDArray[np.intp] = order[is_higher[order]]
    return leading


def _checked_groups(
    inside: BoolArray, outside: BoolArray | None, samples: Any, n_rows: int
) -> NDArray[np.int32]:
    """Return _INSIDE, _OUTSIDE or -1 for each row."""
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
    return np.where(inside, _INSIDE, np.where(outside, _OUTSIDE, -1)).astype(np.int32)


class _Side(NamedTuple):
    """Figures of some rows, each (G,): see :func:`marker_loops.write_moments`."""

    n: FloatArray
    mean: FloatArray
    squares: FloatArray
    positive: FloatArray


def _joined(first: _Side, other: _Side) -> _Side:
    """Return the figures of the rows of both: no large numbers are subtracted."""
    n = first.n + other.n
    share = other.n / np.maximum(n, 1)
    difference = other.mean - first.mean
    squares = first.squares + other.squares + difference**2 * first.n * share
    return _Side(
        n, first.mean + difference * share, squares, first.positive + other.positive
    )


def _check_groups(
    sides: list[_Side], sizes: NDArray[np.intp], names: Sequence[str] | None
) -> None:
    pairs = zip(sides, sizes, strict=True)
    bad = np.flatnonzero(np.any([side.n < size for side, size in pairs], axis=0))
    if len(bad):
        first = bad[0] if names is None else names[bad[0]]
        raise InputError(
            f"{len(bad)} columns have values that are no finite numbers, the first of "
            f"them {first}: leave those rows or columns out."
        )


def _stats() -> Any:
    """Return ``scipy.stats``, imported at its first use, as this takes a second."""
    from scipy import stats

    return stats


def _adjusted(pvals: FloatArray) -> FloatArray:
    """Return p-values (G,) adjusted by Benjamini and Hochberg, as scipy does.

    That asks dask for its arrays, which another thread may just be importing.
    """
    order, n = np.argsort(pvals), len(pvals)
    ranked, adjusted = pvals[order] * (n / np.arange(1, n + 1)), np.empty(n)
    adjusted[order] = np.minimum.accumulate(ranked[::-1])[::-1]
    return np.minimum(adjusted, 1.0)


def _welch(inside: _Side, outside: _Side) -> tuple[FloatArray, FloatArray]:
    """Return t and two-sided p of Welch's test, each (G,); 0 and 1 of equal values.

    Where each side has one value the test has no p: it is that of a permutation.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        both = [
            (s.mean, np.sqrt(s.squares / (s.n - 1)), s.n) for s in (inside, outside)
        ]
        t_test = _stats().ttest_ind_from_stats
        scores, pvals = t_test(*both[0], *both[1], equal_var=False)
    among = comb(inside.n + outside.n, inside.n)
    pvals = np.where(np.abs(scores) > _NO_SPREAD, np.minimum(2 / among, 1), pvals)
    # Where all values are equal there is no difference.
    is_same = np.isnan(scores)
    return np.where(is_same, 0.0, scores), np.where(np.isnan(pvals), 1.0, pvals)


def _log_fold_changes(inside: _Side, outside: _Side, *, log1p: bool) -> FloatArray:
    """Return log2 of the ratio of means, (G,), NaN where there is none (below 0)."""
    means = np.stack([inside.mean, outside.mean])
    # A column that is 0 outside has a large change, not infinity: 1e-9 is scanpy's.
    means, unit = (np.expm1(means), 1.0) if log1p else (means, abs(means).max(axis=0))
    above, below = means + 1e-9 * np.where(unit > 0, unit, 1.0)
    ratio = np.divide(above, below, np.full_like(above, np.nan), where=below > 0)
    change: FloatArray = np.log2(ratio, np.full_like(ratio, np.nan), where=ratio > 0)
    return change
