"""Merge the landmarks of one snapshot into fewer clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import IntArray


class Merging:
    """Every number of clusters of one moment of the game.

    ``graph`` (L, L) sparse matrix: weight of the edges between the points of landmarks.
    """

    def __init__(self, graph: Any, tree: Any) -> None:
        self.graph, self.tree = graph, tree

    @classmethod
    def of(
        cls,
        edges: Any,
        labels: NDArray[np.int32],
        n_landmarks: int,
        previous: Merging | None = None,
    ) -> Merging:
        """Look at the edges between the points of the landmarks.

        ``previous``, of a moment ago, steadies the clusters of a running game.
        """
        from napari_embedding_game.core.inspect.clusters import (
            landmark_graph,
            merge_tree,
        )

        graph = landmark_graph(edges, labels, n_landmarks)
        sizes = np.bincount(labels, minlength=n_landmarks)
        old_tree = previous.tree if previous is not None else None
        return cls(graph, merge_tree(graph, sizes, previous=old_tree))

    def cut(
        self, n_clusters: int, sizes: IntArray | None = None, fewest: int = 0
    ) -> NDArray[np.int32]:
        """Return the cluster of each landmark, (L,) int32; -1: it has no points.

        ``sizes`` (L,) int: points of each landmark. ``fewest``: clusters of fewer
        points go to the one that most of their edges lead to.
        """
        parts: NDArray[np.int32] = self.tree.cut(n_clusters)
        if sizes is None or not fewest:
            return parts
        held = np.flatnonzero(parts >= 0)
        onto = sp.csr_matrix((np.ones(len(held)), (parts[held], held)))
        onto.resize(int(parts.max()) + 1, len(parts))
        weights = (onto @ self.graph @ onto.T).toarray()
        np.fill_diagonal(weights, 0)
        points, goes_to = onto @ sizes, np.arange(len(weights))
        for part in np.argsort(points, kind="stable"):
            nearest = int(weights[part].argmax())
            if points[part] >= fewest or weights[part, nearest] <= 0:
                continue
            goes_to[goes_to == part] = nearest
            points[nearest] += points[part]
            weights[nearest] += weights[part]
            weights[:, nearest] += weights[:, part]
            weights[part] = weights[:, part] = weights[nearest, nearest] = 0
        return np.where(parts < 0, parts, goes_to[parts]).astype(np.int32)
