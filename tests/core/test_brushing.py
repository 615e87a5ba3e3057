"""What a brush takes that knows the neighbours in the data."""

import numpy as np
import pytest

from napari_embedding_game.core.inspect.brushing import ELSEWHERE, Brushing, ListedBy
from napari_embedding_game.core.inspect.true_neighbors import shares

RNG = np.random.default_rng(0)
N, RADIUS = 200, 10.0
GROUP = np.repeat([0, 1], N)
ASTRAY = 5
"""Points of each group that lie in the middle of the other."""
LEFT, RIGHT = np.array([60.0, 100.0]), np.array([340.0, 100.0])


@pytest.fixture
def torn():
    places = RNG.normal(0, 12, (2 * N, 2)) + np.where(GROUP[:, None], RIGHT, LEFT)
    places[:ASTRAY] = RIGHT + RNG.normal(0, 4, (ASTRAY, 2))
    places[N : N + ASTRAY] = LEFT + RNG.normal(0, 4, (ASTRAY, 2))
    neighbors = np.array([RNG.choice(N, 10, False) + N * g for g in GROUP])
    return places.astype(np.float32), neighbors.astype(np.int32)


def spiral(middle, turns=5.0, width=35.0):
    angle = np.linspace(0, 2 * np.pi * turns, 60)
    way = np.column_stack([np.cos(angle), np.sin(angle)])
    return middle + way * (width * angle / angle[-1])[:, None]


def stroke(brush, way):
    for place in way:
        brush.paint(place)
    return brush


def test_strangers_step_out_and_true_neighbours_are_drawn_in(torn):
    places, neighbors = torn
    before = places.copy()
    # From the right, where they come from, to the left: they are not passed again.
    x = np.repeat(np.arange(100.0, 15.0, -8.0), 2)
    y = np.resize([60.0, 140.0, 140.0, 60.0], len(x))
    way = np.column_stack([x, y])
    brush = stroke(Brushing(places, neighbors, RADIUS), way)
    assert np.array_equal(places, before)
    assert not brush.chosen[GROUP == 1].any()
    under = np.linalg.norm(places - LEFT, axis=1) < 30
    assert brush.chosen[under & (GROUP == 0)].all()
    strangers = np.arange(N, N + ASTRAY)
    assert brush.stepped_out[strangers].all()
    gone = np.linspace(way[:-1], way[1:], 40, axis=1).reshape(-1, 2)
    away = np.linalg.norm(brush.places[:, None] - gone, axis=2).min(axis=1)
    outside = away > RADIUS
    assert outside[strangers].all()
    waiting = brush.drawn_in & ~brush.chosen
    assert outside[waiting].all()
    assert (np.linalg.norm(brush.places[:ASTRAY] - LEFT, axis=1) < 90).all()
    assert waiting[:ASTRAY].any()
    assert not waiting[ASTRAY:].any()
    others = np.setdiff1d(np.arange(2 * N), brush.moved)
    assert np.array_equal(brush.places[others], before[others])
    # The brush reaches who has come to its rim.
    stroke(brush, brush.places[:ASTRAY].astype(float))
    assert brush.chosen[:ASTRAY].all()
    come = brush.places[:ASTRAY] - LEFT
    assert (np.linalg.norm(come, axis=1) < 30).all()


def test_what_is_counted_move_by_move_is_counted_at_once(torn):
    places, neighbors = torn
    brush = Brushing(places, neighbors, RADIUS)
    stroke(brush, spiral(LEFT))
    stroke(brush, RNG.uniform([30, 70], [90, 130], (20, 2)))
    assert brush.chosen.any()
    assert (brush.passed & ~brush.chosen).any()
    share = shares(neighbors, brush.chosen)
    assert np.allclose(brush.share(np.arange(2 * N)), share)


def test_who_is_refused_at_first_comes_back_when_neighbours_are_painted():
    places = np.column_stack([np.arange(40.0) * 10, np.zeros(40)])
    neighbors = np.array([[i - 1, i + 1] for i in range(40)], np.int32) % 40
    neighbors[5] = 20, 21  # it belongs to what is painted later
    brush = Brushing(places, neighbors, 6.0)
    stroke(brush, [[x, 0.0] for x in range(0, 120, 5)])
    assert not brush.chosen[5]
    assert brush.chosen[[3, 4, 6, 7]].all()
    stroke(brush, [[x, 0.0] for x in range(120, 260, 5)])
    assert brush.chosen[:20].all()
    assert not brush.stepped_out.any()
    assert np.array_equal(brush.places, places)


