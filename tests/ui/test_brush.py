"""The brush on the canvas, with the mouse; the map has 40 points on a circle."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication
from qtpy.QtWidgets import QDockWidget as Panel

import worlds
from napari_embedding_game.session.quality import make_comparison_job
from napari_embedding_game.ui.canvas import mouse
from napari_embedding_game.ui.canvas.layers import COMPARED
from napari_embedding_game.ui.compat import find_main_window
from worlds import click

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
SHIFT, CONTROL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
NINE = [*range(9)]


class Painter:
    """A person with the brush in a window."""

    def __init__(self, seen, session):
        self.seen, self.session = seen, session

    def path(self, first, last):
        """Where rows are drawn; rows from 40 on are those of a map beside."""
        return self.seen.pixels(self.session.view.positions[first : last + 1])

    def press(self, first, last):
        self.seen.press(self.path(first, last))

    def let_go(self, pixel):
        QTest.mouseRelease(self.seen.native, LEFT, pos=pixel)
        return self.session.selection.rows.tolist()

    def stroke(self, first, last, key=NONE):
        """Paint over rows; return those that are selected then."""
        self.seen.drag(self.path(first, last), key)
        return self.session.selection.rows.tolist()


@pytest.fixture
def painter(seen, session, monkeypatch):
    monkeypatch.setattr(mouse, "BRUSH_RADIUS", 6)
    return Painter(seen, session)


def test_a_stroke_becomes_the_selection(painter, seen, qtbot, session):
    dock, points, camera = seen.dock, seen.layers.points, seen.viewer.scene.camera
    dock.selection_controls.lasso_button.click()
    dock.selection_controls.brush_button.click()
    assert not dock.selection_controls.lasso_button.isChecked()
    assert dock.selection_controls.tool_hint.isVisible()
    before, center = points.data.copy(), camera.center
    painter.press(0, 8)
    qtbot.settle()
    (end,) = painter.path(8, 8)
    color = worlds.color_at(dock.overlay, end + QPoint(6, 0))
    assert color.red() > 200 > 60 > color.blue()  # its edge is smooth
    assert session.selection.is_empty
    assert painter.let_go(end) == NINE
    assert np.array_equal(points.data, before)
    assert camera.center == center
    painter.stroke(10, 12)
    assert painter.stroke(15, 16, SHIFT) == [10, 11, 12, 15, 16]
    painter.press(30, 32)
    seen.key(Qt.Key.Key_Escape)
    assert painter.let_go(*painter.path(32, 32)) == [10, 11, 12, 15, 16]
    assert np.array_equal(points.data, before)
    assert painter.stroke(11, 12, CONTROL) == [10, 15, 16]
    keys_and_a_double_click_are_napari_s_once_it_is_put_away(painter, seen)


def keys_and_a_double_click_are_napari_s_once_it_is_put_away(painter, seen):
    select, camera = seen.dock.selection_controls, seen.viewer.scene.camera
    (far,), zoom = painter.path(10, 10), camera.zoom
    far += QPoint(60, 60)
    for times in (1, 2):
        QTest.mouseDClick(seen.native, LEFT, NONE, far)
        QTest.mouseRelease(seen.native, LEFT, NONE, far)
        assert camera.zoom == times * zoom
        if times == 1:
            seen.key(Qt.Key.Key_B)
            assert not select.tool_hint.isVisible()
            assert not select.brush_button.isChecked()
            assert painter.stroke(20, 22) == [10, 15, 16]  # moves the picture
            seen.key(Qt.Key.Key_B)
            assert select.brush_button.isChecked()
            select.lasso_button.click()
            assert seen.dock.mouse.tool == "lasso"
            select.lasso_button.click()


def test_whatever_is_drawn_can_be_painted(
    painter, seen, session, slow, qtbot, make_snapshot
):
    draw, flat = seen.dock.controller.scene.render_map, session.snapshot
    seen.key(Qt.Key.Key_B)
    # Maps side by side: what is painted on either is one set.
    session.view.set_comparison(
        make_comparison_job(session, session.timeline.newest.number)()
    )
    qtbot.waitUntil(lambda: seen.layers.find_points_layer(COMPARED) is not None)
    qtbot.settle()  # the camera is fitted
    assert painter.stroke(40, 48) == painter.stroke(0, 8) == NINE
    session.view.set_comparison(None)
    # A map in space, as it is seen.
    session.snapshot = make_snapshot(50, n_components=3)
    draw(session.snapshot)
    qtbot.settle()
    assert painter.stroke(0, 8) == NINE
    session.snapshot = flat
    draw(flat)
    qtbot.settle()
    # A running one stands still during a stroke, and then is where it has come to.
    points = seen.layers.points
    seen.dock.controller.play(session.continue_run)
    qtbot.waitUntil(lambda: session.state == "running")
    painter.press(10, 12)
    held, (end,) = points.data.copy(), painter.path(12, 12)
    turned = session.snapshot.embedding[::-1].copy()
    session.snapshot = replace(session.snapshot, embedding=turned)
    draw(session.snapshot)  # a frame
    assert np.array_equal(points.data, held)
    assert painter.let_go(end) == [10, 11, 12]
    assert not np.array_equal(points.data, held)
    # Other data that come during a stroke are left as they are: no map is theirs yet.
    painter.press(10, 12)
    (end,) = painter.path(12, 12)
    session.load(worlds.rows(np.eye(7)))
    assert painter.let_go(end) == []
    # A stroke ends where its release is lost, and with its dock.
    for _ in range(2):
        seen.press([end])
    assert painter.let_go(end) == []
    assert seen.viewer.scene.camera.mouse_pan
    seen.press([end])
    seen.dock.close()
    qtbot.settle()  # it is deleted
    assert painter.let_go(end) == []
    assert seen.viewer.scene.camera.mouse_pan


def test_gestures_and_keys_are_the_map_s_where_it_is_and_as_long_as_it_is(
    painter, seen, session, qtbot
):
    viewer, dock, camera = seen.viewer, seen.dock, seen.viewer.scene.camera
    beside_the_map_the_mouse_is_napari_s(painter, seen, session, qtbot)
    keys_of_other_layers_are_theirs(seen, session)
    dock.mouse.toggle_tool("brush")
    shown = on_show(dock)
    click(dock.larger_map)
    assert on_show(dock) != shown
    session.load(worlds.rows(np.eye(40)))
    qtbot.waitUntil(lambda: not len(viewer.layers))
    assert not dock.mouse.tool
    assert not dock.larger_map.isChecked()
    assert on_show(dock) == shown
    viewer.add_image(np.zeros((9, 40, 40)))
    for n_displayed, key in ((2, NONE), (3, SHIFT)):
        viewer.dims.ndisplay = n_displayed
        before = camera.center, camera.angles
        seen.press([QPoint(200, 200), QPoint(260, 200), QPoint(300, 240)], key)
        assert not dock.overlay.line
        assert painter.let_go(QPoint(300, 240)) == []
        assert (camera.center, camera.angles) != before
    viewer.layers.clear()
    viewer.dims.ndisplay = 2
    dock.run_controls.run_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    assert painter.stroke(0, 12) == []


def on_show(dock):
    return [
        box for box in find_main_window(dock).findChildren(Panel) if box.isVisible()
    ]


def beside_the_map_the_mouse_is_napari_s(painter, seen, session, qtbot):
    viewer, drawn, points = seen.viewer, seen.dock.overlay, seen.layers.points
    image = viewer.add_image(np.zeros((40, 40)))
    qtbot.waitUntil(lambda: points.data[:, 1].min() > 40)  # it made room
    QApplication.processEvents()
    viewer.reset_view()
    viewer.layers.selection.active = points
    on_image = seen.pixels([(5, 5), (35, 5), (35, 35)], image)
    low, high = (side(session.snapshot.embedding, axis=0) for side in (np.min, np.max))
    on_map = seen.pixels([low - 0.2, (low[0], high[1]), high, (high[0], low[1])])
    for tool in ("", "brush"):
        if tool:
            seen.dock.mouse.toggle_tool(tool)
        for pixels, is_drawn in ((on_image, False), (on_map, True)):
            seen.press(pixels, NONE if tool else SHIFT)
            assert bool(drawn.line) == is_drawn
            assert bool(painter.let_go(pixels[-1])) == is_drawn
            session.selection.clear()
            viewer.reset_view()
    seen.dock.mouse.toggle_tool("brush")
    viewer.layers.remove(image)
    viewer.reset_view()


def keys_of_other_layers_are_theirs(seen, session):
    viewer, mouse_of_map = seen.viewer, seen.dock.mouse
    labels = viewer.add_labels(np.zeros((20, 20), np.uint8))
    seen.key(Qt.Key.Key_B)
    assert labels.preserve_labels
    shapes = viewer.add_shapes(np.array([[[0, 0], [9, 9]]] * 2))
    shapes.selected_data = {1}
    seen.key(Qt.Key.Key_B)
    session.selection.select_cluster(0)
    for key in (Qt.Key.Key_Escape, Qt.Key.Key_F2):
        seen.key(key)
    assert not session.selection.is_empty
    assert not mouse_of_map.tool
    viewer.layers.selection.active = seen.layers.points
    seen.key(Qt.Key.Key_Escape)
    assert session.selection.is_empty
    seen.key(Qt.Key.Key_B)
    assert mouse_of_map.tool == "brush"
    seen.key(Qt.Key.Key_B)
    viewer.layers.remove(labels)
    viewer.layers.remove(shapes)
    viewer.reset_view()
