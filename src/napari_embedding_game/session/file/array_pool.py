"""Many arrays as a few: those of one type lie behind each other, equal ones once.

A session file holds the arrays of up to hundreds of marks; as members of their own
they would be thousands, most of them the same array again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Type = Literal["<f4", "<f8", "<i4", "<i8"]
MEMBERS: dict[Type, str] = {
    "<f4": "pool_single",
    "<f8": "pool_double",
    "<i4": "pool_short",
    "<i8": "pool_long",
}
"""Name of the array that holds all of a type."""


@dataclass(frozen=True, kw_only=True)
class PooledText:
    """Type and shape of one array; its numbers follow those of the one before."""

    type: Type
    shape: tuple[int, ...]


class ArrayPool:
    """Collects arrays; those of the same type, shape and bytes are stored once.

    What marks share is not always one object: a sparse matrix keeps views of what it is
    made of, and the forces of each mark are put together anew.
    """

    def __init__(self) -> None:
        self._arrays: list[NDArray[Any]] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def add(self, array: NDArray[Any]) -> int:
        """Return the number of an array of one of the types."""
        content = blake2b(np.ascontiguousarray(array).data).digest()
        key = array.dtype.str, array.shape, content
        if key not in self._known:
            self._known[key] = len(self._arrays)
            self._arrays.append(array)
        return self._known[key]

    @property
    def text(self) -> tuple[PooledText, ...]:
        """What tells the arrays apart again, in the order of their numbers."""
        return tuple(
            PooledText(type=array.dtype.str, shape=array.shape)  # type: ignore[arg-type]
            for array in self._arrays
        )

    def members(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that hold all of a type."""
        members = {}
        for kind, name in MEMBERS.items():
            parts = [a.ravel() for a in self._arrays if a.dtype.str == kind]
            if parts:
                members[name] = np.concatenate(parts)
        return members


class PoolReader:
    """Gives the arrays of a pool again.

    Parameters
    ----------
    text : tuple of PooledText
    member : callable
        Returns the numbers of one of :data:`MEMBERS`, of the type that is asked for.
    expect : callable
        Raises the error of a damaged file unless it is given True.
    """

    def __init__(
        self,
        text: tuple[PooledText, ...],
        member: Callable[[str, str], NDArray[Any]],
        expect: Callable[[bool], None],
    ) -> None:
        self._text, self._expect = text, expect
        expect(all(length >= 0 for one in text for length in one.shape))
        self._flat: dict[str, NDArray[Any]] = {}
        self._begins: list[int] = []
        lengths = dict.fromkeys(MEMBERS, 0)
        for one in text:
            self._begins.append(lengths[one.type])
            lengths[one.type] += prod(one.shape)
        for kind in dict.fromkeys(one.type for one in text):
            self._flat[kind] = member(MEMBERS[kind], kind)
            expect(len(self._flat[kind]) == lengths[kind])
        self._made: dict[int, NDArray[Any]] = {}

    def array(
        self, number: int, kind: str, shape: tuple[int | None, ...]
    ) -> NDArray[Any]:
        """Return an array, which must be of this type and shape; None: any length."""
        self._expect(0 <= number < len(self._text))
        text = self._text[number]
        self._expect(text.type == kind and len(text.shape) == len(shape))
        pairs = zip(shape, text.shape, strict=True)
        self._expect(all(wanted in (None, found) for wanted, found in pairs))
        if number not in self._made:
            begin = self._begins[number]
            flat = self._flat[kind][begin : begin + prod(text.shape)]
            self._made[number] = flat.reshape(text.shape).copy()
        return self._made[number]
