"""Values as JSON and arrays in one .zip, as ``numpy.savez`` makes it, and back.

msgspec writes and checks dataclasses; what it does not know is written by hooks:
arrays as their number in the file, in which equal ones are stored once, sparse
matrices, tables and merge trees as the arrays that they are made of.  Nothing is
compressed or pickled, so that a file cannot hold more than its own size.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, TypeVar, get_args, get_origin

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.limits.memory import check_fits
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.sparse_structure import validate_sparse

T = TypeVar("T")
_PLACES: Any = NDArray[np.integer]
_SPARSE = {"data": NDArray[np.floating], "indices": _PLACES, "indptr": _PLACES}
"""Arrays of a sparse matrix."""


class DamageError(DataError):
    """What is wrong with a file: the place in it, and what was expected there."""


def write(file: IO[bytes], parts: Mapping[str, Any]) -> None:
    """Write values by their names into a file that is open."""
    arrays: dict[tuple[object, ...], tuple[str, NDArray[Any]]] = {}

    def written(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            content = np.ascontiguousarray(item)
            digest = blake2b(content.data).digest()
            key = item.dtype.str, item.shape, digest
            number, _ = arrays.setdefault(key, (str(len(arrays)), content))
            return {"array": number}
        if isinstance(item, np.generic):
            return item.item()
        if isinstance(item, Merging):
            return vars(item)
        if sp.issparse(item):
            return {key: getattr(item, key) for key in ("shape", *_SPARSE)}
        if isinstance(item, pd.DataFrame):
            return written(_packed(item))
        if isinstance(item, Mapping):
            return dict(item)
        raise NotImplementedError(f"{type(item)} in a session file")

    members: dict[str, Any] = {
        name: np.frombuffer(msgspec.json.encode(part, enc_hook=written), np.uint8)
        for name, part in parts.items()
    }
    np.savez(file, **members | dict(arrays.values()))


def read(path: Path, name: str, kind: type[T], content: bytes | None = None) -> T:
    """Return a part of a file, each value of its declared type.

    Only those arrays are read that are in it.

    ``content``: what the file at ``path`` is or holds, where it is another file's part.

    Raises DataError: the file is missing, or no such file. Raises DamageError:
    something in it is not what its type declares.
    """
    if not path.is_file():
        raise DataError(f"{path} is not there: check the name and the folder.")
    size = path.stat().st_size if content is None else len(content)
    check_fits(size, path.name, "its content")
    whole = path if content is None else BytesIO(content)
    with explain_damage(path, "a session file"), zipfile.ZipFile(whole) as file:
        members = file.infolist()
        kinds = {one.compress_type for one in members} - {zipfile.ZIP_STORED}
        is_packed = kinds or any(one.file_size > one.compress_size for one in members)
        if is_packed or sum(one.file_size for one in members) > size:
            raise DataError(
                f"{path.name} is no session file: its parts are compressed, and may "
                "unpack to more than this computer can hold."
            )
        array = cache(lambda name: _read_array(file, f"{name}.npy"))
        try:
            text = array(name).data
            return _decoded(kind, text, array)
        except (msgspec.MsgspecError, LookupError, RecursionError, ValueError) as error:
            raise DamageError(str(error)) from error


def _read_array(file: zipfile.ZipFile, name: str) -> NDArray[Any]:
    try:
        info = file.getinfo(name)
        with file.open(info) as member:
            np.lib.format.read_magic(member)
            shape, _, dtype = np.lib.format.read_array_header_1_0(member)
            n_bytes = math.prod(shape) * dtype.itemsize
            is_right = dtype.kind in "biuf" and min(shape, default=0) >= 0
            if not is_right or n_bytes != info.file_size - member.tell():
                raise ValueError(f"{dtype} {shape}")
        with file.open(info) as member:
            values: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    except KeyError as error:
        raise ValueError(f"{name} is missing in it") from error
    except (ValueError, SyntaxError, TokenError) as error:
        raise ValueError(f"{name} is no array of numbers") from error
    return values


def _decoded(
    kind: type[T], text: memoryview, array: Callable[[str], NDArray[Any]]
) -> T:
    def read(expected: Any, item: Any) -> Any:
        if (element := _element_type(expected)) is not None:
            values = array(msgspec.convert(item, dict[str, str])["array"])
            if element is not Any and not np.issubdtype(values.dtype, element):
                raise ValueError(
                    f"Expected an array of {element.__name__}, got {values.dtype}"
                )
            return values
        if expected is Merging:
            from napari_embedding_game.core.inspect.clusters import MergeTree

            parts = msgspec.convert(item, dict[str, dict[str, Any]])
            tree = msgspec.convert(parts["tree"], MergeTree, dec_hook=read)
            return Merging(read(sp.csr_matrix, parts["graph"]), tree)
        if expected is sp.csr_matrix:
            of = msgspec.convert(item, dict[str, Any])
            values, *indices = (read(kind, of[name]) for name, kind in _SPARSE.items())
            shape = msgspec.convert(of["shape"], tuple[int, int])
            matrix = sp.csr_matrix((values, *indices), shape=shape)
            validate_sparse(matrix)
            return matrix
        if expected is pd.DataFrame:
            return pd.read_feather(BytesIO(read(NDArray[np.uint8], item).tobytes()))
        raise NotImplementedError(f"{expected} in a session file")

    return msgspec.json.decode(text, type=kind, dec_hook=read)


def _element_type(kind: Any) -> Any:
    # NDArray is another writing of np.ndarray, and since numpy 2.5 a name of its own.
    if get_origin(kind) is NDArray:
        return get_args(kind)[0]
    if get_origin(kind) is np.ndarray:
        return get_args(get_args(kind)[1])[0]
    return None


def _packed(table: pd.DataFrame) -> NDArray[np.uint8]:
    """Return a table as the bytes of a Feather file; its index is not in it."""
    once = table.loc[:, ~table.columns.duplicated()].reset_index(drop=True)
    once.columns = once.columns.map(str)
    content = BytesIO()
    once.apply(_writable).to_feather(content, compression="uncompressed")
    return np.frombuffer(content.getvalue(), np.uint8)


def _writable(column: pd.Series) -> pd.Series:
    """Return a column in a type that Feather gives back as it was."""
    if isinstance(getattr(column.dtype, "categories", None), pd.IntervalIndex):
        return column.cat.rename_categories(str)
    try:
        is_object = column.dtype == object
        if is_object and pd.api.types.infer_dtype(column, skipna=True) == "integer":
            column = column.astype("Int64")  # floats would have other digits
        pa.array(column)
    except (pa.ArrowException, OverflowError):  # of several types, or beyond 64 bits
        return column.astype(object).map(str, na_action="ignore")
    return column
