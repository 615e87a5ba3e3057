"""Isolation: which rows have nothing like them in the data.

    isolation_i = m_i / usual_i
    usual_i = median over its neighbours j of the median over theirs, l, of m_l

with m_i the mean distance of row i to its nearest neighbours: about 1 in dense groups
and in thin ones (related to the local outlier factor of Breunig and others, 2000), and
large for outliers, for which no map has a right position: see :data:`snapshot.UNLIKE`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.edges import N_NEAREST


def isolation(
    neighbors: NDArray[np.integer], distances: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Return the isolation of each row, (N,), 0 and more, of its nearest rows (N, k).

    It is 1 where all distances are 0, and infinite for a row apart from neighbours
    without distances among them.
    """
    usual = usual_distances(neighbors, distances)
    return isolation_of_new_rows(neighbors, distances, usual)


def usual_distances(
    neighbors: NDArray[np.integer], distances: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the median over the neighbours of each row of their m, (N,)."""
    mean = distances[:, :N_NEAREST].mean(axis=1, dtype=float)
    usual: NDArray[np.float64] = np.median(mean[neighbors[:, :N_NEAREST]], axis=1)
    return usual


def isolation_of_new_rows(
    neighbors: NDArray[np.integer],
    distances: NDArray[np.floating],
    usual_distances: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Return the isolation of rows, (Q,), by their nearest of the fitted rows, (Q, k).

    ``usual_distances`` (N,): those of the fitted rows.
    """
    mean = distances[:, :N_NEAREST].mean(axis=1, dtype=float)
    usual = np.median(usual_distances[neighbors[:, :N_NEAREST]], axis=1)
    ratios = np.ones(len(mean))
    with np.errstate(divide="ignore"):
        np.divide(mean, usual, out=ratios, where=mean > 0)
    return ratios.astype(np.float32)
