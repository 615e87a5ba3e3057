"""Write and read dataclasses as JSON and arrays in one .zip, like ``numpy.savez``.

msgspec writes and checks the dataclasses, and hooks handle the other types: an array is
a member of the .zip (equal arrays once), and JSON refers to it by its number; sparse
matrices, tables and merge trees are stored as the arrays that they consist of.  Nothing
is compressed or pickled, so that reading never takes more than the size of a file.
"""

from __future__ import annotations

import math
import struct
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

from napari_embedding_game.core.inspect.merge_tree import MergeTree
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.limits.memory import check_fits
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.sparse_structure import validate_sparse

T = TypeVar("T")
_PLACES: Any = NDArray[np.integer]
_SPARSE = {"data": NDArray[np.floating], "indices": _PLACES, "indptr": _PLACES}
"""Arrays of a sparse matrix."""


_VALUES_A_BYTE = 64
"""Most values of a table for each of its bytes: booleans take one bit, a column of
missing values takes nothing."""
_MAGIC = b"ARROW1\0\0"
"""The first bytes of a Feather file; the messages of an Arrow stream follow."""


class DamageError(DataError):
    """A damaged file: names the place in the file and what was expected there."""


def write_parts(file: IO[bytes], parts: Mapping[str, Any]) -> None:
    """Write named values, as JSON and arrays, into an open binary file.

    Equal arrays are written once.  Raises NotImplementedError for a value of a type
    that is not known.
    """
    arrays: dict[tuple[object, ...], tuple[str, NDArray[Any]]] = {}

    def encode_item(item: Any) -> Any:
        """Return a value in types of JSON; an array is kept and gets a number."""
        if isinstance(item, np.ndarray):
            content = np.ascontiguousarray(item)
            digest = blake2b(content.data).digest()
            key = item.dtype.str, item.shape, digest
            number, _ = arrays.setdefault(key, (str(len(arrays)), content))
            return {"array": number}
        if isinstance(item, np.generic):
            return item.item()
        if isinstance(item, LandmarkMerge):
            return vars(item)
        if sp.issparse(item):
            return {key: getattr(item, key) for key in ("shape", *_SPARSE)}
        if isinstance(item, pd.DataFrame):
            return encode_item(_to_feather_bytes(item))
        if isinstance(item, Mapping):
            return dict(item)
        raise NotImplementedError(f"{type(item)} in a session file")

    members: dict[str, Any] = {
        name: np.frombuffer(msgspec.json.encode(part, enc_hook=encode_item), np.uint8)
        for name, part in parts.items()
    }
    np.savez(file, **members | dict(arrays.values()))


def read_part(path: Path, name: str, kind: type[T], content: bytes | None = None) -> T:
    """Return one named value of a file, converted to a type and checked.

    Only the arrays of this value are read.

    ``kind``: the type, whose fields declare the types of everything in it. ``content``:
    the bytes of the session file, where it lies inside the file at ``path``.

    Raises DataError: the file is missing, of another kind, compressed, or too large for
    the memory. Raises DamageError: a value is not of its declared type.
    """
    if not path.is_file():
        raise DataError(f"{path} is not there: check the name and the folder.")
    size = path.stat().st_size if content is None else len(content)
    check_fits(size, path.name, "its content")
    whole = path if content is None else BytesIO(content)
    with wrap_read_errors(path, "a session file"), zipfile.ZipFile(whole) as file:
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
            return _decode_json(kind, text, array)
        except (msgspec.MsgspecError, LookupError, RecursionError, ValueError) as error:
            raise DamageError(str(error)) from error


