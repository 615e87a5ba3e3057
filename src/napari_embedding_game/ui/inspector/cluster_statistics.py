"""Statistics of all clusters for the table: size, stretch, pressure, purity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import FAR
from napari_embedding_game.session.clusters.clustering import Cluster
from napari_embedding_game.ui.style.cluster_colors import places
from napari_embedding_game.ui.style.colors import Colors

AT_ONCE = 1 << 17
"""Points that are counted at once: they fit into a processor's cache."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterStatistics:
    """What the table shows, a row for each cluster."""

    clusters: tuple[Cluster, ...] = ()
    colors: Colors
    """(C, 4)"""
    pressure: NDArray[np.floating]
    """(C,) mean of its points; NaN where the method does not define it."""
    stretched: NDArray[np.floating]
    """(C,) share of points far from their neighbours; NaN where it is not known."""
    purity: NDArray[np.floating]
    """(C,) share of its most frequent value; NaN where there is no column."""
    column: str = ""
    """The metadata column that purity is of."""
    most_frequent: tuple[str, ...] = ()
    """Its most frequent value in each cluster; empty where there is no column."""
    is_colored: bool = True
    """Whether the map shows the colours of the clusters."""

    @property
    def has_pressure(self) -> bool:
        """Whether pressure is defined."""
        return not np.isnan(self.pressure).any()

    @property
    def has_stretch(self) -> bool:
        """Whether the stretch of the points is known."""
        return not np.isnan(self.stretched).any()

    @cached_property
    def sizes(self) -> NDArray[np.integer]:
        """(C,) number of points."""
        return np.array([cluster.size for cluster in self.clusters], dtype=np.int64)

    @classmethod
    def of(
        cls,
        clusters: tuple[Cluster, ...],
        colors: Colors,
        sums: ClusterSums,
        *,
        is_colored: bool = True,
    ) -> ClusterStatistics:
        """Tell of each cluster what its points sum up to.

        Parameters
        ----------
        clusters : tuple of Cluster
        colors : array, shape (C, 4)
        sums : ClusterSums
            Of the same clusters.
        is_colored : bool
            Whether the map shows the colours of the clusters.
        """
        rows = np.searchsorted(sums.ids, [cluster.id for cluster in clusters])
        sizes, counts = np.maximum(sums.sizes[rows], 1), sums.counts[rows]
        return cls(
            clusters=clusters,
            colors=colors,
            pressure=sums.pressure[rows] / sizes,
            stretched=sums.stretched[rows] / sizes,
            purity=_purity(counts, sizes),
            column="" if sums.levels is None else str(sums.levels.name),
            most_frequent=_most_frequent(counts, sums.levels),
            is_colored=is_colored,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterSums:
    """Sums over the points of each cluster, whatever it is called."""

    labels: NDArray[np.integer]
    """(n,) cluster id of each point."""
    ids: NDArray[np.integer]
    """(C,) ids of all clusters, ascending."""
    sizes: NDArray[np.integer]
    pressure: NDArray[np.floating]
    """(C,)"""
    stretched: NDArray[np.floating]
    """(C,) points far from their neighbours; NaN where it is not known."""
    counts: NDArray[np.integer]
    """(C, levels) points with each level of a column; (C, 0) without one."""
    levels: pd.Series | None

    @classmethod
    def of(
        cls,
        labels: NDArray[np.integer],
        pressure: NDArray[np.floating],
        stretch: NDArray[np.floating] | None,
        levels: pd.Series | None,
    ) -> ClusterSums:
        """Sum up the points of each cluster.

        Parameters
        ----------
        labels : (n,) int
            Cluster id of each point.
        pressure : (n,) float
        stretch : (n,) float, or None where it is not known
        levels : (n,) categorical series, optional
            Each point's value of a metadata column, none missing.
        """
        ids, sizes = np.unique(labels, return_counts=True)
        codes = None if levels is None else levels.cat.codes.to_numpy()
        pressures, stretched = np.zeros(len(ids)), np.full(len(ids), np.nan)
        if stretch is not None:
            stretched[:] = 0.0
        n_levels = 0 if levels is None else len(levels.cat.categories)
        counts = np.zeros((len(ids), n_levels), np.int64)
        for begin in range(0, len(labels), AT_ONCE):
            part = slice(begin, begin + AT_ONCE)
            place = places(ids.tolist(), labels[part])
            pressures += np.bincount(place, pressure[part], len(ids))
            if stretch is not None:
                stretched += np.bincount(place, stretch[part] > FAR, len(ids))
            if codes is not None and n_levels:
                both = place * n_levels + codes[part]
                counts += np.bincount(both, minlength=counts.size).reshape(-1, n_levels)
        return cls(
            labels=labels,
            ids=ids,
            sizes=sizes,
            pressure=pressures,
            stretched=stretched,
            counts=counts,
            levels=levels,
        )

    def are_of(self, labels: NDArray[np.integer]) -> bool:
        """Return whether these are the clusters of the points."""
        return labels is self.labels or np.array_equal(labels, self.labels)


NO_CLUSTERS = ClusterStatistics(
    colors=np.empty((0, 4)),
    pressure=np.empty(0),
    stretched=np.empty(0),
    purity=np.empty(0),
)


def _purity(
    counts: NDArray[np.integer], sizes: NDArray[np.integer]
) -> NDArray[np.floating]:
    if not counts.shape[1]:
        return np.full(len(sizes), np.nan)
    return counts.max(axis=1) / sizes


def _most_frequent(
    counts: NDArray[np.integer], levels: pd.Series | None
) -> tuple[str, ...]:
    if levels is None or not counts.shape[1]:
        return ()
    return tuple(levels.cat.categories[counts.argmax(axis=1)].astype(str))
