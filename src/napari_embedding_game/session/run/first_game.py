"""The loops of a first game, compiled in independent parts.

Each function compiles the loops of one step of a run, by running the step on a few rows
with the types of a real run.  Several processes can share the parts; afterwards
``engine.warm_up`` runs all steps and finds the loops in numba's cache.
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
    """Return the functions that compile a part, the slowest first.

    The value of each is one of the last loops of its part, which shows whether the part
    is compiled.  No module that loads torch is imported.
    """
    from napari_embedding_game.core.energy import pair_loops
    from napari_embedding_game.core.graph import search_loops, start
    from napari_embedding_game.core.inspect import cluster_loops

    return {
        compile_game: pair_loops.write_edge_energies,
        compile_search: search_loops.rank_by_differences,
        compile_merging: cluster_loops._merge_within_groups,
        compile_edges: start._smooth_points,
    }


def compile_search() -> None:
    """Compile the search for neighbours in a small table."""
    from napari_embedding_game.core import pipeline

    pipeline.find_neighbors(make_few_rows(), make_few_settings())


def compile_edges() -> None:
    """Compile the weighting of edges and the start layout."""
    from napari_embedding_game.core import pipeline
    from napari_embedding_game.core.graph.neighbors import NeighborGraph

    indices, distances = _make_ring_neighbors()
    graph = NeighborGraph(indices, distances, "exact")
    pipeline.make_edges_and_layout(graph, make_few_rows(), make_few_settings())


def compile_game() -> None:
    """Compile the first step of a game, and the figures of its frames."""
    edges = _make_ring_edges()
    edges.reorder_points(np.arange(N_ROWS)[::-1])  # as of many points
    _play_one_frame(edges, make_few_settings())


def compile_merging() -> None:
    """Compile the merging of landmarks into clusters."""
    from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge

    labels = np.arange(N_ROWS, dtype=np.int32) * N_LANDMARKS // N_ROWS
    LandmarkMerge.from_edges(_make_ring_edges(), labels, N_LANDMARKS)


def compile_large_picture() -> None:
    """Compile the large picture, which moves the points of a landmark as one."""
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
    """Play a game on few rows up to its first frame, of one iteration."""
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
    """Return edges of the ring, with nearest neighbours and isolation."""
    from napari_embedding_game.core.graph.edges import Edges

    indices, distances = _make_ring_neighbors()
    begins = np.arange(0, indices.size + 1, indices.shape[1])
    rows = distances.ravel(), indices.ravel(), begins
    ring = sparse.csr_matrix(rows, shape=(N_ROWS, N_ROWS))
    matrix = Edges.from_symmetric_matrix(ring + ring.T)
    isolation = np.ones(N_ROWS, np.float32)
    return Edges(*matrix.arrays, nearest=indices, isolation=isolation)
