"""Genes that stay on disk: rows of cells, of which columns of genes are read.

:class:`StoredColumns` takes the place of an array or sparse matrix where this would
take too much memory.  It knows its shape; ``stored[rows]`` is one of fewer rows, and
``stored[:, columns]`` reads these columns.  The file is opened for each reading and
closed again, so that nobody is kept from writing, moving or deleting it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.raw_counts import are_counts
from napari_embedding_game.data.stages import Stage, Stages, finish

AT_ONCE = 1 << 22
"""Values in memory at a time, where many columns are gone through."""
_SAMPLED = 1 << 20
"""Values that tell whether they are counts, logarithms or neither."""
_SUMS = "sums"
_RECENT = 8
"""Columns that are kept, as the mouse asks for one value after the other."""

Opened = Callable[[], AbstractContextManager[Any]]
"""Opens a file, and gives the group of a CSC matrix in it."""


@dataclass(frozen=True, eq=False)
class StoredColumns:
    """Some rows of a stored CSC matrix, all columns; may be asked by several threads.

    Raises DataError where the file is damaged, has changed, or is gone.
    """

    path: Path
    opened: Opened
    file_shape: tuple[int, int]
    """Rows and columns in the file."""
    values_per_column: float
    """Numbers that a column holds in memory while it is read, on average."""
    stamp: tuple[Any, ...]
    """What writing other genes would change: lengths and first values."""
    sample: NDArray[Any]
    """Values that tell whether they are counts, logarithms or neither."""
    rows: NDArray[np.intp] | None = None
    """(n,) which rows of the file these are; None for all."""
    factors: NDArray[np.float64] | None = None
    """(n,) where values are counts: what each row is multiplied by before log1p."""
    known: dict[Any, Any] = field(default_factory=dict)
    """Columns that were read last, and the sums of rows; of all parts of the file."""

    ndim = 2
    dtype = np.dtype(np.float32)

    @classmethod
    def of(cls, path: Path, opened: Opened) -> StoredColumns:
        """Return all rows of the matrix in a file."""
        with explain_damage(path, "a file of AnnData"), opened() as item:
            n_rows, n_columns = map(int, item.attrs["shape"])
            per_column = float(item["data"].shape[0]) / max(n_columns, 1)
            sample = item["data"][:_SAMPLED]
            shape = n_rows, n_columns
            return cls(path, opened, shape, per_column, _stamp_of(item), sample)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n_rows = self.file_shape[0] if self.rows is None else len(self.rows)
        return n_rows, self.file_shape[1]

    def __getitem__(self, key: Any) -> Any:
        """Return the same of some rows; or read columns, as ``[:, columns]``."""
        if isinstance(key, tuple):
            rows, columns = key
            whole = isinstance(rows, slice) and rows == slice(None)
            return (self if whole else self[rows]).columns(columns)
        rows = np.arange(self.shape[0])[key]
        return replace(
            self,
            rows=rows if self.rows is None else self.rows[rows],
            factors=None if self.factors is None else self.factors[rows],
        )

    def normalised(self, factors: NDArray[np.float64]) -> StoredColumns:
        """Return the logarithms of counts that are multiplied by a number a row."""
        return replace(self, factors=factors)

    def columns(self, places: Sequence[int] | NDArray[np.intp] | slice) -> Any:
        """Return columns, (n, k) float32, as CSC with sorted rows."""
        values = self._read(np.arange(self.shape[1])[places])
        if self.rows is not None:
            values = values[self.rows]
        if self.factors is None:
            return values
        data = np.log1p(values.data * self.factors[values.indices])
        parts = data.astype(np.float32), values.indices, values.indptr
        return sp.csc_matrix(parts, shape=values.shape)

    def _read(self, places: NDArray[np.intp]) -> Any:
        """Return columns of all rows of the file, as canonical CSC; one is kept."""
        from anndata.io import sparse_dataset

        slot, one = -1, places.tolist()
        if len(one) == 1:
            slot = one[0] % _RECENT
            place, values = self.known.get(slot, (-1, None))
            if place == one[0]:
                return values
        runs = len(places) > 0 and bool((np.diff(places) == 1).all())
        with self._item() as item:
            part = slice(places[0], places[-1] + 1) if runs else places
            values = sp.csc_matrix(sparse_dataset(item)[:, part])
            values.check_format(full_check=True)
        values.sum_duplicates()
        values = values.astype(np.float32)
        if slot >= 0:
            self.known[slot] = one[0], values
        return values

    def block(self, first: int, last: int) -> Any:
        """Return the columns from ``first`` to ``last`` (excluded)."""
        return self.columns(slice(first, last))

    def iter_columns(self, places: Sequence[int] | None = None) -> Iterator[Any]:
        """Yield columns, all or these, a few at a time and in their order."""
        wanted = np.arange(self.shape[1]) if places is None else np.asarray(places)
        width = max(1, int(AT_ONCE // max(self.values_per_column, 1)))
        for first in range(0, len(wanted), width):
            yield self.columns(wanted[first : first + width])

    def in_memory(self) -> Any:
        """Return all of it, (n, G), as CSR."""
        return sp.hstack(list(self.iter_columns()), "csr", dtype=np.float32)

    def row_sums(self) -> NDArray[np.float64]:
        """Return the sum of each row, (n,)."""
        sums = finish(self._sums())
        return sums if self.rows is None else sums[self.rows]

    def prepare(self) -> Stages[None]:
        """Find the depth of each cell, where these are counts, in stages."""
        if are_counts(self.sample):
            yield from self._sums()

    def _sums(self) -> Stages[NDArray[np.float64]]:
        """Return the sum of each row of the file, in stages; they are kept."""
        sums: NDArray[np.float64] = self.known.get(_SUMS, np.zeros(self.file_shape[0]))
        if _SUMS in self.known:
            return sums
        with self._item() as item:
            n = int(item["data"].shape[0])
            for begin in range(0, n, AT_ONCE):
                part = slice(begin, min(begin + AT_ONCE, n))
                rows = np.asarray(item["indices"][part])
                if rows.min() < 0 or rows.max() >= len(sums):
                    raise ValueError("an index points outside the matrix")
                sums += np.bincount(rows, item["data"][part], len(sums))
                yield Stage("Counting the values of each cell", part.stop / n)
        self.known[_SUMS] = sums
        return sums

    @contextmanager
    def _item(self) -> Iterator[Any]:
        """Give the stored group; whatever is wrong with it is a DataError."""
        if not self.path.exists():
            raise DataError(
                f"The genes of {self.path.name} are read from its file, which is no "
                f"longer in {self.path.parent}: put it back, or open it from its new "
                "place."
            )
        with explain_damage(self.path, "a file of AnnData"), self.opened() as item:
            if _stamp_of(item) != self.stamp:
                raise DataError(
                    f"{self.path.name} has changed since it was read, so that its "
                    "genes do not fit any more: open it again."
                )
            yield item


def _stamp_of(item: Any) -> tuple[Any, ...]:
    data = item["data"]
    ends = [np.asarray(data[part]).tobytes() for part in (slice(64), slice(-64, None))]
    return (tuple(item.attrs["shape"]), int(data.shape[0]), *ends)


def seen_values(X: Any) -> Any:
    """Return the values that tell what X holds: of what stays on disk, some."""
    return X.sample if isinstance(X, StoredColumns) else X
