"""Read columns of a large matrix of AnnData: from its file, or from a cache beside it.

=======================  =======================================================
as it is stored          how its columns are read
=======================  =======================================================
CSC                      from the file, as each column lies in one piece
dense, in narrow blocks  from the file
CSR, other dense         from :mod:`~.column_tiles` in the user's cache folder,
                         which are written once
=======================  =======================================================

The file is opened for each reading and closed again, so that nobody is kept from
writing, moving or deleting it.  At most :data:`PART_VALUES` values are read at a time,
beside some bytes for each row and the columns that are asked for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats import column_cache
from napari_embedding_game.data.formats.anndata_store import is_array
from napari_embedding_game.data.formats.column_tiles import (
    LARGEST_VALUE,
    TILE_ROWS,
    TILE_VALUES,
    Tiles,
    TileWriter,
)
from napari_embedding_game.data.formats.stored_matrix import (
    StoredMatrix,
    blocks_of,
    check_places,
    column_bytes,
    dense_rows,
    read_indptr,
    row_bytes,
    sampled,
    sparse_rows,
)
from napari_embedding_game.data.limits.memory import check_shape_fits
from napari_embedding_game.data.raw_counts import are_counts
from napari_embedding_game.data.stages import Stage, Stages, finish
from napari_embedding_game.data.stored_columns import StoredColumns

PART_VALUES = 1 << 23
"""Values that are read at a time."""
NARROW = 64 << 20
"""Bytes of the blocks that a column is in, up to which it is read from the file."""
TALL = 256 << 20
"""Bytes of the blocks that a row is in, from which they are not read for rows."""
_RECENT = 8
"""Columns that are kept, as the mouse asks for one value after the other."""
_INDEX = "index.npz"


def stored_columns(matrix: StoredMatrix) -> Stages[StoredColumns | None]:
    """Return a matrix as columns that stay on disk; None for a form without columns.

    Only its header and some of its values are read.

    Raises
    ------
    DataError
        It is damaged.
    """
    yield Stage(f"Looking at {matrix.what}")
    key = column_cache.key_of(matrix.path, matrix.part)
    known = _known(key)
    with matrix.opened() as item:
        reader = _reader_for(item, matrix, key)
        if reader is None:
            return None
        reader.look(item, known)
    return StoredColumns(reader)


def _known(key: str) -> dict[str, NDArray[Any]]:
    """Return what the cache knows of a matrix; nothing where it has no whole entry."""
    entry = column_cache.find(key)
    if entry is None:
        return {}
    try:
        with np.load(entry / _INDEX) as index:
            return dict(index)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # made anew
        return {}


def _save(entry: Path, known: Mapping[str, NDArray[Any]]) -> None:
    np.savez(entry / _INDEX, allow_pickle=False, **known)


def _reader_for(item: Any, matrix: StoredMatrix, key: str) -> Reader | None:
    if is_array(item):
        if len(item.shape) != 2 or item.dtype.kind not in "buif":
            return None
        check_shape_fits((sum(item.shape),), 8, matrix.path.name, matrix.what)
        is_narrow = column_bytes(item) <= NARROW or row_bytes(item) > TALL
        return (DenseReader if is_narrow else TileReader)(matrix, key, item.shape, True)
    encoding = str(item.attrs.get("encoding-type", ""))
    if encoding not in ("csr_matrix", "csc_matrix"):
        return None
    shape = tuple(int(length) for length in item.attrs["shape"])
    if len(shape) != 2 or item["data"].dtype.kind not in "buif":
        return None
    check_shape_fits((sum(shape),), 8, matrix.path.name, matrix.what)
    kind = CscReader if encoding == "csc_matrix" else TileReader
    return kind(matrix, key, shape, False)


class Reader:
    """What all readers have in common; see :class:`~.stored_columns.ColumnReader`."""

    def __init__(
        self,
        matrix: StoredMatrix,
        key: str,
        shape: tuple[int, ...],
        is_dense: bool,
    ) -> None:
        self.name = matrix.path.name
        self.shape: tuple[int, int] = (int(shape[0]), int(shape[1]))
        self.is_dense = is_dense
        self.values_per_column = float(self.shape[0])
        self._matrix = matrix
        self._key = key
        self._stamp: tuple[tuple[int, int], ...] = ()
        self._sample: NDArray[Any] = np.zeros(0, np.float32)
        self._sums: NDArray[np.float64] | None = None
        self._recent: OrderedDict[int, Any] = OrderedDict()
        self._is_ready = False
        self._preparing, self._reading = threading.Lock(), threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is of this process; what was prepared is found again."""
        return {**vars(self), "_is_ready": False, "_preparing": None, "_reading": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._preparing, self._reading = threading.Lock(), threading.Lock()

    def look(self, item: Any, known: Mapping[str, NDArray[Any]]) -> None:
        """Read some values of the open file, or take what the cache knows."""
        self._stamp = self._matrix.stamp(item)
        self._sample = known["sample"] if "sample" in known else sampled(item)
        if "row_sums" in known and len(known["row_sums"]) == self.shape[0]:
            self._sums = known["row_sums"]

    def sample(self) -> NDArray[Any]:
        """Return some of the stored values."""
        return self._sample

    def prepare(self) -> Stages[None]:
        """Do what has to be done once; what another thread does meanwhile, too."""
        while not self._preparing.acquire(timeout=0.1):
            yield Stage(f"Reading {self._matrix.what}")
        try:
            if not self._is_ready:
                yield from self._prepare()
                self._is_ready = True
        finally:
            self._preparing.release()

    def row_sums(self) -> NDArray[np.float64]:
        """Return the sum of each row, (N,)."""
        if self._sums is None:
            finish(self.prepare())
        if self._sums is None:
            self._sums = finish(self._summed())
        return self._sums

    def read(self, places: NDArray[np.intp]) -> Any:
        """Return columns, (N, k) float32: an array, or canonical CSC."""
        if not self._is_ready:
            finish(self.prepare())
        if len(places) == 1:
            return self._one(int(places[0]))
        parts = [self._read(first, last) for first, last in _runs(places)]
        if self.is_dense:
            none = np.zeros((self.shape[0], 0), np.float32)
            return np.hstack(parts) if parts else none
        return sp.hstack(parts, "csc") if parts else sp.csc_matrix((self.shape[0], 0))

    def _one(self, place: int) -> Any:
        with self._reading:
            if place in self._recent:
                self._recent.move_to_end(place)
                return self._recent[place]
        column = self._read(place, place + 1)
        with self._reading:
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
        shape = item.shape if is_array(item) else item.attrs["shape"]
        is_same_size = tuple(map(int, shape)) == self.shape
        # The file may have been written again with other parts beside this one.
        return is_same_size and np.array_equal(
            sampled(item), self._sample, equal_nan=self._sample.dtype.kind == "f"
        )

    def _prepare(self) -> Stages[None]:
        """Find the depth of cells where these are counts, and note what is known."""
        if self._sums is None and are_counts(self._sample):
            self._sums = yield from self._summed()
        if column_cache.find(self._key) is None:
            with suppress(OSError, DataError):  # it is only to be quicker next time
                self._note()

    def _note(self) -> None:
        """Keep what is known for the next time."""
        known = {"sample": self._sample}
        if self._sums is not None:
            known["row_sums"] = self._sums
        n_bytes = sum(values.nbytes for values in known.values())
        with column_cache.new_entry(self._key, n_bytes, self.name) as entry:
            _save(entry, known)

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
    """Columns of a CSC matrix, from its file."""

    _indptr: NDArray[np.int64]

    def look(self, item: Any, known: Mapping[str, NDArray[Any]]) -> None:
        """Read where each column is, and some values."""
        super().look(item, known)
        self._indptr = read_indptr(item, self.shape[1], self.name, self._matrix.what)
        self.values_per_column = float(self._indptr[-1]) / max(self.shape[1], 1)

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
        if is_array(item) or not super()._is_as_before(item):
            return False
        indptr = read_indptr(item, self.shape[1], self.name, self._matrix.what)
        return np.array_equal(indptr, self._indptr)


class DenseReader(Reader):
    """Columns of an array that is stored in narrow blocks, from its file."""

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


class TileReader(Reader):
    """Columns from tiles in the cache, which are written once."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._tiles: Tiles | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open tiles, too."""
        return {**super().__getstate__(), "_tiles": None}

    def look(self, item: Any, known: Mapping[str, NDArray[Any]]) -> None:
        """Read some values, and guess how many there are."""
        super().look(item, known)
        if self.is_dense:
            is_any = self._sample != 0
            share = float(np.mean(is_any)) if len(is_any) else 0.0
            self._n_values = int(share * self.shape[0] * self.shape[1])
        else:
            self._n_values = int(item["data"].shape[0])
            self.values_per_column = self._n_values / max(self.shape[1], 1)

    def _prepare(self) -> Stages[None]:
        if self._take_known():
            return
        column_cache.discard(self._key)  # what is there is of no use
        n_bytes = LARGEST_VALUE * self._n_values
        with column_cache.new_entry(self._key, n_bytes, self.name) as entry:
            index = yield from self._write(entry)
            assert self._sums is not None
            _save(entry, {"sample": self._sample, "row_sums": self._sums, **index})
        self._tiles = Tiles(column_cache.folder() / self._key, index)

    def _take_known(self) -> bool:
        """Take what the cache holds; return whether it is whole."""
        entry, known = column_cache.find(self._key), _known(self._key)
        if entry is None or not {"indptr", "row_sums"} <= known.keys():
            return False
        try:
            tiles = Tiles(entry, known)
        except (OSError, ValueError, KeyError):  # damaged, or deleted meanwhile
            return False
        if tiles.shape != self.shape or len(known["row_sums"]) != self.shape[0]:
            return False
        self._tiles, self._sums = tiles, known["row_sums"]
        return True

    def _write(self, entry: Path) -> Stages[dict[str, NDArray[Any]]]:
        """Write the tiles, and sum up each row."""
        text = f"Arranging {self._matrix.what} by genes, once"
        writer, sums, done = TileWriter(entry, self.shape[1]), [], 0
        try:
            with self._same() as item:
                for rows in self._rows(item):
                    sums.append(np.asarray(rows.sum(axis=1, dtype=np.float64)).ravel())
                    writer.write(rows)
                    done += rows.shape[0]
                    yield Stage(text, done / self.shape[0])
        finally:
            writer.close()
        self._sums = np.concatenate(sums) if sums else np.zeros(0)
        return writer.index

    def _rows(self, item: Any) -> Iterator[Any]:
        most = TILE_ROWS, TILE_VALUES
        if self.is_dense:
            return dense_rows(item, self.shape, most)
        return sparse_rows(item, self.shape, most, self.name, self._matrix.what)

    def _summed(self) -> Stages[NDArray[np.float64]]:
        yield from ()
        assert self._sums is not None
        return self._sums

    def _read(self, first: int, last: int) -> Any:
        assert self._tiles is not None
        columns = self._tiles.read(first, last)
        return np.ascontiguousarray(columns.toarray()) if self.is_dense else columns
