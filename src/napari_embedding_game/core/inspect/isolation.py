"""Isolation: which rows have nothing like them in the data.

    isolation_i = m_i / median over its neighbours j of m_j

with m_i the mean distance of row i to its nearest neighbours in the data, so that it
is about 1 wherever rows are as far apart as their neighbours are, in dense groups and
in thin ones (a simple form of the local outlier factor of Breunig and others, 2000).
Stray rows have a large one.  No map has a right place for them, and stretch tells less
of them, as their neighbours may well lie side by side; isolation in turn tells nothing
of what a map does: ``python benchmarks/doubtful_points.py`` measures both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.affinities import N_NEAREST
from napari_embedding_game.core.graph.neighbors import NeighborGraph


def isolation(
    neighbors: NDArray[np.integer], distances: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Return the isolation of each row, (N,), 0 and more.

    It is 1 where all distances are 0, and infinite for a row that lies apart from
    neighbours without distances among them.

    Parameters
    ----------
    neighbors : (N, k) int
        The nearest rows in the data, the row itself left out; -1 for none.
    distances : (N, k) float
        How far they are.
    """
    is_there = neighbors >= 0
    summed = np.where(is_there, distances, 0).sum(axis=1, dtype=float)
    mean = summed / np.maximum(is_there.sum(axis=1), 1)
    theirs = np.where(is_there, mean[neighbors], np.nan)
    usual = np.full(len(mean), np.nan)
    known = is_there.any(axis=1)
    usual[known] = _median(theirs[known], is_there[known])
    found = np.ones(len(mean))
    with np.errstate(divide="ignore"):
        np.divide(mean, usual, out=found, where=(mean > 0) & known)
    return found.astype(np.float32)


def isolation_of(graph: NeighborGraph) -> NDArray[np.float32]:
    """Return the isolation of each row of a graph by its nearest, (N,).

    However many neighbours an affinity asks for, ``N_NEAREST`` at most are looked at.
    """
    k = min(N_NEAREST, graph.n_neighbors)
    return isolation(graph.indices[:, :k], graph.distances[:, :k])


def _median(values: NDArray[np.float64], is_there: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the median of each row; where all are there, the quick way."""
    return np.median(values, axis=1) if is_there.all() else np.nanmedian(values, axis=1)
