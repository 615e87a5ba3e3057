"""How similar the rows of the data are to the selected ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.session.quality import GIVEN

if TYPE_CHECKING:
    from napari_embedding_game.session.session import Session


BLOCK = 100_000
"""Rows that are compared at once."""


def similarity(session: Session) -> NDArray[np.float32] | None:
    """Return the share of all rows that are less similar to the selection, (N,).

    1 for the most similar row, 0 for the least.  Rows are compared with the mean of the
    selected ones, by the distance that the map was made with.  None where nothing is
    selected, or the rows of the data are not there.
    """
    rows, dataset, played = session.selection.rows, session.dataset, session.played
    if dataset is None or played is None or not len(rows):
        return None
    X, metric = dataset.X, played.settings.metric
    if not X.shape[1] or metric == GIVEN:
        return None
    return _shares(_distances(X, rows, metric))


def _shares(distances: NDArray[np.floating]) -> NDArray[np.float32]:
    order = np.argsort(-distances, kind="stable")
    share = np.empty(len(distances), np.float32)
    share[order] = np.linspace(0, 1, len(distances), dtype=np.float32)
    return share


def _distances(
    X: NDArray[np.floating], rows: NDArray[np.integer], metric: str
) -> NDArray[np.floating]:
    from sklearn.metrics import pairwise_distances

    from napari_embedding_game.core.graph.rows import centred

    X = centred(X, metric)
    middle = np.asarray(X[rows].mean(axis=0), dtype=X.dtype).reshape(1, -1)
    if sp.issparse(X):
        middle = sp.csr_matrix(middle)
    parts = [
        pairwise_distances(X[i : i + BLOCK], middle, metric=metric).ravel()
        for i in range(0, X.shape[0], BLOCK)
    ]
    return np.concatenate(parts)
