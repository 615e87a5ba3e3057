"""Clusters of the points of a map: their ids, names, colours and labels per point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster of a map, as tables, legends and files show it."""

    id: int
    """Lasting number: a cluster of the same cells keeps this number, which sets its
    colour."""
    name: str
    """Name of the annotated group, or the id as text; unique among the clusters."""
    is_named: bool = False
    """Whether a person annotated this cluster."""
    color: str = ""
    """Colour chosen by a person as "#rrggbb"; "" for the colour of the palette."""
    note: str = ""
    size: int

    @property
    def title(self) -> str:
        """Name of the cluster in a sentence: the given name, or "Cluster 3"."""
        return self.name if self.is_named else f"Cluster {self.name}"


@dataclass(frozen=True, eq=False)
class Clustering:
    """The clusters of all points at one moment; immutable, so threads may share it."""

    labels: NDArray[np.int32]
    """(n,) cluster id of each point."""
    clusters: tuple[Cluster, ...]
    """The clusters that have points, by ascending ids."""

    @cached_property
    def by_id(self) -> dict[int, Cluster]:
        """Clusters keyed by their ids."""
        return {cluster.id: cluster for cluster in self.clusters}

    @cached_property
    def names_by_point(self) -> pd.Categorical:
        """(n,) name of the cluster of each point."""
        names = [cluster.name for cluster in self.clusters]
        codes = find_label_indices([*self.by_id], self.labels)
        return pd.Categorical.from_codes(codes, names)

    def rows_in_cluster(self, cluster_id: int) -> NDArray[np.intp]:
        """Return the ascending row indices of the points in a cluster."""
        return np.flatnonzero(self.labels == cluster_id)


def make_clustering_from_labels(labels: NDArray[np.int32]) -> Clustering:
    """Build a clustering from labels (n,); each cluster is named by its number."""
    ids, sizes = np.unique(labels, return_counts=True)
    pairs = zip(ids.tolist(), sizes.tolist(), strict=True)
    clusters = (Cluster(id=i, name=str(i), size=size) for i, size in pairs)
    return Clustering(labels, tuple(clusters))


def find_label_indices(
    ids: Sequence[int], labels: NDArray[np.integer]
) -> NDArray[np.intp]:
    """Return the index in `ids` of each label, (N,); -1 for a label that is absent.

    Ids and labels are not negative.
    """
    numbers = np.asarray(ids, np.intp)
    highest = max(labels.max(initial=0), numbers.max(initial=0))
    table = np.full(int(highest) + 1, -1)
    table[numbers] = np.arange(len(numbers))
    return table.take(labels)
