"""Collapses (the paper's Fig. 4), heaps and slow points of real data; the way out."""

import numpy as np
import pytest

from napari_embedding_game.core.dynamics.alarms import (
    LEAST_OCCUPANCY,
    alarm,
    collapse_alarm,
    cover_alarm,
    far_alarm,
    occupancy,
)
from napari_embedding_game.core.dynamics.driver import play
from napari_embedding_game.core.errors import DivergenceError
from napari_embedding_game.core.types import Alarm, GameSettings


def play_digits(digits_start, **settings):
    edges, layout = digits_start
    for snapshot in play(edges, layout, GameSettings(**settings), n_jobs=1):
        last = snapshot
    return last


@pytest.mark.parametrize("approximation", ["landmarks", "sampled_edges"])
def test_a_good_map_is_not_called_collapsed(digits_start, approximation):
    last = play_digits(digits_start, approximation=approximation)
    assert last.warning == ""
    assert occupancy(last.embedding) > 1.5 * LEAST_OCCUPANCY


@pytest.mark.parametrize(
    ("settings", "advice", "followed"),
    [
        (
            {"landmark_learning_rate": 0.01},
            "raise the landmarks' learning rate above 0.3",
            {"landmark_learning_rate": 0.31},
        ),
        (
            {"landmark_learning_rate": 300.0},
            "lower the landmarks' learning rate, 300, to its default, 0.5",
            {},
        ),
        (
            {"landmark_learning_rate": 6.0},
            "lower the landmarks' learning rate, 6, to its default, 0.5",
            {},
        ),
        (
            {"learning_rate": 5.0},
            "lower the points' learning rate, 5, to its default, 0.3",
            {},
        ),
        (
            {"n_landmarks": 3},
            "raise the number of landmarks above 30",
            {"n_landmarks": 31},
        ),
        ({"strength": 0.01}, "raise the repulsion (lambda x N)", {}),
        (
            {"approximation": "sampled_landmarks", "n_landmarks": 20},
            "choose landmarks that move",
            {"n_landmarks": 31},
        ),
    ],
)
def test_a_collapse_is_told_with_a_way_that_leads_out(
    digits_start, settings, advice, followed
):
    last = play_digits(digits_start, **settings)
    assert last.warning.startswith("The points have collapsed onto a few spots: ")
    assert advice in last.warning
    assert play_digits(digits_start, **followed).warning == ""
    mended = play_digits(digits_start, **{**settings, **last.remedy})
    assert mended.warning == ""
    assert occupancy(mended.embedding) > 1.5 * LEAST_OCCUPANCY


def test_a_heap_is_told_with_a_way_that_leads_out(digits_start):
    """Fast landmarks leave no room between the points, which fill their heap."""
    heap = np.random.default_rng(0).uniform(0, 2, (4000, 2))
    assert occupancy(heap) > 0.5
    told = collapse_alarm(heap, GameSettings(landmark_learning_rate=5.0))
    assert told.sentence.startswith("The points lie in one heap")
    assert "lower the landmarks' learning rate, 5, to its default" in told.sentence
    assert dict(told.remedy) == {"landmark_learning_rate": None}
    last = play_digits(digits_start, landmark_learning_rate=5.0)
    assert dict(last.remedy) == dict(told.remedy)
    assert not collapse_alarm(5 * heap, GameSettings())


@pytest.mark.parametrize("rate", [1e-4, 1e-3, 1e-2])
def test_points_that_get_nowhere_are_told(digits_start, rate):
    last = play_digits(digits_start, learning_rate=rate)
    assert last.warning.startswith("The points are too slow")
    assert f"{rate:g}, to its default, 0.3" in last.warning
    assert dict(last.remedy) == {"learning_rate": None}
    assert last.energy > 1.5 * play_digits(digits_start).energy


def test_points_that_are_a_little_slow_are_not(digits_start):
    last = play_digits(digits_start, learning_rate=0.1)
    assert last.warning == ""
    assert last.energy < 1.05 * play_digits(digits_start).energy


def test_landmarks_that_lost_their_points_are_told():
    wide = np.random.default_rng(0).uniform(0, 30, (4000, 2))
    settings = GameSettings(landmark_learning_rate=5.0)
    few, many = np.arange(4000) % 5, np.arange(4000) % 150
    told = alarm(wide, settings, few, 200)
    assert told.sentence.startswith("195 of 200 landmarks have lost their points")
    assert dict(told.remedy) == {"landmark_learning_rate": None}
    assert not alarm(wide, settings, many, 200)
    assert not alarm(wide[:40], GameSettings(), np.arange(40) % 20, 200)  # few points
    assert not alarm(wide, settings)


def test_where_nothing_is_wrong_there_is_nothing_to_mend(digits_start):
    last = play_digits(digits_start)
    assert not last.remedy
    assert not Alarm()
    assert Alarm("something")


def test_points_that_ran_away_are_told():
    square = np.random.default_rng(0).uniform(size=(50, 2))
    assert not far_alarm(square)
    far = far_alarm(1e6 * square)
    assert "run far apart" in far.sentence
    assert set(far.remedy) == {"learning_rate", "landmark_learning_rate", "strength"}


@pytest.mark.parametrize("rate", [1.0, 1.5, 2.0])
def test_rates_at_which_the_paper_collapses_are_to_be_lowered(digits_start, rate):
    """Not the repulsion to be raised: that only feeds the landmarks that overshoot."""
    settings = GameSettings(landmark_learning_rate=rate)
    told = collapse_alarm(np.zeros((50, 2)), settings)
    assert f"lower the landmarks' learning rate, {rate:g}, to" in told.sentence
    assert dict(told.remedy) == {"landmark_learning_rate": None}


