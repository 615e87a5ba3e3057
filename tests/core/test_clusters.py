"""Questions about merging landmarks whose answers are known beforehand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.inspect.clusters import (
    build_merge_tree,
    landmark_graph,
    split_cluster,
)


def blocks(sizes, weight_between=0.02, seed=0):
    """Full graphs of nodes with little between one and the next."""
    n = sum(sizes)
    group = np.repeat(np.arange(len(sizes)), sizes)
    weights = np.where(group[:, None] == group, 1.0, 0.0)
    weights[np.abs(group[:, None] - group) == 1] = weight_between
    noise = np.random.default_rng(seed).uniform(0.9, 1.1, (n, n))
    weights *= noise + noise.T
    return sparse.csr_matrix(weights), group


@st.composite
def trees(draw):
    n = draw(st.integers(1, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < draw(st.floats(0, 1))))
    sizes = rng.integers(0, 5, n)
    sizes[rng.integers(n)] = 3  # not all empty
    weights[sizes == 0] = 0
    weights[:, sizes == 0] = 0
    return sizes, build_merge_tree(sparse.csr_matrix(weights + weights.T), sizes)


def test_the_graph_of_landmarks_sums_the_edges_between_their_points():
    rng = np.random.default_rng(0)
    weights = sparse.random(60, 60, 0.2, random_state=rng, dtype=np.float32)
    edges = Edges.from_symmetric_matrix(weights + weights.T)
    labels = rng.integers(0, 9, 60).astype(np.int32)
    labels[labels == 4] = 5  # landmark 4 is empty
    members = np.eye(9)[labels]
    graph = landmark_graph(edges, labels, 9)
    np.testing.assert_allclose(
        graph.toarray(),
        members.T @ edges.to_csr_matrix().toarray() @ members,
        rtol=1e-6,
    )
    assert graph[4].nnz == 0
    assert graph.has_sorted_indices


@given(trees())
@settings(max_examples=60, deadline=None)
def test_one_cluster_fewer_merges_one_pair_and_keeps_all_other_numbers(case):
    sizes, tree = case
    assert tree.n_leaves == np.count_nonzero(sizes)
    for n_clusters in range(tree.n_leaves, 1, -1):
        more, fewer = tree.cut(n_clusters), tree.cut(n_clusters - 1)
        assert set(more[sizes > 0]) == set(range(n_clusters))
        changed = more != fewer
        # What changes is the newest cluster alone, and it becomes one other.
        assert (changed == (more == n_clusters - 1)).all()
        assert ((more < 0) == (sizes == 0)).all()
        (kept,) = np.unique(fewer[changed])
        points = np.bincount(more[sizes > 0], sizes[sizes > 0])
        assert points[kept] >= points[n_clusters - 1]


def test_the_cut_finds_groups_that_hang_together():
    graph, group = blocks([3, 8, 5, 12])
    clusters = build_merge_tree(graph, np.ones(len(group), int)).cut(4)
    assert len(set(zip(clusters, group, strict=True))) == 4


def test_parts_that_no_edge_connects_are_joined_last():
    graph, group = blocks([4, 9, 6], weight_between=0)
    tree = build_merge_tree(graph, np.ones(len(group), int))
    clusters = tree.cut(3)
    assert len(set(zip(clusters, group, strict=True))) == 3
    # The smallest two go first.
    assert len(set(tree.cut(2)[group != 1])) == 1


def test_a_tree_that_is_as_good_as_a_new_one_is_kept():
    rng = np.random.default_rng(0)
    weights = rng.random((40, 40)) ** 4  # hardly any structure: many equal answers
    graph = sparse.csr_matrix(weights + weights.T)
    sizes = np.ones(40, int)
    before = build_merge_tree(graph, sizes, random_state=1)
    after = build_merge_tree(graph, sizes, previous=before, random_state=2)
    np.testing.assert_array_equal(after.levels[0], before.levels[0])
    np.testing.assert_array_equal(after.cut(6), before.cut(6))
    # A tree of another number of landmarks says nothing.
    build_merge_tree(graph[:30, :30], sizes[:30], previous=before)


@given(trees(), st.data())
@settings(max_examples=40, deadline=None)
def test_a_split_cuts_inside_the_cluster_and_keeps_nothing_back(case, data):
    sizes, tree = case
    members = np.flatnonzero(np.random.default_rng(0).random(len(sizes)) < 0.7)
    n_most = np.count_nonzero(sizes[members])
    if n_most < 2:
        with pytest.raises(InputError, match="cannot be split"):
            split_cluster(tree, members, 2)
        return
    n_parts = data.draw(st.integers(2, n_most))
    parts = split_cluster(tree, members, n_parts)
    assert ((parts < 0) == (sizes[members] == 0)).all()
    assert set(parts[parts >= 0]) == set(range(n_parts))
    if n_parts > 2:  # nested: one part fewer merges two of them
        pairs = np.column_stack([parts, split_cluster(tree, members, n_parts - 1)])
        assert len(np.unique(pairs[parts >= 0], axis=0)) == n_parts
    with pytest.raises(InputError, match="choose a number of parts"):
        split_cluster(tree, members, n_most + 1)
