"""Forces of a hand on the points of a game."""

import numpy as np
import pytest
import torch

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.dynamics.hand import AppliedForces
from napari_embedding_game.core.dynamics.optimizer import Player
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import Settings, fill_affinity
from napari_embedding_game.core.snapshot import (
    NO_FORCES,
    HandForces,
    Hold,
    LandmarkHold,
    Spring,
    Steer,
)

RNG = np.random.default_rng(5)
CENTERS = np.array([[0, 0, 0], [3.5, 0, 0], [20, 0, 0], [0, 20, 0]], float)
"""The second group is near the first, the others are far from both."""
X = (RNG.normal(size=(4, 60, 3)) + CENTERS[:, None]).reshape(-1, 3).astype(np.float32)
GROUP = np.repeat(np.arange(4), 60)


def played(n_components=2, frame=50, **changes):
    settings = Settings(n_components=n_components, n_neighbors=20, **changes)
    settings = fill_affinity(settings)
    edges, layout = pipeline.make_edges_and_layout(
        pipeline.find_neighbors(X, settings), X, settings
    )
    playing = play(edges, layout, settings, frame_iterations=frame)
    for snapshot in playing:
        if snapshot.finished:
            return playing, snapshot
    raise AssertionError


def to_the_end(playing, steer):
    snapshot = playing.send(steer)
    while not snapshot.finished:
        snapshot = next(playing)
    return snapshot


def middle(snapshot, group):
    return snapshot.embedding[group == GROUP].mean(axis=0)


@pytest.mark.parametrize("approximation", [None, "mesh", "sampled_edges"])
def test_a_dragged_group_arrives_neighbours_follow_and_strangers_stay(approximation):
    playing, before = played(approximation=approximation)
    away = middle(before, 0) - before.embedding.mean(axis=0)
    away *= 20 / np.linalg.norm(away)
    to = middle(before, 0) + away
    spring = Spring(rows=np.flatnonzero(GROUP == 0), place=tuple(to.tolist()))
    held = to_the_end(playing, Steer(forces=HandForces(springs=(spring,))))
    assert np.linalg.norm(middle(held, 0) - to) < 2
    other, same = played(approximation=approximation)
    assert np.array_equal(same.embedding, before.embedding)
    alone = to_the_end(other, Steer(forces=NO_FORCES))
    went = [(middle(held, k) - middle(alone, k)) @ away / 20 for k in range(4)]
    assert went[1] > 2 * max(went[2], went[3], 0.5)
    free = to_the_end(playing, Steer(forces=NO_FORCES))
    assert np.isfinite(free.embedding).all()
    playing.close()
    other.close()


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_held_points_stay_to_the_bit_while_the_others_play_on(n_components):
    playing, before = played(n_components)
    rows = np.arange(0, 240, 7)
    hold = Hold(rows=rows, places=before.embedding[rows])
    forces = HandForces(holds=(hold,))
    stronger = Settings(repulsion=2000.0)
    after = to_the_end(playing, Steer(settings=stronger, forces=forces))
    assert np.array_equal(after.embedding[rows], before.embedding[rows])
    others = np.setdiff1d(np.arange(240), rows)
    moved = np.abs(after.embedding - before.embedding).max(axis=1)
    assert (moved[others] > 0).mean() > 0.9
    playing.close()


@pytest.mark.parametrize(("n_left", "share"), [(3, 0.1), (60, 3 / 60), (10**4, 0.02)])
def test_a_spring_is_in_no_more_hurry_than_time_asks_for(n_left, share):
    player = Player(torch.tensor([[1.0, 0], [-1, 0]]))  # of radius 1, by 1 from 0
    spring = Spring(rows=np.array([0, 1]), place=(0.0, 1.0))
    forces = HandForces(springs=(spring,))
    AppliedForces(forces, player.positions, 2, None, n_left).move_players(
        player, player
    )
    assert player.positions[0].tolist() == pytest.approx([1, share])


def test_a_held_landmark_that_has_no_say_stays():
    playing, _ = played(frame=1, approximation="mesh", n_landmarks=30)
    away = LandmarkHold(number=4, place=(60.0, 60.0))
    snapshot = playing.send(Steer(forces=HandForces(landmarks=(away,))))
    while not snapshot.finished:
        assert snapshot.landmarks[4].tolist() == [60.0, 60.0]
        snapshot = playing.send(None)
    playing.close()


def test_dragged_landmarks_stay_and_points_give_way():
    """Of one place alone the game makes more or less room by chance: of four, more."""
    playing, before = played(n_landmarks=30)
    places = np.array(
        [np.median(before.embedding[g == GROUP], axis=0) for g in range(4)]
    )
    apart = np.linalg.norm(before.landmarks[:, None] - places, axis=2).min(axis=1)
    numbers = np.argsort(-apart, kind="stable")[:4]
    holds = [
        LandmarkHold(number=int(k), place=tuple(place.tolist()))
        for k, place in zip(numbers, places, strict=True)
    ]
    gone = LandmarkHold(number=99, place=(0.0, 0.0))
    after = to_the_end(playing, Steer(forces=HandForces(landmarks=(*holds, gone))))
    assert np.array_equal(after.landmarks[numbers], places)
    other, _ = played(n_landmarks=30)
    alone = to_the_end(other, Steer(forces=NO_FORCES))

    def room(snapshot):
        apart = np.linalg.norm(snapshot.embedding[:, None] - places, axis=2)
        return np.sort(apart, axis=0)[:4].mean()

    assert room(after) > 1.3 * room(alone)
    fewer = Settings(n_landmarks=3)
    assert np.isfinite(to_the_end(playing, Steer(settings=fewer)).landmarks).all()
    playing.close()
    other.close()


@pytest.mark.parametrize(
    "forces",
    [
        {"springs": (Spring(rows=np.array([240]), place=(0.0, 0.0)),)},
        {"springs": (Spring(rows=np.array([-1]), place=(0.0, 0.0)),)},
        {"springs": (Spring(rows=np.array([1]), place=(np.nan, 0.0)),)},
        {"springs": (Spring(rows=np.array([1]), place=(0.0, 0.0, 0.0)),)},
        {"holds": (Hold(rows=np.array([1]), places=np.full((1, 2), 1e9)),)},
        {"holds": (Hold(rows=np.array([1]), places=np.zeros((2, 2))),)},
        {"holds": (Hold(rows=np.array([], int), places=np.zeros((0, 2))),)},
    ],
)
def test_what_is_not_of_the_map_is_refused(forces):
    playing, _ = played(max_iter=3)
    with pytest.raises(InputError, match=r"of this map|moved to places"):
        playing.send(Steer(forces=HandForces(**forces)))
