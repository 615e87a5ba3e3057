import numpy as np

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.isolation import isolation
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import UNLIKE


def isolation_of(X, k=10):
    graph = knn_graph(X.astype(np.float32), k)
    return isolation(graph.indices, graph.distances)


def test_it_is_what_its_formula_says():
    rng = np.random.default_rng(0)
    neighbors, distances = rng.integers(30, size=(30, 5)), rng.uniform(size=(30, 5))
    mean = distances.mean(axis=1)
    usual = np.array([np.median(mean[row]) for row in neighbors])
    by_hand = [mean[i] / np.median(usual[row]) for i, row in enumerate(neighbors)]
    found = isolation(neighbors, distances)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_hand, rtol=1e-6)
    np.testing.assert_allclose(isolation(neighbors, 70 * distances), found, rtol=1e-6)


def test_stray_rows_come_first_in_dense_and_in_thin_groups():
    rng = np.random.default_rng(1)
    dense, thin = rng.normal(0, 1, (200, 6)), rng.normal(60, 8, (200, 6))
    strays = np.array([[8.0] * 6, [-9.0] * 6, [0, 15, 0, 15, 0, 15]])
    found = isolation_of(np.concatenate([dense, thin, strays]))
    assert found[400:].min() > found[:400].max()
    assert np.median(found[:200]) < 1.2 * np.median(found[200:400])


def test_what_is_usual_is_not_taken_from_the_edge_of_a_group_alone():
    # The last row's neighbours are at the edge, and far from others as it is.
    line = np.concatenate([np.arange(40), [49, 59, 69, 89]])[:, None]
    graph = knn_graph(line.astype(np.float32), 3)
    mean = graph.distances.mean(axis=1)
    assert mean[-1] / np.median(mean[graph.indices[-1]]) < UNLIKE
    assert isolation(graph.indices, graph.distances)[-1] > UNLIKE


def test_rows_without_neighbors_or_without_distances_are_as_usual():
    neighbors = np.array([[1, -1], [0, 2], [-1, -1], [0, 1]])
    distances = np.array([[2.0, 9], [2, 4], [9, 9], [10, 8]])
    found = isolation(neighbors, distances)
    np.testing.assert_allclose(found, [2 / 2, 3 / 3, 1, 9 / 2.5])
    assert (isolation(neighbors, np.zeros((4, 2))) == 1).all()
    apart = isolation(np.array([[1], [2], [1]]), np.array([[5.0], [0], [0]]))
    assert apart.tolist() == [np.inf, 1, 1]


def test_a_fit_keeps_it():
    X = np.random.default_rng(2).normal(size=(80, 4))
    X[5] = 30
    model = EmbeddingGame(n_neighbors=8, n_landmarks=10, max_iter=5).fit(X)
    assert model.isolation_.argmax() == 5
    np.testing.assert_array_equal(
        model.isolation_, isolation(model.knn_indices_, model.knn_distances_)
    )


def test_a_run_works_it_out_once_and_every_snapshot_has_it():
    X = np.random.default_rng(2).normal(size=(80, 5)).astype(np.float32)
    X[0] += 30.0
    settings = Settings(
        n_neighbors=40, init="pca", affinity="uniform", n_landmarks=10, max_iter=4
    )
    graph = pipeline.neighbors(X, settings)
    game = pipeline.begin(*pipeline.place(graph, X, settings), settings)
    shots = list(game)
    expected = isolation(graph.indices[:, :15], graph.distances[:, :15])
    np.testing.assert_array_equal(shots[0].isolation, expected)
    assert all(shot.isolation is shots[0].isolation for shot in shots)
    assert shots[0].unlike_count == (expected > UNLIKE).sum() >= 1
