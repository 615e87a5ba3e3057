"""The clusters of rows, as a table, a legend or a file shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster."""

    id: int
    """Lasting number: the same cells keep it, and its colour goes by it."""
    name: str
    """That of the group, or the number as text; no two clusters have the same."""
    is_named: bool = False
    """Whether it is a group that a person annotated."""
    color: str = ""
    """The given colour as "#rrggbb"; "" where none was given."""
    note: str = ""
    size: int

    @property
    def title(self) -> str:
        """What it is called in a sentence."""
        return self.name if self.is_named else f"Cluster {self.name}"


@dataclass(frozen=True, eq=False)
class Clustering:
    """The clusters at one moment; immutable, so it may be handed to a thread."""

    labels: NDArray[np.int32]
    """(n,) cluster id of each point."""
    clusters: tuple[Cluster, ...]
    """All that have points, by ascending ids."""

    @cached_property
    def by_id(self) -> dict[int, Cluster]:
        """The clusters by their ids."""
        return {cluster.id: cluster for cluster in self.clusters}

    @cached_property
    def names_by_point(self) -> pd.Categorical:
        """(n,) the name of each point's cluster."""
        names = [cluster.name for cluster in self.clusters]
        codes = label_indices([*self.by_id], self.labels)
        return pd.Categorical.from_codes(codes, names)

    def rows_in_cluster(self, cluster: int) -> NDArray[np.intp]:
        """Return the points of a cluster."""
        return np.flatnonzero(self.labels == cluster)


def clustering_from_labels(labels: NDArray[np.int32]) -> Clustering:
    """Return clusters (n,) that are called by their numbers."""
    ids, sizes = np.unique(labels, return_counts=True)
    pairs = zip(ids.tolist(), sizes.tolist(), strict=True)
    clusters = (Cluster(id=i, name=str(i), size=size) for i, size in pairs)
    return Clustering(labels, tuple(clusters))


def label_indices(ids: Sequence[int], labels: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the index of each label among the ids: (N,), -1 if it is missing."""
    numbers = np.asarray(ids, np.intp)
    highest = max(labels.max(initial=0), numbers.max(initial=0))
    table = np.full(int(highest) + 1, -1)
    table[numbers] = np.arange(len(numbers))
    return table.take(labels)
