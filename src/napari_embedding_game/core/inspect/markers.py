"""What sets a group of rows apart: its marker genes, or columns of any kind.

The figures are those of ``scanpy.tl.rank_genes_groups`` and carry its names:

================  ==============================================================
figure            meaning
================  ==============================================================
scores            Wilcoxon: standardised rank sum; t-test: Welch's t.  Above 0
                  the values are higher inside
pvals             two-sided, of the score
pvals_adj         Benjamini-Hochberg over all columns
logfoldchanges    log2 of the ratio of the means inside and outside, with log1p
                  of the values undone
pts, pts_rest     share of rows with a value above 0 inside and outside, 0 to 1
================  ==============================================================

They differ in one place: where a column is the same in all rows of a group and
not 0, rounding may cost scanpy its t-test, and it says 0.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect import rank_kernels as kernels
from napari_embedding_game.core.inspect.column_blocks import (
    BLOCK_VALUES,
    block_width,
    is_read_by_column,
)
from napari_embedding_game.core.threads import resolve_n_jobs

MarkerMethod = Literal["wilcoxon", "t-test"]
MARKER_METHODS: tuple[MarkerMethod, ...] = ("wilcoxon", "t-test")

_MOST_READERS = 4
"""Threads where columns are read from disk: each holds a block, and what it reads."""

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


def markers(
    X: Any,
    inside: BoolArray,
    outside: BoolArray | None = None,
    names: Sequence[str] | None = None,
    **options: Any,
) -> MarkerTable:
    """Return the columns that are highest in some rows against others.

    See :func:`iter_markers`, which also tells how far it is.
    """
    return finished(iter_markers(X, inside, outside, names, **options))


def finished(steps: Generator[float, None, MarkerTable]) -> MarkerTable:
    """Do all of the work and return its table."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            table: MarkerTable = end.value
            return table


def iter_markers(
    X: Any,
    inside: BoolArray,
    outside: BoolArray | None = None,
    names: Sequence[str] | None = None,
    *,
    method: MarkerMethod = "wilcoxon",
    n_top: int | None = 20,
    log1p: bool = True,
    tie_correct: bool = False,
    n_jobs: int | None = None,
) -> Generator[float, None, MarkerTable]:
    """Yield the share done, 0 to 1, block by block, and return the table.

    Close the generator to cancel; at most the blocks under way are finished.

    Parameters
    ----------
    X : (N, G) array, scipy sparse matrix or :class:`.column_blocks.ColumnBlocks`
        Compressed rows or columns are read as they are; float32 and float64
        without a copy.  Of columns on disk some blocks are in memory at a time.
    inside : (N,) bool
        Rows of the group.
    outside : (N,) bool, optional
        Rows to compare with; all others by default.
    names : sequence of str, optional
        Names of the columns; their numbers by default.
    method : {"wilcoxon", "t-test"}
        Rank sums with the normal approximation, or Welch's t-test.
    n_top : int, optional
        Rows of the table; None is all.
    log1p : bool
        Whether the values are log(1 + x), which the fold change undoes.
    tie_correct : bool
        Whether the variance of the rank sum allows for equal values.
    n_jobs : int, optional
        Threads; see :func:`threads.resolve_n_jobs`.

    Raises
    ------
    InputError
        Groups that overlap, have fewer than 2 rows or another length than the
        data; values that are no finite numbers; an unknown method.
    """
    if method not in MARKER_METHODS:
        raise InputError(f"The method must be one of {MARKER_METHODS}, not {method!r}.")
    n_columns = X.shape[1]
    if names is not None and len(names) != n_columns:
        raise InputError(f"There are {len(names)} names for {n_columns} columns.")
    groups = checked_groups(inside, outside, X.shape[0])
    sizes = np.bincount(groups, minlength=3)[:2].astype(np.int64)
    block = _Block(_readable(X), groups, sizes, is_ranked=method == "wilcoxon")
    all_figures = np.empty((block.n_figures, n_columns))
    n_threads = resolve_n_jobs(n_jobs)
    if is_read_by_column(X):
        n_threads = min(n_threads, _MOST_READERS)
    for last, figures in _in_threads(block, n_columns, n_threads):
        all_figures[:, last - figures.shape[1] : last] = figures
        yield last / n_columns
    _check_finite(all_figures, names)
    return _table(all_figures, sizes, names, method, n_top, log1p, tie_correct)


