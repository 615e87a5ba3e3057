"""The colour of each cluster, on the map, in the table and in the legend."""

from __future__ import annotations

import numpy as np

from napari_embedding_game.data.clustering import Cluster, places
from napari_embedding_game.data.palette import Colors, category_colors, hexes
from napari_embedding_game.session.clusters.clusters import Clusters
from napari_embedding_game.ui.style.colors import from_hex


class ClusterColors:
    """The colour of a cluster: the given one, else that of its lasting id.

    Parameters
    ----------
    book : Clusters
    """

    def __init__(self, book: Clusters) -> None:
        self._book = book

    def of(self, clusters: tuple[Cluster, ...]) -> Colors:
        """Return the colours of some of the present clusters: (C, 4)."""
        ids = np.array([cluster.id for cluster in clusters], int)
        # Ids count from 1; a landmark 0 that is a cluster has the last colour.
        colors = category_colors(int(ids.max(initial=0)) + 1)[ids - 1]
        for row, cluster in enumerate(clusters):
            if cluster.color:
                colors[row] = from_hex(cluster.color)
        return colors

    def by_id(self) -> dict[int, str]:
        """Return the colour of every present cluster as "#rrggbb"."""
        clusters = self._book.clusters
        ids = [cluster.id for cluster in clusters]
        return dict(zip(ids, hexes(self.of(clusters)), strict=True))

    def of_points(self) -> Colors:
        """Return the colour of each point by its cluster: (N, 4)."""
        clusters = self._book.clusters
        codes = places([cluster.id for cluster in clusters], self._book.labels)
        # ``take`` is many times quicker than an index here.
        return self.of(clusters).take(codes, axis=0)
