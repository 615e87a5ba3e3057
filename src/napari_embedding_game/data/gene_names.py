"""Find names of genes, typed or read from a file, among those of the data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MOST_TOLD = 8
"""Names that are not in the data and are told one by one."""


@dataclass(frozen=True, slots=True)
class FoundNames:
    """Which of the names that were asked for the data have."""

    places: tuple[int, ...]
    """Where they stand among the names of the data, each once."""
    missing: tuple[str, ...]

    @property
    def told(self) -> str:
        """A sentence on the names that are not there; empty if all are."""
        if not self.missing:
            return ""
        return f"Not in the data: {named(self.missing)}."


def named(names: Sequence[str]) -> str:
    """Return the first few of many names, and how many there are more."""
    more = len(names) - MOST_TOLD
    return ", ".join(names[:MOST_TOLD]) + (f" and {more:,} more" if more > 0 else "")


def split_names(text: str) -> list[str]:
    """Return the names of a text, each once, in their order.

    They stand between commas, semicolons, tabs or ends of lines; where there are none
    of these, between spaces.
    """
    parts = re.split(r"[,;\t\r\n]+", text)
    if len(parts) == 1:
        parts = text.split()
    names = (part.strip().strip("\"'").strip() for part in parts)
    return list(dict.fromkeys(name for name in names if name))


def find_names(wanted: Sequence[str], names: Sequence[str]) -> FoundNames:
    """Find names among those of the data.

    Letters may be of the other case where only one name of the data is meant.
    """
    exact: dict[str, int] = {}
    folded: dict[str, int] = {}
    for place, name in enumerate(names):
        exact.setdefault(name, place)
        key = name.casefold()
        folded[key] = -1 if key in folded else place
    places: dict[int, None] = {}
    missing = []
    for name in wanted:
        place = exact.get(name, folded.get(name.casefold(), -1))
        if place < 0:
            missing.append(name)
        else:
            places[place] = None
    return FoundNames(tuple(places), tuple(missing))
