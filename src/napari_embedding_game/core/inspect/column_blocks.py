"""Columns that are read when they are asked for, such as genes that stay on disk.

Whoever reads a matrix column by column takes either an array, or such a value: then
only one block of columns is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeGuard

import numpy as np

BLOCK_VALUES = 2**22
"""Values of a block: 16 MB of float32."""
WIDEST_BLOCK = 256


class ColumnBlocks(Protocol):
    """A matrix whose columns are read in blocks."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def values_per_column(self) -> float:
        """Numbers that a column holds in memory, on average."""

    def block(self, first: int, last: int) -> Any:
        """Return the columns from ``first`` to ``last`` (excluded), float32.

        As a dense array, or as a CSC matrix with sorted rows, none of them twice.
        May be called by several threads.
        """


def is_read_by_column(X: Any) -> TypeGuard[ColumnBlocks]:
    """Return whether this is no matrix in memory, but reads blocks of columns."""
    return hasattr(X, "values_per_column")


def block_width(values_per_column: float, most: int = BLOCK_VALUES) -> int:
    """Return how many columns hold about ``most`` values."""
    width = most / max(values_per_column, 1)
    return int(np.clip(width, 1, WIDEST_BLOCK))


def iter_blocks(X: ColumnBlocks) -> Iterator[tuple[int, int, Any]]:
    """Yield all blocks of columns: the first, the last (excluded), and the values."""
    width, n_columns = block_width(X.values_per_column), X.shape[1]
    for first in range(0, n_columns, width):
        last = min(first + width, n_columns)
        yield first, last, X.block(first, last)
