import numpy as np

from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.isolation import compute_isolation


def isolation_of(X, k=10):
    graph = knn_graph(X.astype(np.float32), k)
    return compute_isolation(graph.indices, graph.distances)


def test_it_is_what_its_formula_says():
    rng = np.random.default_rng(0)
    neighbors, distances = rng.integers(30, size=(30, 5)), rng.uniform(size=(30, 5))
    mean = distances.mean(axis=1)
    usual = np.array([np.median(mean[row]) for row in neighbors])
    by_hand = [mean[i] / np.median(usual[row]) for i, row in enumerate(neighbors)]
    found = compute_isolation(neighbors, distances)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_hand, rtol=1e-6)
    np.testing.assert_allclose(
        compute_isolation(neighbors, 70 * distances), found, rtol=1e-6
    )


def test_stray_rows_come_first_in_dense_and_in_thin_groups():
    rng = np.random.default_rng(1)
    dense, thin = rng.normal(0, 1, (200, 6)), rng.normal(60, 8, (200, 6))
    strays = np.array([[8.0] * 6, [-9.0] * 6, [0, 15, 0, 15, 0, 15]])
    found = isolation_of(np.concatenate([dense, thin, strays]))
    assert found[400:].min() > found[:400].max()
    assert np.median(found[:200]) < 1.2 * np.median(found[200:400])


def test_rows_without_distances_are_as_usual():
    neighbors = np.array([[1, 2], [0, 2], [1, 0], [0, 1]])
    assert (compute_isolation(neighbors, np.zeros((4, 2))) == 1).all()
    apart = compute_isolation(np.array([[1], [2], [1]]), np.array([[5.0], [0], [0]]))
    assert apart.tolist() == [np.inf, 1, 1]


def test_a_fit_keeps_it():
    X = np.random.default_rng(2).normal(size=(80, 4))
    X[5] = 30
    model = EmbeddingGame(n_neighbors=8, n_landmarks=10, max_iter=5).fit(X)
    assert model.isolation_.argmax() == 5
    np.testing.assert_array_equal(
        model.isolation_, compute_isolation(model.knn_indices_, model.knn_distances_)
    )
