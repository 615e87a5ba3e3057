"""Merge many landmarks into few clusters, along the neighbour graph.

A landmark is a small cluster of the points that it is nearest to (Eq. 7,
:func:`objective.find_nearest_landmarks`).  :func:`build_merge_tree` merges landmarks
two at a time, so that every number of clusters is a cut of the same tree.  The tree
passes through four partitions of highest modularity (Louvain) at :data:`RESOLUTIONS`.
Between partitions it merges the two clusters with the most weight over the weight that
their degrees lead to expect (Bonald et al. 2018).
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
"""Resolutions of modularity: 1 as it was defined, each next one expects half."""
_TRIES_WITH_START, _MAX_ROUNDS = 2, 10
_CLEARLY = 1e-3
"""Modularity that a new partition must gain over the previous partition."""

Labels = NDArray[np.integer]
_Graph = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]
"""indptr, indices and weights of compressed rows."""


def landmark_graph(edges: Edges, labels: Labels, n_landmarks: int) -> sparse.csr_matrix:
    """Return the weights of edges summed between landmarks, (L, L) float64, symmetric.

    ``labels`` (N,): landmark of each point, below L = ``n_landmarks``, else
    AssertionError.  The diagonal has the weight inside a landmark, counted from both
    ends.
    """
    # A compiled loop would read beyond its arrays.
    assert len(labels) == edges.n_points
    assert 0 <= labels.min() <= labels.max() < n_landmarks
    groups = np.ascontiguousarray(labels, np.int32)
    rows = loops.build_group_graph(*edges.arrays, groups, n_landmarks)
    graph = sparse.csr_matrix(rows[::-1], shape=(n_landmarks, n_landmarks))
    graph.sort_indices()
    return graph


def build_merge_tree(
    graph: sparse.csr_matrix,
    sizes: NDArray[np.integer],
    previous: MergeTree | None = None,
    random_state: int = 0,
    n_tries: int = 10,
) -> MergeTree:
    """Merge the landmarks of a graph, two at a time, until one cluster is left.

    - ``graph`` (L, L): see :func:`landmark_graph`.
    - ``sizes`` (L,): points of each landmark; landmarks without points are in no
      cluster.
    - ``previous``: a former tree of the same landmarks, whose partitions are kept
      unless new ones are clearly better.  A tree of another number of landmarks is
      ignored.
    - ``n_tries``: random tries for each partition, of which the best is taken; with
      ``previous`` only two.

    Clusters that no edge connects are merged last, the smallest first.
    """
    if previous is not None and len(previous.born) != len(sizes):
        previous = None
    levels = _find_nested_partitions(
        sparse.csr_matrix(graph), previous, random_state, n_tries
    )
    born, leader = _merge_by_levels(graph, np.array(sizes, np.float64), levels)
    return MergeTree(born, leader, levels)


def _merge_by_levels(
    graph: sparse.csr_matrix, sizes: NDArray[np.float64], levels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Merge landmarks pair by pair inside the groups of each level, finest level first.

    ``levels`` (n, L): nested partitions; ``sizes`` (L,) is overwritten.  Returns
    ``born`` and ``leader`` of a :class:`MergeTree`.  Inside the first level scores are
    divided by the root of the expected weight, which keeps single stray landmarks from
    staying alone while real clusters merge.
    """
    born, leader = np.zeros(len(sizes), np.int64), np.arange(len(sizes))
    standing = np.flatnonzero(sizes)
    between = sparse.csr_matrix(graph, dtype=np.float64)[standing][:, standing]
    parts: _Graph = (between.indptr, between.indices, between.data)
    for step, level in enumerate(levels):
        groups = np.unique(level[standing], return_inverse=True)[1]
        joined, into, scores = loops.merge_within_groups(
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


def _find_nested_partitions(
    graph: sparse.csr_matrix,
    previous: MergeTree | None,
    random_state: int,
    n_tries: int,
) -> NDArray[np.int64]:
    """Return nested partitions of high modularity, (5, L), finest first.

    One partition for each of ``RESOLUTIONS``, then a single cluster of all landmarks.
    A graph without edges has a single cluster in all of them.
    """
    n_landmarks = graph.shape[0]
    levels = np.zeros((len(RESOLUTIONS) + 1, n_landmarks), np.int64)
    if graph.nnz == 0:
        return levels
    parts: _Graph = (graph.indptr, graph.indices, graph.data.astype(np.float64))
    groups = np.arange(n_landmarks)
    rng = np.random.default_rng(random_state)
    for number, resolution in enumerate(RESOLUTIONS):
        start = None
        if previous is not None:
            start = _translate_partition(previous.levels[number], groups)
        joined = _find_best_partition(parts, resolution, start, rng, n_tries)
        parts = loops.build_group_graph(*parts, joined, int(joined.max()) + 1)
        groups = joined[groups]
        levels[number] = groups
    return levels


def _find_best_partition(
    graph: _Graph,
    resolution: float,
    start: NDArray[np.int64] | None,
    rng: np.random.Generator,
    n_tries: int,
) -> NDArray[np.int64]:
    """Return the partition of highest modularity among several random tries.

    Without ``start`` there are ``n_tries`` tries.  With it there are two, and a try
    from ``start``, which is preferred unless another gains ``_CLEARLY`` more
    modularity.
    """
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
    """Return a partition (n,) by Louvain's method, beginning at ``labels`` (n,).

    Nodes are moved one by one, then whole communities, each in random order, until
    nothing changes or ``_MAX_ROUNDS`` are over.  ``labels`` is not changed.
    """
    labels = labels.copy()
    for _ in range(_MAX_ROUNDS):
        before = labels.copy()
        loops.move_nodes(*graph, resolution, rng.permutation(len(labels)), labels)
        n_groups, n_nodes = loops.renumber_labels(labels), len(labels) + 1
        while n_groups < n_nodes:
            n_nodes = n_groups
            coarse = loops.build_group_graph(*graph, labels, n_groups)
            joined = np.arange(n_groups)
            loops.move_nodes(*coarse, resolution, rng.permutation(n_groups), joined)
            n_groups = loops.renumber_labels(joined)
            labels = joined[labels]
        if np.array_equal(labels, before):
            break
    return labels


def _translate_partition(
    earlier: NDArray[np.int64], groups: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return an earlier partition of landmarks as a partition of groups (G,).

    Each group gets the earlier cluster of most of its landmarks, of equal numbers the
    lowest.  Clusters are renumbered from 0.  ``earlier``, ``groups`` (L,): earlier
    cluster and present group of each landmark.
    """
    votes = np.zeros((groups.max() + 1, earlier.max() + 1), np.int64)
    np.add.at(votes, (groups, earlier), 1)
    # Renumbered below the number of groups, as loops have room for no more.
    return np.unique(votes.argmax(axis=1), return_inverse=True)[1].astype(np.int64)


def split_cluster(tree: MergeTree, members: Labels, n_parts: int) -> NDArray[np.int32]:
    """Split a cluster into ``n_parts`` parts along its merge tree.

    ``members`` (M,): landmarks of the cluster, which need not be a cluster of a cut.
    Returns the part of each landmark (M,), numbered from 0 in the order in which cuts
    of the tree split them off; -1 for landmarks without points.

    InputError: ``n_parts`` is below 2 or above the number of landmarks with points.
    """
    n_most = int(np.count_nonzero(tree.born[members]))
    if not 2 <= n_parts <= n_most:
        choice = f"choose a number of parts from 2 to {n_most}, or "
        raise InputError(
            f"Landmarks with points in this cluster: {n_most}. It cannot be split "
            f"into {n_parts}: {choice if n_most >= 2 else ''}play with more landmarks."
        )

    def parts_at(n_clusters: int) -> NDArray[np.int32]:
        """Return the part of each member (M,) in the cut into ``n_clusters``, or -1."""
        clusters = tree.cut(n_clusters)[members]
        used = np.unique(clusters[clusters >= 0])
        return np.where(clusters < 0, -1, used.searchsorted(clusters)).astype(np.int32)

    # The number of parts never falls as the number of clusters grows.
    numbers = range(1, tree.n_leaves)
    at = bisect_left(numbers, n_parts, key=lambda n: parts_at(n).max() + 1)
    return parts_at(1 + at)
