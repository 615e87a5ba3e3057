"""The dot plots, matrix plots and heat maps that a person has looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from napari_embedding_game.data.export.expression_figure import PlotKind

MOST = 8
"""Figures that are remembered, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFigure:
    """What a figure of genes in groups had as rows and columns."""

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

    def is_as(self, other: ShownFigure) -> bool:
        """Return whether both are the same figure, if of other clusters or scale."""
        return (
            (self.kind, self.column, self.splits_clusters, self.are_leading)
            == (other.kind, other.column, other.splits_clusters, other.are_leading)
        ) and (self.are_leading or self.genes == other.genes)


class ShownFigures:
    """The newest figures that were shown, each once, in their order."""

    def __init__(self) -> None:
        self._shown: tuple[ShownFigure, ...] = ()

    def __iter__(self) -> Iterator[ShownFigure]:
        """Iterate over them, the oldest first."""
        return iter(self._shown)

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._shown)

    def add(self, figure: ShownFigure) -> None:
        """Remember one; the same shown before gives way to it."""
        others = [one for one in self._shown if not one.is_as(figure)]
        self._shown = (*others, figure)[-MOST:]

    def clear(self) -> None:
        """Forget all: other data."""
        self._shown = ()
