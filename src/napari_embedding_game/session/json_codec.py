"""Encode frozen dataclasses as JSON, and decode them with type checks.

What is read may come from anywhere, so nothing is taken for granted: a value
has the type that its field declares, or there is a :class:`DataError`.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from napari_embedding_game.data.errors import DataError

T = TypeVar("T")

DEEPEST = 20
"""Nesting of free-form values."""


def encode(value: Any) -> Any:
    """Return a dataclass, with what is in it, as values for JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if hasattr(value, "item"):  # a number of numpy
        return value.item()
    return value


def dumps(value: Any) -> bytes:
    """Return JSON text; refuses NaN, which is no JSON."""
    return json.dumps(encode(value), allow_nan=False).encode()


def loads(cls: type[T], text: bytes, where: str) -> T:
    """Return the dataclass that a JSON text describes.

    Raises
    ------
    DataError
        The text is no JSON, or something in it is not what the class declares.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is damaged: its text cannot be read.") from error
    decoded: T = decode(cls, value, where)
    return decoded


def decode(kind: Any, value: Any, where: str) -> Any:
    """Return ``value`` as a ``kind``: a dataclass, a type, or a form of one."""
    try:
        return _decode(kind, value, "it")
    except _WrongError as error:
        raise DataError(f"{where} is damaged: {error}.") from error


def unknown(name: str, value: str) -> str:
    """Return what is wrong with a name that is none of those that are known here."""
    return (
        f"{name} is {_short(value)}, which this version does not know; if a later one "
        "wrote it, update napari-embedding-game"
    )


class _WrongError(Exception):
    """What is wrong with a value."""


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _decode(kind: Any, value: Any, name: str) -> Any:
    origin, options = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _decode_fields(kind, value, name)
    if origin is Literal:
        if value in options and type(value) in {type(o) for o in options}:
            return value
        is_text = isinstance(value, str)
        raise _WrongError(
            unknown(name, value) if is_text else f"{name} is {_short(value)}"
        )
    if origin in (Union, types.UnionType):
        return _decode_union(options, value, name)
    if origin is tuple:
        return _decode_tuple(options, value, name)
    if origin is not None:  # a mapping from texts
        if not isinstance(value, dict):
            raise _WrongError(f"{name} is {_short(value)}")
        return {key: _decode(options[1], item, name) for key, item in value.items()}
    if kind is Any:
        return _plain(value, name, DEEPEST)
    return _decode_scalar(kind, value, name)


def _decode_fields(kind: Any, value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise _WrongError(f"{name} is {_short(value)}")
    hints = get_type_hints(kind)
    values = {}
    for field in fields(kind):
        if field.name in value:
            item = value[field.name]
            values[field.name] = _decode(hints[field.name], item, field.name)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise _WrongError(f"{field.name} is missing")
    try:
        return kind(**values)
    except DataError as error:
        raise _WrongError(str(error).rstrip(".")) from error


def _decode_union(options: tuple[Any, ...], value: Any, name: str) -> Any:
    if value is None and type(None) in options:
        return None
    (kind,) = (option for option in options if option is not type(None))
    return _decode(kind, value, name)


def _decode_tuple(options: tuple[Any, ...], value: Any, name: str) -> Any:
    if not isinstance(value, list):
        raise _WrongError(f"{name} is {_short(value)}")
    if options[-1] is Ellipsis:
        return tuple(_decode(options[0], item, name) for item in value)
    if len(value) != len(options):
        raise _WrongError(f"{name} is {_short(value)}")
    pairs = zip(options, value, strict=True)
    return tuple(_decode(option, item, name) for option, item in pairs)


def _decode_scalar(kind: type, value: Any, name: str) -> Any:
    if kind is float and type(value) is int and abs(value) < 2**53:
        return float(value)
    is_right = type(value) is kind
    if is_right and kind is float:
        is_right = math.isfinite(value)
    if is_right and kind is int:
        is_right = abs(value) < 2**63
    if not is_right:
        raise _WrongError(f"{name} is {_short(value)}")
    return value


def _plain(value: Any, name: str, depth: int) -> Any:
    if depth == 0:
        raise _WrongError(f"{name} is too deep")
    if isinstance(value, dict):
        return {key: _plain(item, name, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, name, depth - 1) for item in value]
    return value


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else f"{text[:37]}..."
