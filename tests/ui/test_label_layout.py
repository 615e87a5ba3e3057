"""Where the names of clusters stand, and at which zoom."""

import numpy as np
import pytest

from napari_embedding_game.ui.canvas.overlays.label_layout import (
    centers,
    lifts,
    members,
    opacity,
    radii,
    zooms_with_room,
)


def test_a_name_stands_on_a_point_of_its_cluster():
    ring = np.array([[0, 0], [0, 4], [4, 4], [4, 0], [0, 1]], float)
    labels = np.zeros(5, int)
    (place,) = centers(ring, members(labels, [0]))
    assert place.tolist() in ring.tolist()
    line = np.array([[0, 0], [0, 1], [0, 2], [9, 9]], float)
    parts = members(np.array([7, 7, 7, 3]), [7, 3])
    assert centers(line, parts).tolist() == [[0, 1], [9, 9]]


def test_of_many_points_some_stand_for_all_and_no_cluster_is_lost():
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.repeat([5, 9, 1 << 20, 7], [60_000, 30_000, 150, 1]))
    ids = [1 << 20, 9, 7, 5]
    parts = members(labels, ids, 5_000)
    assert [set(labels[rows].tolist()) for rows in parts] == [{i} for i in ids]
    assert len(parts[0]) == 150  # all of a small one
    assert len(parts[2]) == 1
    assert 1_000 < len(parts[1]) < len(parts[3]) < 5_000
    places = rng.normal(size=(len(labels), 2)) + labels[:, None] % 10
    found = centers(places, parts)
    exact = [np.median(places[labels == i], axis=0) for i in ids]
    np.testing.assert_allclose(found[[1, 3]], np.array(exact)[[1, 3]], atol=0.1)
    # Every second row is of another sample: both are asked.
    turns = members(np.zeros(20_000, int), [0], 1_000)[0]
    assert 0.4 < (turns % 2).mean() < 0.6


def test_a_name_does_not_hide_a_small_cluster():
    plane = np.array([[0, 0], [0, 3], [0, -3], [4, 0], [50, 0]], float)
    labels = np.array([0, 0, 0, 0, 1])
    away = radii(plane, members(labels, [0, 1]), np.array([[0, 0], [50, 0.0]]))
    assert 3 <= away[0] <= 4
    assert away[1] == 0
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
