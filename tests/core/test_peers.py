"""Other libraries in the place of the game."""

import numpy as np
import pytest

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.energy import methods
from napari_embedding_game.core.energy.methods import METHODS, resolve
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect.metrics import knn_accuracy
from napari_embedding_game.core.types import GameSettings, StartSettings

PEERS = [name for name, member in METHODS.items() if member.library]


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 60)
    return rng.normal(size=(180, 5)).astype(np.float32) + 6 * labels[:, None], labels


def game_of(X, method, **settings):
    start = resolve(StartSettings(perplexity=10.0, n_components=2), method)
    edges, layout = pipeline.place(pipeline.neighbors(X, start), X, start)
    return pipeline.begin(edges, layout, start, GameSettings(method=method, **settings))


def need(method):
    if not METHODS[method].library:
        return
    pytest.importorskip(
        METHODS[method].library,
        reason="installed with the extra peers",
        exc_type=ImportError,
    )


@pytest.mark.filterwarnings("ignore:Tensorflow not installed:ImportWarning")
@pytest.mark.parametrize("method", PEERS)
def test_a_library_maps_and_landmarks_settle_on_it(cloud, method):
    need(method)
    X, labels = cloud
    snapshots = list(game_of(X, method, n_landmarks=20))
    last = snapshots[-1]
    assert last.finished
    assert not any(snapshot.finished for snapshot in snapshots[:-1])
    assert knn_accuracy(last.embedding, labels) > 0.95
    assert len(np.unique(last.labels)) > 15
    assert all(np.isfinite(snapshot.energy) for snapshot in snapshots)
    # The points stand still while the landmarks settle.
    laid_out = snapshots[-2].embedding
    np.testing.assert_array_equal(last.embedding, laid_out)
    assert [s.iteration for s in snapshots] == sorted(s.iteration for s in snapshots)


MOVED = [name for name, member in METHODS.items() if member.moved_by]


@pytest.mark.parametrize("method", MOVED)
@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"strength": 7.0}, "cannot be steered"),
        ({"strength": -7.0}, "repulsion .* above 0"),
        ({"n_landmarks": 0}, "number of landmarks"),
        ({"learning_rate": -1.0}, "learning rate"),
        ({"schedule": "x"}, "schedule"),
        ({"approximation": "x"}, "approximation must be one of"),
        ({"approximation": "sampled_landmarks"}, "not defined for sampled_landmarks"),
        ({"update": "x"}, "update"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_moves(
    cloud, method, setting, sentence
):
    need(method)
    with pytest.raises(InputError, match=sentence):
        next(game_of(cloud[0], method, **setting))


@pytest.mark.parametrize("method", PEERS)
def test_edges_that_push_are_not_for_a_library(cloud, method):
    start = StartSettings(affinity="lle", random_state=0)
    edges, layout = pipeline.place(pipeline.neighbors(cloud[0], start), cloud[0], start)
    with pytest.raises(InputError, match="cannot be played with the affinity 'lle'"):
        next(pipeline.begin(edges, layout, start, GameSettings(method=method)))


@pytest.mark.parametrize("method", MOVED)
def test_pressure_is_not_defined_where_the_game_moves_nothing(cloud, method):
    """It is the slope of our energy, which these methods do not lower."""
    need(method)
    assert not METHODS[method].has_pressure
    for snapshot in game_of(cloud[0], method):
        assert np.isnan(snapshot.pressure).all()
    assert snapshot.finished
    assert not snapshot.has_pressure
    assert np.isnan(snapshot.pressured_share)


def test_opentsne_is_seen_to_move_and_can_be_left(cloud):
    need("opentsne")
    game = game_of(cloud[0], "opentsne")
    first, second = next(game), next(game)
    assert second.iteration == 10
    assert not np.array_equal(first.embedding, second.embedding)
    game.close()


def test_a_line_has_its_nearest_landmarks(cloud):
    need("opentsne")
    start = resolve(StartSettings(perplexity=10.0, n_components=1), "opentsne")
    edges, layout = pipeline.place(pipeline.neighbors(cloud[0], start), cloud[0], start)
    first = next(pipeline.begin(edges, layout, start, GameSettings(method="opentsne")))
    apart = abs(first.embedding - first.landmarks.T)
    np.testing.assert_array_equal(first.labels, apart.argmin(axis=1))


def test_a_library_that_is_missing_is_named_with_the_way_to_get_it(cloud, monkeypatch):
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"openTSNE .* pip install"):
        next(game_of(cloud[0], "opentsne"))


def test_opentsne_says_that_it_has_two_dimensions(cloud):
    need("opentsne")
    start = resolve(StartSettings(perplexity=10.0, n_components=3), "opentsne")
    edges, layout = pipeline.place(pipeline.neighbors(cloud[0], start), cloud[0], start)
    with pytest.raises(InputError, match="2 dimensions"):
        next(pipeline.begin(edges, layout, start, GameSettings(method="opentsne")))
