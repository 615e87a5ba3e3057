"""From many landmarks to few clusters, along the neighbour graph.

:func:`merge_tree` joins landmarks, small clusters of the points to which each is the
nearest (Eq. 7, :func:`objective.nearest_landmark`), two at a time, so that every
number of clusters is one cut of one tree.  It passes through four partitions of highest
modularity (Louvain) at :data:`RESOLUTIONS`; between them those two are joined that have
the most weight over that expected of their degrees (Bonald et al. 2018).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.inspect import cluster_loops as loops
from napari_embedding_game.core.inspect.merge_tree import MergeTree

RESOLUTIONS = (1.0, 0.5, 0.25, 0.125)
"""1 is modularity as it was defined; each further one expects half the weight."""
_TRIES_WITH_START, _MAX_ROUNDS = 2, 10
_CLEARLY = 1e-3
"""Modularity by which a new partition must beat the one that is shown."""

Labels = NDArray[np.integer]
_Graph = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]
"""indptr, indices and weights of compressed rows."""


def landmark_graph(edges: Edges, labels: Labels, n_landmarks: int) -> sparse.csr_matrix:
    """Return the summed weights of the edges between the points of landmarks.

    ``labels`` (N,): landmark of each point.  Returns (L, L), symmetric, float64; the
    diagonal is the weight inside, counted from both ends.
    """
    # A compiled loop would read beyond its arrays.
    assert len(labels) == edges.n_points
    assert 0 <= labels.min() <= labels.max() < n_landmarks
    groups = np.ascontiguousarray(labels, np.int32)
    rows = loops.build_group_graph(*edges.arrays, groups, n_landmarks)
    graph = sparse.csr_matrix(rows[::-1], shape=(n_landmarks, n_landmarks))
    graph.sort_indices()
    return graph


def merge_tree(
    graph: sparse.csr_matrix,
    sizes: NDArray[np.integer],
    previous: MergeTree | None = None,
    random_state: int = 0,
    n_tries: int = 10,
) -> MergeTree:
    """Join the landmarks of a graph (L, L), two at a time, until one cluster is left.

    Parts that no edge connects are joined last, the smallest first.  ``sizes`` (L,):
    points of each landmark.  ``previous``: the former tree of the same landmarks, whose
    clusters are kept where they are as good as any found now.  ``n_tries``: of which
    each partition is the best.
    """
    if previous is not None and len(previous.born) != len(sizes):
        previous = None
    levels = _levels(sparse.csr_matrix(graph), previous, random_state, n_tries)
    return MergeTree(*_joined(graph, np.array(sizes, np.float64), levels), levels)


def _joined(
    graph: sparse.csr_matrix, sizes: NDArray[np.float64], levels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Join pair after pair inside the groups of one level and the next.

    On the way to the first level the root of what is expected keeps single stray
    landmarks from standing alone while real clusters merge.  Returns ``born`` and
    ``leader`` of a :class:`MergeTree`.
    """
    born, leader = np.zeros(len(sizes), np.int64), np.arange(len(sizes))
    standing = np.flatnonzero(sizes)
    between = sparse.csr_matrix(graph, dtype=np.float64)[standing][:, standing]
    parts: _Graph = (between.indptr, between.indices, between.data)
    for step, level in enumerate(levels):
        groups = np.unique(level[standing], return_inverse=True)[1]
        joined, into, scores = loops.join_groups(
            *parts, sizes[standing], groups, groups.max() + 1, step == 0
        )
        order = np.argsort(-scores, kind="stable")
        b, a = standing[joined[order]], standing[into[order]]
        born[b], leader[b] = len(standing) - np.arange(len(b)), a
        head = leader
        while (leader[head] != head).any():
            head = leader[head]
        left, member = np.unique(head[standing], return_inverse=True)
        sizes[left] = np.bincount(member, sizes[standing])
        parts = loops.build_group_graph(*parts, member, len(left))
        standing = left
    born[standing[:1]] = 1
    return born, leader


