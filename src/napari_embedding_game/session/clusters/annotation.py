"""What a person said of cells: each is in one group with a name, or in none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

NONE = -1
"""Code of a cell that nobody has annotated."""
_COLOR = re.compile(r"#[0-9a-f]{6}")


def is_color(text: str) -> bool:
    """Return whether this is a colour such as "#1f77b4"."""
    return _COLOR.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Name, colour and note of annotated cells; "" is not given."""

    name: str
    color: str = ""
    """As "#rrggbb"."""
    note: str = ""
    is_whole: bool = False
    """Whether its cells were one cluster of the game when they were annotated."""


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
        """Whether the same was said of the same cells."""
        if not isinstance(other, Annotation):
            return NotImplemented
        return dict(self.groups) == dict(other.groups) and (
            self.codes is other.codes or np.array_equal(self.codes, other.codes)
        )

    __hash__ = None  # type: ignore[assignment]

    def group_id(self, name: str) -> int | None:
        """Return the id of the group of this name."""
        return next((i for i, one in self.groups.items() if one.name == name), None)

    def put(self, rows: NDArray[Any], code: int, group: Group) -> Annotation:
        """Return it with the cells of ``rows`` in a group, new or known."""
        codes = self.codes.copy()
        codes[rows] = code
        return _of(codes, {**self.groups, code: group})

    def changed(self, code: int, **what: str) -> Annotation:
        """Return it with another name, colour or note of a group."""
        group = replace(self.groups[code], **what)  # type: ignore[arg-type]
        return replace(self, groups={**self.groups, code: group})

    def without(self, code: int) -> Annotation:
        """Return it without a group."""
        return _of(np.where(self.codes == code, NONE, self.codes), self.groups)

    def joined(
        self,
        levels: NDArray[np.integer],
        groups: Sequence[Group],
        new_ids: Iterator[int],
    ) -> Annotation:
        """Return it with cells annotated by level; a group of the same name is joined.

        Parameters
        ----------
        levels : (n,) int
            Place of each cell's group in ``groups``; -1 where nothing changes.
        groups : sequence of Group
        new_ids : iterator of int
            Ids that are free.
        """
        ids = np.full(len(groups) + 1, NONE, np.int32)
        table = dict(self.groups)
        known = {group.name: code for code, group in table.items()}
        for place in np.unique(levels[levels >= 0]).tolist():
            group = groups[place]
            code = known.setdefault(group.name, next(new_ids))
            ids[place], table[code] = code, group
        codes = ids.take(levels)  # that of level -1 is the last one
        return _of(np.where(levels < 0, self.codes, codes).astype(np.int32), table)

    def restored(
        self, rows: NDArray[np.intp], former: Annotation, new_ids: Iterator[int]
    ) -> Annotation:
        """Return it with cells annotated as they were in a former annotation."""
        codes, levels = self.codes.copy(), np.full(len(self.codes), NONE)
        place = np.full(max(former.groups, default=0) + 2, NONE)
        place[list(former.groups)] = np.arange(len(former.groups))
        levels[rows] = place[former.codes[rows]]  # the last one is of those in none
        codes[rows] = NONE
        known = {group.name: group for group in self.groups.values()}
        groups = [known.get(one.name, one) for one in former.groups.values()]
        return replace(self, codes=codes).joined(levels, groups, new_ids)

    def carried(self, places: NDArray[np.intp], n_points: int) -> Annotation:
        """Return it for other cells: ``places`` (n,) are theirs, -1 for none."""
        return _of(carried(self.codes, places, n_points, NONE), self.groups)


def carried(
    values: NDArray[np.int32], places: NDArray[np.intp], n_points: int, elsewhere: int
) -> NDArray[np.int32]:
    """Return values of cells at their places among others, (n_points,)."""
    moved = np.full(n_points, elsewhere, np.int32)
    moved[places[places >= 0]] = values[places >= 0]
    return moved


def unannotated(n_points: int) -> Annotation:
    """Return the annotation of cells of which nothing was said."""
    return Annotation(np.full(n_points, NONE, np.int32))


def _of(codes: NDArray[np.int32], groups: Mapping[int, Group]) -> Annotation:
    present = set(np.flatnonzero(np.bincount(codes + 1)) - 1)
    return Annotation(codes, {i: one for i, one in groups.items() if i in present})


def unique_name(name: str, taken: set[str]) -> str:
    """Return a name, or "name (2)" and so on where it is taken."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name} ({number})"
    return found
