"""Saved comparisons of groups, which a notebook repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

MAX_COMPARISONS = 12
"""Comparisons that are remembered: the newest."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownComparison:
    """Two groups of points, and how they were compared."""

    title: str
    """In words."""
    inside: NDArray[np.bool_]
    """(n,)"""
    outside: NDArray[np.bool_] | None
    """(n,); None for all others."""
    method: Literal["wilcoxon", "t-test"]
    samples: str = ""
    """Column that names the samples which were compared; "" for single points."""

    @property
    def key(self) -> object:
        """The same for the same points, compared in the same way."""
        outside = ~self.inside if self.outside is None else self.outside
        groups = self.inside.tobytes(), outside.tobytes()
        return groups, self.method, self.samples


def newest(
    kept: tuple[ShownComparison, ...], new: ShownComparison
) -> tuple[ShownComparison, ...]:
    """Return what is remembered with a new one: the same one gives way to it."""
    others = [one for one in kept if one.key != new.key]
    return (*others[1 - MAX_COMPARISONS :], new)
