"""Find clusters, genes and cells by a part of their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

SEPARATOR = "\0"
MOST_HITS = 50


@dataclass(frozen=True, slots=True)
class Hit:
    """One name that was found."""

    kind: str
    """Which list it stands in, such as "gene"."""
    index: int
    """Its place in that list."""
    name: str


class Names:
    """A list of names, searched as one text: that runs at the speed of memory.

    Upper and lower case are the same.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        text = SEPARATOR + SEPARATOR.join([*names, ""])
        is_plain = text.isascii() and text.count(SEPARATOR) == len(names) + 1
        self._text = text.lower() if is_plain else _each_folded(names)
        self._ends = _separators(self._text)[1:]

    def beginning_with(self, query: str) -> Iterator[int]:
        """Yield the places of names that begin with the query, whole names first."""
        begin = SEPARATOR + _folded(query)
        if begin[1:] not in self._text:  # quicker than where names begin
            return
        yield from self._places(begin + SEPARATOR)
        for place in self._places(begin):
            if len(self.names[place].casefold()) != len(begin) - 1:
                yield place

    def containing(self, query: str) -> Iterator[int]:
        """Yield the places of names that have the query further inside."""
        query = _folded(query)
        for place in self._places(query):
            if not self.names[place].casefold().startswith(query):
                yield place

    def _places(self, part: str) -> Iterator[int]:
        position = self._text.find(part)
        while position >= 0:
            begin = position + part.startswith(SEPARATOR)
            place = int(np.searchsorted(self._ends, begin))
            yield place
            position = self._text.find(part, int(self._ends[place]))


class Search:
    """Several lists of names, looked through in their order.

    Parameters
    ----------
    lists : mapping from kind to names
        Such as {"cluster": ..., "gene": ..., "cell": ...}; what comes first is
        found first.
    former : Search, optional
        What is to be searched in place of: a list that is the same object is not
        prepared again.
    """

    def __init__(
        self, lists: Mapping[str, Sequence[str]], former: Search | None = None
    ) -> None:
        known: dict[str, Names] = former._lists if former is not None else {}
        self._lists: dict[str, Names] = {
            kind: known[kind]
            if kind in known and known[kind].names is names
            else Names(names)
            for kind, names in lists.items()
        }

    def find(self, query: str, most: int = MOST_HITS) -> list[Hit]:
        """Return names that begin with the query, then names that contain it."""
        if not query.strip():
            return []
        return list(islice(self._hits(query.strip()), most))

    def _hits(self, query: str) -> Iterator[Hit]:
        for kind, names in self._lists.items():
            for place in names.beginning_with(query):
                yield Hit(kind, place, names.names[place])
        for kind, names in self._lists.items():
            for place in names.containing(query):
                yield Hit(kind, place, names.names[place])


def _each_folded(names: Sequence[str]) -> str:
    """Return one text of names in any letters; a folded name may be longer."""
    return SEPARATOR + SEPARATOR.join([*map(_folded, names), ""])


def _separators(text: str) -> NDArray[np.intp]:
    """Return the places of all separators."""
    is_ascii = text.isascii()
    coded = text.encode("ascii" if is_ascii else "utf-32-le")
    letters = np.frombuffer(coded, np.uint8 if is_ascii else np.dtype("<u4"))
    return np.flatnonzero(letters == ord(SEPARATOR))


def _folded(query: str) -> str:
    return query.casefold().replace(SEPARATOR, " ")
