"""The figures of the embedding game's paper, on 8 x 8 digits and by hand."""

import numpy as np
import pytest

from napari_embedding_game.core.dynamics import memory_order
from napari_embedding_game.papers.reproductions import (
    game_fig2,
    game_fig3,
    game_fig4,
    game_fig5,
    game_fig6,
    sampling,
)
from napari_embedding_game.papers.reproductions.frame import Inputs, reproduce
from napari_embedding_game.papers.reproductions.runs import draw_rows, looks, view
from napari_embedding_game.papers.reproductions.table import find


def quick(module, data, folder):
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    return reproduce(find(name), Inputs(data, quick=True), folder)


def test_landmarks_tile_and_their_members_are_shown(data, tmp_path):
    facts = quick(game_fig2, data, tmp_path)
    (row,) = facts["tables"][0]["rows"]
    assert facts["tables"][0]["title"].startswith("After 300 iterations")
    assert row["N"] == 400
    assert row["lambda N"] == 70
    assert row["majority"] > 2 * row["of all"]
    facts = quick(game_fig3, data, tmp_path)
    overall, clusters = (table["rows"] for table in facts["tables"])
    assert overall[0]["landmarks with points"] <= 20
    assert len(clusters) == game_fig3.N_CLUSTERS
    assert all(row["points"] > 0 for row in clusters)


def test_landmarks_that_are_too_fast_make_a_collapse(data, tmp_path):
    facts = quick(game_fig4, data, tmp_path)
    assert "here 600 random ones" in facts["notes"][0]
    assert "hundred times lower" not in facts["notes"][2]
    rows = {row["eta_z"]: row for row in facts["tables"][0]["rows"]}
    assert rows[30.0]["distinct"] < 0.5 * rows[0.3]["distinct"]
    assert rows[30.0]["true energy (Eq. 1)"] > rows[0.3]["true energy (Eq. 1)"]


@pytest.mark.parametrize("way", sampling.WAYS)
def test_what_is_metered_is_what_is_played_whatever_the_order(data, monkeypatch, way):
    """Of 20,000 points on a game keeps the points in an order of its own."""
    monkeypatch.setattr(memory_order, "FEWEST", 10)
    monkeypatch.setattr(memory_order, "CELL", 30)
    played = []

    def noted(*arguments):
        for snapshot in looks(*arguments):
            played.append(snapshot)
            yield snapshot

    monkeypatch.setattr(sampling, "looks", noted)
    found = sampling.follow(Inputs(data), 300, way, 10, [40])
    assert played[-1].finished  # only then does it tell its energy
    assert found["approximate"][-1] == pytest.approx(played[-1].energy, rel=1e-6)


def test_sampled_landmarks_are_the_worst(data, tmp_path):
    facts = quick(game_fig5, data, tmp_path)
    assert "here 300 random ones" in facts["notes"][0]
    for size in (3, 30):
        energy = {
            row["repulsion"]: row["true energy"]
            for row in facts["tables"][0]["rows"]
            if row["L"] == size
        }
        assert max(energy, key=energy.__getitem__) == "sampled landmarks"


def test_landmarks_play_with_a_lower_bound(data, tmp_path):
    facts = quick(game_fig6, data, tmp_path)
    assert "here 300 random ones" in facts["notes"][0]
    rows = {row["repulsion"]: row for row in facts["tables"][0]["rows"]}
    own = rows["optimised landmarks"]
    assert own["last approximate energy"] <= own["last true energy"]
    worst = rows["sampled landmarks"]
    assert worst["last true energy"] > own["last true energy"]


def test_a_perfect_tiling():
    landmarks = np.array([[0, 0], [10, 0], [0, 10], [10, 10]], np.float32)
    layout = np.repeat(landmarks, 5, axis=0) + np.float32(0.5)
    found = game_fig2.tiling(layout, landmarks)
    assert found == (0, pytest.approx(1), 0, 10)


def test_a_bad_tiling():
    landmarks = np.array([[0, 0], [1, 0], [50, 50], [51, 50]], np.float32)
    layout = np.array([[0, 0]] * 6 + [[0, 30]] * 2, np.float32)
    found = game_fig2.tiling(layout, landmarks)
    assert found.empty == 0.75
    assert found.evenness == 0
    assert found.far == 0.25


def test_majority_of_each_landmark():
    labels = np.array(["a", "a", "b", "c", "c"])
    nearest = np.array([0, 0, 0, 2, 2])
    assert game_fig2.majority_shares(labels, nearest) == [pytest.approx(2 / 3), 1]


def test_members_are_of_the_cluster_and_no_more_than_asked():
    nearest = np.array([0, 1, 1, 0, 1, 1])
    found = game_fig3.members(nearest, 1, 3, 0)
    assert len(set(found)) == 3
    assert set(nearest[found]) == {1}
    assert len(game_fig3.members(nearest, 0, 3, 0)) == 2


def test_a_mosaic_keeps_each_picture():
    pictures = np.arange(3)[:, None, None] + np.ones((3, 2, 2), int)
    whole = game_fig3.mosaic(pictures)
    assert whole.tolist() == [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 0, 0], [3, 3, 0, 0]]


def test_distinct_spots_and_span():
    layout = np.zeros((100, 2), np.float32)
    assert game_fig4.distinct_share(layout) == 0.01
    assert game_fig4.span(layout) == 0
    layout[:, 0] = np.arange(100)
    assert game_fig4.distinct_share(layout) == 1
    assert 90 < game_fig4.span(layout) < 99


def test_the_window_is_where_points_are_spread():
    assert game_fig4.window({0.01: 0.01, 0.1: 0.3, 1.0: 0.2, 10.0: 0.02}) == [0.1, 1.0]


def test_rows_are_drawn_once_and_by_the_seed():
    rows = draw_rows(100, 10, 0)
    assert len(set(rows)) == 10
    np.testing.assert_array_equal(rows, draw_rows(100, 10, 0))
    assert not np.array_equal(rows, draw_rows(100, 10, 1))
    np.testing.assert_array_equal(draw_rows(5, 10, 0), np.arange(5))


def test_a_stray_point_does_not_set_the_view():
    layout = np.random.default_rng(0).normal(size=(5000, 2)).astype(np.float32)
    layout[0] = 1e6
    middle, reach = view(layout)
    assert np.abs(middle).max() < 1
    assert reach < 10
