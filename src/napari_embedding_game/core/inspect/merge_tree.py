"""The tree in which landmarks are merged; a process that reads it compiles no loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class MergeTree:
    """All the cuts of L landmarks into 1 to ``n_leaves`` nested clusters.

    ``born`` (L,): least number of clusters at which a landmark leads one, 0 without
    points; ``leader`` (L,): the leader of its cluster below that; ``levels`` (n, L):
    the partitions that the tree passes through, finest first.
    """

    born: NDArray[np.int64]
    leader: NDArray[np.int64]
    levels: NDArray[np.int64]

    @property
    def n_leaves(self) -> int:
        """Landmarks that have points: the most clusters there can be."""
        return int(np.count_nonzero(self.born))

    def cut(self, n_clusters: int) -> NDArray[np.int32]:
        """Return the cluster of each landmark, from 0; -1 where it has no points.

        The cut into one more splits one cluster: the larger part keeps its number, the
        smaller takes the next free one.  There are at most ``n_leaves``.
        """
        n_clusters = max(1, n_clusters)
        head = np.where(self.born > n_clusters, self.leader, np.arange(len(self.born)))
        while (self.born[head] > n_clusters).any():
            head = head[head]
        return (self.born[head] - 1).astype(np.int32)
