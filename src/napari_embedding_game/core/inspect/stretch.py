"""Stretch: which points lie far from their neighbours in the data.

A map in two dimensions cannot keep all neighbours together.  The stretch of a point
tells how far its own are, as a multiple of what is usual on the map:

    stretch_i = sqrt(exp(mean over its edges of log(1 + d_ij^2 / u^2)) - 1)

with d_ij the distance on the map, u the median of all d_ij, and the mean weighted like
the attraction.  It is 1 where all neighbours are at the usual distance, whatever the
scale of the map, and grows with those that lie elsewhere.  The logarithm is that of the
game's attraction: stretch is a point's own share of it.
``python benchmarks/doubtful_points.py`` shows how well it finds misplaced points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.inspect import stretch_loops
from napari_embedding_game.core.threads import Loops

_LOGARITHM = 8
"""What a logarithm costs, in steps of simpler loops."""
_MOST_LENGTHS = 100_000
"""Edges, evenly drawn, of which the median length is found."""


def stretch(
    edges: Edges, embedding: NDArray[np.floating], loops: Loops | None = None
) -> NDArray[np.float32]:
    """Return the stretch of each point, (N,), 0 and more.

    Parameters
    ----------
    edges : Edges
        Who is whose neighbour in the data.
    embedding : (N, d) float
    loops : Loops, optional
        Chooses between one thread and several.
    """
    indptr, indices, weights = edges.arrays
    y = np.ascontiguousarray(embedding, np.float32)
    stretched = np.zeros(len(y), np.float32)
    unit = _usual_squared_length(edges, y)
    if unit > 0.0:
        (loops or Loops(None)).run(
            stretch_loops,
            "stretch",
            _LOGARITHM * len(indices),
            *(indptr, indices, weights, y, unit, stretched),
        )
    return stretched


def _usual_squared_length(edges: Edges, y: NDArray[np.float32]) -> float:
    n_entries = len(edges.indices)
    if not n_entries:
        return 0.0
    step = -(-n_entries // _MOST_LENGTHS)
    squared = np.empty(-(-n_entries // step))
    stretch_loops.edge_lengths(edges.indptr, edges.indices, y, step, squared)
    return float(np.median(squared))
