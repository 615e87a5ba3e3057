"""Whether the graph of neighbours hangs together.

Points of different parts attract one another through nobody: how far apart parts come
to lie on a map, and which of them side by side, is not told by the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from napari_embedding_game.core.graph.affinities import Edges


@dataclass(frozen=True, slots=True)
class GraphParts:
    """Parts of a graph of neighbours."""

    n_parts: int
    outside: float
    """Share of the points that are not in the largest part."""
    n_neighbors: int


def graph_parts(neighbors: NDArray[np.integer]) -> GraphParts:
    """Count the parts of a graph in which a neighbour links in both directions.

    Parameters
    ----------
    neighbors : (N, K) int
        Rows of each point's nearest neighbours, -1 for none.
    """
    n, k = neighbors.shape
    is_there = neighbors >= 0
    ends = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))])
    links = np.ones(int(ends[-1]), np.int8)
    return _parts(csr_array((links, neighbors[is_there], ends), shape=(n, n)), k)


def parts_of_edges(edges: Edges, n_neighbors: int) -> GraphParts:
    """Count the parts of the edges that attract the points of a map.

    Parameters
    ----------
    edges : Edges
    n_neighbors : int
        How many nearest neighbours of each row they were made of.
    """
    return _parts(edges.matrix(), n_neighbors)


def _parts(graph: Any, n_neighbors: int) -> GraphParts:
    n_parts, part = connected_components(graph, directed=False)
    n, largest = graph.shape[0], int(np.bincount(part).max(initial=0))
    return GraphParts(int(n_parts), 1 - largest / n if n else 0.0, n_neighbors)
