"""Read columns of a large matrix of AnnData from its file, where it is stored as CSC.

The file is opened for each reading and closed again, so that nobody is kept from
writing, moving or deleting it.  At most :data:`PART_VALUES` values are read at a time,
beside some bytes for each row and the columns that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.formats.anndata_store import is_array
from napari_embedding_game.data.limits.memory import check_shape_fits
from napari_embedding_game.data.raw_counts import are_counts
from napari_embedding_game.data.stages import Stage, Stages, finish
from napari_embedding_game.data.stored_columns import SAMPLED, StoredColumns

PART_VALUES = 1 << 23
"""Values that are read at a time."""
_RECENT = 8
"""Columns that are kept, as the mouse asks for one value after the other."""
_METADATA = (".zarray", ".zgroup", "zarr.json")


def stored_columns(
    path: Path, what: str, opened: Callable[[], AbstractContextManager[Any]]
) -> Stages[StoredColumns | None]:
    """Return a matrix as columns that stay on disk; None where it is stored by rows.

    Only its header and some of its values are read.

    Parameters
    ----------
    path : Path
        Of the file or folder.
    what : str
        What a person calls the matrix.
    opened : callable
        Opens the file, and gives the stored array or group.

    Raises
    ------
    DataError
        It is damaged.
    """
    yield Stage(f"Looking at {what}")
    with explain_damage(path, "a file of AnnData"), opened() as item:
        shape = _shape(item)
        if shape is None:
            return None
        check_shape_fits((sum(shape),), 8, path.name, what)
    return StoredColumns(ColumnReader(path, what, opened))


def _shape(item: Any) -> tuple[int, int] | None:
    """Return the shape of a stored matrix whose columns can be read; None of others."""
    if is_array(item) or item.attrs.get("encoding-type") != "csc_matrix":
        return None
    shape = tuple(map(int, item.attrs["shape"]))
    if len(shape) != 2 or item["data"].dtype.kind not in "buif":
        return None
    return shape[0], shape[1]


class ColumnReader:
    """Columns of a stored matrix; may be asked by several threads.

    Parameters
    ----------
    path, what, opened
        As for :func:`stored_columns`.
    """

    def __init__(
        self,
        path: Path,
        what: str,
        opened: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self.name = path.name
        self._path, self._what, self._opened = path, what, opened
        self._kept: Any = None  # what was opened of a folder, which holds no file open
        self._sums: NDArray[np.float64] | None = None
        self._recent = lru_cache(_RECENT)(self._read)
        with self._item() as item:
            n_rows, n_columns = map(int, item.attrs["shape"])
            self.shape = (n_rows, n_columns)
            self.values_per_column = float(item["data"].shape[0]) / max(n_columns, 1)
            self._stamp, self._sample = self._stamp_of(item), _sampled(item)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is of this process."""
        return {**vars(self), "_recent": None, "_kept": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _recent=lru_cache(_RECENT)(self._read))

    def sample(self) -> NDArray[Any]:
        """Return some of the stored values, as the file has them."""
        return self._sample

    def prepare(self) -> Stages[None]:
        """Find the depth of each cell, where these are counts."""
        if self._sums is None and are_counts(self._sample):
            self._sums = yield from self._summed()

    def row_sums(self) -> NDArray[np.float64]:
        """Return the sum of each row, (N,)."""
        if self._sums is None:
            self._sums = finish(self._summed())
        return self._sums

    def read(self, places: NDArray[np.intp]) -> Any:
        """Return columns, (N, k) float32, as canonical CSC."""
        if len(places) == 1:
            return self._recent(int(places[0]), int(places[0]) + 1)
        parts = [self._read(first, last) for first, last in _runs(places)]
        return sp.hstack(parts, "csc") if parts else sp.csc_matrix((self.shape[0], 0))

    def _read(self, first: int, last: int) -> Any:
        with self._same() as item:
            indptr = np.asarray(item["indptr"][first : last + 1], np.int64)
            if indptr[0] < 0 or (np.diff(indptr) < 0).any():
                raise ValueError(f"indptr of {self._what} does not grow")
            part = slice(int(indptr[0]), int(indptr[-1]))
            rows, values = self._checked(item, part)
        if len(values) != indptr[-1] - indptr[0]:
            raise ValueError(f"indptr of {self._what} leads beyond its values")
        shape = self.shape[0], last - first
        matrix = sp.csc_matrix((values, rows, indptr - indptr[0]), shape=shape)
        matrix.sum_duplicates()
        return matrix

    def _checked(self, item: Any, part: slice) -> tuple[Any, NDArray[np.float32]]:
        """Return rows and values of a part of a CSC matrix."""
        rows = np.asarray(item["indices"][part])
        values = np.asarray(item["data"][part], np.float32)
        are_inside = not rows.size or 0 <= rows.min() <= rows.max() < self.shape[0]
        if len(rows) != len(values) or not are_inside:
            raise ValueError("an index points outside the matrix")
        return rows, values

    def _summed(self) -> Stages[NDArray[np.float64]]:
        sums = np.zeros(self.shape[0])
        text = f"Counting the values of each cell in {self._what}"
        with self._same() as item:
            n = int(item["data"].shape[0])
            for begin in range(0, n, PART_VALUES):
                part = slice(begin, min(begin + PART_VALUES, n))
                rows, values = self._checked(item, part)
                sums += np.bincount(rows, values, self.shape[0])
                yield Stage(text, part.stop / n)
        return sums

    @contextmanager
    def _item(self) -> Iterator[Any]:
        """Give the stored array or group; whatever is wrong with it is a DataError."""
        if not self._path.exists():
            raise DataError(
                f"The genes of {self.name} are read from its file, which is no longer "
                f"in {self._path.parent}: put it back, or open it from its new place."
            )
        with explain_damage(self._path, "a file of AnnData"):
            if self._kept is not None:
                yield self._kept
                return
            with self._opened() as item:
                if self._path.is_dir():
                    self._kept = item
                yield item

    @contextmanager
    def _same(self) -> Iterator[Any]:
        """Give the stored array or group, if it holds what it held before."""
        with self._item() as item:
            stamp = self._stamp_of(item)
            if stamp != self._stamp:
                # The file may have been written again with other parts beside this one.
                has_nan = self._sample.dtype.kind == "f"
                if _shape(item) != self.shape or not np.array_equal(
                    _sampled(item), self._sample, equal_nan=has_nan
                ):
                    raise DataError(
                        f"{self.name} has changed since it was read, so that its genes "
                        "do not fit any more: open it again."
                    )
                self._stamp = stamp
            yield item

    def _stamp_of(self, item: Any) -> tuple[tuple[int, int], ...]:
        """Return what another writing would change: times and sizes of files."""
        files = [self._path]
        if self._path.is_dir():
            folder = self._path / item.path
            parts = (folder, *(folder / name for name in ("data", "indices", "indptr")))
            files = [part / name for part in parts for name in _METADATA]
        stats = [file.stat() for file in files if file.is_file()]
        return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)


def _sampled(item: Any) -> NDArray[Any]:
    """Return up to :data:`SAMPLED` values, of the begin, the middle and the end."""
    values = item["data"]
    n, length = int(values.shape[0]), SAMPLED // 3
    begins = (0, (n - length) // 2, n - length)
    parts = [slice(0, n)] if n <= SAMPLED else [slice(at, at + length) for at in begins]
    return np.concatenate([values[part] for part in parts])


def _runs(places: NDArray[np.intp]) -> list[tuple[int, int]]:
    """Return the pieces of consecutive places: first and last (excluded) of each."""
    if not len(places):
        return []
    ends = np.flatnonzero(np.diff(places) != 1)
    firsts = places[np.r_[0, ends + 1]]
    lasts = places[np.r_[ends, len(places) - 1]] + 1
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
