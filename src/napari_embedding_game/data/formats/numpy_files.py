"""Read .npy and .npz without pickle; declared sizes are checked first."""

from __future__ import annotations

import math
import tokenize
import warnings
import zipfile
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, check_filled, explain_damage
from napari_embedding_game.data.formats.anndata_store import checked_sparse
from napari_embedding_game.data.limits.memory import check_fits, check_shape_fits
from napari_embedding_game.data.stages import Stage, Stages

Arrays = dict[str, Any]

_PICKLE, _ZIP = b"\x80", b"PK"  # how files begin
_SPARSE = {"data", "format", "shape"}
# Of other kinds Python unpacks a part at once, however long it becomes.
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADERS = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}


@dataclass(frozen=True)
class Declared:
    """An array of an .npz that is not read, as its header describes it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of its axes."""
        return len(self.shape)


class PickleError(DataError):
    """A file holds Python objects, which would run a program when they are read."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} holds Python objects (a pickle) instead of numbers, which could "
            "run any program and are never read: save it again as an array of numbers, "
            "for instance with X.astype(float)."
        )


def load(
    path: Path, needed: Callable[[Mapping[str, Any]], Container[str]]
) -> Stages[tuple[Arrays, list[str]]]:
    """Arrays of the file by name, and a note on those of Python objects.

    Parameters
    ----------
    path : Path
    needed : callable
        Return, of all arrays of an .npz by their shapes and types, which are read;
        of the others there is a :class:`Declared`.
    """
    yield Stage(f"Reading {path.name}")
    with explain_damage(path, f"a NumPy {path.suffix.lower()} file"):
        check_filled(path)
        with path.open("rb") as file:
            start = file.read(2)
            file.seek(0)
            if start != _ZIP:
                return {path.stem: _read(file, path.stat().st_size, path.name)}, []
            with zipfile.ZipFile(file) as archive:
                return (yield from _members(archive, path, needed))


def _members(
    archive: zipfile.ZipFile,
    path: Path,
    needed: Callable[[Mapping[str, Any]], Container[str]],
) -> Stages[tuple[Arrays, list[str]]]:
    members = archive.infolist()
    # Reading a member never gives more than its declared size.
    total = sum(member.file_size for member in members)
    check_fits(total, path.name, "what is packed in it")
    if any(member.compress_type not in _BOUNDED for member in members):
        raise DataError(
            f"{path.name} is packed in an unusual way and is not read: save it again "
            "with numpy.savez."
        )
    infos = {member.filename.removesuffix(".npy"): member for member in members}
    arrays: Arrays = {}
    objects = []
    for name, info in infos.items():
        try:
            with archive.open(info) as member:
                where = f"{path.name} ({name})"
                arrays[name] = _declared(member, info.file_size, where)
        except PickleError:
            objects.append(name)
    if objects and not arrays:
        raise PickleError(path.name)
    if not arrays:
        raise DataError(
            f"{path.name} is empty: there is no array in it; save one with a row for "
            "each cell, image or text."
        )
    is_sparse = set(arrays) >= _SPARSE
    chosen = arrays if is_sparse else needed(arrays)
    for name in [name for name in arrays if name in chosen]:
        yield Stage(f"Reading {name}")
        with archive.open(infos[name]) as member:
            where = f"{path.name} ({name})"
            arrays[name] = _read(member, infos[name].file_size, where)
    if is_sparse:
        return {path.stem: _sparse(arrays)}, []
    note = f"Not read, because they hold Python objects: {', '.join(objects)}."
    return arrays, [note] if objects else []


def _read(file: Any, size: int, where: str) -> NDArray[Any]:
    """Array of an .npy file of `size` bytes, never of Python objects."""
    _declared(file, size, where)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy on headers that Python 2 wrote
        return np.asarray(npy.read_array(file, allow_pickle=False))


def _declared(file: BinaryIO | Any, size: int, where: str) -> Declared:
    """Read the header, check it, and leave the numbers unread."""
    if file.read(1) == _PICKLE:
        raise PickleError(where)
    file.seek(0)
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"version {version} of the .npy format")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy on headers that Python 2 wrote
        try:
            shape, _, dtype = _HEADERS[version](file)
        except (SyntaxError, tokenize.TokenError) as error:
            raise ValueError("no header of the .npy format") from error
    if dtype.hasobject:
        raise PickleError(where)
    check_shape_fits(shape, dtype.itemsize, where)
    if math.prod(shape) * dtype.itemsize > size - file.tell():
        raise DataError(
            f"{where} is damaged or cut short: it says that it has "
            f"{' x '.join(f'{n:,}' for n in shape)} values, and there are fewer; "
            "copy or export it again."
        )
    return Declared(shape, dtype)


def _sparse(arrays: Arrays) -> sp.csr_matrix:
    """Matrix as ``scipy.sparse.save_npz`` stores it."""
    name = arrays["format"].item()
    kind = name.decode() if isinstance(name, bytes) else str(name)
    shape = tuple(map(int, arrays["shape"]))
    check_shape_fits((sum(shape),), 8, "The sparse matrix")
    if kind == "coo":
        places = (arrays["row"], arrays["col"])
        return checked_sparse(sp.coo_matrix((arrays["data"], places), shape).tocsr())
    if kind not in ("csr", "csc"):
        raise DataError(
            f'A sparse matrix of the format "{kind}" cannot be read: save it as CSR '
            "(X.tocsr())."
        )
    build = sp.csr_matrix if kind == "csr" else sp.csc_matrix
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    return checked_sparse(build(parts, shape=shape))
