"""The leading markers of every group at once, by Welch's t-test against all other rows.

The scores and their order are those of ``scanpy.tl.rank_genes_groups`` with its default
``method="t-test"``.  The data are read once, whatever the number of groups; for ranks
and p-values of one group see :mod:`~.markers`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.column_blocks import (
    ColumnBlocks,
    is_read_by_column,
    iter_blocks,
)
from napari_embedding_game.core.inspect.markers import log_fold_changes, welch

BLOCK = 1 << 14
"""Rows that are summed up at a time."""
LEAST_FOLD = 1.0
"""Log2 fold change of a leading marker of expression: others are everywhere."""
FEWEST = 2
"""Rows that a test needs on each side."""


def iter_leading(
    X: Any, codes: NDArray[np.integer], n_groups: int, *, log1p: bool = True
) -> Generator[float, None, list[NDArray[np.intp]]]:
    """Yield the share done, 0 to 1, and return the markers of every group.

    Parameters
    ----------
    X : (N, G) array, scipy sparse matrix or :class:`.column_blocks.ColumnBlocks`
    codes : (N,) int
        Group of each row, from 0; rows of -1 count to the others.
    n_groups : int
    log1p : bool
        Whether the values are log(1 + x): then a marker is twice as high inside.

    Returns
    -------
    list of (m,) int
        For each group the columns that are higher inside, by falling score; none of a
        group that is too small for a test, or leaves too few others.
    """
    n_rows = X.shape[0]
    groups = np.where(codes < 0, n_groups, codes)  # one more for all others
    by_columns = is_read_by_column(X)
    sums = yield from (_of_columns if by_columns else _of_rows)(X, groups, n_groups + 1)
    sizes = np.bincount(groups, minlength=n_groups + 1)
    whole = sums.sum(axis=1)
    return [
        _leading(sums[:, group], whole - sums[:, group], sizes[group], n_rows, log1p)
        for group in range(n_groups)
    ]


def _of_rows(
    X: Any, groups: NDArray[np.integer], n_groups: int
) -> Generator[float, None, NDArray[np.float64]]:
    """Yield the share done, and return sums and sums of squares, (2, groups, G)."""
    n_rows, n_columns = X.shape
    sums = np.zeros((2, n_groups, n_columns))
    for begin in range(0, n_rows, BLOCK):
        part = slice(begin, begin + BLOCK)
        sums += _sums(X[part], _members(groups[part], n_groups))
        yield min(begin + BLOCK, n_rows) / n_rows
    return sums


def _of_columns(
    X: ColumnBlocks, groups: NDArray[np.integer], n_groups: int
) -> Generator[float, None, NDArray[np.float64]]:
    """Return the same of columns that are read in blocks."""
    sums = np.zeros((2, n_groups, X.shape[1]))
    members = _members(groups, n_groups)
    for first, last, block in iter_blocks(X):
        sums[:, :, first:last] = _sums(block, members)
        yield last / X.shape[1]
    return sums


def _sums(block: Any, members: Any) -> NDArray[np.float64]:
    """Return the sums and the sums of squares of some rows or columns, by group."""
    squares = block.power(2) if sp.issparse(block) else np.square(block, dtype=float)
    sums = [members @ values for values in (block, squares)]
    return np.stack([s.toarray() if sp.issparse(s) else s for s in sums])


def _members(groups: NDArray[np.integer], n_groups: int) -> Any:
    """Return which rows are in each group: (n_groups, n)."""
    rows = np.arange(len(groups))
    ones = np.ones(len(groups))
    return sp.csr_matrix((ones, (groups, rows)), shape=(n_groups, len(groups)))


def _leading(
    inside: NDArray[np.float64],
    outside: NDArray[np.float64],
    size: int,
    n_rows: int,
    log1p: bool,
) -> NDArray[np.intp]:
    """Return the columns that are higher inside, from sums and sums of squares."""
    sizes = np.array([size, n_rows - size], dtype=np.int64)
    if sizes.min() < FEWEST:
        return np.empty(0, np.intp)
    means = np.stack([inside[0], outside[0]]) / sizes[:, None]
    squares = np.stack([inside[1], outside[1]]) / sizes[:, None]
    variances = np.maximum(squares - means**2, 0) * (sizes / (sizes - 1))[:, None]
    scores, _ = welch(means, variances, sizes)
    is_higher = scores > 0
    if log1p:
        is_higher &= log_fold_changes(means, log1p) >= LEAST_FOLD
    order = np.argsort(-scores, kind="stable")
    leading: NDArray[np.intp] = order[is_higher[order]]
    return leading
