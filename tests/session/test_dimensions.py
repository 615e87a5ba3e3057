"""Two or three dimensions: the map goes on from where its points are."""

import numpy as np
import pytest

from napari_embedding_game.core.snapshot import WarmStart
from napari_embedding_game.session.warm_starts import change_n_dimensions
from worlds import play, session_of


@pytest.fixture
def played(engine, dataset):
    session = session_of(dataset, engine)
    play(session)
    return session


def test_a_map_goes_on_in_space_and_can_be_taken_back(played):
    flat, edges = played.snapshot.embedding, played.run.edges
    run = played.change_dimensions(3)
    assert run.settings.n_components == 3
    assert np.array_equal(run.warm_start.embedding[:, :2], flat)
    assert run.edges is edges  # those of the run before: nothing is searched again
    play(played, run)
    assert played.snapshot.embedding.shape == (40, 3)
    assert not played.stale
    labels = [mark.label for mark in played.timeline.marks]
    assert labels[1:] == ["2 to 3 dimensions", "Finished"]
    mark = played.timeline.marks[1]
    played.show_mark(mark.number)
    assert played.snapshot.embedding is flat
    assert played.settings.n_components == 2
    play(played, played.continue_run())
    assert played.snapshot.embedding.shape == (40, 2)


def test_a_map_in_space_becomes_flat_where_it_was():
    rng = np.random.default_rng(0)
    points = (rng.normal(size=(40, 3)) * [9, 6, 1] + [50, -20, 70]).astype(np.float32)
    layout = WarmStart(embedding=points, landmarks=points[:4])
    flat, transform = change_n_dimensions(layout, 2, 0)
    for found, where in ((flat.embedding, points), (flat.landmarks, points[:4])):
        assert np.abs(found - where[:, :2]).max() < 4
        np.testing.assert_allclose(found, transform(where), atol=1e-4)


def test_what_is_held_goes_along(played):
    rows = np.arange(5)
    played.hand.hold_points(rows)
    flat = played.snapshot.embedding[rows]
    run = played.change_dimensions(3)
    (hold,) = played.hand.forces.holds
    assert np.array_equal(hold.places, np.pad(flat, [(0, 0), (0, 1)]))
    played.stop()  # before it has moved: the flat map is as it was
    assert np.array_equal(played.hand.forces.holds[0].places, flat)
    played.settings.n_components = 2
    run = played.change_dimensions(3)
    assert run.warm_start.embedding.shape == (40, 3)
    played.change_dimensions(2)
    (hold,) = played.hand.forces.holds
    assert hold.places.shape == (5, 2)
    assert np.abs(hold.places - flat).max() < 0.5
