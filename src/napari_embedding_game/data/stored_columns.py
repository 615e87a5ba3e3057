"""Genes that stay on disk: rows of cells, of which columns of genes are read.

:class:`StoredColumns` takes the place of an array or sparse matrix where this would
take too much memory.  It knows its shape; ``stored[rows]`` is one of fewer rows, and
``stored[:, columns]`` reads these columns.  The file is opened for each reading and
closed again, so that nobody is kept from writing, moving or deleting it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
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
_RECENT = 8
"""Columns that are kept, as the mouse asks for one value after the other."""

Opened = Callable[[], AbstractContextManager[Any]]
"""Opens a file, and gives the group of a CSC matrix in it."""


class StoredMatrix:
    """A CSC matrix of a file or folder; may be asked by several threads.

    Raises DataError if it is damaged.
    """

    def __init__(self, path: Path, opened: Opened) -> None:
        self.path, self._opened = path, opened
        self._sums: NDArray[np.float64] | None = None
        self._recent = lru_cache(_RECENT)(self._read)
        self._stamp: tuple[Any, ...] = ()
        with self._item() as item:
            self.shape: tuple[int, int] = tuple(map(int, item.attrs["shape"]))  # type: ignore[assignment]
            self.per_column = float(item["data"].shape[0]) / max(self.shape[1], 1)
            self._stamp = self._stamp_of(item)
            self.sample: NDArray[Any] = item["data"][:_SAMPLED]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is of this process."""
        return {**vars(self), "_recent": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _recent=lru_cache(_RECENT)(self._read))

    def read(self, places: NDArray[np.intp]) -> Any:
        """Return columns, (N, k) float32, as canonical CSC."""
        one = len(places) == 1
        return self._recent(int(places[0])) if one else self._read(places)

    def _read(self, places: NDArray[np.intp] | int) -> Any:
        from anndata.io import sparse_dataset

        places = np.atleast_1d(np.asarray(places, np.intp))
        runs = len(places) > 0 and bool((np.diff(places) == 1).all())
        wanted = slice(places[0], places[-1] + 1) if runs else places
        with self._item() as item:
            part = sp.csc_matrix(sparse_dataset(item)[:, wanted])
            part.check_format(full_check=True)
        part.sum_duplicates()
        return part.astype(np.float32)

    def sums(self) -> Stages[NDArray[np.float64]]:
        """Return the sum of each row, (N,), in stages; they are kept."""
        if self._sums is not None:
            return self._sums
        sums = np.zeros(self.shape[0])
        with self._item() as item:
            n = int(item["data"].shape[0])
            for begin in range(0, n, AT_ONCE):
                part = slice(begin, min(begin + AT_ONCE, n))
                rows = np.asarray(item["indices"][part])
                if rows.min() < 0 or rows.max() >= len(sums):
                    raise ValueError("an index points outside the matrix")
                sums += np.bincount(rows, item["data"][part], len(sums))
                yield Stage("Counting the values of each cell", part.stop / n)
        self._sums = sums
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
        with explain_damage(self.path, "a file of AnnData"), self._opened() as item:
            if self._stamp and self._stamp_of(item) != self._stamp:
                raise DataError(
                    f"{self.path.name} has changed since it was read, so that its "
                    "genes do not fit any more: open it again."
                )
            yield item

    def _stamp_of(self, item: Any) -> tuple[Any, ...]:
        """Return what writing other genes would change: lengths and first values."""
        data = item["data"]
        ends = [
            np.asarray(data[part]).tobytes() for part in (slice(64), slice(-64, None))
        ]
        return (tuple(item.attrs["shape"]), int(data.shape[0]), *ends)


@dataclass(frozen=True, eq=False)
class StoredColumns:
    """Some rows of a stored matrix, all columns; see the module."""

    matrix: StoredMatrix
    rows: NDArray[np.intp] | None = None
    """(n,) which rows of the file these are; None for all."""
    factors: NDArray[np.float64] | None = None
    """(n,) where values are counts: what each row is multiplied by before log1p."""

    ndim = 2
    dtype = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n_rows = self.matrix.shape[0] if self.rows is None else len(self.rows)
        return n_rows, self.matrix.shape[1]

    @property
    def values_per_column(self) -> float:
        """Numbers that a column holds in memory while it is read, on average."""
        return self.matrix.per_column

    def __getitem__(self, key: Any) -> Any:
        """Return the same of some rows; or read columns, as ``[:, columns]``."""
        if isinstance(key, tuple):
            rows, columns = key
            whole = isinstance(rows, slice) and rows == slice(None)
            return (self if whole else self[rows]).columns(columns)
        rows = np.arange(self.shape[0])[key]
        return StoredColumns(
            self.matrix,
            rows if self.rows is None else self.rows[rows],
            None if self.factors is None else self.factors[rows],
        )

    def normalised(self, factors: NDArray[np.float64]) -> StoredColumns:
        """Return the logarithms of counts that are multiplied by a number a row."""
        return replace(self, factors=factors)

    def columns(self, places: Sequence[int] | NDArray[np.intp] | slice) -> Any:
        """Return columns, (n, k) float32, as CSC with sorted rows."""
        values = self.matrix.read(np.arange(self.shape[1])[places])
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
        width = max(1, int(AT_ONCE // max(self.values_per_column, 1)))
        for first in range(0, len(wanted), width):
            yield self.columns(wanted[first : first + width])

    def in_memory(self) -> Any:
        """Return all of it, (n, G), as CSR."""
        return sp.hstack(list(self.iter_columns()), "csr", dtype=np.float32)

    def row_sums(self) -> NDArray[np.float64]:
        """Return the sum of each row, (n,)."""
        sums = finish(self.matrix.sums())
        return sums if self.rows is None else sums[self.rows]

    def prepare(self) -> Stages[None]:
        """Find the depth of each cell, where these are counts, in stages."""
        if are_counts(self.matrix.sample):
            yield from self.matrix.sums()


def seen_values(X: Any) -> Any:
    """Return the values that tell what X holds: of what stays on disk, some."""
    return X.matrix.sample if isinstance(X, StoredColumns) else X
