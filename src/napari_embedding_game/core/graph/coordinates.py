"""Rows of the data reduced to at most 100 coordinates, for means and distances.

The coordinates are computed on request, because few games need them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.principal_components import (
    START_POWERS,
    principal_components,
)
from napari_embedding_game.core.graph.rows import SEARCHED, Rows

MAX_COORDINATES = 100
"""Rows with more columns are reduced to this many principal components."""


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Rows ``X`` (N, D), the metric between rows, and the seed of the components.

    ``X`` may be a function that returns the rows, so that they are not kept meanwhile.
    For "cosine" and "correlation" rows are scaled to length 1, for other metrics they
    are not.
    """

    X: Any
    metric: str
    random_state: int

    def compute_reduced_rows(self) -> NDArray[np.float32]:
        """Return all rows, (N, D), or their first 100 principal components if D > 100.

        float32; rows are centred and in the unit of :class:`Rows`.
        """
        metric = self.metric if self.metric in SEARCHED else "euclidean"
        rows = Rows(self.X() if callable(self.X) else self.X, metric)
        if rows.shape[1] <= MAX_COORDINATES:
            return rows[:]
        seed = self.random_state
        return principal_components(rows, MAX_COORDINATES, seed, START_POWERS)
