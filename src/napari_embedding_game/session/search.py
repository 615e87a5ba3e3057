"""Find clusters, genes and cells by a part of their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

MOST_HITS = 50


@dataclass(frozen=True, slots=True)
class Hit:
    """One name that was found."""

    kind: str
    """Which list it stands in, such as "gene"."""
    index: int
    """Its place in that list."""
    name: str


class Search:
    """Several lists of names, looked through in their order; case is the same.

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
        known = {} if former is None else former._lists
        self._lists: dict[str, tuple[Sequence[str], list[str]]] = {}
        """By kind the names, and the same in small letters."""
        for kind, names in lists.items():
            is_known = kind in known and known[kind][0] is names
            folded = known[kind][1] if is_known else [n.casefold() for n in names]
            self._lists[kind] = names, folded

    def find(self, query: str, most: int = MOST_HITS) -> list[Hit]:
        """Return names that are the query or begin with it, then that contain it."""
        query = query.strip().casefold()
        return list(islice(self._hits(query), most)) if query else []

    def _hits(self, query: str) -> Iterator[Hit]:
        inside = []
        for kind, (names, folded) in self._lists.items():
            found = [i for i, name in enumerate(folded) if query in name]
            first = [i for i in found if folded[i].startswith(query)]
            yield from (Hit(kind, i, names[i]) for i in first if folded[i] == query)
            yield from (Hit(kind, i, names[i]) for i in first if folded[i] != query)
            begin = set(first)
            inside += [Hit(kind, i, names[i]) for i in found if i not in begin]
        yield from inside
