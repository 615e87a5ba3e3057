"""Defects of napari and vispy that would raise or blank a window.

That which would end the process is asked in one of its own: test_pyside6.py.
"""

import gc
import importlib
import sys

import numpy as np
import pytest
from napari._qt.widgets.qt_viewer_dock_widget import QtViewerDockWidget
from qtpy.compat import isalive
from qtpy.QtCore import QPoint, Qt, QTimer
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget

from napari_embedding_game.ui import upstream_fixes
from napari_embedding_game.ui.compat import find_canvas_widget
from napari_embedding_game.ui.upstream_fixes import FIXES, UNFIXED_FROM, apply_fixes

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
LABELS = np.arange(12, dtype=np.int32).reshape(3, 4)


@pytest.fixture(autouse=True)
def mended():
    apply_fixes()
    apply_fixes()  # again is once


def test_views_change_under_a_mouse_that_drags(make_napari_viewer, qtbot):
    viewer = make_napari_viewer()
    viewer.window.show()
    viewer.window.resize(900, 700)
    rng = np.random.default_rng(0)
    viewer.add_image(rng.random((50, 50)))
    viewer.add_points(50 * rng.random((20, 2)))
    viewer.dims.ndisplay = 3
    viewer.canvas.grid.enabled = True
    qtbot.settle()
    canvas = find_canvas_widget(viewer.window.main_menu)

    def press():
        QTest.mousePress(canvas, LEFT, NONE, QPoint(100, 150))
        QTest.mouseMove(canvas, QPoint(110, 160))
        qtbot.wait(50)

    def drag():  # pytest-qt fails for what is raised in here
        for step in range(4):
            QTest.mouseMove(canvas, QPoint(120 + 20 * step, 170 + 20 * step))
            qtbot.wait(20)
        QTest.mouseRelease(canvas, LEFT, NONE, QPoint(200, 250))

    for change, one_takes_over in (
        (lambda: viewer.add_points(50 * rng.random((20, 2))), False),
        (viewer.layers.pop, False),
        (lambda: setattr(viewer.canvas.grid, "enabled", False), True),
    ):
        press()
        change()
        qtbot.settle()
        before = viewer.scene.camera.angles
        drag()
        assert (viewer.scene.camera.angles == before) or one_takes_over
        press()
        drag()
        assert viewer.scene.camera.angles != before


def test_a_button_outlives_its_click(make_napari_viewer, dock, qtbot):
    """Of napari's own panel, which was made before, and of ours."""
    viewer = make_napari_viewer(show=True)
    outlives_its_click(viewer.window._qt_viewer.dockLayerList, qtbot)
    box = viewer.window.add_dock_widget(dock, name="game")
    outlives_its_click(box, qtbot)
    viewer.window.remove_dock_widget(box)
    a_panel_goes_with_its_title_whatever_is_done_to_it_last(viewer, qtbot)


def outlives_its_click(box, qtbot):
    happened = []
    for is_floating in (True, False):
        button = box.title.float_button
        button.clicked.connect(lambda: happened.append("clicked"))
        button.destroyed.connect(lambda: happened.append("destroyed"))
        QTest.mouseClick(button, LEFT)
        gc.collect()
        assert happened == ["clicked"]
        assert box.isFloating() == is_floating
        qtbot.waitUntil(lambda: happened == ["clicked", "destroyed"])
        assert box.title.float_button is not button
        happened.clear()


def a_panel_goes_with_its_title_whatever_is_done_to_it_last(viewer, qtbot):
    box = viewer.window.add_dock_widget(QWidget(), name="mine")
    bar = box.title
    QTest.mouseClick(bar.close_button, LEFT)
    bar.float_button.click()  # before Qt has come to delete both
    assert box.title is bar
    qtbot.waitUntil(lambda: not isalive(bar))
    box = viewer.window.add_dock_widget(QWidget(), name="another")
    QTest.mouseClick(box.title.float_button, LEFT)
    second = box.title
    viewer.window.remove_dock_widget(box)
    qtbot.waitUntil(lambda: not isalive(second))
    box = QtViewerDockWidget(viewer.window._qt_viewer, QWidget(), name="a third")
    QTimer.singleShot(0, box.deleteLater)  # as all are when the window is closed
    box._update_title_bar()
    qtbot.waitUntil(lambda: not isalive(box))


def test_a_window_that_is_closed_leaves_the_other_its_picture(
    make_napari_viewer, qtbot
):
    first, second = make_napari_viewer(show=True), make_napari_viewer(show=True)
    first.add_image(np.ones((8, 8)))
    image = second.add_image(np.ones((8, 8)), contrast_limits=(0, 1))
    white = second.screenshot(flash=False)
    first.close()
    image.contrast_limits = (0, 2)
    grey = second.screenshot(flash=False)
    middle = white.shape[0] // 2, white.shape[1] // 2
    assert white[middle][:3].tolist() == [255] * 3
    assert 120 < grey[middle][0] < 135


@pytest.mark.parametrize("fix", [*FIXES, None])
def test_a_module_of_another_name_costs_its_mending_and_no_dock(
    fix, monkeypatch, caplog
):
    """As napari 0.10 may call it: what is private has any name tomorrow."""
    module = "napari.utils.colormap_backend" if fix is None else fix.module
    monkeypatch.setitem(sys.modules, module, None)  # an import of it fails
    importlib.reload(upstream_fixes).apply_fixes()
    assert module in caplog.text
    monkeypatch.undo()
    backends = sys.modules["napari.utils.colormap_backend"]
    for name in ("ColormapBackend", "set_backend"):
        with monkeypatch.context() as context:
            context.delattr(backends, name)
            upstream_fixes.apply_fixes()
            assert f"{name} is left as it is" in caplog.text
    importlib.reload(upstream_fixes).apply_fixes()


def test_a_version_that_nobody_has_looked_at_is_left_as_it_is(monkeypatch):
    replaced = []
    monkeypatch.setattr(upstream_fixes, "replace_method", lambda *_: replaced.append(1))
    apply_fixes()
    assert len(replaced) == len(FIXES)
    monkeypatch.setattr(
        upstream_fixes, "version", lambda name: "{}.{}.0a1".format(*UNFIXED_FROM[name])
    )
    apply_fixes()
    assert len(replaced) == len(FIXES)
