"""A matrix in a file of its own, written by rows and read by columns.

The rows come in blocks, the *tiles*, each of which is written as CSC: rows in it as
uint16, values as uint8 where they are whole numbers up to 255, as float32 otherwise.
So the file is written from front to back in one pass over the rows, and a column is a
short piece of each tile.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

TILE_ROWS = 1 << 16
"""The most rows of a tile, which uint16 can number."""
TILE_VALUES = 1 << 23
"""Values of a tile, unless a single row has more: some 200 MB while it is written."""
LARGEST_VALUE = 6
"""Bytes that a value takes in the file at most."""
_FILE = "values.bin"


class TileWriter:
    """Writes tiles one by one; close it, and keep its :attr:`index`.

    Parameters
    ----------
    folder : Path
    n_columns : int
    """

    def __init__(self, folder: Path, n_columns: int) -> None:
        self._file = (folder / _FILE).open("wb")
        self._n_columns = n_columns
        self._first_rows, self._places = [0], [0]
        self._small: list[bool] = []
        self._indptr: list[NDArray[np.uint32]] = []

    def write(self, rows: Any) -> None:
        """Add rows: (m, G) CSR matrix or array, of up to :data:`TILE_ROWS` rows."""
        tile = sp.csc_matrix(rows, dtype=np.float32)
        tile.sum_duplicates()
        small = _as_small(tile.data)
        self._file.write(tile.indices.astype("<u2").data)
        self._file.write((tile.data.astype("<f4") if small is None else small).data)
        self._first_rows.append(self._first_rows[-1] + tile.shape[0])
        self._places.append(self._file.tell())
        self._small.append(small is not None)
        self._indptr.append(tile.indptr.astype(np.uint32))

    def close(self) -> None:
        """End writing."""
        self._file.close()

    @property
    def index(self) -> dict[str, NDArray[Any]]:
        """What :class:`Tiles` needs to find a column."""
        none = np.zeros((0, self._n_columns + 1), np.uint32)
        return {
            "first_rows": np.array(self._first_rows, np.int64),
            "places": np.array(self._places, np.int64),
            "is_small": np.array(self._small, bool),
            "indptr": np.stack(self._indptr) if self._indptr else none,
        }


def _as_small(values: NDArray[np.float32]) -> NDArray[np.uint8] | None:
    """Return values as uint8 where that loses nothing."""
    with np.errstate(invalid="ignore"):
        small = values.astype(np.uint8)
    return small if np.array_equal(small, values) else None


@dataclass(frozen=True, eq=False)
class _Piece:
    """Consecutive columns of one tile."""

    indices: NDArray[np.integer]
    """Rows of the whole matrix."""
    data: NDArray[Any]
    indptr: NDArray[np.int64]
    """Where each column begins in these."""


class Tiles:
    """Reads what :class:`TileWriter` wrote; threads may share it.

    The file stays open, so that it can be read where it is deleted meanwhile.

    Parameters
    ----------
    folder : Path
    index : mapping of arrays

    Raises
    ------
    ValueError
        The file is shorter than its index says.
    """

    def __init__(self, folder: Path, index: Mapping[str, NDArray[Any]]) -> None:
        self._first_rows = index["first_rows"]
        self._places = index["places"]
        self._is_small = index["is_small"]
        self._indptr = index["indptr"]
        self._lock = threading.Lock()
        self._file: BinaryIO = (folder / _FILE).open("rb")
        weakref.finalize(self, self._file.close)
        if self._file.seek(0, os.SEEK_END) != self._places[-1]:
            raise ValueError(f"{_FILE} is cut short")
        self.shape = int(self._first_rows[-1]), self._indptr.shape[1] - 1

    @property
    def n_values(self) -> int:
        """Values in the file."""
        return int(self._indptr[:, -1].sum(dtype=np.int64))

    def read(self, first: int, last: int) -> sp.csc_matrix:
        """Return the columns from ``first`` to ``last`` (excluded), float32."""
        indptr = self._indptr[:, first : last + 1].astype(np.int64)
        sizes = np.diff(indptr, axis=1)
        ends = np.concatenate([[0], np.cumsum(sizes.sum(axis=0))])
        # Of each column, the pieces of all tiles lie one behind the other.
        begins = ends[:-1] + np.cumsum(sizes, axis=0) - sizes
        indices = np.empty(ends[-1], np.int32)
        data = np.empty(ends[-1], np.float32)
        for tile in range(len(indptr)):
            piece = self._piece(tile, indptr[tile])
            shift = np.repeat(begins[tile] - piece.indptr[:-1], sizes[tile])
            to = np.arange(len(piece.data)) + shift
            indices[to], data[to] = piece.indices, piece.data
        shape = self.shape[0], last - first
        return sp.csc_matrix((data, indices, ends), shape=shape)

    def _piece(self, tile: int, indptr: NDArray[np.int64]) -> _Piece:
        begin, end = int(indptr[0]), int(indptr[-1])
        n = int(self._indptr[tile, -1])
        place = int(self._places[tile])
        kind = np.dtype(np.uint8 if self._is_small[tile] else "<f4")
        with self._lock:
            indices = self._bytes(place + 2 * begin, 2 * (end - begin))
            at = place + 2 * n + kind.itemsize * begin
            data = self._bytes(at, kind.itemsize * (end - begin))
        rows = np.frombuffer(indices, "<u2").astype(np.int32)
        rows += np.int32(self._first_rows[tile])
        return _Piece(rows, np.frombuffer(data, kind), indptr - begin)

    def _bytes(self, place: int, n_bytes: int) -> bytes:
        self._file.seek(place)
        read = self._file.read(n_bytes)
        if len(read) < n_bytes:
            raise ValueError(f"{_FILE} is cut short")
        return read
