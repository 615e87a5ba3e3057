"""Read parts of an .h5ad file or .zarr folder in blocks, checking each.

A file only *declares* how large its arrays are; what does not fit into memory is
refused before it is read, and so is what leads out of the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import PARSER_ERRORS, DataError
from napari_embedding_game.data.limits.memory import check_fits, check_shape_fits
from napari_embedding_game.data.stages import Stage, Stages

_BLOCK = 1 << 24  # bytes read between two stages
_TEXT_BYTES = 80  # a short text as a Python object


def members(group: Any) -> Iterator[tuple[str, Any]]:
    """Names and parts of a group, of HDF5 or of zarr, in the order of the names."""
    for key in sorted(group.keys()):
        yield key, group[key]


def is_array(item: Any) -> bool:
    """Tell an array from a group of arrays."""
    return hasattr(item, "dtype")


def is_stored(item: Any) -> bool:
    """Return whether a part is in a file, and not in memory."""
    return type(item).__module__.startswith(("h5py", "zarr"))


def declared_bytes(item: Any) -> int:
    """Bytes that a part takes in memory, as its header declares."""
    if not is_array(item):
        return sum(declared_bytes(part) for _, part in members(item))
    is_number = item.dtype.kind in "biufc"
    itemsize = item.dtype.itemsize + (0 if is_number else _TEXT_BYTES)
    return math.prod(map(int, item.shape)) * int(itemsize)


def check_part(item: Any, where: str, what: str) -> Any:
    """Return the part if what it declares fits into memory, else raise DataError."""
    if is_array(item):
        check_shape_fits(item.shape, max(1, item.dtype.itemsize), where, what)
    check_fits(declared_bytes(item), where, what)
    return item


def check_links(file: Any, where: str) -> None:
    """Raise DataError if a part of an HDF5 file lies in another file."""
    import h5py

    seen = set()

    def check(group: Any) -> None:
        for key in group:
            if isinstance(group.get(key, getlink=True), h5py.ExternalLink):
                raise _leads_out(where, key)
            item = group.get(key)
            if item is None or (place := h5py.h5o.get_info(item.id).addr) in seen:
                continue
            seen.add(place)
            if isinstance(item, h5py.Group):
                check(item)
            elif isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
                raise _leads_out(where, key)

    check(file)


def _leads_out(where: str, part: str) -> DataError:
    return DataError(
        f'{where} has a part ("{part}") that lies in another file of this computer, '
        "which is not followed: save it again with everything inside."
    )


def read_matrix(item: Any, where: str, what: str) -> Stages[Any]:
    """Read a dense array, or a sparse matrix as CSR, with its share as it goes."""
    if not is_stored(item):
        return item
    if is_array(item):
        return (yield from read_array(item, where, what))
    kind = str(item.attrs.get("encoding-type", ""))
    if kind not in ("csr_matrix", "csc_matrix"):
        yield Stage(f"Reading {what}")
        return read_element(item, where, what)
    shape = tuple(int(length) for length in item.attrs["shape"])
    return (yield from read_sparse(item, shape, kind[:3], where, what))


def read_element(item: Any, where: str, what: str) -> Any:
    """Read a part by anndata, such as a table, after a look at its size.

    Raises
    ------
    DataError
        If the part is larger than the memory, or the installed anndata cannot read
        what another version of it has written.
    """
    from anndata.io import read_elem

    if not is_stored(item):
        return item
    check_part(item, where, what)
    try:
        return read_elem(item)
    except PARSER_ERRORS:
        raise
    except Exception as error:  # anndata's IORegistryError has no public name
        kind = item.attrs.get("encoding-type", "unknown")
        version = item.attrs.get("encoding-version", "unknown")
        raise DataError(
            f"{where} stores {what} as {kind} {version} or has such a part in it, "
            f"which anndata {metadata.version('anndata')} cannot read: update anndata, "
            "or write the file again with an older version of it."
        ) from error


def read_sparse(
    group: Any, shape: tuple[int, ...], kind: str, where: str, what: str
) -> Stages[sp.csr_matrix]:
    """Read the arrays data, indices and indptr as a CSR matrix, and check them.

    `kind` is "csr" or "csc"; indices that point outside would crash the program.
    """
    check_shape_fits((sum(shape),), 8, where, what)
    check_fits(declared_bytes(group), where, what)
    indptr = yield from read_array(group["indptr"], where, what, (0, 0.05))
    indices = yield from read_array(group["indices"], where, what, (0.05, 0.5))
    data = yield from read_array(group["data"], where, what, (0.5, 1))
    build = sp.csr_matrix if kind == "csr" else sp.csc_matrix
    matrix = build((data, indices, indptr), shape=shape)
    return checked_sparse(matrix)


def checked_sparse(matrix: Any) -> sp.csr_matrix:
    """Matrix as CSR after a full check; ValueError if an index points outside."""
    matrix.check_format(full_check=True)
    return matrix.tocsr()


def read_array(
    array: Any, where: str, what: str, shares: tuple[float, float] = (0, 1)
) -> Stages[NDArray[Any]]:
    """Read a stored array block by block; `shares` are those at its begin and end."""
    check_part(array, where, what)
    first, last = shares
    text = f"Reading {what}"
    yield Stage(text, first)
    if array.ndim == 0 or not array.shape[0]:
        return np.asarray(array[...])
    values = np.empty(array.shape, dtype=array.dtype)
    step = _rows_at_once(array)
    for start in range(0, len(values), step):
        values[start : start + step] = array[start : start + step]
        done = min(1.0, (start + step) / len(values))
        yield Stage(text, first + (last - first) * done)
    return values


def first_values(item: Any, where: str, what: str) -> NDArray[Any]:
    """About one block of the values of a stored matrix, dense or sparse.

    The matrix itself may be larger than the memory.
    """
    values = item if is_array(item) else item["data"]
    n_rows = _rows_at_once(values)
    part = (min(n_rows, int(values.shape[0])), *values.shape[1:])
    check_shape_fits(part, max(1, values.dtype.itemsize), where, what)
    return np.asarray(values[:n_rows])


def _rows_at_once(array: Any) -> int:
    """Rows of about one block, in whole chunks, so that none is unpacked twice."""
    row_bytes = max(1, math.prod(map(int, array.shape[1:])) * array.dtype.itemsize)
    chunk = int(array.chunks[0]) if getattr(array, "chunks", None) else 1
    return int(max(1, _BLOCK // row_bytes // chunk)) * chunk
