"""Compute the edges that new rows would have had to the fitted rows in the fit.

A row that equals a fitted row takes its position: :meth:`transform.FittedMap.place`.

1. A new row gives weights to its nearest fitted rows as a fitted row does.
2. A fitted row gives a new row the weight that it gives to a neighbour at the same
   distance, and 0 beyond its farthest neighbour.
3. Weights are multiplied by 1 + (``CLOSE`` rho / d)^2, where rho is the fitted row's
   distance to its nearest neighbour, so that almost equal rows lie together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.edges import (
    compute_directed_weights,
    mix_memberships,
)
from napari_embedding_game.core.graph.neighbors import NeighborGraph
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP

CLOSE = 0.1
_ROUNDING = 1e-4
"""Largest relative difference between the distances that two searches find."""
_MAX_FACTOR = 1e12
"""Largest factor of a weight."""

Weights = NDArray[np.float32]


class NewRowEdges:
    """Edges of new rows to the fitted rows of ``graph``.

    ``affinity``: name of the affinity of the fit; ``scale``: the factor of the fitted
    edges, see :class:`~.graph.edges.Edges`; ``perplexity``: for "entropic" only.
    """

    def __init__(
        self, graph: NeighborGraph, affinity: str, scale: float, perplexity: float
    ) -> None:
        self._graph, self._affinity = graph, affinity
        self._scale, self._perplexity = scale, perplexity
        weights = compute_directed_weights(graph.distances, affinity, perplexity)
        self._mean = weights.mean()
        # (N, K): the weight that each fitted row gives to each of its neighbours.
        self._table = self._mix_if_needed(weights)

    @property
    def n_nearest(self) -> int:
        """Number M of nearest fitted rows that each new row has edges to."""
        return min(2 * self._graph.n_neighbors, self._graph.n_points)

    def compute_weights(
        self, indices: NDArray[np.int64], distances: Weights
    ) -> Weights:
        """Return the weights of new rows' edges to the nearest fitted rows, (Q, M).

        ``indices``, ``distances`` (Q, M): the nearest fitted rows, nearest first.  A
        row gives weights to its first K alone, but may get a weight from each of the M.
        """
        k, directed = self._graph.n_neighbors, np.zeros(indices.shape, np.float32)
        near = np.ascontiguousarray(distances[:, :k])
        weights = compute_directed_weights(near, self._affinity, self._perplexity)
        directed[:, :k] = self._mix_if_needed(weights)
        taken, factors = np.empty_like(directed), np.empty_like(directed)
        _write_received_weights(
            self._graph.distances, self._table, indices, distances, taken, factors
        )
        joined = directed + taken
        if self._affinity == "fuzzy":
            joined = np.float32(self._scale) * (joined - directed * taken)
        elif self._affinity == "entropic":
            joined *= np.float32(self._scale / (2 * self._graph.n_points))
        return joined * factors

    def _mix_if_needed(self, weights: Weights) -> Weights:
        """Return mixed weights for the affinity "mixed", otherwise ``weights``."""
        is_mixed = self._affinity == "mixed"
        return mix_memberships(weights, self._mean) if is_mixed else weights


@njit(**LOOP)
def _write_received_weights(
    fitted_distances, table, indices, distances, taken, factors
):
    """Write the weights that fitted rows give to new rows, and factors of close rows.

    - ``fitted_distances``, ``table`` (N, K): distances and weights of each fitted row's
      neighbours, between which weights are interpolated.
    - ``indices``, ``distances`` (Q, M): nearest fitted rows of the new rows.
    - ``taken``, ``factors`` (Q, M): the weights and factors are written to these.
    """
    last = fitted_distances.shape[1] - 1
    for q in range(indices.shape[0]):
        for m in range(indices.shape[1]):
            j, d = indices[q, m], distances[q, m]
            row = fitted_distances[j]
            if d > row[last] * (1 + _ROUNDING):
                taken[q, m] = 0
            elif d >= row[last]:
                taken[q, m] = table[j, last]
            else:
                after = np.searchsorted(row, d)
                taken[q, m] = table[j, after]
                if after > 0 and row[after] > row[after - 1]:
                    share = (row[after] - d) / (row[after] - row[after - 1])
                    taken[q, m] += share * (table[j, after - 1] - table[j, after])
            k = 0
            while k < last and row[k] <= 0:
                k += 1
            rho = row[k]
            close = CLOSE * rho
            is_far = close * close < _MAX_FACTOR * d * d
            factors[q, m] = 1 + (close / d) ** 2 if is_far else _MAX_FACTOR
