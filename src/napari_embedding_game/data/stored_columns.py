"""Numbers that stay on disk: rows of cells, of which columns of genes are read.

:class:`StoredColumns` takes the place of an array or sparse matrix where this would
take too much memory.  It knows its shape; ``stored[rows]`` is one of fewer rows, and
``stored[:, columns]`` reads these columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.stages import Stages

SAMPLED = 1 << 20
"""Values that tell whether they are counts, logarithms or neither."""

_AT_ONCE = 1 << 22
"""Values in memory at a time, where many columns are gone through."""


@dataclass(frozen=True, eq=False)
class StoredColumns:
    """Some rows of a stored matrix, all columns; see the module."""

    reader: Any
    """A :class:`~.formats.columns_on_disk.ColumnReader`."""
    rows: NDArray[np.intp] | None = None
    """(n,) which rows of the file these are; None for all."""
    factors: NDArray[np.float64] | None = None
    """(n,) where values are counts: what each row is multiplied by before log1p."""

    ndim = 2
    dtype = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n_rows = self.reader.shape[0] if self.rows is None else len(self.rows)
        return n_rows, int(self.reader.shape[1])

    @property
    def values_per_column(self) -> float:
        """Numbers that a column holds in memory while it is read, on average."""
        return float(self.reader.values_per_column)

    def __getitem__(self, key: Any) -> Any:
        """Return the same of some rows; or read columns, as ``[:, columns]``."""
        if isinstance(key, tuple):
            rows, columns = key
            whole = isinstance(rows, slice) and rows == slice(None)
            return (self if whole else self[rows]).columns(columns)
        rows = np.arange(self.shape[0])[key]
        return StoredColumns(
            self.reader,
            rows if self.rows is None else self.rows[rows],
            None if self.factors is None else self.factors[rows],
        )

    def normalised(self, factors: NDArray[np.float64]) -> StoredColumns:
        """Return the logarithms of counts that are multiplied by a number a row."""
        return replace(self, factors=factors)

    def columns(self, places: Sequence[int] | NDArray[np.intp] | slice) -> Any:
        """Return columns, (n, k) float32, as CSC with sorted rows."""
        values = self.reader.read(np.arange(self.shape[1])[places])
        if self.rows is not None:
            values = values[self.rows]
        if self.factors is None:
            return values
        data = np.log1p(values.data * self.factors[values.indices])
        parts = data.astype(np.float32), values.indices, values.indptr
        return sp.csc_matrix(parts, shape=values.shape)

    def block(self, first: int, last: int) -> Any:
        """Return the columns from ``first`` to ``last`` (excluded)."""
        return self.columns(slice(first, last))

    def iter_columns(self, places: Sequence[int] | None = None) -> Iterator[Any]:
        """Yield columns, all or these, a few at a time and in their order."""
        wanted = np.arange(self.shape[1]) if places is None else np.asarray(places)
        width = max(1, int(_AT_ONCE // max(self.values_per_column, 1)))
        for first in range(0, len(wanted), width):
            yield self.columns(wanted[first : first + width])

    def in_memory(self) -> Any:
        """Return all of it, (n, G), as CSR."""
        return sp.hstack(list(self.iter_columns()), "csr", dtype=np.float32)

    def row_sums(self) -> NDArray[np.float64]:
        """Return the sum of each row, (n,)."""
        sums: NDArray[np.float64] = self.reader.row_sums()
        return sums if self.rows is None else sums[self.rows]

    def prepare(self) -> Stages[None]:
        """Do what has to be done once before columns can be read, in stages."""
        yield from self.reader.prepare()

    def sample(self) -> NDArray[Any]:
        """Return some of the stored values, as the file has them."""
        sample: NDArray[Any] = self.reader.sample()
        return sample


def seen_values(X: Any) -> Any:
    """Return the values that tell what X holds: of what stays on disk, some."""
    return X.sample() if isinstance(X, StoredColumns) else X
