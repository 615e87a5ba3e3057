import math

import numpy as np
import pytest
import torch
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.bandwidths import (
    conditional_probabilities,
    fuzzy_memberships,
)
from napari_embedding_game.core.graph.choices import affinity_names
from napari_embedding_game.core.graph.edges import Edges, directed, edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.settings import Settings, n_searched

N, K = 150, 9


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6))
    X[1] = X[0]  # copies, at distance 0 of each other
    return knn_graph(X, K, n_jobs=1)


@pytest.fixture(scope="module")
def plain_graph():
    """Without copies."""
    return knn_graph(np.random.default_rng(1).normal(size=(N, 6)), K, n_jobs=1)


def dense(found):
    return found.matrix().toarray()


@pytest.mark.parametrize("affinity", sorted(set(affinity_names()) - {"lle"}))
def test_edges_are_symmetric_and_weigh_2nk_in_all(graph, affinity):
    found = edges(graph, affinity, X=np.ones((N, 1)))
    weights = dense(found)
    np.testing.assert_allclose(weights, weights.T, rtol=1e-6)
    assert weights.sum() == pytest.approx(2 * N * K, rel=1e-5)
    assert (np.diag(weights) == 0).all()
    assert (found.weights > 0).all()
    assert found.n_points == N
    types = found.indptr.dtype, found.indices.dtype, found.weights.dtype
    assert types == (np.uint32, np.uint32, np.float32)


def test_uniform_edges_count_the_neighbour_pairs_in_both_directions(graph):
    wanted = np.zeros((N, N))
    for i in range(N):
        for j in graph.indices[i]:
            wanted[i, j] += 1
            wanted[j, i] += 1
    np.testing.assert_array_equal(dense(edges(graph)), wanted)


def test_half_the_entries_are_the_papers_sum_over_neighbour_pairs(graph, twin):
    y = torch.randn(N, 2, dtype=torch.float64)
    papers = twin.of_graph(graph).attraction(y)
    assert twin.of_edges(edges(graph)).attraction(y) == pytest.approx(float(papers))


def test_columns_are_sorted_within_rows(graph):
    found = edges(graph, "fuzzy")
    for i in range(N):
        assert (np.diff(found.indices[found.indptr[i] : found.indptr[i + 1]]) > 0).all()


@pytest.mark.filterwarnings("ignore:Tensorflow not installed:ImportWarning")
def test_fuzzy_edges_are_umap_learns(graph):
    from umap.umap_ import fuzzy_simplicial_set  # takes seconds

    # umap-learn counts a point as its own first neighbour.
    own = np.arange(N)[:, None]
    indices = np.hstack([own, graph.indices])
    distances = np.hstack([np.zeros((N, 1), np.float32), graph.distances])
    wanted, _, _ = fuzzy_simplicial_set(
        np.zeros((N, 1)), K + 1, np.random.RandomState(0), "euclidean",
        knn_indices=indices, knn_dists=distances,
    )  # fmt: skip
    wanted = wanted.toarray() * 2 * N * K / wanted.sum()
    np.testing.assert_allclose(
        dense(edges(graph, "fuzzy")), wanted, rtol=1e-3, atol=1e-4
    )


def test_memberships_of_a_row_sum_to_the_logarithm_of_its_neighbours():
    rng = np.random.default_rng(0)
    distances = np.sort(rng.uniform(1, 2, size=(40, K)), axis=1).astype(np.float32)
    memberships = fuzzy_memberships(distances)
    np.testing.assert_allclose(memberships.sum(axis=1), math.log2(K + 1), rtol=1e-4)
    assert (memberships[:, 0] == 1).all()
    assert (np.diff(memberships, axis=1) <= 0).all()


@pytest.mark.parametrize("unit", [1e-25, 1e25])
def test_memberships_do_not_depend_on_the_unit_of_the_distances(graph, unit):
    scaled = fuzzy_memberships(graph.distances * np.float32(unit))
    np.testing.assert_allclose(scaled, fuzzy_memberships(graph.distances), atol=1e-4)


