"""The list of texts: what is shown, marked and picked."""

import numpy as np
import pytest

from napari_embedding_game.ui.inspector.text_list import TEXT_LENGTH, TextList


@pytest.fixture
def texts(qtbot):
    picked = []
    view = TextList(lambda rows: picked.append(rows.tolist()))
    view.picked = picked
    qtbot.addWidget(view)
    view.set_texts(np.array([7, 3, 5]), ["seven", "three\n\nwords", ""])
    return view


def test_texts_stand_on_one_line_each(texts):
    shown = [texts.item(i).text() for i in range(3)]
    assert shown == ["seven", "three words", "(empty)"]
    texts.set_texts(np.array([1]), ["word " * 200])
    assert len(texts.item(0).text()) <= TEXT_LENGTH


def test_selected_texts_are_told_as_rows(texts):
    texts.item(1).setSelected(True)
    texts.item(0).setSelected(True)
    assert texts.picked == [[3], [7, 3]]


def test_following_marks_texts_and_tells_nobody(texts):
    texts.follow(np.array([5, 99]))
    assert [item.text() for item in texts.selectedItems()] == ["(empty)"]
    texts.follow(np.array([], int))
    assert texts.selectedItems() == []
    assert texts.picked == []
    assert texts.holds(3)
    assert not texts.holds(4)


def test_the_same_texts_again_leave_the_list_as_it_is(texts):
    texts.item(1).setSelected(True)
    texts.set_texts(np.array([7, 3, 5]), ["seven", "three words", ""])
    assert [item.text() for item in texts.selectedItems()] == ["three words"]
    assert texts.picked == [[3]]
