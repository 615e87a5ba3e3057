"""Boxes to teach by: filled by button and key, learned from, undone, told."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.teaching import Teaching
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.inspector.teaching import teach_pane
from napari_embedding_game.ui.inspector.teaching.teach_pane import (
    NOTHING_SELECTED,
    OTHER_DATA,
    OUTDATED,
    TeachPane,
)
from napari_embedding_game.ui.style.theme import theme_colors
from napari_embedding_game.ui.widgets.teach import TeachWidget
from napari_embedding_game.ui.workspace import open_workspace

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def dataset(dataset):
    """40 rows of two kinds that are easy to tell apart."""
    kinds = np.arange(40) % 2
    X = dataset.X + 9 * kinds[:, None].astype(np.float32)
    return replace(dataset, X=X, profile=X)


@pytest.fixture
def teaching(session):
    return Teaching(session)


@pytest.fixture
def pane(qtbot, session, teaching):
    """The pane alone, beside the fake map of a session."""
    run = session.begin()
    for frame in run.frames():
        session.receive(run, frame)
        if frame.snapshot is not None and frame.snapshot.finished:
            session.stop()
    pane = TeachPane(session, teaching, session.selection.select_points)
    qtbot.addWidget(pane)
    pane.set_theme(theme_colors("dark"))
    pane.set_source(session.dataset, None)
    session.selection.changed.connect(pane.follow, max_args=0)
    pane.resize(900, 260)
    pane.show()
    yield pane
    session.selection.changed.disconnect(pane.follow)
    pane.close()


def put(pane, place, rows):
    pane._session.selection.select_points(np.asarray(rows))
    QTest.mouseClick(pane.boxes[place].put, LEFT)


def filled(pane, n=4):
    put(pane, 0, np.arange(0, 2 * n, 2))
    put(pane, 1, np.arange(1, 2 * n, 2))
    return pane


def learn(qtbot, pane):
    QTest.mouseClick(pane.learn, LEFT)
    qtbot.waitUntil(lambda: not pane._learning.is_busy)
    return pane


def click(view, place):
    view.executeDelayedItemsLayout()
    at = view.visualRect(view.shown.index(place)).center()
    QTest.mouseClick(view.viewport(), LEFT, pos=at)


def test_the_selection_is_put_into_a_box_and_told(pane, teaching):
    assert "put them into a box" in pane.state.text()
    assert not pane.learn.isEnabled()
    put(pane, 0, [0, 2, 4])
    assert pane.boxes[0].count.text() == "3"
    assert "put others into another box" in pane.state.text()
    put(pane, 1, [4, 1])
    assert [box.count.text() for box in pane.boxes] == ["2", "2"]
    assert pane.state.text().startswith("Moved 1 out of Box 1 to Box 2: ")
    assert "Box 1 has 2, and 10 or more" in pane.state.text()
    assert pane.learn.isEnabled()
    assert [box.examples.shown.data(box.examples.shown.index(0)) for box in pane.boxes]


def test_fewer_rows_take_the_place_of_the_data_while_a_cluster_is_selected(
    pane, session, dataset
):
    put(pane, 0, [38, 39])
    session.selection.select(session.clusters.clusters[-1].id)
    X, obs = dataset.X[:20], dataset.obs.iloc[:20]
    fewer = replace(
        dataset,
        **{"X": X, "profile": X, "obs": obs, "source_obs_names": obs.index},
        **{"kept": np.ones(20, bool), "n_source_rows": 20},
        **dict.fromkeys(("images", "texts", "source_obs", "source_objects")),
    )
    session.load(fewer)
    assert [box.count.text() for box in pane.boxes] == ["0", "0"]


def test_learning_colours_the_map_and_tells_how_well(qtbot, pane, session):
    learn(qtbot, filled(pane))
    assert session.look.color_by == "taught"
    assert session.dataset.obs["taught"].cat.codes.tolist() == [0, 1] * 20
    assert pane.state.text().startswith("100% ± ")
    assert "of unseen examples are told right (by chance 50%" in pane.state.text()
    assert pane.boxes[1].share.text() == "100% of unseen are right"
    assert "100% of the 4 that there were" in pane.boxes[1].count.toolTip()
    assert pane.by_class.isChecked()
    QTest.mouseClick(pane.by_sureness, LEFT)
    assert session.look.color_by == "taught_confidence"
    assert (pane.by_class.isChecked(), pane.by_sureness.isChecked()) == (False, True)
    put(pane, 0, [10])
    assert pane.state.text() == OUTDATED
    assert "% sure" in pane.gallery.shown.row_name(10)


def test_the_least_sure_are_sorted_one_after_the_other(qtbot, pane, session, teaching):
    learn(qtbot, filled(pane))
    expected = teaching.doubtful()
    QTest.mouseClick(pane.doubtful, LEFT)
    assert pane.caption.text() == "20 least sure"
    assert pane.gallery.shown.rows.tolist() == expected.tolist()
    assert session.selection.rows.tolist() == [expected[0]]
    pane.keys[0].trigger()
    assert session.selection.rows.tolist() == [expected[1]]
    pane.keys[1].trigger()
    assert pane.gallery.shown.rows.tolist() == expected.tolist()
    marks = [pane.gallery.shown._marks[row].text for row in expected[:2].tolist()]
    assert marks == ["1", "2"]
    session.selection.select(0)  # on the map: that is to be sorted now
    assert pane.caption.text() == "10 to sort"
    session.selection.clear()
    assert len(pane.gallery.shown.rows) == 10  # they can still be sorted


def test_random_points_are_shown_until_all_are_sorted(pane, session):
    QTest.mouseClick(pane.random, LEFT)
    assert pane.caption.text() == "20 at random"
    put(pane, 0, np.arange(40))
    QTest.mouseClick(pane.random, LEFT)
    assert pane.state.text().startswith("All points are in boxes.")


def test_examples_are_taken_out_by_key_and_button_and_come_back(pane, teaching):
    filled(pane)
    view = pane.boxes[1].examples
    click(view, 1)
    assert pane._session.selection.rows.tolist() == [3]
    QTest.keyClick(view, Qt.Key.Key_Delete)
    assert teaching.boxes[1].rows == {1, 5, 7}
    click(view, 0)
    QTest.mouseClick(pane.take_out, LEFT)
    assert teaching.boxes[1].rows == {5, 7}
    pane.undo.trigger()
    pane.undo.trigger()
    assert teaching.boxes[1].rows == {1, 3, 5, 7}
    pane.redo.trigger()
    assert teaching.boxes[1].rows == {1, 5, 7}
    assert pane.boxes[1].count.text() == "3"


def test_boxes_are_added_named_and_removed(qtbot, pane, teaching):
    QTest.mouseClick(pane.add, LEFT)
    assert len(pane.boxes) == 3
    name = pane.boxes[2].name
    name.selectAll()
    QTest.keyClicks(name, "Box 1")
    QTest.keyClick(name, Qt.Key.Key_Return)
    assert name.text() == teaching.boxes[2].name == "Box 1 2"
    name.clear()
    QTest.keyClick(name, Qt.Key.Key_Return)
    assert name.text() == "Box 1 2"
    put(pane, 2, [7])
    QTest.mouseClick(pane.boxes[0].remove, LEFT)
    assert [box.name.text() for box in pane.boxes] == ["Box 2", "Box 1 2"]
    assert pane.boxes[1].count.text() == "1"


def test_a_key_without_a_selection_says_so(pane, teaching):
    pane.keys[0].trigger()
    assert pane.state.text().startswith(NOTHING_SELECTED)
    pane._session.selection.select_points(np.array([1]))
    pane.keys[8].trigger()  # there is no ninth box
    assert not any(box.rows for box in teaching.boxes)


def test_what_fails_is_told(qtbot, pane, teaching, monkeypatch):
    def broken():
        raise DataError("The disk is gone.")
        yield

    monkeypatch.setattr(Teaching, "lesson", lambda self: broken)
    learn(qtbot, filled(pane))
    assert pane.state.text() == "The disk is gone."
    assert pane.learn.isEnabled()


def test_learning_is_stopped_by_its_button_and_by_other_data(
    qtbot, pane, session, dataset, monkeypatch
):
    def endless():
        while True:
            yield teach_pane.Stage("Learning", 0.5)

    monkeypatch.setattr(Teaching, "lesson", lambda self: endless)
    filled(pane)
    QTest.mouseClick(pane.learn, LEFT)
    qtbot.waitUntil(lambda: pane.state.text() == "Learning (50%) …")
    assert pane.learn.text() == "Stop"
    QTest.mouseClick(pane.learn, LEFT)
    assert pane.learn.text() == "Learn"
    QTest.mouseClick(pane.learn, LEFT)
    session.load(replace(dataset))
    assert pane.state.text() == OTHER_DATA
    assert "taught" not in session.dataset.obs


def test_a_map_of_a_part_tells_of_the_examples_elsewhere(pane, session):
    filled(pane)
    rows = np.arange(40) >= 6
    session.load(session.dataset.subset(rows))
    pane.set_source(session.dataset, None)
    assert "6 more examples are not in this map of a part" in pane.state.text()
    session.load(session.dataset.subset(np.arange(34) >= 2))
    pane.refresh()
    assert pane.state.text().startswith("8 of the examples are not in this map")


@pytest.fixture
def window_with_boxes(make_napari_viewer, from_menu, qtbot, click_run, session):
    images = np.zeros((40, 8, 8), np.uint8)
    session.load(replace(session.dataset, images=images))
    viewer = make_napari_viewer(show=True)
    workspace = open_workspace(viewer, session)
    game = GameDock(viewer, workspace, warm_up=False)
    viewer.window.resize(1100, 800)
    viewer.window.add_dock_widget(game, name="game", area="right")
    click_run(game)
    title = "Teach (Embedding Game)"
    from_menu(viewer.window.plugins_menu, "Embedding Game", title)
    game.window().activateWindow()
    qtbot.waitUntil(lambda: QApplication.activeWindow() is game.window())
    yield viewer, viewer.window.dock_widgets[title]
    game.controller.session_store.close()


def test_by_clicks_and_keys_in_a_window(window_with_boxes, session, qtbot):
    viewer, widget = window_with_boxes
    pane, workspace = widget.pane, widget.workspace
    qtbot.waitUntil(pane.isVisible)
    canvas = viewer.window._qt_viewer.canvas.native
    canvas.setFocus()
    for number, rows in (("1", np.arange(0, 12, 2)), ("2", np.arange(1, 12, 2))):
        session.selection.select_points(rows)
        QTest.keyClick(canvas, number)
    assert [len(box.rows) for box in workspace.teaching.boxes] == [6, 6]
    QTest.keyClick(canvas, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert [len(box.rows) for box in workspace.teaching.boxes] == [6, 0]
    click(pane.gallery, 0)
    QTest.keyClick(pane.gallery, "2")
    assert session.selection.rows.tolist() == [3]  # the next one to be sorted
    QTest.keyClick(pane.gallery, "2")
    QTest.mouseClick(pane.learn, LEFT)
    qtbot.waitUntil(lambda: session.look.color_by == "taught")
    assert workspace.maps.made.told() == "8 examples in boxes"
    session.selection.clear()
    first, second = viewer.layers["embedding"].face_color[:2].copy()
    assert not np.allclose(first, second)
    # Learned again from other examples: the same column has other colours now.
    workspace.teaching.put(1, np.isin(np.arange(40), np.arange(0, 12, 2)))
    workspace.teaching.put(0, np.isin(np.arange(40), np.arange(1, 12, 2)))
    QTest.mouseClick(pane.learn, LEFT)
    qtbot.waitUntil(lambda: session.dataset.obs["taught"].iloc[1] == "Box 1")
    np.testing.assert_allclose(viewer.layers["embedding"].face_color[1], first)
    widget.close()
    QTest.keyClick(canvas, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert workspace.teaching.boxes[0].rows  # the key means clusters again
    assert viewer.window._qt_window.width() < 1200


def test_keys_of_a_layer_that_is_edited_stay_its_own(viewer, session):
    open_workspace(viewer, session)
    widget = TeachWidget(viewer)
    keys = widget.pane.keys
    everywhere = Qt.ShortcutContext.WindowShortcut
    assert keys[0].shortcutContext() == everywhere
    labels = viewer.add_labels(np.zeros((4, 4), int))
    assert keys[0].shortcutContext() == everywhere
    labels.mode = "paint"
    assert keys[0].shortcutContext() != everywhere
    labels.mode = "pan_zoom"
    assert keys[0].shortcutContext() == everywhere
    widget.close()


def test_columns_that_come_to_data_without_any_are_offered(inspector, session):
    bare = replace(session.dataset, obs=pd.DataFrame(index=session.dataset.obs.index))
    session.load(bare)
    assert inspector.details.column.value is None
    classes = pd.Categorical(["x", "y"] * 20)
    session.dataset.add_taught("a", classes, np.ones(40), {})
    session.columns_changed.emit()
    assert inspector.details.column.value == "a"
