"""A panel is made to float by the button that napari replaces meanwhile."""

import gc

import numpy as np
from napari._qt.widgets import qt_viewer_dock_widget
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget

from napari_embedding_game.ui import napari_fixes
from napari_embedding_game.ui.napari_fixes import mend_napari

LEFT = Qt.MouseButton.LeftButton


def test_a_button_outlives_its_click(make_napari_viewer, dock, qtbot):
    """Of napari's own panel, which was made before, and of ours."""
    viewer = make_napari_viewer(show=True)
    outlives_its_click(viewer.window._qt_viewer.dockLayerList, qtbot)
    box = viewer.window.add_dock_widget(dock, name="game")
    outlives_its_click(box, qtbot)
    viewer.window.remove_dock_widget(box)


def outlives_its_click(box, qtbot):
    happened = []
    for is_floating in (True, False, True):
        button = box.title.float_button
        button.clicked.connect(lambda: happened.append("clicked"))
        button.destroyed.connect(lambda: happened.append("destroyed"))
        QTest.mouseClick(button, LEFT)
        gc.collect()
        assert happened == ["clicked"]
        assert box.isFloating() == is_floating
        assert box.title.float_button is not button
        qtbot.waitUntil(lambda: happened == ["clicked", "destroyed"])
        happened.clear()


def test_a_panel_that_goes_right_after_takes_its_title_with_it(
    make_napari_viewer, qtbot
):
    mend_napari()
    viewer = make_napari_viewer(show=True)
    box = viewer.window.add_dock_widget(QWidget(), name="mine")
    QTest.mouseClick(box.title.float_button, LEFT)
    viewer.window.remove_dock_widget(box)
    qtbot.wait(50)


def test_a_panel_that_was_closed_can_still_be_floated(make_napari_viewer, qtbot):
    mend_napari()
    viewer = make_napari_viewer(show=True)
    box = viewer.window.add_dock_widget(QWidget(), name="mine")
    bar = box.title
    QTest.mouseClick(bar.close_button, LEFT)
    bar.float_button.click()  # before Qt has come to delete both
    assert box.title is bar
    qtbot.waitUntil(lambda: bar not in napari_fixes._held)


def test_a_title_bar_is_held_until_qt_deletes_it(make_napari_viewer, qtbot):
    mend_napari()
    viewer = make_napari_viewer(show=True)
    box = viewer.window.add_dock_widget(QWidget(), name="mine")
    first, n_before = box.title, len(napari_fixes._held)
    assert napari_fixes._held[first] is box  # which its cross asks to close
    QTest.mouseClick(first.float_button, LEFT)
    second = box.title
    qtbot.waitUntil(lambda: first not in napari_fixes._held)
    assert second in napari_fixes._held
    assert len(napari_fixes._held) == n_before
    viewer.window.remove_dock_widget(box)
    qtbot.waitUntil(lambda: second not in napari_fixes._held)


def test_a_window_that_is_closed_leaves_the_other_its_picture(
    make_napari_viewer, qtbot
):
    mend_napari()
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


def test_without_what_it_needs_of_napari_all_stays_as_it_was(monkeypatch, caplog):
    monkeypatch.delattr(qt_viewer_dock_widget, "QtCustomTitleBar")
    mend_napari()
    for name in ("__init__", "setParent", "deleteLater"):
        assert f"napari has changed: {name} is left" in caplog.text
