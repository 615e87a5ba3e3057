"""Where the names of clusters stand, and at which zoom."""

import numpy as np
import pytest

from napari_embedding_game.ui.canvas.label_layout import (
    lifts,
    middles,
    opacity,
    parts_of,
    zooms_with_room,
)


def test_a_name_stands_on_a_point_of_its_cluster():
    plane = np.array([[0, 0], [0, 4], [4, 4], [4, 0], [0, 1], [9, 9], [5, 5]], float)
    found, parts = parts_of(np.array([2, 2, 2, 2, 2, 7, -1]))
    assert found == [2, 7]
    places, radii = middles(plane, parts)
    assert places[0].tolist() in plane[:5].tolist()  # of a ring, too
    assert places[1].tolist() == [9, 9]
    assert 3 <= radii[0] <= 5
    assert radii[1] == 0


@pytest.mark.parametrize("first", [5, 1 << 20])
def test_of_many_points_some_stand_for_all_and_no_cluster_is_lost(first):
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.repeat([first, 9, 7], [60_000, 150, 1]))
    found, parts = parts_of(labels)
    assert found == sorted({first, 9, 7})
    assert [set(labels[rows].tolist()) for rows in parts] == [{i} for i in found]
    some = parts[found.index(first)]
    assert 900 < len(some) < 2_100
    places = rng.normal(size=(len(labels), 2))
    middle = np.median(places[labels == first], axis=0)
    at = middles(places, [some])[0][0]
    np.testing.assert_allclose(at, middle, atol=0.15)


def test_a_name_does_not_hide_a_small_cluster():
    small, middle, large = lifts(np.array([4.0, 25.0, 60.0]), np.full(3, 10.0))
    assert small == 14  # all of the name is above all of the cluster
    assert 0 < middle < 35
    assert large == 0


@pytest.fixture
def crowd():
    """Places of 60 names in a world of 400, and half their sizes in pixels."""
    rng = np.random.default_rng(0)
    widths = rng.uniform(5, 40, 60)
    return rng.uniform(0, 400, (60, 2)), np.column_stack([np.full(60, 9.0), widths])


@pytest.mark.parametrize("zoom", [0.1, 0.7, 1.0, 2.3, 9.0])
def test_names_that_are_seen_never_touch(crowd, zoom):
    places, halves = crowd
    seen = opacity(zoom, zooms_with_room(places, halves)) > 0
    assert seen.sum() > 0
    apart = np.abs(places[seen][:, None] - places[seen][None]) * zoom
    free = (apart >= halves[seen][:, None] + halves[seen][None]).any(axis=2)
    assert (free | np.eye(seen.sum(), dtype=bool)).all()


def test_who_comes_nearer_sees_ever_more(crowd):
    zooms = zooms_with_room(*crowd)
    assert zooms[0] == 0  # the most important is always seen
    strengths = np.array([opacity(z, zooms) for z in np.geomspace(0.01, 100, 80)])
    assert (np.diff(strengths, axis=0) >= 0).all()
    assert 0 < (strengths[20] == 1).sum() < (strengths[60] == 1).sum()
    assert ((strengths > 0) & (strengths < 1)).any()  # softly


def test_names_at_one_place_never_both_find_room():
    zooms = zooms_with_room(np.zeros((2, 2)), np.full((2, 2), 5.0))
    assert opacity(1e9, zooms).tolist() == [1, 0]
