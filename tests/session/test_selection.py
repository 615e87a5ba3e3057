import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_embedding_game.session.selection import Selection


@pytest.fixture
def selection():
    """Eight points in clusters 0, 1, 2 and 7."""
    selection = Selection()
    selection.follow(np.array([0, 0, 1, 1, 1, 2, 7, 7]))
    return selection


def test_drawn_points_stay_whatever_the_game_does(selection):
    selection.select_points(np.array([2, 3, 6]))
    assert selection.clusters == ()
    assert selection.is_of_points
    selection.follow(np.zeros(8, int))
    assert selection.rows.tolist() == [2, 3, 6]
    selection.select(0)
    assert not selection.is_of_points
    assert selection.points.all()


def test_shares_of_touched_clusters(selection):
    selection.select_points(np.array([2, 3, 6, 7]))
    assert selection.shares() == {1: 2 / 3, 7: 1.0}


def test_other_data_forget_the_drawn_points(selection):
    selection.select_points(np.array([7]))
    heard = []
    selection.changed.connect(heard.append)
    selection.follow(np.zeros(3, int))
    assert selection.rows.tolist() == []
    assert heard == [()]  # or what marks them goes on marking them


ROWS = st.lists(st.integers(0, 7), max_size=8)


@given(st.lists(st.tuples(st.sampled_from(["replace", "add", "remove"]), ROWS)))
def test_points_are_a_set(steps):
    selection, expected = Selection(8), set()
    for mode, rows in steps:
        selection.select_points(np.array(rows, int), mode)
        expected = {
            "replace": set(rows),
            "add": expected | set(rows),
            "remove": expected - set(rows),
        }[mode]
        assert set(selection.rows.tolist()) == expected
        assert selection.is_empty == (not expected)
