"""Merge the landmarks of one snapshot into fewer clusters."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.session.clusters.clustering import Grouping


def has_leiden() -> bool:
    """Return whether the packages for Leiden clusters are installed."""
    return all(find_spec(name) is not None for name in ("igraph", "leidenalg"))


class Merging:
    """Every number of clusters of one moment of the game.

    Asking for a number twice costs nothing the second time, so a thread may ask
    for what the window is going to ask.

    Parameters
    ----------
    graph : (L, L) sparse matrix
        Weight of the edges between the points of landmarks.
    tree : core.clusters.MergeTree
    """

    def __init__(self, graph: Any, tree: Any) -> None:
        self.graph = graph
        self.tree = tree
        self._found: dict[tuple[int, Grouping], NDArray[np.int32]] = {}

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

    def __call__(self, n_clusters: int, grouping: Grouping) -> NDArray[np.int32]:
        """Return the cluster of each landmark, (L,) int32; -1: it has no points."""
        key = (n_clusters, grouping)
        if key not in self._found:
            self._found[key] = self._divide(*key)
        return self._found[key]

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What it keeps in memory: of marks in the timeline, which is bounded."""
        graph, tree = self.graph, self.tree
        of_graph = [
            getattr(graph, name, None) for name in ("data", "indices", "indptr")
        ]
        parts = [*of_graph, tree.born, tree.leader, tree.levels, *self._found.values()]
        return tuple(part for part in parts if isinstance(part, np.ndarray))

    def knows(self, n_clusters: int, grouping: Grouping) -> bool:
        """Return whether the answer is there already, or found in no time."""
        return grouping == "merge" or (n_clusters, grouping) in self._found

    def _divide(self, n_clusters: int, grouping: Grouping) -> NDArray[np.int32]:
        if grouping == "leiden":
            from napari_embedding_game.core.inspect.clusters import leiden_clusters

            return leiden_clusters(self.graph, n_clusters=n_clusters)
        cut: NDArray[np.int32] = self.tree.cut(n_clusters)
        return cut

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
