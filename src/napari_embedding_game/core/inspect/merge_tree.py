"""The tree of merged landmarks, apart from :mod:`clusters`, which compiles loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class MergeTree:
    """A tree whose cuts are nested partitions of L landmarks into clusters.

    ``born`` (L,): smallest number of clusters at which a landmark leads a cluster, 0
    for landmarks without points; ``leader`` (L,): the landmark that leads its cluster
    at smaller numbers; ``levels`` (n, L): the partitions that the tree passes through,
    finest first.
    """

    born: NDArray[np.int64]
    leader: NDArray[np.int64]
    levels: NDArray[np.int64]

    @property
    def n_leaves(self) -> int:
        """Number of landmarks with points, the largest number of clusters."""
        return int(np.count_nonzero(self.born))

    def cut(self, n_clusters: int) -> NDArray[np.int32]:
        """Return the cluster of each landmark in a cut, (L,) int32, from 0.

        Landmarks without points have the cluster -1.  Each further cluster of a cut is
        split from a former one: the larger part keeps its number, the smaller part gets
        the next free number.  ``n_clusters`` below 1 counts as 1; there are at most
        ``n_leaves`` clusters.
        """
        n_clusters = max(1, n_clusters)
        head = np.where(self.born > n_clusters, self.leader, np.arange(len(self.born)))
        while (self.born[head] > n_clusters).any():
            head = head[head]
        return (self.born[head] - 1).astype(np.int32)
