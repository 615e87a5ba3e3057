"""The landmarks of one snapshot merged into any number of clusters.

A merge by a person is :meth:`~.clusters.Clusters.merge`; neither changes the game.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import IntArray


class LandmarkMerge:
    """The merge tree of the landmarks at one moment of the game.

    ``graph`` (L, L) sparse matrix: sum of the edge weights between the points of each
    two landmarks. ``tree``: the order in which landmarks are merged.
    """

    def __init__(self, graph: Any, tree: Any) -> None:
        self.graph, self.tree = graph, tree

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        labels: NDArray[np.int32],
        n_landmarks: int,
        previous: LandmarkMerge | None = None,
    ) -> LandmarkMerge:
        """Build the graph and the merge tree of the landmarks from the points' edges.

        ``labels`` (n,): landmark of each point. ``previous``: the merge of a moment
        ago, which makes the clusters of a running game change less.
        """
        from napari_embedding_game.core.inspect.clusters import (
            build_merge_tree,
            landmark_graph,
        )

        graph = landmark_graph(edges, labels, n_landmarks)
        sizes = np.bincount(labels, minlength=n_landmarks)
        old_tree = previous.tree if previous is not None else None
        return cls(graph, build_merge_tree(graph, sizes, previous=old_tree))

    def cut_into_clusters(
        self, n_clusters: int, sizes: IntArray | None = None, min_points: int = 0
    ) -> NDArray[np.int32]:
        """Return the cluster of each landmark, (L,) int32; -1 where it has no points.

        ``sizes`` (L,) int: points of each landmark. ``min_points``: a cluster of fewer
        points is joined, the smallest first, to the cluster to which most of its edge
        weight leads; without such edges it stays.  Without both arguments no clusters
        are joined.
        """
        parts: NDArray[np.int32] = self.tree.cut(n_clusters)
        if sizes is None or not min_points:
            return parts
        held = np.flatnonzero(parts >= 0)
        onto = sp.csr_matrix((np.ones(len(held)), (parts[held], held)))
        onto.resize(int(parts.max()) + 1, len(parts))
        weights = (onto @ self.graph @ onto.T).toarray()
        np.fill_diagonal(weights, 0)
        points, goes_to = onto @ sizes, np.arange(len(weights))
        for part in np.argsort(points, kind="stable"):
            nearest = int(weights[part].argmax())
            if points[part] >= min_points or weights[part, nearest] <= 0:
                continue
            goes_to[goes_to == part] = nearest
            points[nearest] += points[part]
            weights[nearest] += weights[part]
            weights[:, nearest] += weights[:, part]
            weights[part] = weights[:, part] = weights[nearest, nearest] = 0
        return np.where(parts < 0, parts, goes_to[parts]).astype(np.int32)
