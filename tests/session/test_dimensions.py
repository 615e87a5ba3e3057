"""Two or three dimensions: the map goes on from where its points are."""

import numpy as np
import pytest

from napari_embedding_game.core.snapshot import WarmStart
from napari_embedding_game.session.steering import DEEPEST, DEPTH, redimensioned
from worlds import play, session_of


@pytest.fixture
def played(engine, dataset):
    session = session_of(dataset, engine)
    play(session)
    return session


# Layouts


@pytest.mark.parametrize("lacks", [False, True])
def test_a_new_coordinate_is_smooth_over_neighbours_and_new(make_snapshot, lacks):
    # Two rings of neighbours, one within the other on the map.
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    points = np.concatenate([ring, 3 * ring]).astype(np.float32)
    rows = np.arange(400).reshape(2, 200)
    near = np.concatenate([np.c_[np.roll(r, 1), np.roll(r, -1)] for r in rows])
    near[[0, 250]] = -1 if lacks else near[[0, 250]]
    shot = make_snapshot(n_points=400, embedding=points, neighbors=near)
    flat = WarmStart(embedding=points, landmarks=shot.landmarks, iterations_left=1)
    found = redimensioned(flat, 3, 0, shot)[0]
    again = redimensioned(flat, 3, 0, shot)[0]
    depth = found.embedding[:, 2]
    assert np.isfinite(found.embedding).all()
    assert np.array_equal(found.embedding, again.embedding)
    assert np.array_equal(found.embedding[:, :2], points)
    radius = points.std(axis=0).max()
    assert 0.4 * radius < depth.std() < 0.51 * radius
    assert np.abs(depth).max() <= DEPTH * DEEPEST * radius + 1e-5
    apart = np.abs(depth[:, None] - depth[near.clip(0)])[near[:, 0] >= 0]
    assert apart.mean() < 0.2 * depth.std()
    for axis in points.T:
        assert abs(np.corrcoef(axis, depth)[0, 1]) < 0.1
    n_landmarks = len(shot.landmarks)
    for landmark in range(n_landmarks):
        mine = depth[shot.labels == landmark]
        assert found.landmarks[landmark, 2] == pytest.approx(mine.mean(), abs=1e-4)


# Sessions


def test_a_map_goes_on_in_space_and_can_be_taken_back(played):
    flat = played.snapshot.embedding
    run = played.change_dimensions(3)
    assert run.settings.n_components == 3
    assert np.array_equal(run.warm_start.embedding[:, :2], flat)
    assert run.edges == "edges"  # those of the run before: nothing is searched again
    play(played, run)
    assert played.snapshot.embedding.shape == (40, 3)
    assert not played.stale
    labels = [mark.label for mark in played.timeline.marks]
    assert labels[1:] == ["2 to 3 dimensions", "Finished"]
    mark = played.timeline.marks[1]
    played.look_back(mark.number)
    assert played.snapshot.embedding is flat
    assert played.settings.n_components == 2
    play(played, played.play_on())
    assert played.snapshot.embedding.shape == (40, 2)


def test_what_is_held_goes_along(played):
    rows = np.arange(5)
    played.hand.hold(rows)
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
