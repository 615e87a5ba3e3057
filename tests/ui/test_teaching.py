"""Teach by example: selections become named groups, learned from and accepted."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtGui import QColor
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QLineEdit

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session import learned_classes
from napari_embedding_game.ui.game_dock import MAP
from napari_embedding_game.ui.style.table import COLOR
from napari_embedding_game.ui.widgets import teach as module
from napari_embedding_game.ui.widgets.teach import TeachWidget
from worlds import column

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def dataset(dataset):
    """40 rows of two kinds that are easy to tell apart."""
    X = dataset.X + 9 * (np.arange(40) % 2)[:, None].astype(np.float32)
    return dataset.with_matrices(X=X, profile=X)


@pytest.fixture
def teach(qtbot, viewer, workspace, play):
    play()
    widget = TeachWidget(viewer)
    widget.resize(400, 600)
    widget.show()
    qtbot.waitUntil(widget.isVisible)
    yield widget
    widget.close()


def new(qtbot, teach, rows, name):
    """Select points, press New class, and type a name."""
    teach.workspace.session.selection.select_points(np.asarray(rows))
    QTest.mouseClick(teach.new_button, LEFT)
    *_, editor = teach.class_table.findChildren(QLineEdit)  # the former may go later
    editor.selectAll()
    QTest.keyClicks(editor, name)
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: name in column(teach.class_table, 0))


def test_a_name_that_is_being_typed_is_for_its_own_class(qtbot, teach, session):
    """Also where a larger one comes to stand above it meanwhile."""
    head = teach.class_table.horizontalHeader()
    head.setSortIndicator(1, Qt.SortOrder.DescendingOrder)
    session.selection.select_points(np.arange(0, 8, 2))
    teach.new_button.click()  # which leaves the keyboard where it is
    *_, editor = teach.class_table.findChildren(QLineEdit)
    editor.setText("even")
    session.clusters.make_group(np.arange(1, 12, 2), "another")
    assert teach.class_table.is_editing
    assert editor.text() == "even"
    session.selection.select_points(np.arange(13, 20, 2))
    teach.new_button.click()
    qtbot.waitUntil(lambda: len(column(teach.class_table, 0)) == 3)
    groups = session.clusters.state.annotation.groups
    assert [one.name for one in groups.values()] == ["even", "another", "Group 2"]
    rows = session.clusters.clustering.rows_in_cluster(min(groups)).tolist()
    assert rows == [0, 2, 4, 6]
    saved = session.to_saved_map()
    saved = replace(saved, dataset=saved.dataset.subset(np.ones(40, bool)))
    teach.class_table.edit_first_cell(min(groups))
    *_, editor = teach.class_table.findChildren(QLineEdit)
    editor.setText("of the former data")
    session.restore(saved)  # a session that was being read meanwhile
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not teach.class_table.is_editing)
    assert {*column(teach.class_table, 0)} == {"even", "another", "Group 2"}


def filled(qtbot, teach):
    new(qtbot, teach, np.arange(0, 8, 2), "even")
    new(qtbot, teach, np.arange(1, 8, 2), "odd")
    return teach


def learn(qtbot, teach):
    qtbot.waitUntil(teach.learn_button.isVisible)
    QTest.mouseClick(teach.learn_button, LEFT)
    qtbot.waitUntil(lambda: teach.learn_button.text() == "Learn")


def test_selections_become_examples_and_come_back(qtbot, teach, session, dock):
    session.selection.clear()
    QTest.mouseClick(teach.new_button, LEFT)
    assert teach.state.text().startswith("Select some points first")
    new(qtbot, teach, [0, 2, 4], "even")
    assert "another class" in teach.state.text()
    new(qtbot, teach, [4, 1], "odd")
    assert column(teach.class_table, 1) == ["2", "2"]
    assert teach.state.text().startswith("Press Learn: ")
    session.selection.clear()  # else the map shows the others fainter
    colors = dock.controller.scene.map_layers.points.face_color
    for place, name in enumerate(column(teach.class_table, 0)):  # as on the map
        (cluster,) = (c.id for c in session.clusters.clusters if c.name == name)
        on_map = colors[session.clusters.labels == cluster][0]
        swatch = QColor(teach.class_table.item(place, 0).data(COLOR)).getRgbF()
        assert swatch[:3] == pytest.approx(on_map[:3], abs=0.01)
    session.selection.select_points(np.array([3, 5]))
    at = teach.class_table.visualRect(teach.class_table.model().index(1, 1)).center()
    QTest.mouseClick(teach.class_table.viewport(), LEFT, pos=at)
    QTest.mouseClick(teach.add_button, LEFT)
    assert column(teach.class_table, 1) == ["2", "4"]
    session.clusters.undo()
    assert column(teach.class_table, 1) == ["2", "2"]


def test_learning_colours_the_map_and_doubtful_points_become_examples(
    qtbot, teach, session, dock
):
    learn(qtbot, filled(qtbot, teach))
    assert session.look.color_by == "taught"
    assert session.dataset.obs["taught"].tolist() == ["even", "odd"] * 20
    told = teach.state.text()
    assert told.startswith("100% (")
    assert "of unseen examples are classified correctly (by chance 50%" in told
    assert column(teach.class_table, 2) == ["100%", "100%"]
    names, book = column(teach.doubtful_table, 0), session.clusters
    said = book.state.annotation
    ids = {group.name: number for number, group in said.groups.items()}
    expected = learned_classes.find_least_confident_points(
        session.dataset, "taught", said
    )
    assert names == session.dataset.obs.index[expected].tolist()
    sure = session.dataset.obs["taught_confidence"].iloc[expected[0]]
    assert column(teach.doubtful_table, 2)[0] == f"{sure:.0%}"
    at = teach.doubtful_table.visualRect(
        teach.doubtful_table.model().index(0, 0)
    ).center()
    QTest.mouseClick(teach.doubtful_table.viewport(), LEFT, pos=at)
    assert session.selection.rows.tolist() == [expected[0]]
    given = session.dataset.obs["taught"].iloc[expected[0]]
    teach.class_table.select_keys([ids[given]])
    QTest.mouseClick(teach.add_button, LEFT)
    assert book.clustering.names_by_point[expected[0]] == given
    assert teach.state.text() == module.OUTDATED
    assert names[0] not in column(teach.doubtful_table, 0)
    book.remove_annotation(ids["even"])
    session.selection.clear()
    odd = dock.controller.scene.map_layers.points.face_color[1]
    swatch = QColor(teach.class_table.item(0, 0).data(COLOR)).getRgbF()
    assert swatch[:3] == pytest.approx(odd[:3], abs=0.01)  # as on the map still


def test_what_fails_is_told_and_learning_is_stopped_by_other_data(
    qtbot, teach, session, dataset, monkeypatch
):
    def broken(dataset, examples):
        raise DataError("The disk is gone.")
        yield

    def endless(dataset, examples):
        while True:
            yield Stage("Learning", 0.5)

    filled(qtbot, teach)
    monkeypatch.setattr(learned_classes, "learn_from_examples", broken)
    learn(qtbot, teach)
    assert teach.state.text().startswith("The disk is gone.")
    monkeypatch.setattr(learned_classes, "learn_from_examples", endless)
    QTest.mouseClick(teach.learn_button, LEFT)
    qtbot.waitUntil(lambda: teach.state.text() == "Learning (50%) …")
    QTest.mouseClick(teach.learn_button, LEFT)
    assert teach.learn_button.text() == "Learn"
    QTest.mouseClick(teach.learn_button, LEFT)
    session.load(replace(dataset))
    assert teach.state.text().startswith(module.OTHER_DATA)
    assert "taught" not in session.dataset.obs
    assert column(teach.class_table, 0) == []


def test_what_is_learned_a_second_time_is_seen_everywhere(
    qtbot, teach, inspector, session, dock
):
    def of(*classes):
        """Make these rows the examples of the classes, and learn."""
        for group in session.clusters.state.annotation.groups:
            session.clusters.remove_annotation(group)
        for number, rows in enumerate(classes):
            session.clusters.make_group(np.array(rows), f"class {number}")
        learn(qtbot, teach)
        assert "classified correctly" in teach.state.text(), teach.state.text()

    X = np.zeros_like(session.dataset.X)
    X[1::2, 0] = X[20:, 1] = 9  # one measure parts odd rows, another the halves
    session.load(session.dataset.with_matrices(X=X, profile=X))
    dock.run_controls.run_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    of(range(0, 12, 2), range(1, 12, 2))
    inspector.show()
    qtbot.waitUntil(lambda: inspector.details.column.value == "taught")
    inspector.show(MAP)
    dock.display_controls.split_by.value = "taught"
    assert [n for _, n in session.view.panels.captions] == ["20", "20"]
    points = dock.controller.scene.map_layers.points
    even = points.data.copy()
    of(range(12), range(20, 32))
    qtbot.waitUntil(lambda: points.data[:20, 1].max() < points.data[20:, 1].min())
    assert not np.array_equal(even, points.data)
