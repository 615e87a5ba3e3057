"""Measure the quality of a map, and its energy by paper 1's Eq. 1."""

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
"""Occupancy below which a map has collapsed; maps of real digits lie above 0.2."""
_BINS, _MAX_POINTS = 64, 20_000


def neighbor_recall(
    input_neighbors: NDArray[np.integer], embedding: NDArray[np.floating]
) -> float:
    """Return the share of neighbours in the data that are neighbours on a map, 0 to 1.

    ``input_neighbors`` (N, K): neighbours in the data; ``embedding`` (N, d): the map,
    whose K nearest are compared.
    """
    map_neighbors = knn_graph(embedding, input_neighbors.shape[1]).indices
    kept = (input_neighbors[:, :, None] == map_neighbors[:, None, :]).any(axis=2)
    return float(kept.mean())


def knn_accuracy(
    embedding: NDArray[np.floating], labels: NDArray[Any], n_neighbors: int = 15
) -> float:
    """Return the accuracy of a vote of neighbours on the map (N, d) for labels (N,).

    The accuracy is a mean over 10 folds, stratified and shuffled with a fixed seed.
    """
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    model = KNeighborsClassifier(n_neighbors)
    return float(cross_val_score(model, embedding, labels, cv=folds).mean())


def all_pairs_energy(
    edges: Edges, embedding: NDArray[np.floating], repulsion: float
) -> float:
    """Return the energy of a map (N, d) by Eq. 1, over all pairs including i = j.

    ``repulsion`` is the paper's lambda.
    """
    precise = replace(edges, weights=edges.weights.astype(np.float64))
    y = torch.from_numpy(np.ascontiguousarray(embedding, dtype=np.float64))
    different = AllPairs(CompiledForces(precise), repulsion).energy(y, y[:1])
    return different + repulsion * len(y)


def occupancy(embedding: NDArray[np.floating]) -> float:
    """Return the share of occupied bins of a grid over a map (N, d), 0 to 1.

    The 64 x 64 bins cover the middle 96 % of the first two dimensions, at least a side
    of 1; points beyond count to the bins at the rim.  With fewer points than bins the
    share is of the number of points.  Of large maps about ``_MAX_POINTS`` points are
    used.  A map of one dimension has 1.
    """
    plane = embedding[:: max(1, len(embedding) // _MAX_POINTS), :2]
    if plane.shape[1] == 1:
        return 1.0  # the measure is not meant for a line
    low, high = np.percentile(plane, [2, 98], axis=0)
    scaled = (plane - low) / np.maximum(high - low, 1.0)
    bins = np.clip(scaled * _BINS, 0, _BINS - 1).astype(np.int64)
    return len(np.unique(bins @ [_BINS, 1])) / min(len(plane), _BINS**2)
