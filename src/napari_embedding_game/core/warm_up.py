"""Compile every loop that a run needs, or read it from numba's cache."""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse

from napari_embedding_game.core.dynamics.optimizer import PlayerRMS
from napari_embedding_game.core.energy.mesh import Mesh
from napari_embedding_game.core.energy.objective import (
    Landmarks,
    MeshSum,
    Objective,
)
from napari_embedding_game.core.energy.pair_functions import Cauchy
from napari_embedding_game.core.energy.pair_sums import CompiledForces
from napari_embedding_game.core.energy.pressure import pressure
from napari_embedding_game.core.graph import affinity_kernels
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.graph.neighbors import SHORT_ROWS, knn_graph
from napari_embedding_game.core.graph.start import start_layout
from napari_embedding_game.core.inspect.clusters import landmark_graph, merge_tree
from napari_embedding_game.core.inspect.density import (
    PointPart,
    paint_parts,
    points_inside,
    points_near,
)
from napari_embedding_game.core.inspect.markers import markers
from napari_embedding_game.core.inspect.picture import paint_points
from napari_embedding_game.core.inspect.stretch import stretch


def compile_kernels() -> None:
    """Call each kernel once, on a few points, with the types of a run."""
    compile_game()
    compile_searches()
    compile_inspection()


def compile_searches() -> None:
    """Compile what neighbours of many or of long rows are found by."""
    rows = np.zeros((800, SHORT_ROWS + 1), np.float32)
    rows[:, 0] = np.arange(800)
    knn_graph(rows, 1, search="projected", n_jobs=1)


def compile_inspection() -> None:
    """Compile what is needed once there is a map: clusters and markers."""
    _compile_clusters()
    _compile_markers()
    rows = np.zeros((1, 4), np.float32)
    where = (1, 0), (1, 0), (1, 1)
    paint_points(rows[:, :2], rows[:, 0], rows, *where)
    paint_parts([PointPart(rows[:, :2], rows)], (), *where)
    points_inside(rows[:, :2], *where)
    points_near(rows[:, :2], *where, 1.0)


def compile_game() -> None:
    """Compile what is needed before anything moves."""
    y = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    affinity_kernels.fuzzy_memberships(np.ones((2, 1), np.float32))
    two = np.array([[0, 1], [1, 0]], np.float32)
    start_layout(Edges.from_matrix(two), two)
    forces = CompiledForces(Edges.from_matrix(two))
    objective = Objective(Landmarks(forces), 1.0)
    objective.evaluate(y, y[:1], value=True)
    pressure(objective, y, y[:1])
    stretch(np.array([[1], [0]], np.int32), y.numpy())
    player = torch.nn.Parameter(y.clone())
    player.grad = torch.ones_like(y)
    PlayerRMS([player], momentum=0.9).step()


def compile_grid() -> None:
    """Compile what else a large t-SNE needs."""
    two = np.array([[0, 1], [1, 0]], np.float32)
    forces = CompiledForces(Edges.from_matrix(two))
    forces.grid = Mesh(Cauchy(), 1)
    objective = Objective(MeshSum(forces, most_one_by_one=0), 1.0)
    for width in (1.0, 100.0):  # the grid of a small map has float64
        y = torch.tensor([[0.0, 0.0], [width, 0.0]])
        objective.evaluate(y, y[:1], value=True)
        pressure(objective, y, y[:1])


def _compile_clusters() -> None:
    edges = Edges.from_matrix(np.ones((2, 2), np.float32))
    labels = np.array([0, 1], np.int32)
    merge_tree(landmark_graph(edges, labels, 2), np.ones(2, np.int64))


def _compile_markers() -> None:
    values = np.ones((4, 1), np.float32)
    inside = np.arange(4) < 2
    for X in (values, sparse.csr_matrix(values)):
        markers(X, inside, n_jobs=1)
