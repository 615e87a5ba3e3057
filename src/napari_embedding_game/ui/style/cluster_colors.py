"""The colour of each cluster, on the map, in the table and in the legend."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.session.clusters.automatic import FIRST_ID
from napari_embedding_game.session.clusters.cluster_book import ClusterBook
from napari_embedding_game.session.clusters.clustering import Cluster
from napari_embedding_game.ui.style.colors import (
    Colors,
    category_colors,
    from_hex,
    landmark_colors,
    to_hex,
)

WIDEST = 1 << 16
"""Range of ids up to which a table of all of them is quicker than a search."""


class ClusterColors:
    """Colours that a cluster keeps while the game and the slider move.

    A given colour comes first.  A landmark that is a cluster of its own is
    coloured by where it lies, when it is first seen and once more after the
    first quarter, when the large picture stands.  All other clusters are
    coloured by their number, which no two of them share.

    Parameters
    ----------
    book : ClusterBook
    """

    def __init__(self, book: ClusterBook) -> None:
        self._book = book
        self.restart()

    def restart(self) -> None:
        """Forget the landmarks' colours: others play now."""
        self._by_place: Colors = np.empty((0, 4), dtype=np.float32)
        self._settled = False

    def follow(self, snapshot: Snapshot) -> None:
        """Give colours to the landmarks that have none yet."""
        is_known = snapshot.n_iter > 0
        if not self._settled and is_known and 4 * snapshot.iteration >= snapshot.n_iter:
            self._by_place, self._settled = self._by_place[:0], True
        # Never shortened: clusters may be a little older than the landmarks.
        if len(self._by_place) < len(snapshot.landmarks):
            fresh = landmark_colors(snapshot.landmarks)[len(self._by_place) :]
            self._by_place = np.concatenate([self._by_place, fresh])

    def of(self, clusters: tuple[Cluster, ...]) -> Colors:
        """Return the colours of some of the present clusters: (C, 4)."""
        numbers = [self._number(cluster) for cluster in clusters]
        # The landmark 0 has the number 0, for which there is no colour.
        after = max(numbers, default=-1) + 1
        numbers = [after if number < 0 else number for number in numbers]
        colors = category_colors(max(numbers, default=0) + 1)[numbers]
        for row, cluster in enumerate(clusters):
            if cluster.color:
                colors[row] = from_hex(cluster.color)
            elif cluster.id < len(self._by_place):
                colors[row] = self._by_place[cluster.id]
        return colors

    def by_id(self) -> dict[int, str]:
        """Return the colour of every present cluster as "#rrggbb"."""
        clusters = self._book.clusters
        pairs = zip(clusters, self.of(clusters), strict=True)
        return {cluster.id: to_hex(rgba) for cluster, rgba in pairs}

    def of_points(self) -> Colors:
        """Return the colour of each point by its cluster: (N, 4)."""
        clusters = sorted(self._book.clusters, key=lambda cluster: cluster.id)
        codes = places([cluster.id for cluster in clusters], self._book.labels)
        # ``take`` is many times quicker than an index here.
        return self.of(tuple(clusters)).take(codes, axis=0)

    def _number(self, cluster: Cluster) -> int:
        """Return the place of a cluster's colour among those given by number."""
        default = cluster.id % FIRST_ID + 1
        return self._book.clustering.numbers.get(cluster.id, default) - 1


def places(ids: list[int], labels: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return where each label stands in the ascending ids: (N,)."""
    if not ids or ids[-1] - ids[0] > WIDEST:
        return np.searchsorted(np.asarray(ids), labels)
    table = np.zeros(ids[-1] - ids[0] + 1, np.intp)
    table[np.asarray(ids) - ids[0]] = np.arange(len(ids))
    return table.take(labels - ids[0])