def checked_groups(
    inside: BoolArray, outside: BoolArray | None, n_rows: int
) -> NDArray[np.uint8]:
    """Return INSIDE, OUTSIDE or NEITHER of :mod:`.rank_kernels` for each row.

    Raises
    ------
    InputError
        The groups overlap, have fewer than 2 rows or another length than the data.
    """
    inside = np.asarray(inside, dtype=bool)
    outside = ~inside if outside is None else np.asarray(outside, dtype=bool)
    if len(inside) != n_rows or len(outside) != n_rows:
        raise InputError(
            f"The groups are over {len(inside)} and {len(outside)} rows, the data "
            f"over {n_rows}: say of every row whether it belongs to a group."
        )
    if (inside & outside).any():
        raise InputError(
            f"{np.count_nonzero(inside & outside)} rows are in both groups: "
            "compare groups that have no row in common."
        )
    for name, rows in (("chosen", inside), ("compared", outside)):
        n = np.count_nonzero(rows)
        if n < 2:
            raise InputError(
                f"The {name} group has {n} row{'s' if n != 1 else ''}, but a test "
                "needs at least 2: choose a larger group."
            )
    groups = np.full(n_rows, kernels.NEITHER, np.uint8)
    groups[inside] = kernels.INSIDE
    groups[outside] = kernels.OUTSIDE
    return groups


def _readable(X: Any) -> Any:
    """Return X as the kernels read it: sorted sparse or dense, floats if sparse."""
    if is_read_by_column(X):
        return X
    if not sparse.issparse(X):
        return np.asarray(X)
    X = X if X.format in ("csr", "csc") else X.tocsr()
    if X.data.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


class _Block:
    """The figures of some columns: statistics of both groups, then rank sums."""

    def __init__(
        self,
        X: Any,
        groups: NDArray[np.uint8],
        sizes: NDArray[np.int64],
        is_ranked: bool,
    ) -> None:
        self._X = X
        self._groups = groups
        self._sizes = sizes
        self.n_figures = 8 if is_ranked else 6

    def width(self) -> int:
        """Columns a block, so that it holds a certain number of values."""
        n_rows, n_columns = self._X.shape
        if is_read_by_column(self._X):
            return block_width(self._X.values_per_column, BLOCK_VALUES)
        is_sparse = sparse.issparse(self._X)
        held = self._X.nnz / max(n_columns, 1) if is_sparse else n_rows
        return block_width(held, BLOCK_VALUES)

    def __call__(self, first: int, last: int) -> FloatArray:
        """Return (figures, columns): mean, variance, positive; rank sum, ties."""
        values, begin, end = self._gather(first, last)
        figures = np.empty((self.n_figures, last - first))
        of_groups = figures[:6].reshape(3, 2, -1)
        kernels.group_statistics(values, begin, end, self._sizes, of_groups)
        if self.n_figures > 6:
            unsigned = np.uint32 if values.dtype == np.float32 else np.uint64
            n_bits = 8 * values.itemsize
            sign = unsigned(1 << (n_bits - 1))
            keys = values.view(unsigned)
            kernels.rank_sums(keys, begin, end, self._sizes, sign, n_bits, figures[6:])
        return figures

    def _gather(self, first: int, last: int) -> tuple[NDArray[Any], ...]:
        X = self._X
        gathered: tuple[NDArray[Any], ...]
        if sparse.issparse(X) and X.format == "csr":
            parts = (X.indptr, X.indices, X.data)
            gathered = kernels.gather_rows(*parts, self._groups, first, last)
            return gathered
        block = X.block(first, last) if is_read_by_column(X) else X[:, first:last]
        if sparse.issparse(block):
            parts = (block.indptr, block.indices, block.data)
            gathered = kernels.gather_columns(*parts, self._groups)
            return gathered
        if block.dtype not in (np.float32, np.float64):
            block = block.astype(np.float64)
        gathered = kernels.gather_dense(block, self._groups, self._sizes)
        return gathered


