"""Columns that are written anew: table, panels, lists and files follow them."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.autosave import Autosave, find_recent_sessions
from napari_embedding_game.ui.game_dock import MAP
from napari_embedding_game.ui.widgets.teach import TeachWidget

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def dataset(dataset):
    """Of 40 rows one measure parts even from odd ones, another the halves."""
    X = np.zeros_like(dataset.X)
    X[1::2, 0] = X[20:, 1] = 9
    return replace(dataset, X=X, profile=X)


@pytest.fixture
def window_of_two(play, inspector):
    """The dock with a finished map, whose clusters are 10 rows each."""
    play()
    inspector.show()
    return inspector


@pytest.fixture
def teach(viewer, workspace):
    widget = TeachWidget(viewer)
    widget.show()
    yield widget
    widget.close()


def learn(qtbot, teach, session, *classes):
    """Make these rows the examples of the classes, and press Learn."""
    for group in session.clusters.state.annotation.groups:
        session.clusters.release(group)
    for number, rows in enumerate(classes):
        session.clusters.make_cluster(np.array(rows), f"class {number}")
    QTest.mouseClick(teach.learn, LEFT)
    qtbot.waitUntil(lambda: teach.learn.text() == "Learn")


def test_what_is_learned_a_second_time_is_seen_everywhere(
    qtbot, window_of_two, session, dock, teach
):
    inspector = window_of_two
    learn(qtbot, teach, session, range(0, 12, 2), range(1, 12, 2))
    qtbot.waitUntil(lambda: inspector.details.column.value == "taught")
    inspector.show(MAP)
    dock.look.split_by.value = "taught"
    assert [n for _, n in session.view.panels.captions] == ["20", "20"]
    points = dock.controller.scene.layers.points
    even = points.data.copy()
    learn(qtbot, teach, session, range(12), range(20, 32))
    qtbot.waitUntil(lambda: points.data[:20, 1].max() < points.data[20:, 1].min())
    assert not np.array_equal(even, points.data)


def test_a_file_has_what_there_was_when_its_saving_began(
    window_of_two, session, tmp_path
):
    saver = Autosave(window_of_two.workspace.maps.capture, tmp_path)
    job = saver.job()
    session.add(Dataset.add_column, "depth", np.arange(40.0))
    job()
    saver.path.rename(tmp_path / "0-0-killed.open.zip")
    saved = archive.load(find_recent_sessions(tmp_path)[0]).maps[0]
    assert "depth" not in saved.dataset.added
    assert "depth" not in saved.dataset.obs
    assert "depth" not in session.dataset.source_obs
