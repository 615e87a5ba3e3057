"""The rows of dot plots: clusters, levels of a column, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from napari_embedding_game.data.clustering import Clustering
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import as_levels, is_continuous

MAX_ROWS = 60
"""More levels than this are no rows of a figure."""
MAX_PARTS = 12
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


def offered_rows(dataset: Dataset, columns: Sequence[str]) -> list[RowChoice]:
    """Return what rows can be of: clusters, columns of few names, and both.

    ``columns``: the informative metadata columns.
    """
    named = [column for column in columns if not is_continuous(dataset.obs[column])]
    n_levels = {column: dataset.obs[column].nunique(dropna=False) for column in named}
    alone = [RowChoice(c) for c, n in n_levels.items() if n <= MAX_ROWS]
    pairs = [RowChoice(c, True) for c, n in n_levels.items() if n <= MAX_PARTS]
    return [CLUSTERS, *alone, *pairs]


def rows_of(
    choice: RowChoice, dataset: Dataset, clustering: Clustering
) -> pd.Categorical:
    """Return the row of each point (n,); those of a cluster are below each other."""
    clusters = clustering.names
    if not choice.column:
        return clusters
    levels = as_levels(dataset.obs[choice.column]).cat.remove_unused_categories().array
    if not choice.splits_clusters:
        return levels
    # A pair is a number: those of the first cluster, of the second, ...
    n_levels = len(levels.categories)
    pairs = clusters.codes.astype(np.intp) * n_levels + levels.codes
    found, rows = np.unique(pairs, return_inverse=True)
    parts = (divmod(int(pair), n_levels) for pair in found)
    names = [f"{clusters.categories[i]} · {levels.categories[j]}" for i, j in parts]
    return pd.Categorical.from_codes(rows, names)
