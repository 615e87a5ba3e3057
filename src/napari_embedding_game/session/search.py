"""Finding a cluster, a gene or a cell by a part of its name."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

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
        self.names = tuple(names)
        folded = [name.casefold().replace(SEPARATOR, " ") for name in self.names]
        self._text = SEPARATOR + SEPARATOR.join([*folded, ""])
        lengths = (len(name) + 1 for name in folded)
        self._ends = list(accumulate(lengths))

    def beginning_with(self, query: str) -> Iterator[int]:
        """Yield the places of names that begin with the query, whole names first."""
        begin = SEPARATOR + _folded(query)
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
        found = self._text.find(part)
        while found >= 0:
            place = bisect_right(self._ends, found + part.startswith(SEPARATOR) - 1)
            yield place
            found = self._text.find(part, self._ends[place])


class Search:
    """Several lists of names, looked through in their order.

    Parameters
    ----------
    lists : mapping from kind to names
        Such as {"cluster": ..., "gene": ..., "cell": ...}; what comes first is
        found first.
    """

    def __init__(self, lists: Mapping[str, Sequence[str]]) -> None:
        self._lists = {kind: Names(names) for kind, names in lists.items()}

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


def _folded(query: str) -> str:
    return query.casefold().replace(SEPARATOR, " ")
