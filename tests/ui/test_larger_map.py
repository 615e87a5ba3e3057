"""The button that gives the map the room of the other docks."""

from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QDockWidget

GAME = "game"


def box_of(viewer, title):
    return viewer.window._qt_window.findChild(QDockWidget, title)


def click(button):
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def on_show(viewer):
    boxes = viewer.window._qt_window.findChildren(QDockWidget)
    return {box.objectName() for box in boxes if box.isVisible()}


def test_the_map_has_most_of_the_window_and_the_panels_come_back(
    seen, qtbot, monkeypatch
):
    viewer = seen.viewer

    def is_large():
        main = viewer.window._qt_window
        canvas = main.centralWidget()
        return canvas.width() * canvas.height() >= 0.6 * main.width() * main.height()

    for width in (1100, 1500, 2000):
        viewer.window.resize(width, 900)
        before = on_show(viewer)
        click(box_of(viewer, GAME).widget().larger)
        assert on_show(viewer) == {GAME}
        qtbot.waitUntil(is_large)
        click(box_of(viewer, GAME).widget().larger)
        assert on_show(viewer) == before
    they_are_back_before_napari_notes_where_they_were(viewer, monkeypatch)
    a_dock_that_is_closed_gives_the_others_back(viewer, qtbot)


def a_dock_that_is_closed_gives_the_others_back(viewer, qtbot):
    before = on_show(viewer)
    click(box_of(viewer, GAME).widget().larger)
    click(box_of(viewer, GAME).title.close_button)
    qtbot.waitUntil(lambda: on_show(viewer) == before - {GAME})


def they_are_back_before_napari_notes_where_they_were(viewer, monkeypatch):
    before, noted = on_show(viewer), []
    click(box_of(viewer, GAME).widget().larger)

    def refuse(main, event):
        noted.append(on_show(viewer))
        event.ignore()

    with monkeypatch.context() as refusing:
        refusing.setattr(type(viewer.window._qt_window), "closeEvent", refuse)
        viewer.window._qt_window.close()
    assert noted == [before]
    assert not box_of(viewer, GAME).widget().larger.isChecked()
