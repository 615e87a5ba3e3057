"""What is left of a dock that was closed: nothing that listens, nothing that lives."""

import gc
from collections import Counter
from weakref import ref

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QDockWidget

from napari_embedding_game.data.samples import digits
from napari_embedding_game.ui import map_widget, plugin
from napari_embedding_game.ui.compat import find_canvas_widget, find_main_window
from napari_embedding_game.ui.workspace import get_workspace

LEFT = Qt.MouseButton.LeftButton
MENU = "Embedding Game"
PACKAGE = "napari_embedding_game"
TITLES = [f"{name} ({MENU})" for name in ("Map", "Teach", "Plate")]


@pytest.fixture(autouse=True)
def garbage_is_new():
    """Look at what a test makes itself: all else takes half a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def ours(person_at_the_window):
    """Counts the Qt objects of this package that are alive, by their class."""
    return person_at_the_window.own_objects


def listeners(session):
    """Count the slots that hear of a session."""
    signals = (
        session.dataset_changed,
        session.state_changed,
        session.progressed,
        session.message_changed,
        session.staleness_changed,
        session.restored,
        session.clusters.changed,
        session.selection.changed,
        session.settings.changed,
        session.look.events,
    )
    return [len(signal) for signal in signals]


def nothing_left(before, ours):
    """Whether no object is left, once a thread that was abandoned has ended."""
    QTest.qWait(500)  # to count collects, which takes as long
    return ours() - before == Counter()


@pytest.fixture
def window(window):
    window.window.show()
    return window


@pytest.fixture
def boxes(window, qtbot, from_menu):
    """Open all docks from napari's menu and return their boxes by title."""

    def open_all():
        for title in TITLES:
            from_menu(window.window.plugins_menu, MENU, title)
        main = find_main_window(window.window.main_menu)
        return [main.findChild(QDockWidget, title) for title in TITLES]

    return open_all


def test_docks_closed_by_their_buttons_are_freed_and_hear_nothing(
    window, qtbot, boxes, ours
):
    before, session = ours(), get_workspace(window).session
    for turn in range(2):
        game, *others = boxes()
        if turn == 0:
            session.load(digits().subset(np.arange(1_797) < 200))
            session.settings.max_iter = 30
            QTest.mouseClick(game.widget().run_controls.run_button, LEFT)
            qtbot.waitUntil(lambda: session.state == "finished", timeout=60_000)
            session.selection.select_cluster(session.clusters.clusters[0].id)
            qtbot.settle()
            for _ in range(2):  # the first release is lost, the other never comes
                QTest.mousePress(find_canvas_widget(game), LEFT, pos=QPoint(99, 99))
        for box in (game, *others):
            # The button with a cross in the title of the dock.
            QTest.mouseClick(box.title.close_button, LEFT)
        del game, others, box
        qtbot.settle()
        qtbot.waitUntil(lambda: nothing_left(before, ours))
        if turn == 0:  # what docks share stays with the session
            palette = listeners(session)
        assert listeners(session) == palette


def without_a_parent():
    """PyQt destroys those that are left at exit while it looks for more, and dies."""
    return [
        widget
        for widget in QApplication.topLevelWidgets()
        if widget.parent() is None and type(widget).__module__.startswith(PACKAGE)
    ]


def test_docks_have_a_window_and_one_closed_with_a_floating_dock_leaves_nothing(
    window, qtbot, boxes, ours
):
    # Other tests open parts of docks alone, which then wait for the collector.
    before, of_other_tests = ours(), without_a_parent()
    game, *others = boxes()
    assert [part for part in without_a_parent() if part not in of_other_tests] == []
    game.setFloating(True)
    qtbot.settle()
    del game, others, of_other_tests
    window.close()
    qtbot.waitUntil(lambda: nothing_left(before, ours))


def used_and_closed(viewer, qtbot):
    """Make a map in a window and close it; weak references to what it was made of."""
    dock, session = plugin.open_dock(viewer), get_workspace(viewer).session
    session.load(digits().subset(np.arange(1_797) < 200))
    session.settings.max_iter = 30
    dock.run_controls.run_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    seen = [ref(x) for x in (viewer, session, session.dataset)]
    viewer.close()
    return seen


def test_a_closed_window_frees_its_session_and_its_data(
    make_napari_viewer, qtbot, monkeypatch
):
    """By itself: the data may be gigabytes, and Python may not collect for long."""
    monkeypatch.setattr(map_widget, "CLOSED_MS", 2_000)
    gc.disable()
    try:
        seen = used_and_closed(make_napari_viewer(show=True), qtbot)
        qtbot.waitUntil(lambda: [one() for one in seen] == [None] * 3)
    finally:
        gc.enable()
