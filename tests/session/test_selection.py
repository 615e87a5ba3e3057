import numpy as np

from napari_embedding_game.session.selection import Selection


def test_drawn_points_stay_whatever_the_game_does_and_go_with_their_data():
    selection, heard = Selection(), []
    assert selection.points.shape == (0,)
    selection.update_labels(np.array([0, 0, 1, 1, 1, 2, 7, 7]))
    selection.select_points(np.array([2, 3, 6]))
    assert selection.clusters == ()
    assert selection.is_of_points
    selection.update_labels(np.zeros(8, int))
    assert selection.rows.tolist() == [2, 3, 6]
    selection.select_cluster(0)
    assert not selection.is_of_points
    assert selection.points.all()
    selection.clear()
    assert selection.is_empty
    assert not selection.points.any()
    selection.select_points(np.array([7]))
    selection.changed.connect(heard.append)
    selection.update_labels(np.zeros(3, int))
    assert selection.rows.tolist() == []
    assert heard == [()]  # or what marks them goes on marking them
