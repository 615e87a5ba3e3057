import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq

from napari_embedding_game.core.graph.choices import AFFINITIES
from napari_embedding_game.core.graph.edge_loops import (
    compute_conditional_probabilities,
    compute_fuzzy_memberships,
)
from napari_embedding_game.core.graph.edges import (
    Edges,
    build_edges,
    to_directed_matrix,
)
from napari_embedding_game.core.graph.neighbors import knn_graph

N, K = 150, 9


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6))
    X[1] = X[0]  # copies, at distance 0 of each other
    return knn_graph(X, K)


@pytest.fixture(scope="module")
def plain_graph():
    """Without copies."""
    return knn_graph(np.random.default_rng(1).normal(size=(N, 6)), K)


def dense(found):
    return found.to_csr_matrix().toarray()


@pytest.mark.parametrize("affinity", [*AFFINITIES, "inner_products"])
def test_edges_are_symmetric_and_weigh_2nk_in_all(graph, affinity):
    found = build_edges(graph, affinity, X=np.ones((N, 1)))
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
    np.testing.assert_array_equal(dense(build_edges(graph)), wanted)


def test_fuzzy_edges_are_those_of_umap(graph):
    """Its paper's Algorithm 3, and the union of both directions."""
    memberships = np.zeros((N, N))
    for i, distances in enumerate(graph.distances.astype(float)):
        beyond = np.maximum(distances - distances[distances > 0].min(), 0)

        def excess(sigma, beyond=beyond):
            return np.exp(-beyond / sigma).sum() - np.log2(K + 1)

        sigma = brentq(excess, 1e-3 * distances.mean(), 1e3)
        memberships[i, graph.indices[i]] = np.exp(-beyond / sigma)
    wanted = memberships + memberships.T - memberships * memberships.T
    wanted *= 2 * N * K / wanted.sum()
    found = dense(build_edges(graph, "fuzzy"))
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_mixed_weights_are_three_parts_membership_and_two_uniform(graph):
    memberships = np.zeros((N, N))
    found = compute_fuzzy_memberships(graph.distances)
    memberships[np.arange(N)[:, None], graph.indices] = found / found.mean()
    expected = 0.6 * (memberships + memberships.T) + 0.4 * dense(
        build_edges(graph, "uniform")
    )
    np.testing.assert_allclose(dense(build_edges(graph, "mixed")), expected, rtol=1e-5)


def test_entropic_rows_are_scikit_learns(plain_graph):
    from sklearn.manifold._utils import _binary_search_perplexity

    squared = plain_graph.distances.astype(np.float32) ** 2
    wanted = _binary_search_perplexity(squared, 3.0, 0)
    found = compute_conditional_probabilities(plain_graph.distances, 3.0)
    np.testing.assert_allclose(found, wanted, atol=5e-5)
    joint = build_edges(plain_graph, "entropic", perplexity=3.0)
    matrix = to_directed_matrix(plain_graph, found)
    joint_wanted = ((matrix + matrix.T) / (2 * N)).toarray()
    np.testing.assert_allclose(dense(joint) / joint.scale, joint_wanted, atol=1e-9)


def test_a_matrix_that_edges_are_made_of_stays_as_it_is():
    weights = sparse.csr_matrix(
        (np.ones(4), np.array([1, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 2)
    )
    edges = Edges.from_symmetric_matrix(weights)
    np.testing.assert_array_equal(edges.to_csr_matrix().toarray(), [[0, 2], [2, 0]])
    assert weights.nnz == 4
