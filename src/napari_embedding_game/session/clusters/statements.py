"""What a person said of the rows of a source, in one map and in all maps together.

A statement names the group of some rows, or removes their name, in one edit.  Its
number counts the statements of a whole session, so that of two statements about a row
the later one is known: it holds.  Each map has a column of its own statements over
*all* rows of the source; columns of several maps are joined row by row, without any
matching.  Between maps only names pass: a removal holds in the map where it was made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.session.clusters.annotation import NONE, Annotation, Group

UNSAID = 0
"""Number of rows of which nothing was said."""
REMOVAL = ""
"""Key of statements that remove the name of rows."""


@dataclass(frozen=True, eq=False)
class Statements:
    """The last statement on each row of a source; immutable."""

    numbers: NDArray[np.int32]
    """(n_source_rows,) number of the last statement on each row, or ``UNSAID``."""
    keys: Mapping[int, str] = field(default_factory=dict)
    """Key of the group that each statement names, or ``REMOVAL``."""
    groups: Mapping[str, Group] = field(default_factory=dict)
    """Groups by key, with the latest texts."""

    def __post_init__(self) -> None:
        self.numbers.setflags(write=False)

    @classmethod
    def make_empty(cls, n_source_rows: int) -> Statements:
        """Return a column without statements, which takes no memory."""
        return cls(np.broadcast_to(np.int32(UNSAID), n_source_rows))

    def without_removals(self) -> Statements:
        """Return the statements without those that take points out of a group."""
        removals = [number for number, key in self.keys.items() if key == REMOVAL]
        if not removals:
            return self
        numbers = np.where(np.isin(self.numbers, removals), UNSAID, self.numbers)
        return replace(self, numbers=numbers.astype(np.int32)).without_unused_keys()

    def join(self, other: Statements) -> Statements:
        """Return the later statement on each row, and the later texts of each group."""
        if not (other.keys or other.groups):
            return self
        groups = dict(self.groups)
        for key, group in other.groups.items():
            if key not in groups or groups[key].edited < group.edited:
                groups[key] = group
        numbers = np.maximum(self.numbers, other.numbers)
        return Statements(numbers, {**self.keys, **other.keys}, groups)

    def without_unused_keys(self) -> Statements:
        """Return the same column without the keys of statements that have no rows."""
        used = set(np.flatnonzero(np.bincount(self.numbers)).tolist())
        return replace(self, keys={n: k for n, k in self.keys.items() if n in used})

    def equals(self, other: Statements) -> bool:
        """Return whether two columns say the same, by the same statements."""
        return (
            self.keys == other.keys
            and self.groups == other.groups
            and np.array_equal(self.numbers, other.numbers)
        )


@dataclass(frozen=True, eq=False)
class MapNames:
    """The names on a map of n rows, by its own statements and those of other maps."""

    kept: NDArray[np.bool_]
    """(n_source_rows,) True where a row of the source is a row of the map."""
    own: Statements
    """What was said on this map; also of rows that are not on it at present."""
    others: Statements
    """What was said on its child maps and, if it is a reading, on its base map."""
    ids: Mapping[str, int] = field(default_factory=dict)
    """Id of each group on this map, by its key; no two groups have the same id."""

    @classmethod
    def make_empty(cls, kept: NDArray[np.bool_]) -> MapNames:
        """Return the names of a map on which nothing was said."""
        nothing = Statements.make_empty(len(kept))
        return cls(kept, nothing, nothing)

    @cached_property
    def _joined_statements(self) -> Statements:
        """The statements of this map and of the others, the last on each row."""
        return self.own.join(self.others)

    @cached_property
    def _last_numbers(self) -> NDArray[np.int32]:
        """(n,) number of the last statement on each row of the map."""
        numbers = self._joined_statements.numbers
        return numbers if self.kept.all() else numbers[self.kept]

    @cached_property
    def _key_by_number(self) -> dict[int, str]:
        """Key of the group that each statement on show names."""
        keys = self._joined_statements.keys
        numbers = np.flatnonzero(np.bincount(self._last_numbers))
        found = {number: keys.get(number, REMOVAL) for number in numbers.tolist()}
        return {number: key for number, key in found.items() if key != REMOVAL}

    @cached_property
    def _keys_on_show(self) -> set[str]:
        return set(self._key_by_number.values())

    @property
    def keys_without_id(self) -> list[str]:
        """Keys of groups on show that have no id on this map yet, in a fixed order."""
        keys = dict.fromkeys(
            self._joined_statements.keys[n]
            for n in sorted(self._joined_statements.keys)
        )
        return [key for key in keys if key in self._keys_on_show - self.ids.keys()]

    @cached_property
    def _ids_on_show(self) -> dict[str, int]:
        """Ids by key; groups of the same name have the id of the first of them."""
        shown, of_name, ids = (
            self._joined_statements.groups,
            dict[str, int](),
            dict[str, int](),
        )
        for key, number in self.ids.items():
            if key in self._keys_on_show:
                ids[key] = of_name.setdefault(shown[key].name, number)
        return ids

    @cached_property
    def annotation(self) -> Annotation:
        """The group of each row of the map, by the ids of this map."""
        ids, known = self._ids_on_show, self._key_by_number
        highest = int(self._last_numbers.max(initial=0))
        code_by_number = np.full(highest + 1, NONE, np.int32)
        for number, key in known.items():
            code_by_number[number] = ids.get(key, NONE)
        groups = {}
        for key, number in self.ids.items():
            if ids.get(key) == number:
                group = self._joined_statements.groups[key]
                is_own = self.own.groups.get(key) is group
                groups[number] = group if is_own else replace(group, is_whole=False)
        return Annotation(code_by_number.take(self._last_numbers), groups)

    def with_edit(self, annotation: Annotation, first: int) -> MapNames:
        """Return the names after an edit that leads to an annotation of the n rows.

        Rows whose group has changed get a statement, one for each group.  So do rows of
        a group whose texts have changed, where it is several groups of the same name.

        ``first``: number of the first new statement.
        """
        old, numbers = self.annotation, self.own.numbers.copy()
        keys, groups = dict(self.own.keys), dict(self.own.groups)
        to_state = list[int]()
        n_keys = Counter(self._ids_on_show.values())
        for code, group in annotation.groups.items():
            former = old.groups.get(code)
            is_other = former is not None and former.key != group.key
            if former is None or is_other or former != group:
                groups[group.key] = replace(group, edited=first)
                if is_other or n_keys[code] > 1:
                    to_state.append(code)
            elif former.is_whole != group.is_whole:
                groups[group.key] = group
        is_new = annotation.codes != old.codes
        if to_state:
            is_new |= np.isin(annotation.codes, to_state)
        codes, indices = np.unique(annotation.codes[is_new], return_inverse=True)
        rows = np.flatnonzero(is_new)
        rows = rows if self.kept.all() else np.flatnonzero(self.kept)[rows]
        numbers[rows] = first + indices
        for number, code in enumerate(codes.tolist(), first):
            keys[number] = REMOVAL
            if code != NONE:
                group = annotation.groups[code]
                keys[number] = group.key
                groups.setdefault(group.key, group)
        own = Statements(numbers, keys, groups)
        ids = {group.key: code for code, group in annotation.groups.items()}
        return replace(self, own=own, ids=add_ids(ids, self.ids))

    @property
    def own_without_former_texts(self) -> Statements:
        """The map's own statements, with the texts of groups that are on show only."""
        groups, shown = self.own.groups, self._joined_statements.groups
        own = self.own.without_unused_keys()
        known = {*own.keys.values(), *self._keys_on_show}
        return replace(own, groups={k: shown[k] for k in groups if k in known})

    @property
    def standalone(self) -> MapNames:
        """The same names, with the statements of other maps as the map's own."""
        own = self._joined_statements.without_unused_keys()
        return replace(self, own=own, others=Statements.make_empty(len(self.kept)))

    def restore_own(self, own: Statements, ids: Mapping[str, int]) -> MapNames:
        """Return the names with a former column and former ids of this map."""
        return replace(self, own=own, ids=add_ids(ids, self.ids))

    def with_free_ids(self, free_ids: Iterable[int]) -> MapNames:
        """Return the names with ids for groups that have none, if there are any."""
        new = dict(zip(self.keys_without_id, free_ids, strict=False))
        return replace(self, ids={**self.ids, **new}) if new else self


def add_ids(ids: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    """Return ids by key, with those of ``others`` whose key and number are free."""
    used = set(ids.values())
    added = {key: x for key, x in others.items() if x not in used and key not in ids}
    return {**ids, **added}
