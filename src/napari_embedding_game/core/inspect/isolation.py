"""Isolation: which rows have nothing like them in the data.

    isolation_i = m_i / usual_i
    usual_i = median over its neighbours j of the median over theirs, l, of m_l

with m_i the mean distance of row i to its nearest neighbours in the data, so that it
is about 1 wherever rows are as far apart as those around them are, in dense groups and
in thin ones (related to the local outlier factor of Breunig and others, 2000).  What is
usual is taken from the neighbours' neighbours, as those next to a stray row are often
at the edge of a group, and far from others themselves.

Stray rows have a large one.  No map has a right place for them, and stretch tells less
of them, as their neighbours may well lie side by side; isolation in turn tells nothing
of what a map does: ``python benchmarks/doubtful_points.py`` measures both, with
``--tried`` also what else could tell such rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.edges import N_NEAREST
from napari_embedding_game.core.graph.neighbors import NeighborGraph


def isolation(
    neighbors: NDArray[np.integer], distances: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Return the isolation of each row, (N,), 0 and more.

    It is 1 where all distances are 0, and for rows without neighbours, and infinite for
    a row that lies apart from neighbours without distances among them.

    Parameters
    ----------
    neighbors : (N, k) int
        The nearest rows in the data, the row itself left out; -1 for none.
    distances : (N, k) float
        How far they are.
    """
    is_there = neighbors >= 0
    n_there = is_there.sum(axis=1)
    mean = np.full(len(neighbors), np.nan)
    summed = np.where(is_there, distances, 0).sum(axis=1, dtype=float)
    np.divide(summed, n_there, out=mean, where=n_there > 0)
    usual = _median(_median(mean, neighbors, is_there), neighbors, is_there)
    found = np.ones(len(mean))
    with np.errstate(divide="ignore"):
        np.divide(mean, usual, out=found, where=(mean > 0) & ~np.isnan(usual))
    return found.astype(np.float32)


def isolation_of(graph: NeighborGraph) -> NDArray[np.float32]:
    """Return the isolation of each row of a graph by its nearest, (N,).

    However many neighbours an affinity asks for, ``N_NEAREST`` at most are looked at.
    """
    k = min(N_NEAREST, graph.n_neighbors)
    return isolation(graph.indices[:, :k], graph.distances[:, :k])


def _median(
    values: NDArray[np.float64],
    neighbors: NDArray[np.integer],
    is_there: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return the median over each row's neighbours, (N,); NaN where none has one."""
    theirs = np.where(is_there, values[neighbors], np.nan)
    has_value = ~np.isnan(theirs)
    if has_value.all():  # as a rule, and quicker
        found: NDArray[np.float64] = np.median(theirs, axis=1)
        return found
    found = np.full(len(values), np.nan)
    known = has_value.any(axis=1)
    found[known] = np.nanmedian(theirs[known], axis=1)
    return found