def _in_threads(
    block: _Block, n_columns: int, n_threads: int
) -> Iterator[tuple[int, FloatArray]]:
    """Yield each block's last column (excluded) and its figures, in order."""
    firsts = range(0, n_columns, block.width())
    lasts = [min(first + block.width(), n_columns) for first in firsts]
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="markers")
    try:
        yield from zip(lasts, pool.map(block, firsts, lasts), strict=True)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _check_finite(figures: FloatArray, names: Sequence[str] | None) -> None:
    is_bad = ~np.isfinite(figures[:2]).all(axis=0)
    if is_bad.any():
        first = int(is_bad.argmax())
        raise InputError(
            f"{np.count_nonzero(is_bad)} columns have values that are no finite "
            f"numbers, the first of them {names[first] if names else first}: leave "
            "those rows or columns out."
        )


def _table(
    figures: FloatArray,
    sizes: NDArray[np.int64],
    names: Sequence[str] | None,
    method: MarkerMethod,
    n_top: int | None,
    log1p: bool,
    tie_correct: bool,
) -> MarkerTable:
    means, variances, positive = figures[:2], figures[2:4], figures[4:6]
    if method == "t-test":
        scores, pvals = welch(means, variances, sizes)
    else:
        scores, pvals = _rank_sum_test(figures[6], figures[7], sizes, tie_correct)
    adjusted = _stats().false_discovery_control(pvals)
    top = np.argsort(-scores, kind="stable")[:n_top]
    change = log_fold_changes(means[:, top], log1p)
    named = top if names is None else [names[column] for column in top]
    return MarkerTable(
        method=method,
        n_inside=int(sizes[0]),
        n_outside=int(sizes[1]),
        columns=top,
        names=np.array(named, dtype=str),
        scores=scores[top],
        logfoldchanges=change,
        pvals=pvals[top],
        pvals_adj=adjusted[top],
        pts=positive[0, top] / sizes[0],
        pts_rest=positive[1, top] / sizes[1],
    )


def _stats() -> Any:
    """Return scipy's, imported when it is first asked for, as this takes a second."""
    from scipy import stats

    return stats


def _rank_sum_test(
    rank_sum: FloatArray, ties: FloatArray, sizes: NDArray[np.int64], tie_correct: bool
) -> tuple[FloatArray, FloatArray]:
    n, m = (float(size) for size in sizes)
    variance = n * m * (n + m + 1) / 12
    kept = 1 - ties / ((n + m) ** 3 - (n + m)) if tie_correct else np.ones_like(ties)
    deviation = np.sqrt(variance * np.maximum(kept, 0))
    scores = rank_sum - n * (n + m + 1) / 2
    # Where all values are equal nothing deviates, and the score is 0.
    scores = np.divide(scores, deviation, np.zeros_like(scores), where=deviation > 0)
    return scores, 2 * _stats().norm.sf(np.abs(scores))


def welch(
    means: FloatArray, variances: FloatArray, sizes: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """Return t and two-sided p of Welch's test, each (G,); 0 and 1 without a spread.

    Parameters
    ----------
    means, variances : (2, G) float
        Inside and outside.
    sizes : (2,) int
        Rows inside and outside.
    """
    deviations = np.sqrt(variances)
    with np.errstate(invalid="ignore", divide="ignore"):
        scores, pvals = _stats().ttest_ind_from_stats(
            means[0],
            deviations[0],
            sizes[0],
            means[1],
            deviations[1],
            sizes[1],
            equal_var=False,
        )
    # Where all values are equal there is no difference.
    is_same = np.isnan(scores)
    return np.where(is_same, 0.0, scores), np.where(np.isnan(pvals), 1.0, pvals)


def log_fold_changes(means: FloatArray, log1p: bool) -> FloatArray:
    """Return log2 of the ratio of means, (G,), NaN where there is none (below 0).

    Parameters
    ----------
    means : (2, G) float
        Inside and outside.
    log1p : bool
        Whether they are of log(1 + x), which is undone first.
    """
    # scanpy's 1e-9: a column that is 0 outside has a large change, not infinity.
    inside, outside = (np.expm1(means) if log1p else means) + 1e-9
    ratio = np.divide(inside, outside, np.full_like(inside, np.nan), where=outside > 0)
    change: FloatArray = np.log2(ratio, np.full_like(ratio, np.nan), where=ratio > 0)
    return change
