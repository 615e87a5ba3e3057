"""Isolation: which rows have nothing like them in the data.

    isolation_i = m_i / usual_i
    usual_i = median over its neighbours j of the median over theirs, l, of m_l

with m_i the mean distance of row i to its nearest neighbours: about 1 in dense groups
and in thin ones (related to the local outlier factor of Breunig and others, 2000), and
large for outliers, for which no map has a right position: see
:data:`snapshot.OUTLIER_ISOLATION`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.edges import N_NEAREST
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP, run_blocks


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
    return _median_of_neighbors(neighbors, mean)


def isolation_of_new_rows(
    neighbors: NDArray[np.integer],
    distances: NDArray[np.floating],
    usual_distances: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Return the isolation of rows, (Q,), by their nearest of the fitted rows, (Q, k).

    ``usual_distances`` (N,): those of the fitted rows.
    """
    mean = distances[:, :N_NEAREST].mean(axis=1, dtype=float)
    usual = _median_of_neighbors(neighbors, usual_distances)
    ratios = np.ones(len(mean))
    with np.errstate(divide="ignore"):
        np.divide(mean, usual, out=ratios, where=mean > 0)
    return ratios.astype(np.float32)


def _median_of_neighbors(
    neighbors: NDArray[np.integer], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the median of the values of each row's nearest rows (Q, k), (Q,)."""
    nearest = np.ascontiguousarray(neighbors[:, :N_NEAREST], np.int32)
    medians = np.empty(len(nearest))
    run_blocks(_medians, len(medians), 8 * nearest.size, nearest, values, medians)
    return medians


@njit(**LOOP)
def _medians(begin, end, neighbors, values, out):
    """Write the median of the values of the neighbours of some rows."""
    k = neighbors.shape[1]
    row = np.empty(k)
    for i in range(begin, end):
        for p in range(k):
            value, at = values[neighbors[i, p]], p
            while at > 0 and row[at - 1] > value:
                row[at] = row[at - 1]
                at -= 1
            row[at] = value
        out[i] = 0.5 * (row[(k - 1) // 2] + row[k // 2])
