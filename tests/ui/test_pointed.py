"""The map coloured by the similarity to the point under the mouse."""

import threading

import numpy as np
import pytest

from napari_embedding_game.session.similarity import similarity
from napari_embedding_game.ui.canvas import pointed as module
from napari_embedding_game.ui.style.coloring import NOTHING_POINTED


@pytest.fixture
def asked(play, dock, session):
    """A map that is coloured by the point under the mouse."""
    play()
    dock.look.color_by.value = "Pointed"
    assert dock.look.legend._body.text() == NOTHING_POINTED
    return dock.hover.hovering


def similar_to(session, row):
    session.selection.select_points(np.array([row]))
    found = similarity(session)
    session.selection.clear()
    return found


@pytest.mark.parametrize("most_at_once", [module.MOST_AT_ONCE, 0])
def test_the_colours_follow_the_mouse_and_stay_when_it_leaves(
    asked, dock, session, qtbot, monkeypatch, most_at_once
):
    monkeypatch.setattr(module, "MOST_AT_ONCE", most_at_once)
    layer = dock.controller.layers.points
    before = layer.face_color.copy()
    for row in (7, 21):
        asked.changed.emit(row)
        qtbot.waitUntil(lambda row=row: getattr(session.pointed, "row", None) == row)
        expected = similar_to(session, row)
        np.testing.assert_array_equal(session.pointed.similarity, expected)
    assert not np.array_equal(layer.face_color, before)
    assert "Similarity to cell21" in dock.controller.drawing.legend().title
    asked.changed.emit(None)
    assert session.pointed.row == 21


def test_while_one_answer_is_worked_out_only_the_last_point_waits(
    asked, dock, session, qtbot, monkeypatch
):
    monkeypatch.setattr(module, "MOST_AT_ONCE", 0)
    gate, jobs, told = threading.Event(), [], []
    real = module.similarity_job

    def held(session, rows):
        jobs.append(int(rows[0]))
        job = real(session, rows)
        return lambda: gate.wait(10) and job()

    monkeypatch.setattr(module, "similarity_job", held)
    session.pointed_changed.connect(lambda: told.append(session.pointed.row))
    follows = dock.hover._pointed
    for row in (1, 2, 3):
        follows._row = row
        follows._ask()  # as the throttle does
    assert jobs == [1]
    gate.set()
    qtbot.waitUntil(lambda: told == [1, 3])
    assert jobs == [1, 3]


def test_an_answer_of_other_data_is_dropped(
    asked, dock, session, dataset, qtbot, monkeypatch
):
    monkeypatch.setattr(module, "MOST_AT_ONCE", 0)
    gate = threading.Event()
    monkeypatch.setattr(
        module, "similarity_job", lambda *asked: lambda: gate.wait(10) and np.ones(40)
    )
    asked.changed.emit(5)
    worker = dock.hover._pointed._worker
    session.load(dataset)
    gate.set()
    assert worker.wait(10_000)
    qtbot.wait(1)
    assert session.pointed is None


def test_nothing_is_worked_out_for_other_colours(asked, dock, session):
    dock.look.color_by.value = "Cluster"
    asked.changed.emit(5)
    assert session.pointed is None
