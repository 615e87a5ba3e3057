"""What a person has looked at and a notebook tells: comparisons and figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.export.plots import PlotKind

MOST = 12
"""Comparisons, and figures, that are remembered: the newest."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFigure:
    """What a dot plot or matrix plot had as rows and columns."""

    kind: PlotKind
    genes: tuple[str, ...]
    column: str = ""
    """Column of the metadata whose levels had a row each; "": the clusters had."""
    splits_clusters: bool = False
    """Whether each cluster had a row for each of the levels in it."""
    are_leading: bool = False
    """Whether the genes were the leading markers, and not typed."""
    is_scaled: bool = True
    """Whether each gene went from its lowest value, 0, to its highest, 1."""

    @property
    def key(self) -> object:
        """The same for the same figure, if of other clusters or scale."""
        genes = () if self.are_leading else self.genes
        return self.kind, self.column, self.splits_clusters, self.are_leading, genes


T = TypeVar("T", bound="ShownComparison | ShownFigure")


class Newest(Generic[T]):
    """The newest ones, each once, in their order; a new one gives way to none."""

    def __init__(self) -> None:
        self._kept: dict[Any, T] = {}

    def __iter__(self) -> Iterator[T]:
        """Iterate over them, the oldest first."""
        return iter(list(self._kept.values()))

    def add(self, new: T) -> None:
        """Remember one; the same one from before gives way to it."""
        self._kept.pop(new.key, None)
        newest = list(self._kept.items())[1 - MOST :]
        self._kept = {**dict(newest), new.key: new}

    def clear(self) -> None:
        """Forget all: other data."""
        self._kept = {}
