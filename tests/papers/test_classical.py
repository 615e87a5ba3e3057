"""Classical methods as starts, and the weights of LLE."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.sparse.csgraph import connected_components, laplacian
from sklearn.manifold._locally_linear import barycenter_weights

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.choices import STARTS
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.papers import eigenmaps, linear
from napari_embedding_game.papers.lle_edges import reconstruction_weights
from napari_embedding_game.papers.reproductions.metrics import neighbor_recall


@pytest.fixture(scope="module")
def some(digits):
    return digits[0][:600].astype(np.float32)


def classical_layout(name, X, n_components=2, n_neighbors=15, random_state=0):
    return STARTS[name].compute(X, n_components, n_neighbors, random_state)


def dense_pca(X):
    centred = X - X.mean(axis=0)
    return centred, np.linalg.svd(centred, full_matrices=False)[2]


# --- All of them


@pytest.mark.parametrize("name", STARTS)
def test_it_keeps_more_neighbours_than_chance_and_the_seed_decides(some, name):
    layout = classical_layout(name, some, 2, random_state=3)
    assert layout.shape == (600, 2)
    assert neighbor_recall(knn_graph(some, 10).indices, layout) > 2 * 10 / 600
    again = classical_layout(name, some, 2, random_state=3)
    np.testing.assert_array_equal(layout, again)


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_handful_of_rows(name, d, n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    layout = classical_layout(name, X, d, n_neighbors=n - 1)
    assert layout.shape == (n, d)
    assert np.isfinite(layout).all()


@pytest.mark.parametrize("name", STARTS)
def test_clouds_far_apart_and_copies_of_rows(name):
    rng = np.random.default_rng(0)
    cloud = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 4)) + 100 * cloud[:, None]
    layout = classical_layout(name, X, 2, n_neighbors=5)
    apart = np.linalg.norm(layout[cloud == 0].mean(0) - layout[cloud == 1].mean(0))
    assert apart > max(layout[cloud == c].std() for c in (0, 1))
    X = np.repeat(rng.normal(size=(20, 3)), 6, axis=0)
    assert np.isfinite(classical_layout(name, X, 2, n_neighbors=5)).all()


@pytest.mark.parametrize("name", STARTS)
def test_sparse_rows(some, name):
    # Without pixels of equal distance, of which either might be taken.
    X = some + np.random.default_rng(0).normal(size=some.shape)
    found = classical_layout(name, sparse.csr_matrix(X), 2)
    assert found.shape == (600, 2)
    if name != "pca":  # not centred
        dense = classical_layout(name, X, 2)
        angles = subspace_angles(found.astype(float), dense.astype(float))
        assert np.rad2deg(angles.max()) < 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"n_neighbors": 600}, "smaller number of neighbours"),
        ({"X": np.ones((30, 4))}, "the same"),
    ],
)
def test_what_cannot_be_used_is_told(some, change, says):
    with pytest.raises(InputError, match=says):
        classical_layout(**{"name": "le", "X": some} | change)


# --- Linear


def test_gradient_pca_is_gradient_descent_written_out(some):
    """Alg. 6 for U: T normalised steps, then the nearest orthogonal matrix."""
    centred, _ = dense_pca(some.astype(np.float64))
    scatter = centred.T @ centred
    U = np.random.default_rng(5).normal(size=(64, 3))
    U /= np.linalg.norm(U)
    for _ in range(10):
        gradient = (
            2 * scatter @ U @ U.T @ U + 2 * U @ U.T @ scatter @ U - 4 * scatter @ U
        )
        step = (1 + np.sqrt(3)) / np.sqrt(10)
        U = U - step * gradient / np.linalg.norm(gradient)
    left, _, right = np.linalg.svd(U, full_matrices=False)
    found = linear.gradient_pca(some.astype(np.float64), 3, 1, 5)
    np.testing.assert_allclose(found, centred @ left @ right, atol=1e-8)


# --- Eigenmaps

LINE = np.array([0.0, 1, 3, 7])[:, None]


def test_variable_weights_join_where_one_is_the_others_neighbour():
    X = np.random.default_rng(0).normal(size=(80, 3))
    t = 6
    scale = eigenmaps.compute_local_scales(knn_graph(X, t))
    radius = eigenmaps.count_variable_neighbors(scale, t, 80)
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    rank = np.argsort(np.argsort(distance, axis=1), axis=1)
    near = (rank > 0) & (rank <= radius[:, None])
    wanted = np.exp(-(distance**2) / (t * np.outer(scale, scale)))
    wanted[~(near | near.T)] = 0
    found = eigenmaps.variable_radius_weights(X, t).toarray()
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


@pytest.mark.parametrize("solver", ["dense", "factored", "iterated"])
def test_an_eigenmap_is_the_bottom_of_the_spectrum(some, solver, monkeypatch):
    if solver != "dense":
        monkeypatch.setattr(eigenmaps, "_DENSE_ROWS", 0)
    if solver == "iterated":
        monkeypatch.setattr(eigenmaps, "_FACTORED_ROWS", 0)
    weights = eigenmaps.heat_weights(some, 10)
    assert connected_components(weights)[0] == 1
    _, vectors = np.linalg.eigh(laplacian(weights).toarray())
    found = eigenmaps.eigenmap(weights, some, 3, 0)
    angles = subspace_angles(found, vectors[:, 1:4])
    assert np.rad2deg(angles.max()) < 0.1


# --- How neighbours make up a point


def test_weights_of_reconstruction_are_scikit_learns():
    X = np.random.default_rng(0).normal(size=(80, 4))
    indices = knn_graph(X, 6).indices.astype(np.int64)
    wanted = barycenter_weights(X, X, indices, reg=1e-3)
    found = reconstruction_weights(X, indices)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    scattered = reconstruction_weights(sparse.csr_matrix(X), indices)
    np.testing.assert_allclose(scattered, found)
    copies = reconstruction_weights(np.ones((5, 3)), np.array([[1, 2]] * 5))
    np.testing.assert_allclose(copies, 0.5, atol=1e-6)
    between = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    found = reconstruction_weights(between, np.array([[1, 2], [0, 2], [0, 1]]))
    np.testing.assert_allclose(found[0], [0.5, 0.5], atol=1e-6)