@pytest.mark.parametrize(
    "distances", [np.zeros((3, 4)), np.ones((3, 4)), np.zeros((3, 1)), np.ones((3, 1))]
)
def test_memberships_of_copies_and_of_equals_are_whole(distances):
    np.testing.assert_array_equal(fuzzy_memberships(distances.astype(np.float32)), 1)


def test_a_matrix_becomes_edges_and_comes_back():
    matrix = sparse.csr_matrix(np.array([[0, 2.5, 0], [2.5, 0, 1], [0, 1, 0]]))
    found = Edges.from_matrix(matrix)
    np.testing.assert_array_equal(found.indptr, [0, 1, 3, 4])
    np.testing.assert_array_equal(found.indices, [1, 0, 2, 1])
    assert (found.matrix() != matrix).nnz == 0


def test_an_unknown_affinity_is_named(graph):
    with pytest.raises(InputError, match="'cosy'"):
        edges(graph, "cosy")


def test_mixed_weights_are_three_parts_membership_and_two_uniform(graph):
    memberships = np.zeros((N, N))
    found = fuzzy_memberships(graph.distances)
    memberships[np.arange(N)[:, None], graph.indices] = found / found.mean()
    expected = 0.6 * (memberships + memberships.T) + 0.4 * dense(
        edges(graph, "uniform")
    )
    np.testing.assert_allclose(dense(edges(graph, "mixed")), expected, rtol=1e-5)


@pytest.mark.parametrize("perplexity", [2.0, 3.0, 8.5])
def test_entropic_rows_are_gaussians_of_the_wanted_perplexity(plain_graph, perplexity):
    graph = plain_graph
    p = conditional_probabilities(graph.distances, perplexity).astype(float)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    entropy = -(p * np.log(p)).sum(axis=1)
    np.testing.assert_allclose(np.exp(entropy), perplexity, rtol=1e-3)
    # log p falls linearly with the squared distance, at one rate in each row.
    squared = graph.distances.astype(float) ** 2
    rate = np.diff(np.log(p), axis=1) / np.diff(squared, axis=1)
    np.testing.assert_allclose(rate, rate[:, :1] * np.ones(K - 1), rtol=0.02)


def test_entropic_rows_are_scikit_learns(plain_graph):
    from sklearn.manifold._utils import _binary_search_perplexity

    squared = plain_graph.distances.astype(np.float32) ** 2
    wanted = _binary_search_perplexity(squared, 3.0, 0)
    found = conditional_probabilities(plain_graph.distances, 3.0)
    np.testing.assert_allclose(found, wanted, atol=5e-5)
    joint = edges(plain_graph, "entropic", perplexity=3.0)
    matrix = directed(plain_graph, found)
    joint_wanted = ((matrix + matrix.T) / (2 * N)).toarray()
    np.testing.assert_allclose(dense(joint) / joint.scale, joint_wanted, atol=1e-9)


@pytest.mark.parametrize(
    "distances", [np.zeros((3, 4)), np.ones((3, 4)), np.array([[0.0, 0.0, 1.0, 1e20]])]
)
def test_entropic_chances_of_odd_rows_are_finite(distances):
    found = conditional_probabilities(distances.astype(np.float32), 2.0)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


def test_entropic_edges_look_at_three_perplexities_of_neighbours():
    assert n_searched(Settings(affinity="entropic"), 1000) == 90
    assert n_searched(Settings(affinity="entropic"), 50) == 49
    assert n_searched(Settings(affinity="fuzzy"), 1000) == 15


@pytest.mark.parametrize("affinity", ["lle", "inner_products"])
def test_some_edges_need_the_rows(graph, affinity):
    with pytest.raises(InputError, match=f'"{affinity}" needs the rows of the data'):
        edges(graph, affinity)


def test_edges_of_inner_products_carry_the_rows_beside_uniform_ones(graph):
    X = np.ones((N, 6))
    found = edges(graph, "inner_products", X=X)
    assert found.rows is X
    assert (found.matrix() != edges(graph, "uniform").matrix()).nnz == 0
