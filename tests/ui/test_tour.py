"""The tour: a callout beside what is seen, one after another."""

from types import SimpleNamespace

from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_embedding_game.ui import tour as tour_module
from napari_embedding_game.ui.game_dock import SELECTION
from worlds import click


def test_callouts_point_at_what_is_seen_and_go_away(dock, session, qtbot, play):
    tour, data = dock.tour, session.dataset
    dock.resize(900, 800)
    session.load(None)
    dock.show()
    dock.data.start.tour.click()
    qtbot.waitUntil(tour.isVisible)
    assert "Open your data" in tour.text()
    session.load(data)  # what it says is done: it goes on by itself
    qtbot.waitUntil(tour.isVisible)
    qtbot.waitUntil(lambda: "Press Run" in tour.text())
    play()
    qtbot.waitUntil(lambda: tour.isVisible() and "colours" in tour.text())
    target = dock.look.color_by
    there = target.mapTo(dock, target.rect().center())
    assert abs(tour.geometry().center().y() - there.y()) < 40
    dock.activateWindow()
    qtbot.waitUntil(dock.isActiveWindow)
    QTest.keyClick(dock, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: tour.isVisible() and "doubt" in tour.text())
    click(tour)
    session.selection.select(0)
    dock.tabs.setCurrentIndex(SELECTION)
    qtbot.waitUntil(tour.isVisible)
    assert "Who they are" in tour.text()
    click(tour)
    qtbot.wait(2 * tour_module.SOON_MS)
    assert not tour.isVisible()


def test_it_begins_by_itself_once_by_a_preference(dock, qtbot, monkeypatch):
    monkeypatch.undo()
    window = SimpleNamespace(shows_tour=True)
    settings = SimpleNamespace(window=window)
    monkeypatch.setattr(tour_module, "get_plugin_settings", lambda name: settings)
    dock.show()
    dock.tour.begin_once()
    qtbot.waitUntil(dock.tour.isVisible)
    assert not window.shows_tour
    for _ in range(5):
        dock.tour.next_stop()
    dock.tour.begin_once()
    qtbot.wait(2 * tour_module.SOON_MS)
    assert not dock.tour.isVisible()