def _read_array(file: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Return an array of numbers, a member of a .zip file.

    Raises ValueError: the member is missing, or is no array of numbers.
    """
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


def _decode_json(
    kind: type[T], text: memoryview, array: Callable[[str], NDArray[Any]]
) -> T:
    """Return JSON converted to a type, with arrays inserted.

    ``array``: returns an array by its number in the file, given as text.

    Raises msgspec.MsgspecError, ValueError or LookupError: the JSON is not of this
    type.
    """

    def decode_item(expected: Any, item: Any) -> Any:
        """Return a value of JSON as an array, matrix, table or merge tree.

        Raises ValueError: the array is of another type of numbers, or the matrix is
        invalid.
        """
        if (element := _find_element_type(expected)) is not None:
            values = array(msgspec.convert(item, dict[str, str])["array"])
            if element is not Any and not np.issubdtype(values.dtype, element):
                raise ValueError(
                    f"Expected an array of {element.__name__}, got {values.dtype}"
                )
            return values
        if expected is LandmarkMerge:
            parts = msgspec.convert(item, dict[str, dict[str, Any]])
            tree = msgspec.convert(parts["tree"], MergeTree, dec_hook=decode_item)
            return LandmarkMerge(decode_item(sp.csr_matrix, parts["graph"]), tree)
        if expected is sp.csr_matrix:
            of = msgspec.convert(item, dict[str, Any])
            values, *indices = (
                decode_item(kind, of[name]) for name, kind in _SPARSE.items()
            )
            shape = msgspec.convert(of["shape"], tuple[int, int])
            matrix = sp.csr_matrix((values, *indices), shape=shape)
            validate_sparse(matrix)
            return matrix
        if expected is pd.DataFrame:
            return _read_table(decode_item(NDArray[np.uint8], item))
        raise NotImplementedError(f"{expected} in a session file")

    return msgspec.json.decode(text, type=kind, dec_hook=decode_item)


def _read_table(content: NDArray[np.uint8]) -> pd.DataFrame:
    """Return the table in the bytes of a Feather file by :func:`_to_feather_bytes`.

    Raises ValueError: the file is damaged or compressed, has a column of a type that is
    never written, or has more than :data:`_VALUES_A_BYTE` values for each byte.
    """
    if content[: len(_MAGIC)].tobytes() != _MAGIC:
        raise ValueError("Expected a table in Feather's format")
    stream = pa.py_buffer(content.tobytes())[len(_MAGIC) :]
    if any(map(_is_compressed, pa.ipc.MessageReader.open_stream(stream))):
        raise ValueError("a table in it is compressed")
    with pa.ipc.open_stream(stream) as reader:
        for column in reader.schema:
            if not _takes_bytes_per_value(column.type) and not pa.types.is_null(
                column.type
            ):
                raise ValueError(f"a table in it has a column of {column.type}")
        table = reader.read_all()
    # A table without columns has rows, but no value that takes memory.
    if table.num_rows * table.num_columns > _VALUES_A_BYTE * len(content):
        raise ValueError("a table in it has more values than bytes")
    table.validate(full=True)
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _is_compressed(message: pa.ipc.Message) -> bool:
    """Return whether a message of an Arrow stream holds compressed columns.

    pyarrow tells only after it has unpacked the columns, so the flatbuffer of the
    metadata is read here: see ``Message.fbs`` and ``Schema.fbs`` of Arrow's format.

    Raises ValueError: the metadata are damaged.
    """
    content = message.metadata.to_pybytes()

    def follow_offset(place: int) -> int:
        """Return the place that the offset at a place leads to."""
        return place + int(struct.unpack_from("<I", content, place)[0])

    def find_field(table: int, number: int) -> int:
        """Return the offset of a field of a flatbuffer table; 0 where it is absent."""
        fields = table - struct.unpack_from("<i", content, table)[0]
        (size,) = struct.unpack_from("<H", content, fields)
        at = 4 + 2 * number
        step = struct.unpack_from("<H", content, fields + at)[0] if at < size else 0
        return table + int(step) if step else 0

    try:
        if message.type not in ("record batch", "dictionary"):
            return False
        batch = follow_offset(find_field(follow_offset(0), 2))
        if message.type == "dictionary":
            batch = follow_offset(find_field(batch, 1))
        return find_field(batch, 3) > 0
    except struct.error as error:
        raise ValueError("a table in it is damaged") from error


def _takes_bytes_per_value(kind: pa.DataType) -> bool:
    """Return whether an Arrow type stores bytes for each of its values.

    Lists, structs and dictionaries do if their parts do.
    """
    of = pa.types
    if of.is_dictionary(kind):
        return _takes_bytes_per_value(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):  # as pandas has of intervals and periods
        return _takes_bytes_per_value(kind.storage_type)
    if of.is_struct(kind):
        return kind.num_fields > 0 and all(
            _takes_bytes_per_value(part.type) for part in kind
        )
    if of.is_list(kind) or of.is_large_list(kind):
        return _takes_bytes_per_value(kind.value_type)
    if of.is_fixed_size_binary(kind):
        return bool(kind.byte_width > 0)
    checks = (
        *(of.is_boolean, of.is_integer, of.is_floating, of.is_decimal, of.is_temporal),
        *(of.is_string, of.is_large_string, of.is_binary, of.is_large_binary),
    )
    return any(check(kind) for check in checks)


def _find_element_type(kind: Any) -> Any:
    """Return the type of the elements of an array type; None for any other type."""
    # NDArray is another writing of np.ndarray, and since numpy 2.5 a name of its own.
    if get_origin(kind) is NDArray:
        return get_args(kind)[0]
    if get_origin(kind) is np.ndarray:
        return get_args(get_args(kind)[1])[0]
    return None


def _to_feather_bytes(table: pd.DataFrame) -> NDArray[np.uint8]:
    """Return a table, without its index, as the bytes of a Feather file, (n,) uint8.

    Of columns of one name the first is kept; names become texts.
    """
    once = table.loc[:, ~table.columns.duplicated()].reset_index(drop=True)
    once.columns = once.columns.map(str)
    content = BytesIO()
    once.apply(_to_feather_column).to_feather(content, compression="uncompressed")
    return np.frombuffer(content.getvalue(), np.uint8)


def _to_feather_column(column: pd.Series) -> pd.Series:
    """Return a column converted to a type that Feather restores unchanged.

    Intervals among categories, and values of types that cannot be stored, become texts;
    integers of type object become Int64.  Missing values stay missing.
    """
    if isinstance(getattr(column.dtype, "categories", None), pd.IntervalIndex):
        return column.cat.rename_categories(str)
    try:
        is_object = column.dtype == object
        if is_object and pd.api.types.infer_dtype(column, skipna=True) == "integer":
            column = column.astype("Int64")  # floats would have other digits
        kind = pa.array(column).type
        if pa.types.is_null(kind):  # these take no bytes, so that none would be read
            return column.astype(float)
        if not _takes_bytes_per_value(kind):
            return column.astype(object).map(str, na_action="ignore")
    except (pa.ArrowException, OverflowError):  # of several types, or beyond 64 bits
        return column.astype(object).map(str, na_action="ignore")
    return column