@pytest.mark.parametrize("length", [0.0, 130.0])
def test_a_quick_mouse_leaves_nothing_out(torn, length):
    places, _ = torn
    brush = Brushing(places, None, RADIUS)
    begin = LEFT - [length / 2, 0]
    stroke(brush, [begin, begin + np.array([length, 0])])
    along = np.clip((places - begin)[:, 0], 0, length)
    away = np.linalg.norm(places - begin - np.outer(along, [1, 0]), axis=1)
    assert brush.is_plain
    assert np.array_equal(brush.chosen, away <= RADIUS)
    assert not len(brush.moved)


def test_hidden_points_are_neither_painted_nor_moved(torn):
    places, neighbors = torn
    hidden = np.arange(2 * N) % 2 == 0
    brush = Brushing(places, neighbors, RADIUS, ListedBy(neighbors), hidden)
    stroke(brush, spiral(LEFT))
    assert brush.chosen.any()
    assert not (brush.chosen | brush.drawn_in | brush.stepped_out)[hidden].any()


def test_of_whom_no_neighbours_are_known_the_brush_takes_all():
    places = RNG.uniform(0, 20, (30, 2))
    neighbors = np.full((30, 3), -1, np.int32)
    neighbors[:20] = (np.arange(20)[:, None] + [1, 2, 3]) % 20
    brush = Brushing(places, neighbors, 40.0)
    brush.paint(np.array([10.0, 10.0]))
    assert brush.chosen.all()
    places[3] = np.nan  # behind the camera
    brush = Brushing(places, None, 40.0)
    brush.paint(np.array([10.0, 10.0]))
    assert brush.chosen.sum() == 29


def test_points_near_by_are_not_drawn_in(torn):
    places, neighbors = torn
    way = spiral(LEFT, width=20.0)[::-1]
    brush = stroke(Brushing(places, neighbors, RADIUS), way)
    from_way = np.linalg.norm(places[:, None] - way, axis=2)
    waiting = brush.drawn_in & ~brush.chosen
    assert waiting[:ASTRAY].any()
    assert (from_way.min(axis=1)[waiting] > (ELSEWHERE - 0.5) * RADIUS).all()


def test_neighbours_that_come_later_correct_what_was_painted_plainly(torn):
    places, neighbors = torn
    way = spiral(LEFT)
    known = stroke(Brushing(places, neighbors, RADIUS), way)
    brush = stroke(Brushing(places, None, RADIUS), way)
    strangers = np.arange(N, N + ASTRAY)
    assert brush.chosen[strangers].all()
    brush.learn(neighbors, ListedBy(neighbors))
    assert not brush.chosen[strangers].any()
    assert brush.stepped_out[strangers].all()
    assert np.allclose(brush.share(np.arange(2 * N)), shares(neighbors, brush.chosen))
    waiting = brush.drawn_in & ~brush.chosen
    assert waiting[:ASTRAY].any()
    assert not waiting[ASTRAY:].any()
    # Those that came to the rim could not be painted there.
    differ = known.chosen != brush.chosen
    assert not (differ & ~known.drawn_in).any()


def test_of_maps_side_by_side_points_move_on_the_one_that_is_painted(torn):
    places, neighbors = torn
    right = np.float32([600, 0])
    seen = np.concatenate([places[::-1] - right, places + right])
    brush, way = Brushing(seen, neighbors, RADIUS, n_maps=2), spiral(LEFT + right)
    alone = stroke(Brushing(places + right, neighbors, RADIUS), way)
    stroke(brush, way)
    assert np.array_equal(brush.chosen, alone.chosen)
    assert (brush.moved >= 2 * N).all()
    assert np.array_equal(brush.moved - 2 * N, alone.moved)
    assert np.array_equal(brush.on_any(brush.stepped_out), alone.stepped_out)
    # What was refused there comes back where more like it are painted on the other.
    assert brush.passed[N]
    assert not brush.chosen[N]
    brush.lift()
    stroke(brush, spiral(LEFT - right))
    assert brush.chosen[N]
    assert brush.chosen[N:].mean() > 0.5


def test_points_behind_the_camera_are_left_alone(torn):
    places, neighbors = torn
    unseen = np.arange(2 * N) % 3 == 0
    unseen[N] = False
    unseen[neighbors[N]] = True  # nothing tells where a stranger is to step
    places[unseen] = np.nan
    brush = stroke(Brushing(places, neighbors, RADIUS), spiral(LEFT))
    assert brush.chosen.any()
    assert brush.stepped_out[N]
    assert not (brush.passed | brush.drawn_in | brush.stepped_out)[unseen].any()
    assert np.isfinite(brush.places[brush.moved]).all()
