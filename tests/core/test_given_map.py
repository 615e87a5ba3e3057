"""A map that something else has made, opened as a map of the engine."""

import numpy as np
import pytest

from napari_embedding_game.core.estimator import EmbeddingGame


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 6, (4, 8))
    return (centres[np.arange(400) % 4] + rng.normal(size=(400, 8))).astype(np.float32)


@pytest.fixture(scope="module")
def played(rows):
    return EmbeddingGame(n_landmarks=20, random_state=0).fit(rows)


def opened(rows, embedding):
    game = EmbeddingGame(n_landmarks=20, method="given", init=embedding, random_state=0)
    return game.fit(rows)


def shape_of(embedding):
    centred = embedding - embedding.mean(axis=0)
    return centred / np.linalg.norm(centred)


@pytest.mark.parametrize("unit", [0.001, 1, 400])
def test_it_keeps_its_shape_and_comes_to_the_scale_of_the_game(rows, played, unit):
    found = opened(rows, unit * played.embedding_ + [3, -5])
    assert shape_of(found.embedding_) == pytest.approx(
        shape_of(played.embedding_), abs=1e-5
    )
    ratio = found.embedding_.std() / played.embedding_.std()
    assert ratio == pytest.approx(1, abs=0.1)
    assert found.stretch_ == pytest.approx(played.stretch_, rel=1e-3)


def test_points_that_were_put_elsewhere_are_the_most_stretched(rows, played):
    moved = played.embedding_.copy()
    moved[[5, 77]] = moved[[6, 78]]
    assert set(np.argsort(opened(rows, moved).stretch_)[-2:]) == {5, 77}


def test_its_landmarks_tile_it(rows, played):
    found = opened(rows, 30 * played.embedding_)
    assert len(np.unique(found.labels_)) == 20


def test_new_rows_are_placed_on_it(rows, played):
    found = opened(rows, 30 * played.embedding_)
    placed = found.transform(rows[:40] + np.float32(0.01))
    apart = np.linalg.norm(placed - found.embedding_[:40], axis=1)
    assert np.median(apart) < 0.2 * found.embedding_.std()
