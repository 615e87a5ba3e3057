"""The loops of a first game, compiled in parts that need nothing of one another.

Each function compiles what one step of a run needs, on a few rows, in the types of a
real run; so several processes can share the parts.  ``engine.warm_up`` goes through the
steps one after the other, and finds the loops in numba's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.settings import Settings, fill_affinity

N_ROWS, N_LANDMARKS = 64, 8


def make_few_rows() -> NDArray[np.float32]:
    """Return rows (64, 8) of data."""
    return np.random.default_rng(0).normal(size=(N_ROWS, 8)).astype(np.float32)


def make_few_settings() -> Settings:
    """Return the settings of a game with few landmarks."""
    return fill_affinity(Settings(n_landmarks=N_LANDMARKS))


def list_compile_parts() -> dict[Callable[[], object], Any]:
    """Return what compiles a part, the longest first, and one of the last loops of it.

    No module is imported for it that loads torch.
    """
    from napari_embedding_game.core.energy import pair_loops
    from napari_embedding_game.core.graph import search_loops, start
    from napari_embedding_game.core.inspect import cluster_loops

    return {
        compile_game: pair_loops.edge_energy,
        compile_search: search_loops.rank_by_differences,
        compile_merging: cluster_loops._merge_within_groups,
        compile_edges: start._smooth_points,
    }


def compile_search() -> None:
    """Compile the search for neighbours in a small table."""
    from napari_embedding_game.core import pipeline

    pipeline.find_neighbors(make_few_rows(), make_few_settings())


def compile_edges() -> None:
    """Compile what weights the edges and finds the start layout."""
    from napari_embedding_game.core import pipeline
    from napari_embedding_game.core.graph.neighbors import NeighborGraph

    indices, distances = _make_ring_neighbors()
    graph = NeighborGraph(indices, distances, "exact")
    pipeline.make_edges_and_layout(graph, make_few_rows(), make_few_settings())


def compile_game() -> None:
    """Compile the first step of a game, and what its frames show."""
    edges = _make_ring_edges()
    edges.reorder_points(np.arange(N_ROWS)[::-1])  # as of many points
    _play_one_frame(edges, make_few_settings())


def compile_merging() -> None:
    """Compile what merges landmarks into clusters."""
    from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge

    labels = np.arange(N_ROWS, dtype=np.int32) * N_LANDMARKS // N_ROWS
    LandmarkMerge.from_edges(_make_ring_edges(), labels, N_LANDMARKS)


def compile_large_picture() -> None:
    """Compile what moves landmarks' points as one."""
    from napari_embedding_game.core.graph.coordinates import Coordinates

    rows = Coordinates(make_few_rows(), "euclidean", 0)
    edges = replace(_make_ring_edges(), coordinates=rows)
    _play_one_frame(edges, replace(make_few_settings(), large_picture=1.0))


def compile_markers() -> None:
    """Compile the comparison of a group of cells with the others."""
    from napari_embedding_game.core.inspect.markers import markers

    rows = make_few_rows()
    for values in (rows, sparse.csr_matrix(rows)):
        markers(values, np.arange(N_ROWS) < 2)


def _play_one_frame(edges: Any, settings: Settings) -> None:
    from napari_embedding_game.core.dynamics.play import play

    playing = play(edges, make_few_rows()[:, :2].copy(), settings, frame_iterations=1)
    next(playing)  # the start
    next(playing)
    playing.close()


def _make_ring_neighbors() -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return neighbours on a ring, nearest first, and their distances, (64, 15)."""
    steps = np.arange(1, 16)
    indices = (np.arange(N_ROWS)[:, None] + steps) % N_ROWS
    distances = np.tile(steps.astype(np.float32), (N_ROWS, 1))
    return indices.astype(np.int32), distances


def _make_ring_edges() -> Any:
    """Return edges of the ring, with what an estimate of the data adds to them."""
    from napari_embedding_game.core.graph.edges import Edges

    indices, distances = _make_ring_neighbors()
    begins = np.arange(0, indices.size + 1, indices.shape[1])
    rows = distances.ravel(), indices.ravel(), begins
    ring = sparse.csr_matrix(rows, shape=(N_ROWS, N_ROWS))
    matrix = Edges.from_matrix(ring + ring.T)
    isolation = np.ones(N_ROWS, np.float32)
    return Edges(*matrix.arrays, nearest=indices, isolation=isolation)
