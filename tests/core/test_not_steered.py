"""Methods whose points the game does not move."""

import numpy as np
import pytest

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import Settings, resolve


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 60)
    return rng.normal(size=(180, 5)).astype(np.float32) + 6 * labels[:, None], labels


def game_of(X, method, **settings):
    chosen = resolve(Settings(method=method, perplexity=10.0, **settings))
    pipeline.check(X, chosen)
    edges, layout = pipeline.place(pipeline.neighbors(X, chosen), X, chosen)
    return play(edges, layout, chosen)


MOVED = [name for name, member in METHODS.items() if member.moved_by]


@pytest.mark.parametrize("method", MOVED)
@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"repulsion": 7.0}, "cannot be steered"),
        ({"repulsion": -7.0}, "repulsion .* above 0"),
        ({"n_landmarks": 0}, "n_landmarks must be"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"schedule": "x"}, "schedule"),
        ({"approximation": "x"}, "approximation must be"),
        (
            {"approximation": "sampled_landmarks"},
            "does not take the approximation sampled_landmarks",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_moves(
    cloud, method, setting, sentence
):
    with pytest.raises(InputError, match=sentence):
        next(game_of(cloud[0], method, **setting))


@pytest.mark.parametrize("method", MOVED)
def test_pressure_is_not_defined_where_the_game_moves_nothing(cloud, method):
    """It is the slope of our energy, which these methods do not lower."""
    assert not METHODS[method].has_pressure
    for snapshot in game_of(cloud[0], method):
        assert np.isnan(snapshot.pressure).all()
    assert snapshot.finished
    assert not snapshot.has_pressure
    assert np.isnan(snapshot.pressured_share)
