"""Which clusters are selected."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal


class Selection:
    """The selected clusters: landmark numbers in the order they were chosen."""

    changed = Signal(tuple)

    def __init__(self) -> None:
        self._clusters: tuple[int, ...] = ()

    @property
    def clusters(self) -> tuple[int, ...]:
        """Landmark numbers, each once, the first chosen first."""
        return self._clusters

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
        """Select exactly these."""
        self._set(dict.fromkeys(clusters))

    def clear(self) -> None:
        """Select nothing."""
        self._set(())

    def keep_below(self, n_landmarks: int) -> None:
        """Drop clusters whose landmark has left the game."""
        self._set(c for c in self._clusters if c < n_landmarks)

    def members(self, labels: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return for each point, by its label, whether it is selected: (N,) bool."""
        return np.isin(labels, self._clusters)

    def _set(self, clusters: Iterable[int]) -> None:
        new = tuple(int(c) for c in clusters)
        if new != self._clusters:
            self._clusters = new
            self.changed.emit(new)
