import numpy as np

from napari_embedding_game.session.selection import Selection


def test_select_toggle_clear_and_what_is_told():
    selection, heard = Selection(), []
    selection.changed.connect(heard.append)
    selection.select(3)
    selection.toggle(5)
    selection.toggle(3)
    selection.clear()
    selection.clear()
    assert heard == [(3,), (3, 5), (5,), ()]


def test_a_number_is_selected_once():
    selection = Selection()
    selection.replace([2, 2, 1])
    assert selection.clusters == (2, 1)


def test_clusters_of_landmarks_that_left_are_dropped():
    selection = Selection()
    selection.replace([1, 7])
    selection.keep_below(5)
    assert selection.clusters == (1,)


def test_members():
    selection = Selection()
    selection.replace([0, 2])
    members = selection.members(np.array([0, 1, 2, 2]))
    assert members.tolist() == [True, False, True, True]
