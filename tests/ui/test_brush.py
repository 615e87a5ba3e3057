"""The brush on the canvas, with the mouse; the map has 40 points on a circle."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

import worlds
from napari_embedding_game.session.comparing import comparing_job
from napari_embedding_game.ui.canvas import mouse
from napari_embedding_game.ui.canvas.layers import COMPARED

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
    dock.select.lasso.click()
    dock.select.brush.click()
    assert not dock.select.lasso.isChecked()
    assert dock.select.tool_hint.isVisible()
    before, center = points.data.copy(), camera.center
    painter.press(0, 8)
    qtbot.wait(20)
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
    select, camera = seen.dock.select, seen.viewer.scene.camera
    (far,), zoom = painter.path(10, 10), camera.zoom
    far += QPoint(60, 60)
    for times in (1, 2):
        QTest.mouseDClick(seen.native, LEFT, NONE, far)
        QTest.mouseRelease(seen.native, LEFT, NONE, far)
        assert camera.zoom == times * zoom
        if times == 1:
            seen.key(Qt.Key.Key_B)
            assert not select.tool_hint.isVisible()
            assert not select.brush.isChecked()
            assert painter.stroke(20, 22) == [10, 15, 16]  # moves the picture
            seen.key(Qt.Key.Key_B)
            assert select.brush.isChecked()
            select.lasso.click()
            assert seen.dock.mouse.tool == "lasso"
            select.lasso.click()


def test_whatever_is_drawn_can_be_painted(
    painter, seen, session, slow, qtbot, make_snapshot
):
    draw, flat = seen.dock.controller.scene.draw, session.snapshot
    seen.key(Qt.Key.Key_B)
    # Maps side by side: what is painted on either is one set.
    session.view.compare(comparing_job(session, session.timeline.newest.number)())
    qtbot.waitUntil(lambda: seen.layers.other(COMPARED) is not None)
    qtbot.wait(30)  # the camera is fitted
    assert painter.stroke(40, 48) == painter.stroke(0, 8) == NINE
    session.view.compare(None)
    # A map in space, as it is seen.
    session.snapshot = make_snapshot(50, n_components=3)
    draw(session.snapshot)
    qtbot.wait(30)
    assert painter.stroke(0, 8) == NINE
    session.snapshot = flat
    draw(flat)
    qtbot.wait(30)
    # A running one stands still during a stroke, and then is where it has come to.
    points = seen.layers.points
    seen.dock.controller.play(session.play_on)
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
    qtbot.wait(30)  # it is deleted
    assert painter.let_go(end) == []
    assert seen.viewer.scene.camera.mouse_pan