def _levels(
    graph: sparse.csr_matrix,
    previous: MergeTree | None,
    random_state: int,
    n_tries: int,
) -> NDArray[np.int64]:
    """Return nested partitions of high modularity, and the whole as the last."""
    n_landmarks = graph.shape[0]
    levels = np.zeros((len(RESOLUTIONS) + 1, n_landmarks), np.int64)
    if graph.nnz == 0:
        return levels
    parts: _Graph = (graph.indptr, graph.indices, graph.data.astype(np.float64))
    groups = np.arange(n_landmarks)
    rng = np.random.default_rng(random_state)
    for number, resolution in enumerate(RESOLUTIONS):
        start = None if previous is None else _start(previous.levels[number], groups)
        joined = _best_partition(parts, resolution, start, rng, n_tries)
        parts = loops.build_group_graph(*parts, joined, int(joined.max()) + 1)
        groups = joined[groups]
        levels[number] = groups
    return levels


def _best_partition(
    graph: _Graph,
    resolution: float,
    start: NDArray[np.int64] | None,
    rng: np.random.Generator,
    n_tries: int,
) -> NDArray[np.int64]:
    """Return the best of several partitions; ``start`` stays unless clearly beaten."""
    tries = [] if start is None else [_louvain(graph, resolution, start, rng)]
    alone = np.arange(len(graph[0]) - 1)
    for _ in range(n_tries if start is None else _TRIES_WITH_START):
        tries.append(_louvain(graph, resolution, alone, rng))
    qualities = [loops.modularity(*graph, resolution, labels) for labels in tries]
    if start is not None:
        qualities[0] += _CLEARLY
    return tries[int(np.argmax(qualities))]


def _louvain(
    graph: _Graph,
    resolution: float,
    labels: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Move nodes, then whole communities, and begin again until nothing gains."""
    labels = labels.copy()
    for _ in range(_MAX_ROUNDS):
        before = labels.copy()
        loops.move_nodes(*graph, resolution, rng.permutation(len(labels)), labels)
        n_groups, n_nodes = loops.compact(labels), len(labels) + 1
        while n_groups < n_nodes:
            n_nodes = n_groups
            coarse = loops.build_group_graph(*graph, labels, n_groups)
            joined = np.arange(n_groups)
            loops.move_nodes(*coarse, resolution, rng.permutation(n_groups), joined)
            n_groups = loops.compact(joined)
            labels = joined[labels]
        if np.array_equal(labels, before):
            break
    return labels


def _start(earlier: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return an earlier partition of landmarks as one of groups, by most landmarks."""
    votes = np.zeros((groups.max() + 1, earlier.max() + 1), np.int64)
    np.add.at(votes, (groups, earlier), 1)
    # Numbers below the number of groups, which is what the kernel has room for.
    return np.unique(votes.argmax(axis=1), return_inverse=True)[1].astype(np.int64)


def split(tree: MergeTree, members: Labels, n_parts: int) -> NDArray[np.int32]:
    """Cut a cluster alone into parts, along the tree that it came from.

    ``members`` (M,): its landmarks, which need not be a cut's.  Returns the part of
    each, the largest branch 0; -1 where it has no points.  InputError: ``n_parts`` is
    below 2, or fewer of the landmarks have points.
    """
    n_most = int(np.count_nonzero(tree.born[members]))
    if not 2 <= n_parts <= n_most:
        choice = f"choose a number of parts from 2 to {n_most}, or "
        raise InputError(
            f"Landmarks with points in this cluster: {n_most}. It cannot be split "
            f"into {n_parts}: {choice if n_most >= 2 else ''}play with more landmarks."
        )

    def parts(n_clusters: int) -> NDArray[np.int32]:
        clusters = tree.cut(n_clusters)[members]
        used = np.unique(clusters[clusters >= 0])
        return np.where(clusters < 0, -1, used.searchsorted(clusters)).astype(np.int32)

    # The number of parts only grows with the number of clusters.
    numbers = range(1, tree.n_leaves)
    return parts(1 + bisect_left(numbers, n_parts, key=lambda n: parts(n).max() + 1))
