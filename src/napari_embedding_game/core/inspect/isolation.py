"""Compute isolation, which is large for rows that have no similar rows in the data.

    isolation_i = m_i / usual_i
    usual_i = median over neighbours j of i of the median over neighbours l of j of m_l

with m_i the mean distance of row i to its nearest neighbours.  Isolation is about 1 in
dense groups and in thin groups (it is related to the local outlier factor of Breunig
and others, 2000).  It is large for outliers, for which no map has a right position: see
:data:`snapshot.OUTLIER_ISOLATION`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.edges import N_NEAREST
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP, run_blocks


def compute_isolation(
    neighbors: NDArray[np.integer], distances: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Return the isolation of each row, (N,) float32, 0 and more.

    ``neighbors``, ``distances`` (N, k): the nearest rows of each row, nearest first;
    the first ``N_NEAREST`` are used.  Isolation is 1 where all distances are 0, and
    infinite for a row whose neighbours have distances of 0 among them.
    """
    usual = compute_median_neighbor_distances(neighbors, distances)
    return compute_isolation_of_new_rows(neighbors, distances, usual)


def compute_median_neighbor_distances(
    neighbors: NDArray[np.integer], distances: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the median over each row's neighbours of their mean distance m, (N,).

    ``neighbors``, ``distances`` (N, k): the first ``N_NEAREST`` of k are used.
    """
    mean = distances[:, :N_NEAREST].mean(axis=1, dtype=float)
    return _compute_median_of_neighbors(neighbors, mean)


def compute_isolation_of_new_rows(
    neighbors: NDArray[np.integer],
    distances: NDArray[np.floating],
    fitted_medians: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Return the isolation of new rows by their nearest fitted rows, (Q,) float32.

    ``neighbors``, ``distances`` (Q, k): nearest fitted rows, of which the first
    ``N_NEAREST`` are used; ``fitted_medians`` (N,):
    :func:`compute_median_neighbor_distances` of the fitted rows.  Isolation is 1 where
    all distances are 0, and infinite where only the usual distance is 0.
    """
    mean = distances[:, :N_NEAREST].mean(axis=1, dtype=float)
    usual = _compute_median_of_neighbors(neighbors, fitted_medians)
    ratios = np.ones(len(mean))
    with np.errstate(divide="ignore"):
        np.divide(mean, usual, out=ratios, where=mean > 0)
    return ratios.astype(np.float32)


def _compute_median_of_neighbors(
    neighbors: NDArray[np.integer], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the median of ``values`` (N,) over each row's nearest rows, (Q,).

    ``neighbors`` (Q, k): of which the first ``N_NEAREST`` are used.
    """
    nearest = np.ascontiguousarray(neighbors[:, :N_NEAREST], np.int32)
    medians, work = np.empty(len(nearest)), 8 * nearest.size
    run_blocks(_write_neighbor_medians, len(medians), work, nearest, values, medians)
    return medians


@njit(**LOOP)
def _write_neighbor_medians(begin, end, neighbors, values, out):
    """Write the median of the neighbours' ``values`` (N,) to ``out`` (Q,).

    For rows begin to end of ``neighbors`` (Q, k).
    """
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
