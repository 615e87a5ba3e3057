"""What needs a real window: closing, drawing, clicking on the canvas."""

import time

import numpy as np
import pytest
from qtpy.compat import isalive
from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import QDockWidget, QMainWindow, QWidget

from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.ui.close_watcher import CloseWatcher
from napari_embedding_game.ui.connections import RUNNING_MS
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.tasks.worker import count_running_workers

NONE, CONTROL = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier


def test_closing_the_dock_ends_the_worker(
    click_run, qtbot, window, workspace, session, engine, slow
):
    for state in ("preparing", "running", "paused", "finished"):
        dock = GameDock(window, workspace, warm_up=False)
        window.window.add_dock_widget(dock, name="game")
        if state == "preparing":
            engine.gate.clear()
        if state == "finished":
            session.pace = UNPACED
        click_run(dock, "running" if state == "paused" else state)
        if state == "paused":
            dock.run_controls.pause_button.click()
        # What a finished run has measured besides comes to its end.
        qtbot.waitUntil(lambda: count_running_workers() == 1)
        engine.gate.set()
        window.window.remove_dock_widget(dock)
        qtbot.waitUntil(lambda: count_running_workers() == 0)
        assert session.state == "stopped", state
        qtbot.waitUntil(lambda one=dock: not isalive(one))


class Window(QMainWindow):
    """Holds a dock that tells when it is closed; may refuse to close."""

    def __init__(self, agrees):
        super().__init__()
        self.agrees, self.told, box, inside = agrees, [], QDockWidget(), QWidget()
        box.setWidget(inside)
        self.closing = CloseWatcher(inside, lambda: self.told.append(True))
        self.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, box)

    def closeEvent(self, event):
        event.setAccepted(self.agrees)


@pytest.mark.parametrize("agrees", [True, False])
def test_closing_is_told_before_the_event_loop_may_end(qtbot, agrees):
    window = Window(agrees)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    window.close()
    assert window.told == [True] * agrees
    qtbot.settle()
    assert window.told == [True] * agrees


def test_a_run_in_a_window_is_followed_without_haste_and_ended(
    click_run, qtbot, slow, monkeypatch, window, session, docked
):
    """A list that is drawn takes as long as an iteration of 70,000 points."""
    shown, table = [], docked.cluster_pane.table
    monkeypatch.setattr(table, "show_frame", lambda frame, **_: shown.append(frame))
    click_run(docked, "running")
    began = time.monotonic()
    qtbot.waitUntil(lambda: session.snapshot is not None)
    qtbot.wait(1_500)
    assert shown
    assert len(shown) <= 3 + (time.monotonic() - began) / (RUNNING_MS / 1_000)
    window.layers.clear()  # a person deletes them
    qtbot.waitUntil(lambda: count_running_workers() == 0)
    assert "was removed" in docked.run_controls.message.text()
    assert len(window.layers) == 0
    click_run(docked, "running")
    window.close()
    qtbot.waitUntil(lambda: count_running_workers() == 0)


def test_clicks_on_the_map_select_clusters(seen, session, qtbot):
    chosen, viewer, points = session.selection, seen.viewer, seen.layers.points

    def click(cluster, key=NONE):
        """Click on a landmark, which is in the middle of its cluster."""
        seen.click(*seen.pixels(session.snapshot.landmarks[cluster]), key)
        return chosen.clusters

    def escape():
        seen.key(Qt.Key.Key_Escape)
        return chosen.clusters

    assert click(2) == (2,)
    colors = np.ptp(points.face_color[:, :3], axis=1)  # 0 is grey
    assert (colors[session.snapshot.labels == 2] > 0.2).all()
    assert (colors[session.snapshot.labels != 2] < 0.1).all()
    inside = session.snapshot.labels == 2
    assert points.size[inside].min() > points.size[~inside].max()
    assert (click(0, CONTROL), click(2, CONTROL)) == ((2, 0), (0,))
    (begin,) = seen.pixels(session.snapshot.landmarks[1])
    seen.drag([begin, begin + QPoint(-40, 40)])  # none leaves the canvas
    assert chosen.clusters == (0,)
    viewer.layers.selection.active = viewer.add_image(np.zeros((8, 8)))
    qtbot.waitUntil(lambda: click(3) == (3,))  # the map makes room for the image
    labels = viewer.add_labels(np.eye(8, dtype=int))
    viewer.layers.selection.active = labels  # its keys are its own
    keeps = labels.preserve_labels
    assert escape() == (3,)
    seen.key(Qt.Key.Key_B)
    assert labels.preserve_labels != keeps
    seen.key(Qt.Key.Key_B)
    seen.click(QPoint(2, 2))
    viewer.layers.selection.active = points
    session.selection.select_cluster(3)
    assert escape() == ()
    assert (points.face_color[:, 3] == 1).all()
