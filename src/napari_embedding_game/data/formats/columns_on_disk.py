"""Read columns of a large matrix of AnnData from its file: CSC, or in narrow blocks.

The file is opened for each reading and closed again, so that nobody is kept from
writing, moving or deleting it.  At most :data:`PART_VALUES` values are read at a time,
beside some bytes for each row and the columns that are asked for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata_store import is_array
from napari_embedding_game.data.formats.stored_matrix import (
    StoredMatrix,
    blocks_of,
    check_places,
    column_bytes,
    read_indptr,
    sampled,
)
from napari_embedding_game.data.limits.memory import check_shape_fits
from napari_embedding_game.data.raw_counts import are_counts
from napari_embedding_game.data.stages import Stage, Stages, finish
from napari_embedding_game.data.stored_columns import StoredColumns

PART_VALUES = 1 << 23
"""Values that are read at a time."""
NARROW = 64 << 20
"""Bytes of the blocks that a column is in, up to which it is read from the file."""
_RECENT = 8
"""Columns that are kept, as the mouse asks for one value after the other."""


def stored_columns(matrix: StoredMatrix) -> Stages[StoredColumns | None]:
    """Return a matrix as columns that stay on disk; None where it is stored by rows.

    Only its header and some of its values are read.

    Raises
    ------
    DataError
        It is damaged.
    """
    yield Stage(f"Looking at {matrix.what}")
    with matrix.opened() as item:
        is_dense = is_array(item)
        kind, shape = _layout(item)
        if kind is None or len(shape) != 2:
            return None
        check_shape_fits((sum(shape),), 8, matrix.path.name, matrix.what)
        return StoredColumns(kind(matrix, shape, is_dense, item))


def _layout(item: Any) -> tuple[type[Reader] | None, tuple[int, ...]]:
    """Return how columns of a stored array or group are read, and its shape."""
    if is_array(item):
        is_narrow = len(item.shape) == 2 and column_bytes(item) <= NARROW
        is_read = is_narrow and item.dtype.kind in "buif"
        return (DenseReader if is_read else None), tuple(map(int, item.shape))
    is_csc = str(item.attrs.get("encoding-type", "")) == "csc_matrix"
    is_read = is_csc and item["data"].dtype.kind in "buif"
    return (CscReader if is_read else None), tuple(map(int, item.attrs["shape"]))


class Reader:
    """What both readers have in common; see :class:`~.stored_columns.ColumnReader`.

    Parameters
    ----------
    matrix : StoredMatrix
    shape : (N, G)
    is_dense : bool
    item
        The open array or group.
    """

    def __init__(
        self, matrix: StoredMatrix, shape: tuple[int, ...], is_dense: bool, item: Any
    ) -> None:
        self.name = matrix.path.name
        self.shape = (shape[0], shape[1])
        self.is_dense = is_dense
        self.values_per_column = float(shape[0])
        self._matrix = matrix
        self._stamp = matrix.stamp(item)
        self._sample = sampled(item)
        self._sums: NDArray[np.float64] | None = None
        self._recent: OrderedDict[int, Any] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is of this process."""
        return {**vars(self), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def sample(self) -> NDArray[Any]:
        """Return some of the stored values."""
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
        """Return columns, (N, k) float32: an array, or canonical CSC."""
        if len(places) == 1:
            return self._one(int(places[0]))
        parts = [self._read(first, last) for first, last in _runs(places)]
        if self.is_dense:
            none = np.zeros((self.shape[0], 0), np.float32)
            return np.hstack(parts) if parts else none
        return sp.hstack(parts, "csc") if parts else sp.csc_matrix((self.shape[0], 0))

    def _one(self, place: int) -> Any:
        with self._lock:
            if place in self._recent:
                self._recent.move_to_end(place)
                return self._recent[place]
        column = self._read(place, place + 1)
        with self._lock:
            self._recent[place] = column
            if len(self._recent) > _RECENT:
                self._recent.popitem(last=False)
        return column

    @contextmanager
    def _same(self) -> Iterator[Any]:
        """Give the stored array or group, if it holds what it held before."""
        with self._matrix.opened() as item:
            stamp = self._matrix.stamp(item)
            if stamp != self._stamp:
                if not self._is_as_before(item):
                    raise DataError(
                        f"{self.name} has changed since it was read, so that its genes "
                        "do not fit any more: open it again."
                    )
                self._stamp = stamp
            yield item

    def _is_as_before(self, item: Any) -> bool:
        # The file may have been written again with other parts beside this one.
        kind, shape = _layout(item)
        is_alike = kind is type(self) and shape == self.shape
        return is_alike and np.array_equal(
            sampled(item), self._sample, equal_nan=self._sample.dtype.kind == "f"
        )

    def _summed(self) -> Stages[NDArray[np.float64]]:
        raise NotImplementedError

    def _read(self, first: int, last: int) -> Any:
        raise NotImplementedError


def _runs(places: NDArray[np.intp]) -> list[tuple[int, int]]:
    """Return the pieces of consecutive places: first and last (excluded) of each."""
    if not len(places):
        return []
    ends = np.flatnonzero(np.diff(places) != 1)
    firsts = places[np.r_[0, ends + 1]]
    lasts = places[np.r_[ends, len(places) - 1]] + 1
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


class CscReader(Reader):
    """Columns of a CSC matrix, each of which lies in one piece."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._indptr = self._starts(given[-1])
        self.values_per_column = float(self._indptr[-1]) / max(self.shape[1], 1)

    def _starts(self, item: Any) -> NDArray[np.int64]:
        return read_indptr(item, self.shape[1], self.name, self._matrix.what)

    def _summed(self) -> Stages[NDArray[np.float64]]:
        sums = np.zeros(self.shape[0])
        text = f"Counting the values of each cell in {self._matrix.what}"
        with self._same() as item:
            n_values = int(self._indptr[-1])
            for begin in range(0, n_values, PART_VALUES):
                part = slice(begin, min(begin + PART_VALUES, n_values))
                rows = np.asarray(item["indices"][part])
                check_places(rows, self.shape[0])
                values = np.asarray(item["data"][part], np.float32)
                sums += np.bincount(rows, values, self.shape[0])
                yield Stage(text, part.stop / n_values)
        return sums

    def _read(self, first: int, last: int) -> Any:
        begin, end = int(self._indptr[first]), int(self._indptr[last])
        with self._same() as item:
            rows = np.asarray(item["indices"][begin:end])
            values = np.asarray(item["data"][begin:end], np.float32)
            check_places(rows, self.shape[0])
        indptr = self._indptr[first : last + 1] - begin
        shape = self.shape[0], last - first
        matrix = sp.csc_matrix((values, rows, indptr), shape=shape)
        matrix.sum_duplicates()
        return matrix

    def _is_as_before(self, item: Any) -> bool:
        is_alike = super()._is_as_before(item)
        return is_alike and np.array_equal(self._starts(item), self._indptr)


class DenseReader(Reader):
    """Columns of an array that is stored in narrow blocks."""

    def _summed(self) -> Stages[NDArray[np.float64]]:
        sums = np.zeros(self.shape[0])
        width = max(1, PART_VALUES // max(self.shape[0], 1))
        text = f"Counting the values of each cell in {self._matrix.what}"
        with self._same() as item:
            width = max(width, blocks_of(item)[1])
            for first in range(0, self.shape[1], width):
                part = np.asarray(item[:, first : first + width], np.float32)
                sums += part.sum(axis=1, dtype=np.float64)
                yield Stage(text, min(1.0, (first + width) / self.shape[1]))
        return sums

    def _read(self, first: int, last: int) -> Any:
        with self._same() as item:
            return np.ascontiguousarray(item[:, first:last], np.float32)
