"""Compile loops that no small fit runs, or read them from numba's cache."""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse

from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.objective import MeshSum
from napari_embedding_game.core.energy.pressure import pressure
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.graph.neighbors import SHORT_ROWS, knn_graph
from napari_embedding_game.core.inspect.clusters import landmark_graph, merge_tree
from napari_embedding_game.core.inspect.markers import markers


def compile_inspection() -> None:
    """Compile what is needed once there is a map: clusters and markers."""
    edges = Edges.from_matrix(np.ones((2, 2), np.float32))
    labels = np.array([0, 1], np.int32)
    merge_tree(landmark_graph(edges, labels, 2), np.ones(2, np.int64))
    values = np.ones((4, 1), np.float32)
    for X in (values, sparse.csr_matrix(values)):
        markers(X, np.arange(4) < 2, n_jobs=1)


def compile_for_many_rows() -> None:
    """Compile the searches in leaves and components, and the grid of a wide map."""
    rows = np.zeros((800, SHORT_ROWS + 1), np.float32)
    rows[:, 0] = np.arange(800)
    knn_graph(rows, 1, search="projected", n_jobs=1)
    two = np.array([[0, 1], [1, 0]], np.float32)
    forces = CompiledForces(Edges.from_matrix(two), n_jobs=1)
    objective = MeshSum(forces, 1.0)
    for width in (1.0, 100.0):  # the grid of a small map has float64
        y = torch.tensor([[0.0, 0.0], [width, 0.0]])
        objective.evaluate(y, y[:1])
        pressure(objective, y, y[:1])
