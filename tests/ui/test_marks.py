"""Lines from the selection to neighbours in the data that lie far on the map."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtGui import QColor

from napari_embedding_game.ui.canvas import marks
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
    yield dock
    dock.controller.session_store.close()


def choose(dock, qtbot, rows, expected):
    """Select rows and wait for the lines between these points."""
    dock.controller.session.selection.select_points(np.isin(np.arange(40), rows))
    qtbot.waitUntil(lambda: dock.far.pairs.tolist() == expected)


def test_lines_go_from_selected_points_to_their_far_neighbours(shown, session, qtbot):
    choose(shown, qtbot, [1, 3, 5], ACROSS)
    qtbot.waitUntil(shown.overlay.isVisible)
    drawn = shown.controller.layers.projection()
    pixels = drawn.to_pixels(session.snapshot.embedding[[3, 23]])
    image = shown.overlay.grab().toImage()

    def strength(place):
        return QColor(image.pixel(*np.round(place).astype(int).tolist())).lightness()

    along = pixels[1] - pixels[0]
    across = np.array([-along[1], along[0]]) / np.linalg.norm(along)
    for share in (0.25, 0.5, 0.75):
        at = pixels[0] + share * along
        beside = [strength(at + side * across) for side in (-12, -8, 8, 12)]
        on_it = [strength(at + step * across) for step in (-1, 0, 1)]
        assert max(on_it) > max(beside) + 40


def test_lines_are_of_the_selection_of_a_map_at_rest(shown, session, engine, qtbot):
    choose(shown, qtbot, [3], ACROSS)
    for lines in ([], ACROSS):
        shown.look.far.native.click()
        qtbot.waitUntil(lambda lines=lines: shown.far.pairs.tolist() == lines)
    session.selection.clear()
    qtbot.waitUntil(lambda: not len(shown.far.pairs))
    choose(shown, qtbot, [3, 23], [])  # both ends are selected
    choose(shown, qtbot, [3], ACROSS)
    engine.gate.clear()
    shown.run.run.click()
    qtbot.waitUntil(lambda: not len(shown.far.pairs))
    engine.gate.set()
    qtbot.waitUntil(lambda: session.state == "finished")
    choose(shown, qtbot, [3], ACROSS)
    unknown = replace(session.snapshot, neighbors=None)
    session.restore(replace(session.capture(), snapshot=unknown))
    qtbot.waitUntil(lambda: not len(shown.far.pairs))


def test_of_many_lines_the_longest_are_drawn(make_snapshot, monkeypatch):
    monkeypatch.setattr(marks, "MOST_LINES", 3)
    snapshot = make_snapshot(50)
    neighbors = snapshot.neighbors.copy()
    neighbors[:5] = [[25, 15]]
    rows, y = np.arange(5), snapshot.embedding
    pairs = marks.far_pairs(replace(snapshot, neighbors=neighbors), rows, None)
    lengths = np.linalg.norm(y[rows][:, None] - y[[25, 15]], axis=2)
    drawn = np.linalg.norm(np.diff(y[pairs], axis=1)[:, 0], axis=1)
    np.testing.assert_allclose(drawn, np.sort(lengths.ravel())[::-1][:3], rtol=1e-6)
