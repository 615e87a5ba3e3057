import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import eigsh
from sklearn.datasets import load_digits

from napari_embedding_game.core.graph import start
from napari_embedding_game.core.graph.choices import STARTS
from napari_embedding_game.core.graph.edges import Edges, build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.start import make_start_layout


def blobs(sizes, distance, n_dims=4, seed=0):
    """Round clouds that lie ``distance`` apart."""
    rng = np.random.default_rng(seed)
    centres = distance * rng.normal(size=(len(sizes), n_dims))
    part = np.repeat(np.arange(len(sizes)), sizes)
    return centres[part] + rng.normal(size=(len(part), n_dims)), part


@pytest.fixture(scope="module")
def one_cloud():
    X, _ = blobs([300], 0)
    return X, build_edges(knn_graph(X, 10))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("init", ["spectral", "random", *STARTS])
def test_every_dimension_has_unit_variance_around_zero(one_cloud, init, d):
    X, found = one_cloud
    layout = make_start_layout(found, X, d, init)
    assert layout.shape == (300, d)
    assert layout.dtype == np.float32
    np.testing.assert_allclose(layout.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(layout.std(axis=0), 1, rtol=1e-5)


def grid(n=12, m=7):
    """An n x m grid: connected, and longer than wide, so its eigenvalues differ."""
    path_n, path_m = (sparse.diags([np.ones(k - 1)] * 2, [-1, 1]) for k in (n, m))
    return sparse.kronsum(path_m, path_n).tocsr().astype(np.float32)


def test_spectral_start_is_the_laplacian_eigenmap(monkeypatch):
    monkeypatch.setattr(start, "POWER_ITERATIONS", 5000)
    matrix = grid()
    normalized, root = laplacian(matrix, normed=True, return_diag=True)
    _, vectors = eigsh(normalized.astype(np.float64), k=3, sigma=-1e-3, which="LM")
    wanted = vectors[:, 1:3] / root[:, None]
    layout = make_start_layout(
        Edges.from_symmetric_matrix(matrix), np.eye(matrix.shape[0])
    )
    # The layout is the eigenvectors, each moved to mean 0 and scaled, and a jitter.
    angles = subspace_angles(wanted - wanted.mean(axis=0), layout.astype(np.float64))
    assert np.rad2deg(angles.max()) < 0.5


@pytest.mark.parametrize("d", [2, 3])
def test_components_stand_side_by_side_each_with_room_of_its_own(d):
    sizes = [200, 60, 30, 12]
    X, part = blobs(sizes, 60)
    found = build_edges(knn_graph(X, 8))
    assert connected_components(found.to_csr_matrix())[0] == len(sizes)
    layout = make_start_layout(found, X, d)
    assert np.isfinite(layout).all()
    centres = np.array([layout[part == k].mean(axis=0) for k in range(len(sizes))])
    for k in range(len(sizes)):
        own = layout[part == k]
        assert len(np.unique(np.round(own, 2), axis=0)) > len(own) / 3
        assert own.std(axis=0).max() > 0.05
        others = np.delete(centres, k, axis=0)
        assert np.linalg.norm(others - centres[k], axis=1).min() > 0.1


@pytest.mark.parametrize("init", ["spectral", "random", *STARTS])
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("n", [2, 5])
def test_a_handful_of_points_get_places_of_their_own(n, d, init):
    X = np.random.default_rng(0).normal(size=(n, 2))
    found = build_edges(knn_graph(X, min(3, n - 1)))
    layout = make_start_layout(found, X, d, init)
    assert layout.shape == (n, d)
    assert np.isfinite(layout).all()
    assert len(np.unique(layout, axis=0)) == n
    np.testing.assert_allclose(layout.std(axis=0), 1, rtol=1e-4)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_pca_start_lies_along_the_principal_components(one_cloud, kind):
    _, found = one_cloud
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) * [9, 4, 1, 0.5, 0.1]
    layout = make_start_layout(found, kind(X), 2, "pca")
    for k in range(2):
        assert abs(np.corrcoef(layout[:, k], X[:, k])[0, 1]) > 0.99


def test_groups_of_many_points_are_placed_first_and_as_smoothly():
    X = load_digits().data.astype(np.float32)
    found = build_edges(knn_graph(X, 15), "mixed")
    plain = make_start_layout(found, X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start, "_MAX_AT_ONCE", 300)
        grouped = make_start_layout(found, X)
    tension = laplacian(found.to_csr_matrix().astype(float))
    rough, smooth = (
        np.trace(places.T @ tension @ places) for places in (plain, grouped)
    )
    assert smooth < 1.1 * rough
