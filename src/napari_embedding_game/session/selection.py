"""The selection of clusters or points, shared by map, table, thumbnails and image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

Mode = Literal["replace", "add", "remove"]
Mask = NDArray[np.bool_]


class Selection:
    """A selection of whole clusters or of single points; ``points`` holds for both.

    Selected clusters stay selected while their points change; selected points stay
    selected, whatever cluster they are in.

    ``changed`` emits ``clusters`` whenever the selection changes, be it of points.
    """

    changed = Signal(tuple)

    def __init__(self) -> None:
        self.clusters: tuple[int, ...] = ()
        """Ids of the selected clusters, in the order of their selection.

        Empty while single points are selected."""
        self._labels: NDArray[np.integer] = np.zeros(0, np.int32)
        self._chosen_points: NDArray[np.bool_] | None = None
        self._points: NDArray[np.bool_] | None = None

    @property
    def points(self) -> NDArray[np.bool_]:
        """(n,) whether each point is selected; read-only."""
        if self._points is None:
            points = self._chosen_points
            self._points = (
                self.mask_by_labels(self._labels) if points is None else points
            )
            self._points.setflags(write=False)
        return self._points

    @property
    def rows(self) -> NDArray[np.intp]:
        """The indices of the selected points, ascending."""
        return np.flatnonzero(self.points)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is selected."""
        return not self.clusters and self._chosen_points is None

    @property
    def is_of_points(self) -> bool:
        """Whether single points are selected, rather than whole clusters."""
        return self._chosen_points is not None

    def selected_share_by_cluster(self) -> dict[int, float]:
        """Return the share of selected points, 0 to 1, by id of cluster.

        Clusters without selected points are left out.
        """
        counts = np.bincount(self._labels[self.points])
        sizes = np.bincount(self._labels)
        return {i: float(counts[i] / sizes[i]) for i in np.flatnonzero(counts).tolist()}

    def mask_by_labels(self, labels: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return whether each point would be selected with these cluster ids: (n,).

        Points that were selected singly stay selected, whatever the ids.
        """
        return self.points if self.is_of_points else np.isin(labels, self.clusters)

    def select_cluster(self, cluster: int) -> None:
        """Select this cluster alone."""
        self._set_selection((cluster,))

    def toggle_cluster(self, cluster: int) -> None:
        """Add the cluster to the selection, or remove it if it is selected already.

        Points that were selected singly are no longer selected.
        """
        others = [c for c in self.clusters if c != cluster]
        self._set_selection(others if cluster in self.clusters else (*others, cluster))

    def select_clusters(self, clusters: Iterable[int]) -> None:
        """Select exactly these clusters."""
        self._set_selection(dict.fromkeys(clusters))

    def clear(self) -> None:
        """Select nothing."""
        self._set_selection(())

    def select_points(self, points: NDArray[Any], mode: Mode = "replace") -> None:
        """Select single points, as with a lasso, a thumbnail or a label.

        ``points`` (n,) bool or (m,) int. ``mode``: "replace" selects these points
        alone; "add" adds them to the selection and "remove" removes them from it, and
        selected clusters become single points.  Where no point remains, nothing is
        selected.
        """
        mask = np.zeros(len(self._labels), bool)
        points = np.asarray(points)
        mask[points if points.dtype == bool else points.astype(np.intp)] = True
        if mode == "add":
            mask |= self.points
        elif mode == "remove":
            mask = self.points & ~mask
        self._set_selection((), mask if mask.any() else None)

    def toggle_points(self, points: NDArray[np.bool_], *, is_added: bool) -> None:
        """Select a group of points, (n,) bool, alone, or add it to the selection.

        With ``is_added``, a group whose points are all selected is removed instead.  A
        group without points changes nothing.
        """
        if points.any():
            has_all = is_added and self.points[points].all()
            mode: Mode = "remove" if has_all else "add" if is_added else "replace"
            self.select_points(points, mode)

    def update_labels(self, labels: NDArray[np.integer]) -> None:
        """Set the cluster id of each point, (n,), and correct the selection.

        Of selected clusters those without points are dropped.  Points that were
        selected singly stay, unless the number of points has changed: then nothing is
        selected.
        """
        is_resized = len(labels) != len(self._labels)
        self._labels = labels
        if self._chosen_points is None:
            self._points = None
            remaining = set(np.flatnonzero(np.bincount(labels)).tolist())
            self._set_selection(c for c in self.clusters if c in remaining)
        elif is_resized:
            self._set_selection(())

    def _set_selection(
        self, clusters: Iterable[int], points: Mask | None = None
    ) -> None:
        """Set the selected clusters or points, and emit ``changed`` if they differ."""
        new, old = tuple(map(int, clusters)), self._chosen_points
        is_same = old is points or (
            old is not None and points is not None and np.array_equal(old, points)
        )
        if new != self.clusters or not is_same:
            self.clusters, self._chosen_points, self._points = new, points, None
            self.changed.emit(new)
