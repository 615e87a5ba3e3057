"""Lines from the selection to neighbours in the data that lie far on the map."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtGui import QColor

from napari_embedding_game.ui.canvas.overlays import far_lines
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.workspace import Workspace

ACROSS = [[3, 23], [3, 23]]
"""Point 3 lies across the circle from both of its neighbours."""


@pytest.fixture
def shown(make_napari_viewer, session, qtbot, click_run):
    viewer = make_napari_viewer(show=True)
    dock = GameDock(viewer, Workspace(session), warm_up=False)
    viewer.window.add_dock_widget(dock, name="game")
    click_run(dock)
    dock.look.far.value = True
    yield viewer, dock
    dock.controller.session_store.close()


def choose(dock, qtbot, rows, expected):
    """Select rows and wait for the lines between these points."""
    dock.controller.session.selection.select_points(np.isin(np.arange(40), rows))
    qtbot.waitUntil(lambda: dock.far.pairs.tolist() == expected)


def test_lines_go_from_selected_points_to_their_far_neighbours(shown, session, qtbot):
    _, dock = shown
    choose(dock, qtbot, [1, 3, 5], ACROSS)
    assert dock.overlay.widget.isVisible()
    ends = dock.controller.layers.to_world(session.snapshot.embedding[[3, 23]])
    pixels = dock.controller.layers.projection().to_pixels(ends)
    image = dock.overlay.widget.grab().toImage()

    def strength(place):
        return QColor(image.pixel(*np.round(place).astype(int).tolist())).lightness()

    along = pixels[1] - pixels[0]
    across = np.array([-along[1], along[0]]) / np.linalg.norm(along)
    for share in (0.25, 0.5, 0.75):
        at = pixels[0] + share * along
        beside = [strength(at + side * across) for side in (-12, -8, 8, 12)]
        on_it = [strength(at + step * across) for step in (-1, 0, 1)]
        assert max(on_it) > max(beside) + 40


def test_nothing_is_drawn_without_a_selection_or_where_it_is_not_wanted(
    shown, session, qtbot
):
    _, dock = shown
    choose(dock, qtbot, [3], ACROSS)
    dock.look.far.native.click()
    qtbot.waitUntil(lambda: not len(dock.far.pairs))
    dock.look.far.native.click()
    qtbot.waitUntil(lambda: len(dock.far.pairs) == 2)
    assert dock.overlay.widget.isVisible()
    session.selection.clear()
    qtbot.waitUntil(lambda: not len(dock.far.pairs))
    choose(dock, qtbot, [3, 23], [])  # both ends are selected
    choose(dock, qtbot, [3, 22], ACROSS)
    unknown = replace(session.snapshot, neighbors=None)
    session.restore(replace(session.capture(), snapshot=unknown))
    qtbot.waitUntil(lambda: not len(dock.far.pairs))


def test_lines_of_many_points_are_found_in_a_thread(shown, session, qtbot, monkeypatch):
    _, dock = shown
    monkeypatch.setattr(far_lines, "MOST_AT_ONCE", 1)
    gate, find = threading.Event(), far_lines.far_neighbors
    asked = []

    def wait(neighbors, embedding, rows, usual):
        asked.append(rows.tolist())
        assert gate.wait(20)
        return find(neighbors, embedding, rows, usual)

    monkeypatch.setattr(far_lines, "far_neighbors", wait)
    session.selection.select_points(np.array([1, 3]))
    qtbot.waitUntil(lambda: asked == [[1, 3]])
    assert not len(dock.far.pairs)
    session.selection.select_points(np.array([3, 23]))  # it comes too late
    qtbot.wait(3 * far_lines.SOON_MS)
    gate.set()
    qtbot.waitUntil(
        lambda: asked == [[1, 3], [3, 23]] and not dock.far._finding.is_busy
    )
    assert not len(dock.far.pairs)  # both ends are selected
    choose(dock, qtbot, [3, 5], ACROSS)
    session.selection.clear()
    qtbot.waitUntil(lambda: not len(dock.far.pairs))


def test_lines_go_while_the_points_move(shown, session, engine, qtbot):
    _, dock = shown
    choose(dock, qtbot, [3], ACROSS)
    engine.gate.clear()
    dock.run.run.native.click()
    qtbot.waitUntil(lambda: not len(dock.far.pairs))
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state == "finished")
    choose(dock, qtbot, [3], ACROSS)


def test_of_many_lines_the_longest_are_drawn(shown, session, qtbot, monkeypatch):
    _, dock = shown
    monkeypatch.setattr(far_lines, "MOST_LINES", 3)
    neighbors = session.snapshot.neighbors.copy()
    neighbors[:5] = [[25, 15]]
    snapshot = replace(session.snapshot, neighbors=neighbors)
    session.restore(replace(session.capture(), snapshot=snapshot))
    rows = np.arange(5)
    session.selection.select_points(np.isin(np.arange(40), rows))
    qtbot.waitUntil(lambda: len(dock.far.pairs) == 3)
    y = snapshot.embedding
    lengths = np.linalg.norm(y[rows][:, None] - y[[25, 15]], axis=2)
    drawn = np.linalg.norm(np.diff(y[dock.far.pairs], axis=1)[:, 0], axis=1)
    np.testing.assert_allclose(drawn, np.sort(lengths.ravel())[::-1][:3], rtol=1e-6)


def test_lines_go_with_the_points_and_with_the_dock(shown, qtbot):
    viewer, dock = shown
    choose(dock, qtbot, [3], ACROSS)
    dock.controller.layers.points.visible = False
    dock.controller.layers.points.visible = True
    assert dock.overlay.widget.isVisible()
    viewer.window.remove_dock_widget(dock)
