import numpy as np
from scipy import sparse
from sklearn.manifold._locally_linear import barycenter_weights

from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.papers.two_kernel import reconstruction_weights


def test_weights_are_scikit_learns():
    X = np.random.default_rng(0).normal(size=(80, 4))
    graph = knn_graph(X, 6, n_jobs=1)
    indices = graph.indices.astype(np.int64)
    wanted = barycenter_weights(X, X, indices, reg=1e-3)
    found = reconstruction_weights(X, indices)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_a_point_between_its_neighbours_is_their_mean():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    found = reconstruction_weights(X, np.array([[1, 2], [0, 2], [0, 1]]))
    np.testing.assert_allclose(found[0], [0.5, 0.5], atol=1e-6)


def test_copies_and_sparse_rows_have_weights_too():
    X = np.ones((5, 3))
    indices = np.array([[1, 2]] * 5)
    np.testing.assert_allclose(reconstruction_weights(X, indices), 0.5, atol=1e-6)
    rows = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_allclose(
        reconstruction_weights(sparse.csr_matrix(rows), indices),
        reconstruction_weights(rows, indices),
    )
