"""Open .h5ad files and .zarr folders, and read their parts by anndata.

A file only *declares* how large its arrays are, and may name parts that lie elsewhere
or would run a program: these are checked before anything is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits.memory import check_fits
from napari_embedding_game.sparse_structure import validate_indptr, validate_sparse

_TEXT_BYTES = 80  # bytes of a short text as a Python object
_MAX_SAMPLE = 1 << 22  # values inspected to recognise a matrix's kind
_METADATA = (".zarray", "zarr.json")
_CODEC_KEYS = ("compressor", "filters", "codecs", "index_codecs")
# Compressors, filters and codecs that only rearrange bytes.
_HARMLESS_CODECS = {
    *("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"),
    *("crc32", "crc32c", "adler32", "fletcher32"),
    *("bitround", "delta", "fixedscaleoffset", "packbits", "quantize", "shuffle"),
    *("categorize", "astype", "base64", "json2", "bytes", "transpose"),
    *("vlen-utf8", "vlen-bytes", "vlen-array", "sharding_indexed"),
}


@contextmanager
def open_store(path: Path) -> Iterator[Any]:
    """Open an HDF5 file or a .zarr folder for reading, and close it at the end.

    Raises DataError if a part lies elsewhere, or zarr would run a codec that is not
    known to be harmless.
    """
    import h5py
    import zarr

    if path.is_dir():
        check_zarr_folder(path)
        # Consolidated metadata are wrong where names differ in case alone.
        yield zarr.open_group(str(path), mode="r", use_consolidated=False)
        return
    with h5py.File(path) as file:
        _check_hdf5_links(file, path.name)
        yield file


def is_zarr(path: Path) -> bool:
    """Return whether a folder is a group of zarr, by its name or its metadata files."""
    entries = (path / "zarr.json", path / ".zgroup")
    return path.is_dir() and (
        path.name.lower().endswith(".zarr") or any(entry.is_file() for entry in entries)
    )


def is_zarr_array(path: Path) -> bool:
    """Return whether a folder is one array of zarr, of its version 2 or 3."""
    metadata = path / "zarr.json"
    text = metadata.read_bytes() if metadata.is_file() else b""
    return b'"node_type": "array"' in text or (path / ".zarray").is_file()


def read_attributes(group: Path) -> Mapping[str, Any]:
    """Return the attributes of a zarr group, or what they nest under the key "ome".

    A folder that is no group of zarr has none. Raises OSError or ValueError if they
    cannot be read.
    """
    for name in ("zarr.json", ".zattrs"):
        if (group / name).is_file():
            noted = json.loads((group / name).read_text(encoding="utf-8"))
            # Newer versions of the formats nest their metadata.
            for key in ("attributes", "ome"):
                noted = noted.get(key, noted) if isinstance(noted, dict) else {}
            return noted if isinstance(noted, dict) else {}
    return {}


def resolve_inside(group: Path, path: str) -> Path:
    """Return a folder below a group; raise DataError if the path leads elsewhere."""
    found, group = (group / path).resolve(), group.resolve()
    if not found.is_relative_to(group):
        raise DataError(f'{group.name} names the path "{path}", which is outside it.')
    return found


def is_array(item: Any) -> bool:
    """Return whether an item is an array, and not a group of arrays."""
    return hasattr(item, "dtype")


def is_stored(item: Any) -> bool:
    """Return whether an item is in a file, and not in memory."""
    return type(item).__module__.startswith(("h5py", "zarr"))


def count_declared_bytes(item: Any) -> int:
    """Return the bytes that an item takes in memory, as its header declares.

    A group is the sum of its members, plus 8 bytes for each row and column of a sparse
    matrix. A text counts as a Python object of 80 bytes more.
    """
    if not is_array(item):
        shape = item.attrs.get("shape", ()) if "indptr" in item else ()
        n_lines = sum(int(size) for size in np.ravel(shape))
        return 8 * n_lines + sum(count_declared_bytes(item[key]) for key in item)
    is_number = item.dtype.kind in "biufc"
    itemsize = item.dtype.itemsize + (0 if is_number else _TEXT_BYTES)
    # The shape of a null is None.
    return math.prod(map(int, item.shape or ())) * int(itemsize)


def read_element(item: Any, where: str, what: str) -> Any:
    """Return an item in memory: stored ones are read by anndata, lazy ones computed.

    A sparse matrix is checked; a stored one becomes CSR. ``where`` and ``what`` name
    the file and the part in messages.

    Raises DataError if the part is larger than the budget or of an unknown version of
    anndata, or a sparse matrix in memory is damaged; ValueError if a stored one is.
    """
    from anndata.io import read_elem

    if not is_stored(item):
        lazy = getattr(item, "compute", None) or getattr(item, "to_memory", None)
        values = item if lazy is None else lazy()
        if sp.issparse(values):
            try:
                validate_sparse(values)
            except ValueError as error:
                raise DataError(
                    f"{where}: {what} is damaged, as {error}: make it anew."
                ) from error
        return values
    check_fits(count_declared_bytes(item), where, what)
    try:
        values = read_elem(item)
    except Exception as error:
        if type(error).__name__ != "IORegistryError":  # this class has no public name
            raise
        kind = item.attrs.get("encoding-type", "unknown")
        version = item.attrs.get("encoding-version", "unknown")
        raise DataError(
            f"{where} stores {what} as {kind} {version} or has such a part in it, "
            f"which anndata {metadata.version('anndata')} cannot read: update anndata, "
            "or write the file again with an older version of it."
        ) from error
    if hasattr(values, "obsm"):
        validate_sparse_parts(values)
    return to_checked_csr(values) if sp.issparse(values) else values


def to_checked_csr(matrix: Any) -> sp.csr_matrix:
    """Return a sparse matrix as CSR; raise ValueError if an index points outside.

    The index arrays of `matrix` itself get one type.
    """
    validate_sparse(matrix)
    matrix.check_format(full_check=True)  # this also gives both index arrays one type
    return sp.csr_matrix(matrix)


def validate_stored_indptr(group: Any) -> None:
    """Raise ValueError unless the row pointers of a stored matrix fit its arrays.

    ``group``: a CSR or CSC matrix that is read in chunks; of CSC the pointers of
    columns are checked. The ``indices`` are checked in each chunk.
    """
    if group["data"].shape != group["indices"].shape:
        raise ValueError("as many values as indices belong into a sparse matrix")
    is_csc = str(group.attrs.get("encoding-type", "")).startswith("csc")
    n_rows = int(group.attrs["shape"][int(is_csc)])
    validate_indptr(group["indptr"][:], n_rows, group["data"].shape[0])


def validate_sparse_parts(adata: Any) -> None:
    """Raise ValueError if a sparse matrix of an AnnData points outside its arrays."""
    mappings = adata.layers, adata.obsm, adata.varm, adata.obsp, adata.varp
    matrices = [adata.X, *(each for mapping in mappings for each in mapping.values())]
    if adata.raw is not None:
        matrices += [adata.raw.X, *adata.raw.varm.values()]
    for matrix in filter(sp.issparse, matrices):
        validate_sparse(matrix)


def read_first_values(item: Any) -> NDArray[Any]:
    """Return the first values of a stored matrix, or all values of one in memory.

    Of a stored matrix these are whole rows, about 4 million values and at least one
    row. Of a sparse matrix these are the values that it stores.
    """
    if not is_stored(item):
        return np.asarray(item.data if sp.issparse(item) else item)
    values = item if is_array(item) else item["data"]
    width = max(1, math.prod(map(int, values.shape[1:])))
    return np.asarray(values[: max(1, _MAX_SAMPLE // width)])


def _check_hdf5_links(file: Any, where: str) -> None:
    """Raise DataError if a part of an HDF5 file lies in another file.

    Checked are external links, and datasets that are external or virtual.
    """
    import h5py

    def leads_out(name: str, link: Any) -> str | None:
        return name if isinstance(link, h5py.ExternalLink) else None

    def lies_elsewhere(name: str, link: Any) -> str | None:
        item = file.get(name)
        is_out = isinstance(item, h5py.Dataset) and (item.external or item.is_virtual)
        return name if is_out else None

    # Links are checked first, as opening a soft link's target may follow an external
    # link.
    name = file.visititems_links(leads_out) or file.visititems_links(lies_elsewhere)
    if name:
        raise DataError(
            f'{where} has a part ("{name}") that lies in another file of this '
            "computer, which is not followed: save it again with everything inside."
        )


def check_zarr_folder(path: Path) -> None:
    """Raise DataError if a .zarr folder has links out of it, or unknown codecs.

    Special files, which are neither file nor folder, are refused, too.
    """
    inside = path.resolve()
    for file in path.rglob("*"):
        part, trouble = file.relative_to(path), ""
        if file.is_symlink() and inside not in file.resolve().parents:
            trouble = "lies elsewhere on this computer, which is not followed"
        elif not (file.is_file() or file.is_dir()):
            trouble = "is neither file nor folder"
        if trouble:
            raise DataError(
                f'{path.name} has a part ("{part}") that {trouble}: copy the folder '
                "with everything inside."
            )
        if file.name in _METADATA:
            _check_codecs(json.loads(file.read_bytes()), path.name)


def _check_codecs(entry: dict[str, Any], where: str) -> None:
    """Raise DataError if metadata of an array name a codec not known as harmless.

    ``entry``: the metadata, or the configuration of a codec that wraps further codecs.
    """
    for named in map(entry.get, _CODEC_KEYS):
        codecs = named if isinstance(named, list) else [named]
        for codec in (codec for codec in codecs if isinstance(codec, dict)):
            name = str(codec.get("id", codec.get("name", "")))
            if name.removeprefix("numcodecs.") not in _HARMLESS_CODECS:
                raise DataError(
                    f'{where} stores numbers by "{name}", which could run any '
                    "program and is never used: write it again with AnnData's "
                    "write_zarr."
                )
            _check_codecs(codec.get("configuration") or {}, where)
