"""Annotation by a person: each point is in one named group, or in none.

Edits (name, merge, split) are methods of :class:`~.clusters.Clusters`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

NONE = -1
"""Code of a point that is in no group."""


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]+")
"""Control characters other than tab and line feed, and lone surrogates: HDF5 cannot
store NUL, JSON and UTF-8 cannot store surrogates."""


def replace_control_characters(text: str) -> str:
    """Return a text with spaces for control characters, and stripped at both ends.

    A text without control characters is returned unchanged.
    """
    return _CONTROLS.sub(" ", text).strip() if _CONTROLS.search(text) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Name, colour and note of a group of points; "" where none was given."""

    name: str
    color: str = ""
    """As "#rrggbb"."""
    note: str = ""
    is_whole: bool = field(default=False, compare=False)
    """Whether its points were one cluster of the game when they were annotated."""
    key: str = field(default_factory=lambda: uuid4().hex, compare=False)
    """Unique for all time, unlike an id; the same in all maps, also after a rename."""
    edited: int = field(default=0, compare=False)
    """Number of the statement that gave the texts: of two maps the later one holds."""

    def __post_init__(self) -> None:
        """Remove control characters from name and note."""
        for part in ("name", "note"):
            object.__setattr__(
                self, part, replace_control_characters(getattr(self, part))
            )


@dataclass(frozen=True, eq=False)
class Annotation:
    """The group of each of n points; immutable, as undo keeps earlier annotations."""

    codes: NDArray[np.int32]
    """(n,) id of the group of each point, ``NONE`` for points in no group."""
    groups: Mapping[int, Group] = field(default_factory=dict)
    """Groups by id; each has points."""

    def __post_init__(self) -> None:
        self.codes.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        """Return whether the same points have the same annotation."""
        if not isinstance(other, Annotation):
            return NotImplemented
        return dict(self.groups) == dict(other.groups) and (
            self.codes is other.codes or np.array_equal(self.codes, other.codes)
        )

    __hash__ = None  # type: ignore[assignment]

    def with_group(self, rows: NDArray[Any], code: int, group: Group) -> Annotation:
        """Return a copy with the points of ``rows`` in a group, known or new.

        Groups that lose points are no longer whole, and those left without points are
        dropped.
        """
        codes = self.codes.copy()
        codes[rows] = code
        return self._with_codes(codes, {**self.groups, code: group})

    def with_group_texts(self, code: int, **texts: str) -> Annotation:
        """Return a copy with another name, colour or note of a group."""
        group = replace(self.groups[code], **texts)  # type: ignore[arg-type]
        return replace(self, groups={**self.groups, code: group})

    def without_group(self, code: int) -> Annotation:
        """Return a copy without a group: its points are in no group."""
        return _drop_unused_groups(
            np.where(self.codes == code, NONE, self.codes), self.groups
        )

    def with_annotation_from(
        self, rows: NDArray[np.intp], other: Annotation, new_ids: Iterator[int]
    ) -> Annotation:
        """Return a copy with ``rows`` (m,) annotated as the m points of ``other``.

        Points that are in no group of ``other`` are in none afterwards.  Groups of the
        same name become one, with the id and key of the present group and the colour
        and note of ``other``.

        ``new_ids``: yields the ids of groups that are added.
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
        return self._with_codes(codes, table)

    def _with_codes(
        self, codes: NDArray[np.int32], groups: Mapping[int, Group]
    ) -> Annotation:
        """Return an annotation of codes, without groups that have no points.

        A group that loses points is not whole any more.
        """
        cut = {*np.unique(self.codes[self.codes != codes]).tolist()} & groups.keys()
        parts = {i: replace(groups[i], is_whole=False) for i in cut}
        return _drop_unused_groups(codes, {**groups, **parts})

    def differs_from(self, old: Annotation) -> NDArray[np.bool_]:
        """Return whether the annotation of each point differs from an old one: (n,).

        It also differs where the point's group has another name, colour or note.
        """
        same, others = old.groups, self.groups.items()
        changed = [code for code, group in others if group != same.get(code)]
        is_changed: NDArray[np.bool_] = self.codes != old.codes
        return is_changed | np.isin(self.codes, changed)


def _drop_unused_groups(
    codes: NDArray[np.int32], groups: Mapping[int, Group]
) -> Annotation:
    """Return an annotation of codes (n,) with only the groups that have points."""
    present = set(np.flatnonzero(np.bincount(codes + 1)) - 1)
    return Annotation(codes, {i: group for i, group in groups.items() if i in present})


def make_unique_name(name: str, taken: set[str]) -> str:
    """Return a name, or "name (2)" and so on where it is taken."""
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name} ({number})"
    return unique
