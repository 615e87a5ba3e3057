"""Figures of groups of rows in every column, of matrices.

Columns are read block by block; the values other than 0 of each block are gathered by
group once.  Means and squares are computed here, ranks in :mod:`markers`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.graph.rows import sum_duplicate_entries
from napari_embedding_game.core.inspect import marker_loops as loops
from napari_embedding_game.core.threads import count_threads

BLOCK_VALUES = 2**22
"""Values of a block, 16 MB of float32; four times as many in compressed rows."""
MAX_BLOCK = 256
"""Columns, where they are not in compressed rows: of these wide blocks are quicker."""

FloatArray = NDArray[np.float64]
T = TypeVar("T")


def finished(steps: Generator[float, None, T]) -> T:
    """Do all of the work and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


OfBlock = Callable[..., FloatArray]
"""Of values, begin, end and sizes (:mod:`marker_loops`): figures (..., columns)."""


def iter_grouped(
    X: Any,
    codes: NDArray[np.integer],
    n_groups: int,
    *,
    of_block: OfBlock | None = None,
    is_logged: bool = False,
) -> Generator[float, None, FloatArray]:
    """Yield the share done, 0 to 1, and return figures of all columns, (..., G).

    Those of :func:`moments`, (4, C, G), if ``of_block`` asks for nothing else.  Close
    the generator to cancel.  ``X`` (N, G): an array or sparse matrix;
    ``codes`` (N,): group of each row, below 0 for none; ``is_logged``: whether the
    figures are to be those of exp(values) - 1, without squares.
    """
    X, n_columns = _readable(X), X.shape[1]
    groups = np.ascontiguousarray(codes, np.int32)
    sizes = np.bincount(groups[groups >= 0], minlength=n_groups)

    def work(bounds: tuple[int, int]) -> FloatArray:
        values, begin, end = _gathered(X, groups, sizes, *bounds)
        if is_logged:
            with np.errstate(all="ignore"):  # between columns there may be anything
                values = np.expm1(values, dtype=float)
        return (of_block or moments)(values, begin, end, sizes)

    bounds, parts = _bounds(X), []
    pool = ThreadPoolExecutor(count_threads(), thread_name_prefix="columns")
    try:
        for (_, last), figures in zip(bounds, pool.map(work, bounds), strict=True):
            parts.append(figures)
            yield last / max(n_columns, 1)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return np.concatenate(parts, axis=-1)


def moments(values: Any, begin: Any, end: Any, sizes: Any) -> FloatArray:
    """Return figures of a block (4, C, columns): see :func:`.marker_loops.moments`."""
    figures = np.empty((4, len(sizes), len(begin)))
    loops.moments(values, begin, end, sizes, figures)
    return figures


def _bounds(X: Any) -> list[tuple[int, int]]:
    """Return the first and last (excluded) column of each block; of no columns, one."""
    n_rows, n_columns = X.shape
    held, most, widest = float(n_rows), BLOCK_VALUES, MAX_BLOCK
    if sparse.issparse(X):
        held = X.nnz / max(n_columns, 1)
        if X.format == "csr":
            most, widest = 4 * most, max(1, -(-n_columns // count_threads()))
    width = int(np.clip(most / max(held, 1), 1, widest))
    firsts = range(0, max(n_columns, 1), width)
    return [(first, min(first + width, n_columns)) for first in firsts]


def _readable(X: Any) -> Any:
    """Return X as the loops read it: sorted sparse or dense, floats if sparse."""
    if not sparse.issparse(X):
        return np.asarray(X)
    X = X if X.format in ("csr", "csc") else X.tocsr()
    if X.data.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return sum_duplicate_entries(X)


def _gathered(
    X: Any, groups: NDArray[np.int32], sizes: NDArray[np.int64], first: int, last: int
) -> Any:
    """Return values, begin and end of the columns: see :mod:`marker_loops`."""
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
    """Figures of C groups in G columns, those of ``scanpy.pl.dotplot``."""

    means: FloatArray
    """(C, G) over the rows whose value is known; NaN where there is none."""
    shares: FloatArray
    """(C, G) of all rows of the group that are above 0, 0 to 1; NaN without rows."""

    @property
    def scaled(self) -> FloatArray:
        """(C, G) means, of each column from 0 in its lowest group to 1 in its highest.

        Where a column is the same in all groups it is 0, as ``standard_scale="var"``
        of scanpy has it.
        """
        above = self.means - np.nanmin(self.means, axis=0, initial=np.inf)
        span = np.nanmax(above, axis=0, initial=0.0)
        scaled: FloatArray = np.zeros(above.shape)
        np.divide(above, span, out=scaled, where=span > 0)
        return scaled


def summarize(X: Any, codes: NDArray[np.integer], n_groups: int) -> GroupSummary:
    """Return the mean of each column and the share above 0 in every group of rows.

    ``X`` (N, G): an array or sparse matrix, NaN where a value is missing;
    ``codes`` (N,): group of each row, from 0; -1 for none.
    """
    codes = np.asarray(codes)
    counts, means, _, positive = finished(iter_grouped(X, codes, n_groups))
    sizes = np.bincount(codes[codes >= 0], minlength=n_groups)[:, None]
    shares = np.where(sizes > 0, positive / np.maximum(sizes, 1), np.nan)
    return GroupSummary(np.where(counts > 0, means, np.nan), shares)
