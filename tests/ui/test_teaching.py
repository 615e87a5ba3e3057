"""Teach by example: examples are added, learned from, taken back and accepted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QLineEdit

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.teaching import Teaching
from napari_embedding_game.ui.widgets import teach as module
from napari_embedding_game.ui.widgets.teach import TeachWidget

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def dataset(dataset):
    """40 rows of two kinds that are easy to tell apart."""
    X = dataset.X + 9 * (np.arange(40) % 2)[:, None].astype(np.float32)
    return replace(dataset, X=X, profile=X)


@pytest.fixture
def teach(qtbot, viewer, workspace, play):
    play()
    widget = TeachWidget(viewer)
    widget.resize(400, 600)
    widget.show()
    qtbot.waitUntil(widget.isVisible)
    yield widget
    widget.close()


def cell(table, row, column):
    return table.model().index(row, column).data()


def column(table, number):
    return [cell(table, row, number) for row in range(table.model().rowCount())]


def put(teach, place, rows):
    """Select points, choose a class, and press Add selection."""
    teach.workspace.session.selection.select_points(np.asarray(rows))
    at = teach.classes.visualRect(teach.classes.model().index(place, 1)).center()
    QTest.mouseClick(teach.classes.viewport(), LEFT, pos=at)
    QTest.mouseClick(teach.add, LEFT)


def filled(teach):
    put(teach, 0, np.arange(0, 8, 2))
    put(teach, 1, np.arange(1, 8, 2))
    return teach


def learn(qtbot, teach):
    QTest.mouseClick(teach.learn, LEFT)
    qtbot.waitUntil(lambda: teach.learn.text() == "Learn")


def test_selections_become_examples_and_come_back(teach, session):
    QTest.mouseClick(teach.add, LEFT)
    assert teach.state.text().startswith("Select points on the map first")
    put(teach, 0, [0, 2, 4])
    assert "another class" in teach.state.text()
    put(teach, 1, [4, 1])
    assert column(teach.classes, 1) == ["2", "2"]
    assert teach.state.text().startswith("Moved 1 out of Box 1 to Box 2: ")
    QTest.mouseClick(teach.take_out, LEFT)  # what is selected
    assert column(teach.classes, 1) == ["2", "0"]
    QTest.mouseClick(teach.undo, LEFT)
    QTest.mouseClick(teach.undo, LEFT)
    assert column(teach.classes, 1) == ["3", "0"]


def test_classes_are_added_named_and_removed(qtbot, teach):
    QTest.mouseClick(teach.new, LEFT)
    editor = teach.classes.findChild(QLineEdit)
    editor.selectAll()
    QTest.keyClicks(editor, "Box 1")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: column(teach.classes, 0)[2:] == ["Box 1 (2)"])
    put(teach, 0, [7])
    QTest.mouseClick(teach.remove, LEFT)
    assert column(teach.classes, 0) == ["Box 2", "Box 1 (2)"]


def test_learning_colours_the_map_and_doubtful_points_are_accepted(
    qtbot, teach, session
):
    learn(qtbot, filled(teach))
    assert session.look.color_by == "taught"
    assert session.dataset.obs["taught"].cat.codes.tolist() == [0, 1] * 20
    assert teach.state.text().startswith("100% ± ")
    assert "of unseen examples are told right (by chance 50%" in teach.state.text()
    assert column(teach.classes, 2) == ["100%", "100%"]
    names = column(teach.doubtful, 0)
    expected = teach.workspace.teaching.doubtful()
    assert names == session.dataset.obs.index[expected].tolist()
    sure = session.dataset.obs["taught_confidence"].iloc[expected[0]]
    assert cell(teach.doubtful, 0, 2) == f"{sure:.0%}"
    at = teach.doubtful.visualRect(teach.doubtful.model().index(0, 0)).center()
    QTest.mouseClick(teach.doubtful.viewport(), LEFT, pos=at)
    assert session.selection.rows.tolist() == [expected[0]]
    place = session.dataset.obs["taught"].cat.codes.iloc[expected[0]]
    QTest.mouseClick(teach.accept, LEFT)
    assert expected[0] in list(teach.workspace.teaching.boxes.values())[place]
    assert teach.state.text() == module.OUTDATED
    assert names[0] not in column(teach.doubtful, 0)
    assert teach.workspace.maps.made == "9 examples in boxes"


def test_pictures_of_doubtful_points_are_shown(qtbot, teach, session, dataset, play):
    session.load(replace(dataset, images=np.ones((40, 8, 8), np.uint8)))
    play()
    learn(qtbot, filled(teach))
    icon, role = teach.doubtful.model().index(0, 0), Qt.ItemDataRole.DecorationRole
    qtbot.waitUntil(lambda: icon.data(role) is not None)
    assert icon.data(role).height() > 8


def test_what_fails_is_told_and_learning_is_stopped_by_other_data(
    qtbot, teach, session, dataset, monkeypatch
):
    def broken():
        raise DataError("The disk is gone.")
        yield

    def endless():
        while True:
            yield Stage("Learning", 0.5)

    filled(teach)
    monkeypatch.setattr(Teaching, "lesson", lambda self: broken)
    learn(qtbot, teach)
    assert teach.state.text().startswith("The disk is gone.")
    monkeypatch.setattr(Teaching, "lesson", lambda self: endless)
    QTest.mouseClick(teach.learn, LEFT)
    qtbot.waitUntil(lambda: teach.state.text() == "Learning (50%) …")
    QTest.mouseClick(teach.learn, LEFT)
    assert teach.learn.text() == "Learn"
    QTest.mouseClick(teach.learn, LEFT)
    session.load(replace(dataset))
    assert teach.state.text().startswith(module.OTHER_DATA)
    assert "taught" not in session.dataset.obs


def test_a_map_of_a_part_tells_of_the_examples_elsewhere(teach, session):
    filled(teach)
    session.load(session.dataset.subset(np.arange(40) >= 6))
    assert "6 more examples are not in this map of a part" in teach.state.text()
    session.load(session.dataset.subset(np.arange(34) >= 2))
    assert teach.state.text().startswith("8 of the examples are not in this map")


def test_fewer_rows_take_the_place_of_the_data_while_a_cluster_is_selected(
    teach, session, dataset
):
    put(teach, 0, [38, 39])
    session.selection.select(session.clusters.clusters[-1].id)
    X, obs = dataset.X[:20], dataset.obs.iloc[:20]
    fewer = replace(
        dataset,
        **{"X": X, "profile": X, "obs": obs, "source_obs_names": obs.index},
        **{"kept": np.ones(20, bool), "n_source_rows": 20},
        **dict.fromkeys(("images", "texts", "source_obs", "source_objects")),
    )
    session.load(fewer)
    assert column(teach.classes, 1) == ["0", "0"]


def test_columns_that_come_to_data_without_any_are_offered(inspector, session):
    bare = replace(session.dataset, obs=pd.DataFrame(index=session.dataset.obs.index))
    session.load(bare)
    assert inspector.details.column.value is None
    classes = pd.Categorical(["x", "y"] * 20)
    session.dataset.add_taught("a", classes, np.ones(40), {})
    session.columns_changed.emit()
    assert inspector.details.column.value == "a"
