"""The comparisons of groups that a person has kept or saved, for the notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

MOST = 12
"""Comparisons that are remembered, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownComparison:
    """Two groups of points, and how they were compared."""

    inside: NDArray[np.bool_]
    """(n,)"""
    outside: NDArray[np.bool_] | None
    """(n,); None for all others."""
    method: Literal["wilcoxon", "t-test"]
    samples: str = ""
    """Column that names the samples which were compared; "" for single points."""
    column: str = ""
    """Column of the metadata whose levels were compared inside a selection; "" if
    none was."""
    levels: tuple[str, str] = ("", "")
    """Of that column; the second is "" for all others."""
    selected: NDArray[np.bool_] | None = None
    """(n,) the selection, where levels inside of it were compared."""

    def is_as(self, other: ShownComparison) -> bool:
        """Return whether both compare the same points in the same way."""
        return (
            self.method == other.method
            and self.samples == other.samples
            and np.array_equal(self.inside, other.inside)
            and (self.outside is None) == (other.outside is None)
            and (
                self.outside is None
                or other.outside is None
                or np.array_equal(self.outside, other.outside)
            )
        )


class ShownComparisons:
    """The newest comparisons that were kept, each once, in their order."""

    def __init__(self) -> None:
        self._shown: tuple[ShownComparison, ...] = ()

    def __iter__(self) -> Iterator[ShownComparison]:
        """Iterate over them, the oldest first."""
        return iter(self._shown)

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._shown)

    def add(self, comparison: ShownComparison) -> None:
        """Remember one; the same kept before gives way to it."""
        others = [one for one in self._shown if not one.is_as(comparison)]
        self._shown = (*others, comparison)[-MOST:]

    def clear(self) -> None:
        """Forget all: other data."""
        self._shown = ()
