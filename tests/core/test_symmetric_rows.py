"""Symmetric rows of neighbours beside scipy's, and the order in which they lie."""

import numpy as np
import pytest
from scipy import sparse

from napari_embedding_game.core.graph import memory_order, symmetric_rows
from napari_embedding_game.core.graph.edges import (
    Edges,
    build_edges,
    to_directed_matrix,
)
from napari_embedding_game.core.graph.neighbors import NeighborGraph, knn_graph
from napari_embedding_game.core.graph.symmetric_rows import (
    join_directions,
    sort_entries_by_target,
)
from napari_embedding_game.core.threads import limit_threads

N, K = 700, 9


@pytest.fixture(scope="module")
def graph():
    X = np.random.default_rng(0).normal(size=(N, 4))
    return knn_graph(X, K)


@pytest.fixture
def small_chunks(monkeypatch):
    """So small that there are many chunks and ranges, shared among threads."""
    monkeypatch.setattr("napari_embedding_game.core.threads.PARALLEL_WORK", 0)


def as_matrix(rows):
    return sparse.csr_matrix(rows[::-1], shape=(N, N))


@pytest.mark.parametrize("takes_product", [False, True])
def test_both_directions_are_joined_as_by_scipy(graph, takes_product):
    weights = np.random.default_rng(1).random((N, K), np.float32)
    weights[3, 2] = 0  # as where an exponential is lost
    matrix = to_directed_matrix(graph, weights)
    wanted = matrix + matrix.T
    if takes_product:
        wanted = wanted - matrix.multiply(matrix.T)
    wanted = sparse.csr_matrix(wanted)
    wanted.sort_indices()
    wanted.eliminate_zeros()
    rows, total = join_directions(graph.indices, weights, takes_product)
    np.testing.assert_array_equal(rows[0], wanted.indptr)
    np.testing.assert_array_equal(rows[1], wanted.indices)
    np.testing.assert_allclose(rows[2], wanted.data, rtol=1e-6)
    assert total == pytest.approx(wanted.sum(), rel=1e-6)


def test_any_number_of_threads_joins_the_same_bits(graph, small_chunks):
    weights = np.random.default_rng(1).random((N, K), np.float32)
    found = []
    for n_jobs in (1, 2, 5):
        with limit_threads(n_jobs):
            found.append(join_directions(graph.indices, weights, True))
    for rows, total in found[1:]:
        assert total == found[0][1]
        for mine, other in zip(rows, found[0][0], strict=True):
            np.testing.assert_array_equal(mine, other)


def test_pairs_are_sorted_by_their_second_row(graph):
    begins, entries = sort_entries_by_target(graph.indices)
    targets = graph.indices.ravel()
    np.testing.assert_array_equal(entries, np.argsort(targets, kind="stable"))
    np.testing.assert_array_equal(np.diff(begins), np.bincount(targets, minlength=N))


def test_rows_in_another_order_are_the_same_graph(graph):
    found = build_edges(graph, "mixed")
    order = np.random.default_rng(2).permutation(N)
    wanted = found.to_csr_matrix()[order][:, order]
    moved = found.reorder_points(order).to_csr_matrix()
    assert moved.has_sorted_indices
    assert abs(moved - wanted).max() == 0


def test_points_of_a_group_and_near_groups_lie_together_in_memory(monkeypatch):
    monkeypatch.setattr(memory_order, "POINTS_PER_BIN", 70)
    rng = np.random.default_rng(0)
    layout, group = rng.random((60, 2)), rng.integers(60, size=N)
    order = memory_order.order_points_by_group(layout, group)
    assert sorted(order) == list(range(N))
    assert np.count_nonzero(np.diff(group[order])) == len(np.unique(group)) - 1
    steps = np.linalg.norm(np.diff(layout[group[order]], axis=0), axis=1)
    assert steps.sum() < 0.5 * 60 * 0.52  # at random 0.52 a step


def test_a_row_without_neighbours_that_give_it_weight_is_there():
    indices = np.array([[1], [0], [0]], np.int32)
    rows, _ = join_directions(indices, np.ones((3, 1), np.float32), False)
    wanted = [[0, 2, 1], [2, 0, 0], [1, 0, 0]]
    np.testing.assert_array_equal(Edges(*rows).to_csr_matrix().toarray(), wanted)
    alone = NeighborGraph(indices, np.ones((3, 1), np.float32), "exact")
    np.testing.assert_array_equal(build_edges(alone).to_csr_matrix().toarray(), wanted)
    moved = symmetric_rows.permute_rows(rows, np.array([2, 0, 1]))
    assert moved[0].tolist() == [0, 1, 3, 4]
