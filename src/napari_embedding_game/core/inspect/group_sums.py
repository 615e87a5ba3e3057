"""Compute figures of groups of rows in every column of a matrix.

Columns are read block by block, and the values other than 0 of each block are gathered
by group.  Means and squares are computed here, ranks in :mod:`markers`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.rows import sum_duplicate_entries
from napari_embedding_game.core.inspect import marker_loops as loops
from napari_embedding_game.core.threads import count_threads

BLOCK_VALUES = 2**22
"""Most values of a block, 16 MB of float32; four times as many in compressed rows."""
MAX_BLOCK = 256
"""Most columns of a block, unless in compressed rows, where wide blocks are quicker."""

FloatArray = NDArray[np.float64]
T = TypeVar("T")


def run_to_result(steps: Generator[float, None, T]) -> T:
    """Run a generator to its end and return its result; yielded progress is ignored."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


BlockFigures = Callable[..., FloatArray]
"""Function of values, begin, end and sizes (:mod:`marker_loops`) that returns figures
of a block, (..., columns)."""


def iter_group_figures(
    X: Any,
    codes: NDArray[np.integer],
    n_groups: int,
    *,
    compute_figures: BlockFigures | None = None,
    is_logged: bool = False,
) -> Generator[float, None, FloatArray]:
    """Yield the share done, 0 to 1, and return figures of all columns, (..., G).

    Close the generator to cancel.

    Parameters
    ----------
    X
        (N, G) array or sparse matrix.
    codes
        (N,) group of each row, from 0 to C - 1, or below 0 for rows in no group.
    n_groups
        Number of groups C.
    compute_figures
        Function that computes the figures of a block of columns, called in several
        threads; by default :func:`compute_moments`, whose figures are (4, C, G).
    is_logged
        Whether figures are computed of exp(values) - 1.
    """
    X, n_columns = _to_readable_matrix(X), X.shape[1]
    groups = np.ascontiguousarray(codes, np.int32)
    sizes = np.bincount(groups[groups >= 0], minlength=n_groups)

    def compute_block(bounds: tuple[int, int]) -> FloatArray:
        """Return the figures of the columns between two bounds, (..., columns)."""
        values, begin, end = _gather_block(X, groups, sizes, *bounds)
        if is_logged:
            with np.errstate(all="ignore"):  # values between columns are undefined
                values = np.expm1(values, dtype=float)
        return (compute_figures or compute_moments)(values, begin, end, sizes)

    bounds, parts = _split_into_blocks(X), []
    pool = ThreadPoolExecutor(count_threads(), thread_name_prefix="columns")
    try:
        computed = pool.map(compute_block, bounds)
        for (_, last), figures in zip(bounds, computed, strict=True):
            parts.append(figures)
            yield last / max(n_columns, 1)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return np.concatenate(parts, axis=-1)


def compute_moments(values: Any, begin: Any, end: Any, sizes: Any) -> FloatArray:
    """Return figures of the finite values of each group in a block, (4, C, columns).

    The figures are counts, means, sums of squared deviations, and counts above 0: see
    :func:`.marker_loops.write_moments`.
    """
    figures = np.empty((4, len(sizes), len(begin)))
    loops.write_moments(values, begin, end, sizes, figures)
    return figures


def check_finite(
    n_finite: FloatArray, sizes: NDArray[np.integer], names: Sequence[str] | None
) -> None:
    """Raise InputError where a column has values in a group that are not finite.

    ``n_finite`` (C, G): number of finite values of each group in each column; ``sizes``
    (C,): rows of the groups; ``names`` (G,) of the columns, by default their numbers.
    """
    bad = np.flatnonzero((n_finite < sizes[:, None]).any(axis=0))
    if len(bad):
        first = bad[0] if names is None else names[bad[0]]
        raise InputError(
            f"{len(bad)} columns have values that are no finite numbers, the first of "
            f"them {first}: leave those rows or columns out."
        )


