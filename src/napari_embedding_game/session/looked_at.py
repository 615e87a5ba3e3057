"""What a person has looked at and a notebook tells: comparisons and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

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


def newest(kept: tuple[T, ...], new: T) -> tuple[T, ...]:
    """Return what is remembered with a new one: the same one gives way to it."""
    others = [one for one in kept if one.key != new.key]
    return (*others[1 - MOST :], new)
