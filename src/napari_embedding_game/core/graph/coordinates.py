"""The rows of the data as few numbers each, between which means and distances are told.

Nothing is worked out before it is asked for: only few games do.
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

MOST = 100
"""Numbers of a row; longer rows are those of their principal components."""


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Rows ``X`` (N, D), the metric between them, and the seed of their components.

    For "cosine" and "correlation" rows have one length, for all other metrics their
    own.
    """

    X: Any
    metric: str
    random_state: int

    def compute_rows(self) -> NDArray[np.float32]:
        """Return the coordinates of each row, (N, 100) at most."""
        metric = self.metric if self.metric in SEARCHED else "euclidean"
        rows = Rows(self.X, metric)
        if rows.shape[1] <= MOST:
            return rows[:]
        return principal_components(rows, MOST, self.random_state, START_POWERS)
