"""Layers come and go without an end of the process, and under a mouse that drags."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from vispy.gloo import glir
from vispy.scene import SceneCanvas

from napari_embedding_game.ui.compat import camera_of
from napari_embedding_game.ui.vispy_fixes import mend_vispy

SCRIPT = Path(__file__).with_name("removed_layers.py")


def test_no_program_is_deleted(monkeypatch):
    asked = []
    monkeypatch.setattr(glir.gl, "glDeleteProgram", asked.append)
    mend_vispy()
    mend_vispy()
    program = glir.GlirProgram.__new__(glir.GlirProgram)
    program._handle = 7
    program.delete()
    assert asked == []


def test_without_what_it_needs_of_vispy_all_stays_as_it_was(monkeypatch, caplog):
    monkeypatch.delattr(glir, "GlirProgram")
    monkeypatch.delattr(SceneCanvas, "_process_mouse_event")
    mend_vispy()
    for name in ("delete", "_process_mouse_event"):
        assert f"vispy has changed: {name} is left" in caplog.text


def test_layers_come_and_go_beside_the_docks(tmp_path):
    # a process of its own: its death must not end the tests
    done = subprocess.run(
        [sys.executable, SCRIPT],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )
    assert "alive" in done.stdout, done.stderr[-3000:]


@pytest.mark.parametrize("change", ["a layer comes", "a layer goes", "no grid"])
def test_views_change_under_a_mouse_that_drags(make_napari_viewer, qtbot, change):
    mend_vispy()
    viewer = make_napari_viewer()
    viewer.window.show()
    viewer.window.resize(900, 700)
    rng = np.random.default_rng(0)
    viewer.add_image(rng.random((50, 50)))
    viewer.add_points(50 * rng.random((20, 2)))
    viewer.dims.ndisplay = 3
    viewer.canvas.grid.enabled = True
    qtbot.wait(300)
    canvas = viewer.window._qt_viewer.canvas.native
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QTest.mousePress(canvas, left, none, QPoint(100, 150))
    QTest.mouseMove(canvas, QPoint(110, 160))
    qtbot.wait(50)
    if change == "a layer comes":
        viewer.add_points(50 * rng.random((20, 2)))
    elif change == "a layer goes":
        viewer.layers.pop()
    else:
        viewer.canvas.grid.enabled = False
    qtbot.wait(100)
    before = camera_angles(viewer)
    for step in range(4):  # pytest-qt fails for what is raised in here
        QTest.mouseMove(canvas, QPoint(120 + 20 * step, 170 + 20 * step))
        qtbot.wait(20)
    QTest.mouseRelease(canvas, left, none, QPoint(200, 250))
    if change != "no grid":  # there the one view takes over
        assert camera_angles(viewer) == before
    QTest.mousePress(canvas, left, none, QPoint(100, 150))
    for step in range(4):
        QTest.mouseMove(canvas, QPoint(120 + 20 * step, 170 + 20 * step))
        qtbot.wait(20)
    QTest.mouseRelease(canvas, left, none, QPoint(200, 250))
    assert camera_angles(viewer) != before


def camera_angles(viewer):
    return camera_of(viewer).angles