def compute_log_fold_changes(
    inside: FloatArray, outside: FloatArray, *, log1p: bool = False
) -> FloatArray:
    """Return log2 of mean ``inside`` over mean ``outside``, (G,).

    ``inside``, ``outside`` (G,): means of columns.  With ``log1p`` they are means of
    log(1 + x), and exp(mean) - 1 is compared.  A small number is added to both, so that
    a mean of 0 gives a large change.  NaN where a mean is below 0.
    """
    means = np.stack([inside, outside])
    # A column that is 0 outside has a large change, not infinity: 1e-9 is scanpy's.
    means, unit = (np.expm1(means), 1.0) if log1p else (means, abs(means).max(axis=0))
    above, below = means + 1e-9 * np.where(unit > 0, unit, 1.0)
    ratio = np.divide(above, below, np.full_like(above, np.nan), where=below > 0)
    change: FloatArray = np.log2(ratio, np.full_like(ratio, np.nan), where=ratio > 0)
    return change


def _split_into_blocks(X: Any) -> list[tuple[int, int]]:
    """Return the first and the last column (excluded) of each block of columns.

    A block has at most ``MAX_BLOCK`` columns and about ``BLOCK_VALUES`` values; in
    compressed rows a thread's share of the columns and four times the values.  A matrix
    without columns has a single empty block.
    """
    n_rows, n_columns = X.shape
    held, most, widest = float(n_rows), BLOCK_VALUES, MAX_BLOCK
    if sparse.issparse(X):
        held = X.nnz / max(n_columns, 1)
        if X.format == "csr":
            most, widest = 4 * most, max(1, -(-n_columns // count_threads()))
    width = int(np.clip(most / max(held, 1), 1, widest))
    firsts = range(0, max(n_columns, 1), width)
    return [(first, min(first + width, n_columns)) for first in firsts]


def _to_readable_matrix(X: Any) -> Any:
    """Return X as an array, or as a csr or csc matrix of floats.

    Entries of the same place in a sparse matrix are summed, and indices sorted.
    """
    if not sparse.issparse(X):
        return np.asarray(X)
    X = X if X.format in ("csr", "csc") else X.tocsr()
    if X.data.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return sum_duplicate_entries(X)


def _gather_block(
    X: Any, groups: NDArray[np.int32], sizes: NDArray[np.int64], first: int, last: int
) -> Any:
    """Return values other than 0 by column and group, where groups begin, and end.

    The block has the columns from ``first`` to ``last`` (excluded).  Integers become
    float64.  See :func:`.marker_loops.gather_dense`.
    """
    is_by_row = sparse.issparse(X) and X.format == "csr"
    block = X if is_by_row else X[:, first:last]
    if sparse.issparse(block):
        held = block.indptr, block.indices, block.data
        return loops.gather_sparse(*held, groups, sizes, first, last, is_by_row)
    if block.dtype not in (np.float32, np.float64):
        block = block.astype(np.float64)
    return loops.gather_dense(block, groups, sizes)


@dataclass(frozen=True, eq=False)
class GroupSummary:
    """Means and shares of C groups in G columns, for a dot plot as scanpy's."""

    means: FloatArray
    """(C, G) mean over the rows whose value is known; NaN where no value is known."""
    shares: FloatArray
    """(C, G) share of all rows of the group above 0, 0 to 1; NaN for no rows."""

    @property
    def scaled_means(self) -> FloatArray:
        """(C, G) means scaled from 0 in a column's lowest group to 1 in its highest.

        A column that is the same in all groups is 0, as with scanpy's
        ``standard_scale="var"``.  In other columns a group without known values is NaN.
        """
        above = self.means - np.nanmin(self.means, axis=0, initial=np.inf)
        span = np.nanmax(above, axis=0, initial=0.0)
        scaled: FloatArray = np.zeros(above.shape)
        np.divide(above, span, out=scaled, where=span > 0)
        return scaled


def summarize_groups(X: Any, codes: NDArray[np.integer], n_groups: int) -> GroupSummary:
    """Return the mean of each column and the share above 0 in every group of rows.

    ``X`` (N, G): an array or sparse matrix; values that are not finite are missing:
    they are left out of means, and count as not above 0.  ``codes`` (N,): the group of
    each row, from 0; -1 for rows in no group.
    """
    codes = np.asarray(codes)
    counts, means, _, positive = run_to_result(iter_group_figures(X, codes, n_groups))
    sizes = np.bincount(codes[codes >= 0], minlength=n_groups)[:, None]
    shares = np.where(sizes > 0, positive / np.maximum(sizes, 1), np.nan)
    return GroupSummary(np.where(counts > 0, means, np.nan), shares)
