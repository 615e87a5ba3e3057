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
from hashlib import blake2b
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeVar, get_args, get_origin

import msgspec
import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.export.atomic import whole_or_nothing
from napari_embedding_game.data.limits.memory import check_fits
from napari_embedding_game.session.clusters.merging import Merging

T = TypeVar("T")


class DamageError(Exception):
    """What is wrong with a file: the place in it, and what was expected there."""


def write(path: Path, parts: Mapping[str, Any], *, is_private: bool = False) -> None:
    """Write values by their names, as :func:`~.atomic.whole_or_nothing`.

    Raises
    ------
    DataError
        The file cannot be written.
    """
    arrays: dict[tuple[object, ...], NDArray[Any]] = {}
    numbers: dict[tuple[object, ...], str] = {}

    def written(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            content = np.ascontiguousarray(item)
            digest = blake2b(content.data).digest()
            key = item.dtype.str, item.shape, digest
            arrays.setdefault(key, content)
            return {"array": numbers.setdefault(key, str(len(numbers)))}
        if isinstance(item, np.generic):
            return item.item()
        if isinstance(item, Merging):
            return {"graph": sp.csr_matrix(item.graph), "tree": item.tree}
        if sp.issparse(item):
            return {key: getattr(item, key) for key in _Sparse.__struct_fields__}
        if isinstance(item, pd.DataFrame):
            once = item.loc[:, ~item.columns.duplicated()]
            return [_column(str(name), column) for name, column in once.items()]
        if isinstance(item, Mapping):
            return dict(item)
        raise NotImplementedError(f"{type(item)} in a session file")

    members: dict[str, Any] = {
        name: np.frombuffer(msgspec.json.encode(part, enc_hook=written), np.uint8)
        for name, part in parts.items()
    }
    members |= {numbers[key]: array for key, array in arrays.items()}
    writing = whole_or_nothing(path, is_private=is_private)
    with writing as temporary, temporary.open("wb") as file:
        np.savez(file, **members)


def read(path: Path, name: str, kind: type[T]) -> T:
    """Return a part of a file, each value of its declared type.

    Only those arrays are read that are in it.

    Raises
    ------
    DataError
        The file is missing, or no such file.
    DamageError
        Something in it is not what its type declares.
    """
    if not path.is_file():
        raise DataError(f"{path} is not there: check the name and the folder.")
    check_fits(path.stat().st_size, path.name, "its content")
    with explain_damage(path, "a session file"), zipfile.ZipFile(path) as file:
        members = file.infolist()
        if (
            any(
                one.compress_type != zipfile.ZIP_STORED
                or one.file_size > one.compress_size
                for one in members
            )
            or sum(one.file_size for one in members) > path.stat().st_size
        ):
            raise DataError(
                f"{path.name} is no session file: its parts are compressed, and may "
                "unpack to more than this computer can hold."
            )
        known: dict[str, NDArray[Any]] = {}

        def array(name: str) -> NDArray[Any]:
            if name not in known:
                known[name] = _read_array(file, f"{name}.npy")
            return known[name]

        try:
            return _decoded(kind, array(name).tobytes(), array)
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
            found: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    except KeyError as error:
        raise ValueError(f"{name} is missing in it") from error
    except (ValueError, SyntaxError, TokenError) as error:
        raise ValueError(f"{name} is no array of numbers") from error
    return found


def _decoded(kind: type[T], text: bytes, array: Callable[[str], NDArray[Any]]) -> T:
    def read(wanted: Any, item: Any) -> Any:
        if (element := _element_type(wanted)) is not None:
            found = array(msgspec.convert(item, dict[str, str])["array"])
            if element is not Any and not np.issubdtype(found.dtype, element):
                raise ValueError(
                    f"Expected an array of {element.__name__}, got {found.dtype}"
                )
            return found
        if wanted is Merging:
            from napari_embedding_game.core.inspect.clusters import MergeTree

            parts = msgspec.convert(item, dict[str, Any])
            graph = msgspec.convert(parts["graph"], _Sparse, dec_hook=read)
            tree = msgspec.convert(parts["tree"], MergeTree, dec_hook=read)
            content = graph.data, graph.indices, graph.indptr
            matrix = sp.csr_matrix(content, shape=graph.shape)
            matrix.check_format(full_check=True)
            return Merging(matrix, tree)
        if wanted is pd.DataFrame:
            columns = msgspec.convert(item, list[_Column], dec_hook=read)
            return pd.DataFrame({one.name: one.column for one in columns})
        raise NotImplementedError(f"{wanted} in a session file")

    return msgspec.json.decode(text, type=kind, dec_hook=read)


def _element_type(wanted: Any) -> Any:
    # NDArray is another writing of np.ndarray, and since numpy 2.5 a name of its own.
    if get_origin(wanted) is NDArray:
        return get_args(wanted)[0]
    if get_origin(wanted) is np.ndarray:
        return get_args(get_args(wanted)[1])[0]
    return None


class _Sparse(msgspec.Struct):
    shape: tuple[int, int]
    data: NDArray[np.floating]
    indices: NDArray[np.integer]
    indptr: NDArray[np.integer]


class _Column(msgspec.Struct, omit_defaults=True):
    """A column of a table: numbers, or codes of levels; pandas knows its type."""

    name: str
    kind: str
    values: NDArray[np.generic]
    levels: tuple[str, ...] = ()
    lacks: NDArray[np.bool_] | None = None

    @property
    def column(self) -> Any:
        values, kind = self.values, self.kind
        if kind == "number":
            return values
        if self.lacks is not None:
            found = pd.array(values, dtype=kind)
            found[self.lacks] = pd.NA
            return found
        if kind.startswith("datetime64["):
            return values.view(np.dtype(kind))
        if not np.issubdtype(values.dtype, np.integer):
            raise ValueError("Expected codes of names")
        levels, ordered = list(self.levels), kind == "ordered"
        names = pd.Categorical.from_codes(values, levels, ordered=ordered)
        if kind in ("category", "ordered"):
            return names
        texts = np.asarray(names.astype(object))
        if kind == "truths":
            return np.where(pd.isna(texts), None, texts == "True")
        return texts


def _column(name: str, column: pd.Series) -> _Column:
    kind, lacks = str(column.dtype), column.isna().to_numpy()
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = tuple(column.cat.categories.map(str))
        if len(set(levels)) == len(levels):
            told = "ordered" if column.cat.ordered else "category"
            return _Column(name, told, column.cat.codes.to_numpy(), levels)
    is_number = pd.api.types.is_numeric_dtype(column) and column.dtype.kind in "biuf"
    if isinstance(column.dtype, np.dtype) and is_number:
        return _Column(name, "number", column.to_numpy())
    if is_number:  # a type of pandas with gaps
        values = column.to_numpy(column.dtype.numpy_dtype, na_value=0)
        return _Column(name, kind, values, lacks=lacks)
    if kind.startswith("datetime64[") and column.dt.tz is None:
        return _Column(name, kind, column.to_numpy().view(np.int64))
    codes, found = pd.factorize(column.astype(object).map(str, na_action="ignore"))
    are_truths = set(map(type, column[~lacks])) <= {bool, np.bool_} and len(found) > 0
    told = "truths" if are_truths else "text"
    return _Column(name, told, codes, tuple(map(str, found)))
