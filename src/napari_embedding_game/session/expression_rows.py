"""The rows of dot plots: clusters, levels of a column, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.clustering import Cluster
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import as_levels, is_continuous

MOST_ROWS = 60
"""More levels than this are no rows of a figure."""
MOST_PARTS = 12
"""Levels that each cluster is parted by."""


@dataclass(frozen=True, slots=True)
class RowChoice:
    """What has a row each: the clusters, the levels of ``column``, or their pairs."""

    column: str = ""
    splits_clusters: bool = False
    """Whether each cluster has a row for each of the levels in it."""

    @property
    def text(self) -> str:
        """How it is called."""
        if not self.column:
            return "Clusters"
        return f"Clusters by {self.column}" if self.splits_clusters else self.column


CLUSTERS = RowChoice()


@dataclass(frozen=True, eq=False)
class ExpressionRows:
    """R rows, and the points of each."""

    labels: NDArray[np.integer]
    """(n,) id of each point's row."""
    ids: tuple[int, ...]
    """(R,)"""
    names: tuple[str, ...]
    """(R,)"""


def offered_rows(dataset: Dataset, columns: Sequence[str]) -> list[RowChoice]:
    """Return what rows can be of: clusters, columns of few names, and both.

    ``columns``: the metadata columns that tell something.
    """
    named = [column for column in columns if not is_continuous(dataset.obs[column])]
    n_levels = {column: dataset.obs[column].nunique(dropna=False) for column in named}
    alone = [RowChoice(c) for c, n in n_levels.items() if n <= MOST_ROWS]
    pairs = [RowChoice(c, True) for c, n in n_levels.items() if n <= MOST_PARTS]
    return [CLUSTERS, *alone, *pairs]


def rows_of(
    choice: RowChoice,
    dataset: Dataset,
    labels: NDArray[np.integer],
    clusters: Sequence[Cluster],
) -> ExpressionRows:
    """Return the rows of a choice, those of a cluster below each other.

    ``labels`` (n,) int: cluster of each point. ``clusters``: in the order of the rows.
    """
    ids, names = [c.id for c in clusters], [c.name for c in clusters]
    if not choice.column:
        return ExpressionRows(labels, tuple(ids), tuple(names))
    coded = as_levels(dataset.obs[choice.column]).cat.remove_unused_categories()
    levels, codes = tuple(coded.cat.categories), coded.cat.codes.to_numpy()
    if not choice.splits_clusters:
        return ExpressionRows(codes, tuple(range(len(levels))), levels)
    # A pair is a number: those of the first cluster, of the second, ...
    pairs = pd.Index(ids).get_indexer(labels) * len(levels) + codes
    is_known = pairs >= 0
    found, rows = np.unique(pairs[is_known], return_inverse=True)
    of_row = np.full(len(pairs), -1)
    of_row[is_known] = rows
    parts = [divmod(int(pair), len(levels)) for pair in found]
    return ExpressionRows(
        of_row,
        tuple(range(len(parts))),
        tuple(f"{names[place]} · {levels[code]}" for place, code in parts),
    )
