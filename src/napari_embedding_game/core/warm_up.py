"""Compile every loop that a run needs, or read it from numba's cache."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from napari_embedding_game.core.energy import game_kernels
from napari_embedding_game.core.graph import affinity_kernels
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.inspect.clusters import landmark_graph, merge_tree
from napari_embedding_game.core.inspect.markers import markers
from napari_embedding_game.core.threads import PARALLEL


def compile_kernels() -> None:
    """Call each kernel once, on a few points, with the types of a run."""
    compile_game()
    compile_inspection()


def compile_inspection() -> None:
    """Compile what is needed once there is a map: clusters and markers."""
    _compile_clusters()
    _compile_markers()


def compile_game() -> None:
    """Compile what is needed before anything moves."""
    y = np.zeros((2, 2), np.float32)
    z = np.zeros((2, 1), np.float32)
    indptr = np.array([0, 1, 2], np.uint32)
    indices = np.array([1, 0], np.uint32)
    weights = np.ones(2, np.float32)
    rows = (indptr, indices, weights, y)
    labels, sums = np.zeros(2, np.int32), np.zeros(1)
    pull = np.zeros((1, 2, 1), np.float32)
    affinity_kernels.fuzzy_memberships(np.ones((2, 1), np.float32))
    game_kernels.landmark_sum(z, z.copy())
    game_kernels.landmark_pressure(*rows, z, 1.0, 0.0, labels, np.zeros(2, np.float32))
    for kind in ("serial", "parallel"):
        forces = getattr(game_kernels, f"forces_{kind}")
        with PARALLEL:
            forces(*rows, z, y.copy(), y.copy(), pull, sums)
            getattr(game_kernels, f"edge_energy_{kind}")(*rows, sums)


def _compile_clusters() -> None:
    edges = Edges.from_matrix(np.ones((2, 2), np.float32))
    labels = np.array([0, 1], np.int32)
    merge_tree(landmark_graph(edges, labels, 2), np.ones(2, np.int64))


def _compile_markers() -> None:
    values = np.ones((4, 1), np.float32)
    inside = np.arange(4) < 2
    for X in (values, sparse.csr_matrix(values)):
        markers(X, inside, n_jobs=1)
