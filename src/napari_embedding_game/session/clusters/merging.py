"""Merge the landmarks of one snapshot into fewer clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Merging:
    """Every number of clusters of one moment of the game.

    Parameters
    ----------
    graph : (L, L) sparse matrix
        Weight of the edges between the points of landmarks.
    tree : core.clusters.MergeTree
    """

    def __init__(self, graph: Any, tree: Any) -> None:
        self.graph = graph
        self.tree = tree

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
        former = previous.tree if previous is not None else None
        return cls(graph, merge_tree(graph, sizes, previous=former))

    def __call__(self, n_clusters: int) -> NDArray[np.int32]:
        """Return the cluster of each landmark, (L,) int32; -1: it has no points."""
        cut: NDArray[np.int32] = self.tree.cut(n_clusters)
        return cut

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What it keeps in memory: of marks in the timeline, which is bounded."""
        graph, tree = self.graph, self.tree
        of_graph = [
            getattr(graph, name, None) for name in ("data", "indices", "indptr")
        ]
        parts = [*of_graph, tree.born, tree.leader, tree.levels]
        return tuple(part for part in parts if isinstance(part, np.ndarray))

    def split(
        self, members: NDArray[np.integer], n_parts: int = 2
    ) -> NDArray[np.int32]:
        """Return the part of each of these landmarks, (M,) int32.

        Raises
        ------
        InputError
            They are too few to be split.
        """
        from napari_embedding_game.core.inspect.clusters import split

        return split(self.tree, members, n_parts)
