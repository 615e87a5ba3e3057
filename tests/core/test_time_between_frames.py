"""A driver can come to stand at any iteration, and find the same bits there."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.graph.edges import edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.settings import Settings

SETTINGS = Settings(n_landmarks=20, max_iter=60)


@pytest.fixture(scope="module")
def board():
    X, _ = make_blobs(150, 5, random_state=0)
    graph = knn_graph(X.astype(np.float32), 8)
    layout = np.random.default_rng(0).normal(size=(150, 2)).astype(np.float32)
    return edges(graph, "fuzzy"), layout


@pytest.mark.parametrize(
    "approximation", ["landmarks", "sampled_edges", "sampled_landmarks"]
)
def test_frames_do_not_change_the_game(board, approximation):
    """Steered at iteration 31, then once more after the end, in other frames."""
    first = replace(SETTINGS, approximation=approximation)
    steered = {31: replace(first, repulsion=900.0, n_landmarks=12), 60: first}

    def last(frames):
        game = play(*board, first, frame_iterations=frames)
        snapshot = next(game)
        for at in (*steered, None):
            while not (snapshot.finished if at is None else snapshot.iteration == at):
                snapshot = next(game)
            if at is not None:
                snapshot = game.send(steered[at])
        return snapshot

    one_by_one = last(1)
    in_long_frames = last(
        lambda done: min((b for b in steered if b > done), default=99) - done
    )
    assert one_by_one.iteration == in_long_frames.iteration == 90
    np.testing.assert_array_equal(one_by_one.embedding, in_long_frames.embedding)
    np.testing.assert_array_equal(one_by_one.landmarks, in_long_frames.landmarks)
    assert one_by_one.energy == in_long_frames.energy