def test_a_landmark_rate_that_empties_the_landmarks_is_told_and_mended(digits_start):
    paper = {"schedule": "paper", "max_iter": 800}
    last = play_digits(digits_start, landmark_learning_rate=2.0, **paper)
    assert "lower the landmarks' learning rate, 2, to its default, 0.3" in last.warning
    assert dict(last.remedy) == {"landmark_learning_rate": None}
    assert play_digits(digits_start, **paper).warning == ""


@pytest.mark.parametrize("n_landmarks", [1, 2])
def test_one_or_two_landmarks_are_told_to_be_too_few(digits_start, n_landmarks):
    last = play_digits(digits_start, n_landmarks=n_landmarks)
    assert "raise the number of landmarks" in last.warning
    assert dict(last.remedy) == {"n_landmarks": 200}


@pytest.mark.parametrize(
    ("settings", "said", "remedy"),
    [
        (
            {"landmark_learning_rate": 3.0},
            "lie outside of the points and keep none of them apart: lower the "
            "landmarks' learning rate, 3, to its default, 0.5",
            {"landmark_learning_rate": None},
        ),
        (
            {"n_landmarks": 20},
            "the bound is far below the sum over all pairs): raise the number of "
            "landmarks to 200",
            {"n_landmarks": 200},
        ),
    ],
)
def test_landmarks_that_do_not_stand_for_the_points_are_told(
    digits_start, settings, said, remedy
):
    last = play_digits(digits_start, **settings)
    assert said in last.warning
    assert dict(last.remedy) == remedy
    assert play_digits(digits_start, **{**settings, **remedy}).warning == ""


def test_where_landmarks_push_nothing_they_may_lie_anywhere():
    wide = np.random.default_rng(0).uniform(0, 30, (4000, 2))
    away = wide[:50] + 90
    assert cover_alarm(wide, away, GameSettings())
    assert not cover_alarm(wide, away, GameSettings(approximation="mesh"))
    assert not cover_alarm(wide, wide[:2000], GameSettings())


def test_with_a_landmark_for_each_point_the_repulsion_is_to_be_lowered():
    near = np.random.default_rng(0).uniform(0, 30, (40, 2))
    told = cover_alarm(near, near + 90, GameSettings())
    assert "lower the repulsion" in told.sentence
    assert dict(told.remedy) == {"strength": None}


def test_points_that_leave_the_map_end_the_run_with_a_remedy(digits_start):
    with pytest.raises(DivergenceError, match="run off the map") as told:
        play_digits(digits_start, learning_rate=1e8, max_iter=20)
    assert set(told.value.remedy) == {"learning_rate", "landmark_learning_rate"}
    mended = {"learning_rate": 1e8, **told.value.remedy}
    assert play_digits(digits_start, **mended).warning == ""


def test_a_weak_repulsion_becomes_at_least_the_usual():
    heap = np.zeros((50, 2))
    offered = ((1.0, 300.0), (200.0, 600.0), (None, 900.0), (2_000.0, 3_000.0))
    for strength, mended in offered:
        remedy = collapse_alarm(heap, GameSettings(strength=strength)).remedy
        assert remedy == {"strength": mended}
    assert not collapse_alarm(heap, GameSettings(strength=3_000.0)).remedy


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        # as high as the landmarks' own: it had brought "raise the repulsion"
        ({"learning_rate": 0.5}, "lower the points' learning rate, 0.5, to"),
        ({"landmark_learning_rate": 0.9}, "lower the landmarks' learning rate, 0.9"),
        ({"learning_rate": 0.4, "landmark_learning_rate": 5.0}, "lower the landmarks'"),
        ({"learning_rate": 0.05, "schedule": "paper"}, "0.05, to its default, 0.03"),
        (
            {"landmark_learning_rate": 9.0, "approximation": "exact"},  # has no say
            "raise the repulsion",
        ),
        ({}, "raise the repulsion"),
    ],
)
def test_what_was_raised_is_named_first(settings, advice):
    game = GameSettings(**settings)
    assert advice in collapse_alarm(np.zeros((50, 2)), game).sentence


def test_no_alarm_before_the_repulsion_has_grown(digits_start):
    edges, layout = digits_start
    settings = GameSettings(landmark_learning_rate=0.01)
    for snapshot in play(edges, layout, settings, n_jobs=1):
        if snapshot.iteration < 250:
            assert snapshot.warning == ""


def test_occupancy_of_a_few_spots_is_low_and_of_a_square_is_high():
    rng = np.random.default_rng(0)
    square = rng.uniform(size=(4000, 2))
    spots = rng.normal(size=(10, 2))[rng.integers(0, 10, 4000)]
    assert occupancy(square) > 0.5
    assert occupancy(spots) <= 10 / 4000
    assert occupancy(np.zeros((50, 3))) == 1 / 50


@pytest.mark.parametrize("width", [1e-3, 1e-9])
def test_a_map_far_narrower_than_the_repulsion_reaches_is_one_spot(width):
    cloud = np.random.default_rng(0).normal(size=(4000, 2))
    assert occupancy(cloud) > 0.5 > 0.01 > occupancy(width * cloud)


def test_a_line_is_no_collapse():
    assert occupancy(np.zeros((50, 1))) == 1
