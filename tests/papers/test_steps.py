"""Games of optimistic players, and of rates that find themselves."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core.dynamics import play as play_module
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.graph.edges import edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.start import start_layout
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.papers.reproductions.metrics import true_energy


@pytest.fixture(scope="module")
def blobs():
    """Edges and start layout of five groups of 60 rows."""
    X, _ = make_blobs(300, 10, centers=5, random_state=1)
    found = edges(knn_graph(X, n_jobs=1), "fuzzy")
    return found, start_layout(found, X)


def last_of(blobs, n_jobs=1, frame_iterations=None, **settings):
    game = Settings(**{"n_landmarks": 40, "n_jobs": n_jobs, **settings})
    playing = play(*blobs, game, frame_iterations=frame_iterations)
    return next(snapshot for snapshot in playing if snapshot.finished)


def energy_of(blobs, snapshot):
    return true_energy(blobs[0], snapshot.embedding, 1.0)


@pytest.mark.parametrize(
    "given", [(1e-4, 1e-4), (1e-4, 30.0), (30.0, 1e-4), (30.0, 30.0)]
)
def test_rates_far_off_find_back_to_a_good_map(blobs, given):
    far = {"learning_rate": given[0], "landmark_learning_rate": given[1]}
    back = last_of(blobs, optimizer="adaptive_rates", **far)
    good = 1.02 * energy_of(blobs, last_of(blobs))
    assert not energy_of(blobs, last_of(blobs, **far)) < good
    assert not back.warning
    assert energy_of(blobs, back) < good


def test_a_rate_of_0_stays_0(blobs):
    still = last_of(blobs, optimizer="adaptive_rates", learning_rate=0.0, max_iter=20)
    np.testing.assert_array_equal(still.embedding, blobs[1])


@pytest.mark.parametrize("optimizer", ["adaptive_rates", "optimistic"])
def test_neither_threads_nor_frames_change_a_bit(blobs, monkeypatch, optimizer):
    monkeypatch.setattr("napari_embedding_game.core.threads.PARALLEL_WORK", 0)
    monkeypatch.setattr(play_module, "FRAME_SECONDS", 60.0)
    one = last_of(blobs, 1, 1, optimizer=optimizer, max_iter=40)
    two = last_of(blobs, 2, optimizer=optimizer, max_iter=40)
    plain = last_of(blobs, max_iter=40)
    np.testing.assert_array_equal(one.embedding, two.embedding)
    np.testing.assert_array_equal(one.landmarks, two.landmarks)
    assert not np.array_equal(one.embedding, plain.embedding)


def test_such_a_game_is_steered_like_any_other(blobs):
    settings = Settings(optimizer="adaptive_rates", n_landmarks=40, max_iter=60)
    game = play(*blobs, settings, frame_iterations=30)
    next(game)
    next(game)
    fewer = Settings(optimizer="adaptive_rates", n_landmarks=7, max_iter=60)
    assert len(game.send(fewer).landmarks) == 7


def test_the_estimator_knows_them_by_name(blobs):
    X = np.random.default_rng(0).normal(size=(60, 4))
    for optimizer in ("adaptive_rates", "optimistic"):
        model = EmbeddingGame(
            max_iter=30, random_state=0, method_params={"optimizer": optimizer}
        )
        assert np.isfinite(model.fit_transform(X)).all()
