import numpy as np
import pytest

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


def test_other_data_forget_the_drawn_points(selection):
    selection.select_points(np.array([7]))
    heard = []
    selection.changed.connect(heard.append)
    selection.follow(np.zeros(3, int))
    assert selection.rows.tolist() == []
    assert heard == [()]  # or what marks them goes on marking them
