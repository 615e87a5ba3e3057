"""A map on which new cells lie: where the cells of the reference are on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class PlacedOn:
    """The map of a reference of M cells, and the positions of n new cells on it."""

    reference: str
    """File of the reference: its path."""
    cells: NDArray[np.float32]
    """(M, d) positions of its cells."""
    placed: NDArray[np.float32]
    """(n, d) positions of the new cells."""

    @property
    def corners(self) -> NDArray[np.float32]:
        """(2, d) first and last corner of the box around all cells."""
        both = np.concatenate([self.cells, self.placed])
        return np.stack([both.min(axis=0), both.max(axis=0)])


def behind(on: PlacedOn | None, shown: Snapshot | None) -> PlacedOn | None:
    """Return the map of a reference while its points lie where they were placed."""
    if on is None or shown is None:
        return None
    points = shown.embedding
    return on if on.placed is points or np.array_equal(on.placed, points) else None
