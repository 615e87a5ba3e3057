"""How far a map can be trusted, and its energy by paper 1's Eq. 1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.objective import AllPairs
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.graph.neighbors import knn_graph

MIN_OCCUPANCY = 0.08
"""Below this a map has collapsed; maps of real digits lie above 0.2."""
_CELLS, _MAX_POINTS = 64, 20_000


def neighbor_recall(
    input_neighbors: NDArray[np.integer], embedding: NDArray[np.floating]
) -> float:
    """Return the share of input neighbours (N, K) that are neighbours on the map."""
    map_neighbors = knn_graph(embedding, input_neighbors.shape[1]).indices
    kept = (input_neighbors[:, :, None] == map_neighbors[:, None, :]).any(axis=2)
    return float(kept.mean())


def knn_accuracy(
    embedding: NDArray[np.floating], labels: NDArray[Any], n_neighbors: int = 15
) -> float:
    """Return how often a point's neighbours on the map vote for its label.

    10-fold cross-validation, stratified and shuffled with a fixed seed.
    """
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    model = KNeighborsClassifier(n_neighbors)
    return float(cross_val_score(model, embedding, labels, cv=folds).mean())


def true_energy(
    edges: Edges, embedding: NDArray[np.floating], repulsion: float
) -> float:
    """Return Eq. 1 of an (N, d) map, its repulsive sum over all pairs, i = j included.

    ``repulsion`` is the paper's lambda.
    """
    precise = replace(edges, weights=edges.weights.astype(np.float64))
    y = torch.from_numpy(np.ascontiguousarray(embedding, dtype=np.float64))
    different = AllPairs(CompiledForces(precise), repulsion).energy(y, y[:1])
    return different + repulsion * len(y)


def occupancy(embedding: NDArray[np.floating]) -> float:
    """Return how many of the cells that could hold a point do hold one, 0 to 1.

    The cells are a grid of 64 x 64 over the middle 96 % of the map, at least of side 1.
    """
    plane = embedding[:: max(1, len(embedding) // _MAX_POINTS), :2]
    if plane.shape[1] == 1:
        return 1.0  # a line fills no plane
    low, high = np.percentile(plane, [2, 98], axis=0)
    scaled = (plane - low) / np.maximum(high - low, 1.0)
    cell = np.clip(scaled * _CELLS, 0, _CELLS - 1).astype(np.int64)
    return len(np.unique(cell @ [_CELLS, 1])) / min(len(plane), _CELLS**2)
