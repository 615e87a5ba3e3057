"""Collapses (paper 1, Fig. 4) and heaps of real data; the way out."""

import re

import numpy as np
import pytest

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.dynamics.alarms import (
    MIN_SPREAD,
    find_alarm,
    measure_spread,
)
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import WarmStart

HEAP = np.zeros((50, 2))
WIDE = np.random.default_rng(0).uniform(0, 30, (4000, 2))


def play_digits(digits_start, **settings):
    edges, layout = digits_start
    for snapshot in play(edges, layout, Settings(**settings)):
        last = snapshot
    return last


@pytest.mark.parametrize("approximation", ["landmarks", "sampled_edges"])
def test_a_good_map_needs_no_remedy(digits_start, approximation):
    last = play_digits(digits_start, approximation=approximation)
    assert last.warning == ""
    assert not last.remedy
    assert measure_spread(last.embedding) > 4 * MIN_SPREAD


@pytest.mark.parametrize(
    ("settings", "said", "advice"),
    [
        ({"landmark_learning_rate": 0.01}, "collapsed", "the landmarks' learning rate"),
        ({"landmark_learning_rate": 300.0}, "collapsed", "landmarks' learning rate"),
        ({"learning_rate": 5.0}, "collapsed", "set the points' learning rate"),
        ({"n_landmarks": 3}, "collapsed", "set the number of landmarks"),
        ({"repulsion": 0.01}, "collapsed", "set the repulsion (lambda x N)"),
        (
            {"approximation": "sampled_landmarks", "n_landmarks": 20},
            "collapsed",
            "set the approximation and the number of landmarks",
        ),
        (
            {"landmark_learning_rate": 5.0},
            "collapsed|one heap|outside",
            "landmarks' learning",
        ),
        ({"landmark_learning_rate": 3.0}, "outside of the points", "learning rate"),
    ],
)
def test_a_map_that_says_little_is_told_with_a_way_that_leads_out(
    digits_start, settings, said, advice
):
    last = play_digits(digits_start, **settings)
    sentence, way_out = last.warning.split(": ")
    assert re.search(said, sentence)
    assert advice in way_out
    assert way_out.endswith("back to default.")
    mended = play_digits(digits_start, **{**settings, **last.remedy})
    assert mended.warning == ""
    assert measure_spread(mended.embedding) > 4 * MIN_SPREAD


def test_landmarks_that_push_nothing_may_lie_anywhere():
    away = WIDE[:50] + 90
    assert find_alarm(WIDE, Settings(), away)
    assert not find_alarm(WIDE, Settings())
    assert not find_alarm(WIDE, Settings(approximation="mesh"), away)
    assert not find_alarm(WIDE, Settings(), WIDE[:2000])


def test_where_nothing_was_changed_the_repulsion_or_the_landmarks_are_raised():
    heap = find_alarm(HEAP, Settings())
    assert "raise the repulsion" in heap.sentence
    assert heap.remedy == {"repulsion": 900.0}
    far = find_alarm(WIDE, Settings(), WIDE[:200] + 90)
    assert "raise the number of landmarks" in far.sentence
    assert far.remedy == {"n_landmarks": 800}
    most = find_alarm(WIDE[:60], Settings(), WIDE[:60] + 90)
    assert most.sentence.endswith("choose the approximation exact.")
    assert most.remedy == {"approximation": "exact"}
    given = find_alarm(HEAP, Settings(method="given"))
    assert "choose another method" in given.sentence
    assert not given.remedy


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"repulsion": 1.0}, {"repulsion"}),
        ({"n_landmarks": 900, "approximation": "mesh"}, {"repulsion"}),
        ({"n_landmarks": 900, "learning_rate": 0.4}, {"learning_rate"}),
        ({"schedule": "paper", "learning_rate": 2.0}, {"learning_rate"}),
    ],
)
def test_only_what_was_changed_for_the_worse_goes_back(changed, named):
    assert set(find_alarm(HEAP, Settings(**changed)).remedy) == named


def test_points_that_ran_away_are_told(digits_start):
    square = np.random.default_rng(0).uniform(size=(50, 2))
    far = find_alarm(1e6 * square, Settings(), iterations_left=400)
    assert not find_alarm(square, Settings(), iterations_left=400)
    assert "run far apart" in far.sentence
    assert set(far.remedy) == {"learning_rate", "landmark_learning_rate", "repulsion"}
    with pytest.raises(InputError, match="run off the map") as told:
        play_digits(digits_start, learning_rate=1e8, max_iter=20)
    mended = {"learning_rate": 1e8, **told.value.remedy}
    assert play_digits(digits_start, **mended).warning == ""


def test_points_on_few_spots_have_no_spread_and_islands_have_wherever_they_lie():
    rng = np.random.default_rng(0)
    of = rng.integers(0, 10, 4000)
    places, inside = rng.normal(size=(10, 2)), rng.normal(size=(4000, 2))
    near, far = (measure_spread(gap * places[of] + inside) for gap in (20, 20_000))
    assert far == pytest.approx(near, rel=0.05)
    assert 4 * MIN_SPREAD < near < 20
    assert measure_spread(20 * places[of] + 0.01 * inside) < MIN_SPREAD
    assert measure_spread(places[of]) == 0
    assert measure_spread(WIDE) == pytest.approx(30 / np.sqrt(np.pi), rel=0.1)
    assert measure_spread(np.zeros((50, 3))) == 0
    assert not find_alarm(np.zeros((50, 1)), Settings())  # a line fills no plane


@pytest.mark.parametrize("gap", [30, 400])
def test_islands_far_apart_are_no_collapse_opened_or_played_on(gap):
    """As umap-learn draws groups that share no neighbours."""
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(10), 60)
    X = (9 * rng.normal(size=(10, 12))[group] + rng.normal(size=(600, 12))).astype("f4")
    around = 2 * np.pi * group / 10
    islands = gap * np.column_stack([np.cos(around), np.sin(around)])
    given = Settings(method="given", affinity="mixed")
    edges, layout = pipeline.make_edges_and_layout(
        pipeline.find_neighbors(X, given), X, given, islands + rng.normal(size=(600, 2))
    )
    *_, opened = play(edges, layout, given)
    assert opened.warning == ""
    warm = WarmStart(embedding=opened.embedding, landmarks=opened.landmarks)
    *_, last = play(edges, opened.embedding, Settings(), warm_start=warm)
    assert last.warning == ""


def test_a_map_too_wide_for_the_grid_is_told_with_the_way_out():
    grid = Settings(approximation="mesh")
    assert not find_alarm(30 * WIDE, grid)
    flung = np.vstack([WIDE, [[3_000.0, 0.0]]])
    assert not find_alarm(flung, grid)  # each part has a grid of its own
    wide = 100 * WIDE
    told = find_alarm(wide, grid)
    assert re.match(
        "The map is (2,999|3,000) wide, .* points closer than 1.5", told.sentence
    )
    assert told.remedy == {"approximation": "exact"}
    assert not find_alarm(wide, Settings(approximation="exact"))
    in_space = np.column_stack([3 * WIDE, 3 * WIDE[:, 0]])
    assert not find_alarm(in_space, grid)  # summed pair by pair
    crowd = np.tile(in_space, (6, 1))
    assert "too wide for the grid" in find_alarm(crowd, grid).sentence
    assert not find_alarm(crowd / 3, grid)
    many = np.random.default_rng(1).uniform(0, 3_000, (52_000, 2))
    assert find_alarm(many, grid).remedy == {"approximation": "landmarks"}
