"""Display numbers of clusters without a given name; 1 is the largest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.session.clusters.automatic import FIRST_ID
from napari_embedding_game.session.clusters.clustering import (
    Cluster,
    ClusterAnnotation,
    Clustering,
)


class Numbering:
    """Which cluster has which number; a cluster keeps its own as long as it can."""

    def __init__(self, known: Mapping[int, int] | None = None) -> None:
        self.known: dict[int, int] = dict(known or {})
        """Cluster id to number."""

        self._at_rest = self.known

    def rest(self) -> None:
        """Note that somebody sees the present numbers."""
        self._at_rest = dict(self.known)

    def settle(self) -> None:
        """Go back to the numbers of the last rest."""
        self.known = dict(self._at_rest)

    @classmethod
    def by_size(cls, labels: NDArray[np.integer]) -> Numbering:
        """Number the clusters of (n,) points by size, equals by their first points."""
        ids, sizes = np.unique(labels, return_counts=True)
        in_order = ids[np.lexsort((_first_rows(labels, len(ids)), -sizes))]
        return cls({int(cluster): i for i, cluster in enumerate(in_order, 1)})

    def count(
        self,
        ids: NDArray[np.integer],
        sizes: NDArray[np.integer],
        present: Collection[int],
        given: Mapping[int, ClusterAnnotation],
    ) -> None:
        """Number the clusters that have none; the largest gets the lowest.

        Parameters
        ----------
        ids, sizes : (C,) int
            Of the clusters that are to be seen now.
        present : collection of int
            Ids that were to be seen a moment ago: they keep their numbers.
        given : mapping
            What a person gave, by cluster id: who has a name needs a number for its
            colour alone, and takes none from those that count.
        """
        seen = [int(i) for i in ids[np.argsort(-sizes, kind="stable")]]
        taken: set[int] = set()
        waiting: list[int] = []
        named: list[int] = []
        for cluster in sorted(seen, key=lambda c: c not in present):
            number = cluster if cluster < FIRST_ID else self.known.get(cluster)
            if number is None or number in taken:
                has_name = given.get(cluster, ClusterAnnotation()).name
                (named if has_name else waiting).append(cluster)
            else:
                taken.add(number)
                self.known[cluster] = number
        self._fill(waiting, taken)
        self._fill(named, {*taken, *self.known.values()})

    def close_up(self, clusters: Sequence[Cluster]) -> bool:
        """Bring numbers that are larger than there are clusters into their count.

        Such a number is left from a moment with more clusters.  All others stay, and
        the largest of those that move gets the lowest that is free.  A landmark that
        is a cluster of its own keeps the landmark's number.

        Returns
        -------
        bool
            Whether any number has changed.
        """
        numbered = [c for c in clusters if not c.is_named and c.id >= FIRST_ID]
        numbered.sort(key=lambda cluster: -cluster.size)
        fits = range(1, len(clusters) + 1)
        taken: set[int] = set()
        waiting = []
        for cluster in numbered:
            number = self.known.get(cluster.id)
            if number is not None and number in fits and number not in taken:
                taken.add(number)
            else:
                waiting.append(cluster.id)
        self._fill(waiting, taken)
        return bool(waiting)

    def applied(self, clustering: Clustering) -> Clustering:
        """Return the clustering with these numbers."""
        return clustering.numbered(dict(self.known))

    def _fill(self, waiting: list[int], taken: set[int]) -> None:
        free = 1
        for cluster in waiting:
            while free in taken:
                free += 1
            self.known[cluster] = free
            taken.add(free)


def _first_rows(labels: NDArray[np.integer], n_ids: int) -> NDArray[np.intp]:
    """Return the first point of each cluster, by ascending id: (C,).

    To sort all of a million labels would take ten times as long: of the first few rows
    nearly all clusters have one, as a rule.
    """
    n_rows = 1024
    ids, first = np.unique(labels[:n_rows], return_index=True)
    while len(ids) < n_ids:
        n_rows *= 16
        ids, first = np.unique(labels[:n_rows], return_index=True)
    places: NDArray[np.intp] = first
    return places
