"""The selection that map, table, thumbnails and image share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

Mode = Literal["replace", "add", "remove"]


class Selection:
    """Either whole clusters, or points one by one; ``points`` follows from both.

    Clusters that are selected stay so while points move in and out of them;
    points that are selected stay, whatever cluster they are in.

    ``changed`` brings ``clusters`` whenever a person has selected something
    else, be it points.
    """

    changed = Signal(tuple)

    def __init__(self, n_points: int = 0) -> None:
        self._clusters: tuple[int, ...] = ()
        self._labels: NDArray[np.integer] = np.zeros(n_points, np.int32)
        self._drawn: NDArray[np.bool_] | None = None
        self._points: NDArray[np.bool_] | None = None

    # What is selected

    @property
    def clusters(self) -> tuple[int, ...]:
        """Ids of the selected clusters, each once, the first chosen first.

        Empty while points are selected one by one.
        """
        return self._clusters

    @property
    def points(self) -> NDArray[np.bool_]:
        """(n,) whether each point is selected; read-only."""
        if self._points is None:
            self._points = self._find_points()
            self._points.setflags(write=False)
        return self._points

    @property
    def rows(self) -> NDArray[np.intp]:
        """The selected points in their order."""
        return np.flatnonzero(self.points)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is selected."""
        return not self._clusters and self._drawn is None

    @property
    def is_of_points(self) -> bool:
        """Whether points are selected one by one rather than whole clusters."""
        return self._drawn is not None

    def shares(self) -> dict[int, float]:
        """Return for each cluster with selected points the selected share, 0 to 1."""
        if self._drawn is None:  # whole clusters, each of which has points
            return dict.fromkeys(sorted(self._clusters), 1.0)
        inside, counts = np.unique(self._labels[self.points], return_counts=True)
        clusters, sizes = np.unique(self._labels, return_counts=True)
        sizes = sizes[np.searchsorted(clusters, inside)]
        return dict(zip(inside.tolist(), (counts / sizes).tolist(), strict=True))

    def members(self, labels: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return for each point, by its cluster, whether it is selected: (n,) bool."""
        if self._drawn is not None:
            return self.points
        return np.isin(labels, self._clusters)

    # Selecting clusters

    def select(self, cluster: int) -> None:
        """Select this cluster alone."""
        self._set((cluster,))

    def toggle(self, cluster: int) -> None:
        """Add the cluster, or take it out when it is selected already."""
        if cluster in self._clusters:
            self._set(c for c in self._clusters if c != cluster)
        else:
            self._set((*self._clusters, cluster))

    def replace(self, clusters: Iterable[int]) -> None:
        """Select exactly these clusters."""
        self._set(dict.fromkeys(clusters))

    def clear(self) -> None:
        """Select nothing."""
        self._set(())

    # Selecting points

    def select_points(self, points: NDArray[Any], mode: Mode = "replace") -> None:
        """Select points one by one, as with a lasso, a thumbnail or a label.

        Parameters
        ----------
        points : (n,) bool or (m,) int
        mode : {"replace", "add", "remove"}
            Whether to select these alone, or to add them to what is selected (its
            clusters are then points too), or to take them out of it.
        """
        mask = self._mask(points)
        if mode == "add":
            mask |= self.points
        elif mode == "remove":
            mask = self.points & ~mask
        self._set((), mask if mask.any() else None)

    # What the session says

    def follow(self, labels: NDArray[np.integer]) -> None:
        """Take over the (n,) cluster ids; those that no longer exist are dropped."""
        are_others = len(labels) != len(self._labels)
        self._labels = labels
        if self._drawn is None:
            self._points = None
        elif are_others:
            self._set(())
        if self._clusters:
            left = set(np.unique(labels).tolist())
            self._set(c for c in self._clusters if c in left)

    def _mask(self, points: NDArray[Any]) -> NDArray[np.bool_]:
        points = np.asarray(points)
        if points.dtype == bool:
            return points.copy()
        mask = np.zeros(len(self._labels), bool)
        mask[points.astype(np.intp)] = True
        return mask

    def _find_points(self) -> NDArray[np.bool_]:
        if self._drawn is not None:
            return self._drawn
        if not self._clusters:
            return np.zeros(len(self._labels), bool)
        return np.isin(self._labels, self._clusters)

    def _set(
        self, clusters: Iterable[int], drawn: NDArray[np.bool_] | None = None
    ) -> None:
        new = tuple(int(c) for c in clusters)
        if new == self._clusters and _same(drawn, self._drawn):
            return
        self._clusters, self._drawn, self._points = new, drawn, None
        self.changed.emit(new)


def _same(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))
