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


def isolation(
    neighbors: NDArray[np.integer], distances: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Return the isolation of each row, (N,), 0 and more, of its nearest rows (N, k).

    It is 1 where all distances are 0, and infinite for a row apart from neighbours
    without distances among them.
    """
    neighbors = neighbors[:, :N_NEAREST]
    mean = distances[:, :N_NEAREST].mean(axis=1, dtype=float)
    usual = np.median(np.median(mean[neighbors], axis=1)[neighbors], axis=1)
    found = np.ones(len(mean))
    with np.errstate(divide="ignore"):
        np.divide(mean, usual, out=found, where=mean > 0)
    return found.astype(np.float32)
