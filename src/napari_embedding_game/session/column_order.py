"""The order in which columns of metadata tell something of a map."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.session.cluster_report import as_levels, is_continuous

if TYPE_CHECKING:
    from napari_embedding_game.session.session import Session

MOST_ROWS = 20_000
"""That columns are compared with the clusters in, drawn at random."""


class ColumnOrder:
    """Ranks columns of groups by how well the clusters at rest explain them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._of: tuple[object, object] = None, None
        """The metadata, of which each change makes another frame, and the clusters."""
        self._agreement: dict[str, float] = {}

    def of(self, columns: Iterable[str]) -> list[str]:
        """Return the columns, those first that the clusters explain best.

        What they do not explain at all, and measurements, stays in its order; while a
        run moves the clusters, the order stays what it was.
        """
        session, columns = self._session, list(columns)
        if session.dataset is None or session.snapshot is None:
            return columns
        obs, labels = session.dataset.obs, session.clusters.labels
        is_moving = session.state in ("preparing", "running")
        if self._of[0] is not obs or (self._of[1] is not labels and not is_moving):
            self._of, self._agreement = (obs, labels), {}
        if not is_moving:
            order = np.random.default_rng(0).permutation(len(labels))
            rows = np.sort(order[:MOST_ROWS])
            for column in columns:
                if column not in self._agreement:
                    values = obs[column].iloc[rows]
                    found = 0.0
                    if not is_continuous(values):
                        codes = as_levels(values).cat.codes.to_numpy()
                        found = explained(codes, labels[rows])
                    self._agreement[column] = round(found, 2)
        return sorted(columns, key=lambda column: -self._agreement.get(column, 0.0))


def explained(codes: NDArray[np.integer], labels: NDArray[np.integer]) -> float:
    """Return how far the cluster of a point tells its group: 0 as by chance, 1 always.

    Goodman and Kruskal's tau: by how much the chance that two points are of one group
    rises where they are of one cluster, as a share of what is possible.

    Parameters
    ----------
    codes, labels : (n,) int
        Group and cluster of each point.
    """
    pairs = pd.crosstab(labels, codes).to_numpy()
    n, sizes = max(len(codes), 1), np.maximum(pairs.sum(axis=1, keepdims=True), 1)
    by_chance = float(((pairs.sum(axis=0) / n) ** 2).sum())
    together = float((pairs**2 / sizes).sum() / n)
    return (together - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0
