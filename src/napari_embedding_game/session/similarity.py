"""How similar the rows of the data are to the selected ones."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.session.quality import GIVEN
from napari_embedding_game.session.session import Session

BLOCK = 100_000
"""Rows that are compared at once."""


def similarity(session: Session) -> NDArray[np.float32] | None:
    """Return the share of all rows that are less similar to the selection, (N,).

    1 for the most similar row, 0 for the least.  Rows are compared with the mean of
    the selected ones, by the distance that the map was made with.  None where nothing
    is selected, or where the rows of the data are not there.
    """
    dataset, played, rows = session.dataset, session.played, session.selection.rows
    if dataset is None or played is None or not len(rows):
        return None
    if not dataset.X.shape[1] or played.start.metric == GIVEN:
        return None
    distances = _distances(dataset.X, rows, played.start.metric)
    order = np.argsort(-distances, kind="stable")
    share = np.empty(len(distances), np.float32)
    share[order] = np.linspace(0, 1, len(distances), dtype=np.float32)
    return share


def _distances(
    X: NDArray[np.floating], rows: NDArray[np.integer], metric: str
) -> NDArray[np.floating]:
    from sklearn.metrics import pairwise_distances

    middle = np.asarray(X[rows].mean(axis=0), dtype=np.float32).reshape(1, -1)
    if sp.issparse(X):
        middle = sp.csr_matrix(middle)
    parts = [
        pairwise_distances(X[i : i + BLOCK], middle, metric=metric).ravel()
        for i in range(0, X.shape[0], BLOCK)
    ]
    return np.concatenate(parts)
