"""What a person said of cells: each is in one group with a name, or in none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

NONE = -1
"""Code of a cell that nobody has annotated."""


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]+")
"""Control characters but tab and line feed, and halves of characters: HDF5 cannot
store the first of them, JSON and UTF-8 not the last."""


def without_controls(text: str) -> str:
    """Return a text with a space instead of control characters, and none at its ends.

    A text without any stays as it is.
    """
    return _CONTROLS.sub(" ", text).strip() if _CONTROLS.search(text) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Name, colour and note of annotated cells; "" is not given."""

    name: str
    color: str = ""
    """As "#rrggbb"."""
    note: str = ""
    is_whole: bool = field(default=False, compare=False)
    """Whether its cells were one cluster of the game when they were annotated."""
    key: str = field(default_factory=lambda: uuid4().hex, compare=False)
    """Stays when the group is renamed or taken up in another map, and is never given
    again, as an id is: it tells which group of a parent map a former one has become."""

    def __post_init__(self) -> None:
        """Clean name and note, whoever gave them: a person, a column, a file."""
        for part in ("name", "note"):
            object.__setattr__(self, part, without_controls(getattr(self, part)))


@dataclass(frozen=True, eq=False)
class Annotation:
    """The group of each of n cells; immutable, so that undo keeps former ones."""

    codes: NDArray[np.int32]
    """(n,) id of the group of each cell, ``NONE`` elsewhere."""
    groups: Mapping[int, Group] = field(default_factory=dict)
    """By their ids; each has cells."""

    def __post_init__(self) -> None:
        self.codes.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        """Whether the same cells have the same annotation."""
        if not isinstance(other, Annotation):
            return NotImplemented
        return dict(self.groups) == dict(other.groups) and (
            self.codes is other.codes or np.array_equal(self.codes, other.codes)
        )

    __hash__ = None  # type: ignore[assignment]

    def with_group(self, rows: NDArray[Any], code: int, group: Group) -> Annotation:
        """Return it with the cells of ``rows`` in a group, new or known."""
        codes = self.codes.copy()
        codes[rows] = code
        return self._with(codes, {**self.groups, code: group})

    def with_changes(self, code: int, **texts: str) -> Annotation:
        """Return it with another name, colour or note of a group."""
        group = replace(self.groups[code], **texts)  # type: ignore[arg-type]
        return replace(self, groups={**self.groups, code: group})

    def without(self, code: int) -> Annotation:
        """Return it without a group."""
        return _of(np.where(self.codes == code, NONE, self.codes), self.groups)

    def adopted(
        self, rows: NDArray[np.intp], other: Annotation, new_ids: Iterator[int]
    ) -> Annotation:
        """Return it with the cells of ``rows`` (m,) annotated as in another (m,).

        Groups of the same name become one, with the colour and note of the other.
        """
        codes, table = self.codes.copy(), dict(self.groups)
        id_of = {group.name: code for code, group in table.items()}
        present, indices = np.unique(other.codes, return_inverse=True)
        ids = np.full(len(present), NONE, np.int32)
        for at, code in enumerate(present.tolist()):
            if code != NONE:
                group = other.groups[code]
                ids[at] = code = id_of.setdefault(group.name, next(new_ids))
                key = table[code].key if code in table else group.key
                table[code] = replace(group, is_whole=False, key=key)
        codes[rows] = ids[indices]
        return self._with(codes, table)

    def _with(
        self, codes: NDArray[np.int32], groups: Mapping[int, Group]
    ) -> Annotation:
        """Return another one, where a group that cells are taken from is not whole."""
        cut = {*np.unique(self.codes[self.codes != codes]).tolist()} & groups.keys()
        parts = {i: replace(groups[i], is_whole=False) for i in cut}
        return _of(codes, {**groups, **parts})

    def changes(self, old: Annotation) -> NDArray[np.bool_]:
        """Return the cells whose annotation differs from a former one: (n,)."""
        same, others = old.groups, self.groups.items()
        changed = [code for code, group in others if group != same.get(code)]
        is_changed: NDArray[np.bool_] = self.codes != old.codes
        return is_changed | np.isin(self.codes, changed)

    def of(self, rows: NDArray[Any]) -> Annotation:
        """Return the annotation of some of the cells."""
        return Annotation(self.codes[rows], self.groups)

    def carried(self, indices: NDArray[np.intp], n_points: int) -> Annotation:
        """Return it for other cells: ``indices`` (n,) of each among these, or -1."""
        return _of(carried(self.codes, indices, n_points, NONE), self.groups)


def carried(
    values: NDArray[np.int32], indices: NDArray[np.intp], n_points: int, elsewhere: int
) -> NDArray[np.int32]:
    """Return the values at their indices in another order of cells, (n_points,)."""
    moved = np.full(n_points, elsewhere, np.int32)
    moved[indices[indices >= 0]] = values[indices >= 0]
    return moved


def _of(codes: NDArray[np.int32], groups: Mapping[int, Group]) -> Annotation:
    present = set(np.flatnonzero(np.bincount(codes + 1)) - 1)
    return Annotation(codes, {i: group for i, group in groups.items() if i in present})


def unique_name(name: str, taken: set[str]) -> str:
    """Return a name, or "name (2)" and so on where it is taken."""
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name} ({number})"
    return unique
