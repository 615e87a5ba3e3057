"""The button that gives the map the room of the other docks."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QDockWidget

from napari_embedding_game.ui.workspace import open_workspace

MENU = "Embedding Game"
GAME = f"Map ({MENU})"


@pytest.fixture
def viewer(make_napari_viewer, from_menu, session, click_run):
    """A window with a map, and the dock opened from napari's menu."""
    viewer = make_napari_viewer(show=True)
    open_workspace(viewer, session)
    from_menu(viewer.window.plugins_menu, MENU, GAME)
    click_run(box_of(viewer, GAME).widget())
    return viewer


def box_of(viewer, title):
    return viewer.window._qt_window.findChild(QDockWidget, title)


def click(button):
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def seen(viewer):
    boxes = viewer.window._qt_window.findChildren(QDockWidget)
    return {box.objectName() for box in boxes if box.isVisible()}


def test_the_map_has_most_of_the_window_and_the_panels_come_back(
    viewer, qtbot, monkeypatch
):
    def is_large():
        main = viewer.window._qt_window
        canvas = main.centralWidget()
        return canvas.width() * canvas.height() >= 0.6 * main.width() * main.height()

    for width in (1100, 1500, 2000):
        viewer.window.resize(width, 900)
        before = seen(viewer)
        click(box_of(viewer, GAME).widget().larger)
        assert seen(viewer) == {GAME}
        qtbot.waitUntil(is_large)
        click(box_of(viewer, GAME).widget().larger)
        assert seen(viewer) == before
    they_are_back_before_napari_notes_where_they_were(viewer, monkeypatch)
    a_dock_that_is_closed_gives_the_others_back(viewer, qtbot)


def a_dock_that_is_closed_gives_the_others_back(viewer, qtbot):
    before = seen(viewer)
    click(box_of(viewer, GAME).widget().larger)
    click(box_of(viewer, GAME).title.close_button)
    qtbot.waitUntil(lambda: seen(viewer) == before - {GAME})


def they_are_back_before_napari_notes_where_they_were(viewer, monkeypatch):
    before, noted = seen(viewer), []
    click(box_of(viewer, GAME).widget().larger)

    def refuse(main, event):
        noted.append(seen(viewer))
        event.ignore()

    with monkeypatch.context() as refusing:
        refusing.setattr(type(viewer.window._qt_window), "closeEvent", refuse)
        viewer.window._qt_window.close()
    assert noted == [before]
    assert not box_of(viewer, GAME).widget().larger.isChecked()
