"""The tour: a callout beside what is seen, one after another."""

from types import SimpleNamespace
from unittest.mock import Mock

from qtpy.QtTest import QSignalSpy
from qtpy.QtWidgets import QLabel

from napari_embedding_game.ui import tour as tour_module
from napari_embedding_game.ui.game_dock import SELECTION
from worlds import click


def test_notes_explain_what_is_seen_cover_nothing_and_go_away(
    docked, window, session, qtbot, click_run, slow, engine, monkeypatch
):
    dock, tour, data, main = docked, docked.tour, session.dataset, window.window
    session.load(None)
    main.resize(1100, 800)
    main.show()
    click(dock.data_controls.start_panel.tour)
    qtbot.waitUntil(tour.isVisible)
    assert "Open your data" in tour.text()
    session.load(data)  # what it says is done: it goes on by itself
    dock.run_controls.run_button.setText("Prepare and run")
    qtbot.waitUntil(lambda: tour.isVisible() and "Press Prepare and run" in tour.text())
    # Another tab in front of the dock takes the note along.
    other = main.add_dock_widget(QLabel("other"), name="other", tabify=True)
    other.raise_()
    qtbot.waitUntil(lambda: tour.visibleRegion().isEmpty())
    looks = QSignalSpy(tour.poll_timer.timeout)
    qtbot.waitUntil(lambda: len(looks) > 2)
    assert tour.visibleRegion().isEmpty()
    main.remove_dock_widget(other)
    qtbot.waitUntil(lambda: not tour.visibleRegion().isEmpty())
    # No word of colours before there is a map.
    engine.gate.clear()
    click(dock.run_controls.run_button)
    qtbot.waitUntil(lambda: session.state == "preparing")
    looks = QSignalSpy(tour.poll_timer.timeout)
    qtbot.waitUntil(lambda: len(looks) > 3)
    assert not tour.isVisible()
    engine.gate.set()
    qtbot.waitUntil(lambda: tour.isVisible() and "colours" in tour.text())
    target = dock.display_controls.color_by
    assert tour.frame.parent() is target
    for at in (tour.rect().topLeft(), tour.rect().bottomRight()):
        assert dock.rect().contains(tour.mapTo(dock, at))
        assert not target.rect().contains(tour.mapTo(target, at))
    click(tour)
    qtbot.waitUntil(lambda: tour.isVisible() and "doubt" in tour.text())
    for is_offered in (True, False):  # no button is spoken of that is not there
        shown = Mock(return_value=is_offered)
        monkeypatch.setattr(dock.trust_controls.show_misplaced, "isVisible", shown)
        qtbot.waitUntil(lambda want=is_offered: ("press Show" in tour.text()) == want)
    click(tour)
    session.selection.select_cluster(0)
    dock.tabs.setCurrentIndex(SELECTION)
    qtbot.waitUntil(tour.isVisible)
    assert "Type a name" in tour.text()
    click(tour)
    qtbot.waitUntil(lambda: not tour.poll_timer.isActive())
    assert not tour.isVisible()


def test_it_begins_by_itself_once_by_a_preference(dock, qtbot, monkeypatch):
    monkeypatch.undo()
    window = SimpleNamespace(shows_tour=True)
    settings = SimpleNamespace(window=window)
    monkeypatch.setattr(tour_module, "get_plugin_settings", lambda name: settings)
    dock.show()
    dock.tour.begin_if_unseen()
    qtbot.waitUntil(dock.tour.isVisible)
    assert not window.shows_tour
    for _ in range(5):
        dock.tour.leave_stop()
    qtbot.waitUntil(lambda: not dock.tour.poll_timer.isActive())
    dock.tour.begin_if_unseen()
    assert not dock.tour.poll_timer.isActive()
    assert not dock.tour.isVisible()
