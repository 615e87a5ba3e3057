"""The figures of all clusters, as a table shows them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.session.clustering import Cluster
from napari_embedding_game.ui.cluster_colors import places
from napari_embedding_game.ui.colors import Colors


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterRows:
    """What the table shows, a row for each cluster."""

    clusters: tuple[Cluster, ...] = ()
    colors: Colors
    """(C, 4)"""
    pressure: NDArray[np.floating]
    """(C,) mean of its points."""
    purity: NDArray[np.floating]
    """(C,) share of its most frequent value; NaN where there is no column."""

    @cached_property
    def sizes(self) -> NDArray[np.integer]:
        """(C,) number of points."""
        return np.array([cluster.size for cluster in self.clusters], dtype=np.int64)

    @classmethod
    def of(
        cls,
        clusters: tuple[Cluster, ...],
        colors: Colors,
        labels: NDArray[np.integer],
        pressure: NDArray[np.floating],
        levels: NDArray[np.integer] | None,
    ) -> ClusterRows:
        """Sum up the points of each cluster.

        Parameters
        ----------
        clusters : tuple of Cluster
        colors : array, shape (C, 4)
        labels : (n,) int
            Cluster id of each point.
        pressure : (n,) float
        levels : (n,) int, optional
            Number of each point's value of a metadata column, from 0.
        """
        ids = np.array([cluster.id for cluster in clusters], dtype=np.int64)
        order = np.argsort(ids)
        place = order[places(ids[order].tolist(), labels)]
        sizes = np.maximum(np.bincount(place, minlength=len(ids)), 1)
        return cls(
            clusters=clusters,
            colors=colors,
            pressure=np.bincount(place, pressure, len(ids)) / sizes,
            purity=_purity(place, levels, sizes),
        )


NO_ROWS = ClusterRows(colors=np.empty((0, 4)), pressure=np.empty(0), purity=np.empty(0))


def _purity(
    place: NDArray[np.integer],
    levels: NDArray[np.integer] | None,
    sizes: NDArray[np.integer],
) -> NDArray[np.floating]:
    if levels is None or not len(levels):
        return np.full(len(sizes), np.nan)
    n_levels = int(levels.max()) + 1
    counts = np.bincount(place * n_levels + levels, minlength=len(sizes) * n_levels)
    return counts.reshape(-1, n_levels).max(axis=1) / sizes
