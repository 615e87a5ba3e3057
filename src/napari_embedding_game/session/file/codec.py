"""Any value of a session as JSON and arrays, and back, each of its declared type.

msgspec writes and checks dataclasses; what it does not know is written by hooks:
arrays as their number in a pool, in which equal ones are stored once, sparse matrices,
tables and merge trees as the arrays that they are made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from hashlib import blake2b
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.session.clusters.merging import Merging

T = TypeVar("T")


class DamageError(ValueError):
    """What is wrong with a file: the place in it, and what was expected there."""


class ArrayPool:
    """Collects arrays; those of the same type, shape and bytes are stored once."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def add(self, array: NDArray[Any]) -> int:
        """Return the number of an array."""
        content = np.ascontiguousarray(array)
        digest = blake2b(content.tobytes()).digest()
        key = array.dtype.str, array.shape, digest
        if key not in self._known:
            self._known[key] = len(self.arrays)
            self.arrays.append(content)
        return self._known[key]


def encode(value: Any, pool: ArrayPool) -> bytes:
    """Return a value as JSON; its arrays go into the pool."""

    def written(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            return {"array": pool.add(item)}
        if isinstance(item, np.generic):
            return item.item()
        if isinstance(item, Merging):
            return {"graph": sp.csr_matrix(item.graph), "tree": item.tree}
        if sp.issparse(item):
            return {
                "shape": item.shape,
                "parts": [item.data, item.indices, item.indptr],
            }
        if isinstance(item, pd.DataFrame):
            return _columns(item)
        if isinstance(item, Mapping):
            return dict(item)
        raise NotImplementedError(f"{type(item)} in a session file")

    return msgspec.json.encode(value, enc_hook=written)


def decode(kind: type[T], text: bytes, arrays: Sequence[NDArray[Any]] = ()) -> T:
    """Return the value of a type that a JSON text and the arrays of its pool describe.

    Raises
    ------
    DamageError
        Something in it is not what the type declares, or is no JSON.
    """

    def read(wanted: Any, item: Any) -> Any:
        if (element := _element_type(wanted)) is not None:
            return _array(element, item, arrays)
        if wanted is Merging:
            return _merging(item, read)
        if wanted is pd.DataFrame:
            return _table(item, arrays)
        raise NotImplementedError(f"{wanted} in a session file")

    try:
        return msgspec.json.decode(text, type=kind, dec_hook=read)
    except (msgspec.MsgspecError, RecursionError, OverflowError, ValueError) as error:
        raise DamageError(str(error)) from error


def encode_fields(value: Any, pool: ArrayPool, **others: Any) -> bytes:
    """Return the fields of a dataclass as JSON, with others in the place of some."""
    names = [field.name for field in fields(value) if field.name not in others]
    values = {name: getattr(value, name) for name in names}
    return encode(values | others, pool)


def decode_fields(
    kind: type[Any], text: bytes, arrays: Sequence[NDArray[Any]], **others: Any
) -> dict[str, Any]:
    """Return what :func:`encode_fields` wrote, by the names of the fields.

    Parameters
    ----------
    others : type
        Of those that were written in the place of others; None for none.
    """
    raw = decode(dict[str, msgspec.Raw], text)
    types = get_type_hints(kind) | others
    needed = {
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }
    for name in needed - raw.keys():
        if types[name] is not None:
            raise DamageError(f"Object missing required field `{name}`")
    values = {}
    for name, part in raw.items():
        if types.get(name) is not None:
            try:
                values[name] = decode(types[name], bytes(part), arrays)
            except DamageError as error:
                raise DamageError(f"{name}: {error}") from error
    return values


# Arrays


def _element_type(wanted: Any) -> Any:
    # NDArray is another writing of np.ndarray, and since numpy 2.5 a name of its own.
    if get_origin(wanted) is NDArray:
        return get_args(wanted)[0]
    if get_origin(wanted) is np.ndarray:
        return get_args(get_args(wanted)[1])[0]
    return None


def _array(element: Any, item: Any, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    number = item.get("array") if isinstance(item, dict) else None
    if type(number) is not int or not 0 <= number < len(arrays):
        raise ValueError("Expected an array of the file")
    found = arrays[number]
    if element is not Any and not np.issubdtype(found.dtype, element):
        raise ValueError(f"Expected an array of {element.__name__}, got {found.dtype}")
    return found


def _merging(item: Any, read: Any) -> Merging:
    from napari_embedding_game.core.inspect.clusters import MergeTree

    parts = msgspec.convert(item, dict[str, Any])
    graph = msgspec.convert(parts["graph"], dict[str, Any])
    tree = msgspec.convert(parts["tree"], MergeTree, dec_hook=read)
    shape = tuple(msgspec.convert(graph["shape"], tuple[int, int]))
    kinds = NDArray[np.floating], NDArray[np.integer], NDArray[np.integer]
    found = [read(k, part) for k, part in zip(kinds, graph["parts"], strict=True)]
    matrix = sp.csr_matrix(tuple(found), shape=shape)
    matrix.check_format(full_check=True)
    return Merging(matrix, tree)


# Tables: a column is an array of numbers, or codes with names; pandas knows its type.


def _columns(table: pd.DataFrame) -> list[dict[str, Any]]:
    once = table.loc[:, ~table.columns.duplicated()]
    return [{"name": str(name), **_column(column)} for name, column in once.items()]


def _column(column: pd.Series) -> dict[str, Any]:
    kind, lacks = str(column.dtype), column.isna().to_numpy()
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = column.cat.categories.map(str)
        if levels.is_unique:
            return {
                "kind": "ordered" if column.cat.ordered else "category",
                "values": column.cat.codes.to_numpy(),
                "levels": list(levels),
            }
    is_number = pd.api.types.is_numeric_dtype(column) and column.dtype.kind in "biuf"
    if isinstance(column.dtype, np.dtype) and is_number:
        return {"kind": "number", "values": column.to_numpy()}
    if is_number:  # a type of pandas with gaps
        values = column.to_numpy(column.dtype.numpy_dtype, na_value=0)
        return {"kind": kind, "values": values, "lacks": lacks}
    if kind.startswith("datetime64[") and column.dt.tz is None:
        return {"kind": kind, "values": column.to_numpy().view(np.int64)}
    codes, levels = pd.factorize(column.astype(object).map(str, na_action="ignore"))
    are_truths = set(map(type, column[~lacks])) <= {bool, np.bool_} and len(levels) > 0
    told = "truths" if are_truths else "text"
    return {"kind": told, "values": codes, "levels": list(map(str, levels))}


class _Column(msgspec.Struct):
    name: str
    kind: str
    values: Any
    levels: tuple[str, ...] = ()
    lacks: Any = None


def _table(item: Any, arrays: Sequence[NDArray[Any]]) -> pd.DataFrame:
    columns = msgspec.convert(item, list[_Column])
    return pd.DataFrame({c.name: _values(c, arrays) for c in columns})


def _values(column: _Column, arrays: Sequence[NDArray[Any]]) -> Any:
    values = _array(np.generic, column.values, arrays)
    if column.kind == "number":
        return values
    if column.lacks is not None:
        found = pd.array(values, dtype=column.kind)
        found[_array(np.bool_, column.lacks, arrays)] = pd.NA
        return found
    if column.kind.startswith("datetime64["):
        return values.view(np.dtype(column.kind))
    if not np.issubdtype(values.dtype, np.integer):
        raise ValueError("Expected codes of names")
    names = pd.Categorical.from_codes(
        values, list(column.levels), ordered=column.kind == "ordered"
    )
    if column.kind in ("category", "ordered"):
        return names
    texts = np.asarray(names.astype(object))
    if column.kind == "truths":
        return np.where(pd.isna(texts), None, texts == "True")
    return texts
