"""The brush on the canvas, with the mouse."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

import worlds
from napari_embedding_game.session.comparing import comparing_job
from napari_embedding_game.ui.canvas import mouse
from napari_embedding_game.ui.canvas.layers import BESIDE

LEFT = Qt.MouseButton.LeftButton
NONE, SHIFT, CONTROL = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
)


class Painter:
    """A person with the brush in a window; the map has 40 points on a circle."""

    def __init__(self, qtbot, seen, session):
        self.qtbot, self.session = qtbot, session
        self.viewer, self.dock, self.native = seen.viewer, seen.dock, seen.native
        self.layers = self.dock.controller.scene.layers
        self.at = None
        """Returns where a row is drawn, on whichever map."""

    def pixel(self, row):
        place = self.at or (lambda row: self.session.snapshot.embedding[row])
        place = self.layers.projection().to_pixels(place(row)[None])[0]
        return QPoint(*np.round(place).astype(int).tolist())

    def press(self, row, modifier=NONE):
        QTest.mouseMove(self.native, self.pixel(row))
        QTest.mousePress(self.native, LEFT, modifier, self.pixel(row))

    def move(self, rows):
        for row in rows:
            self.qtbot.wait(15)  # moves that follow at once are taken for one
            QTest.mouseMove(self.native, self.pixel(row))

    def let_go(self, row, modifier=NONE):
        QTest.mouseRelease(self.native, LEFT, modifier, self.pixel(row))

    def stroke(self, first, last, modifier=NONE):
        self.press(first, modifier)
        self.move(range(first, last + 1))
        self.let_go(last, modifier)

    def key(self, key):
        QTest.keyClick(self.native, key)

    @property
    def selected(self):
        return self.session.selection.rows.tolist()


@pytest.fixture
def painter(seen, session, qtbot, make_snapshot, monkeypatch):
    monkeypatch.setattr(mouse, "RADIUS", 6)
    painter = Painter(qtbot, seen, session)
    painter.make_snapshot = make_snapshot
    return painter


def test_a_stroke_becomes_the_selection(painter, qtbot, session):
    dock, points = painter.dock, painter.layers.points
    dock.select.lasso.click()
    dock.select.brush.click()
    assert not dock.select.lasso.isChecked()
    assert dock.select.how.isVisible()
    camera = painter.viewer.scene.camera
    before, center = points.data.copy(), camera.center
    painter.press(0)
    painter.move(range(9))
    qtbot.wait(20)
    edge = painter.pixel(8) + QPoint(6, 0)
    color = dock.overlay.grab().toImage().pixelColor(edge)  # its edge is smooth
    assert color.red() > 200 > 60 > color.blue()
    assert painter.selected == []
    painter.let_go(8)
    assert painter.selected == list(range(9))
    assert np.array_equal(points.data, before)
    assert camera.center == center
    check_modifiers_and_keys(painter)


def check_modifiers_and_keys(painter):
    """Go on in the same window, which takes a second to be made."""
    before = painter.layers.points.data.copy()
    painter.stroke(10, 12)
    painter.stroke(15, 16, SHIFT)
    assert painter.selected == [10, 11, 12, 15, 16]
    painter.press(30)
    painter.move(range(30, 33))
    painter.key(Qt.Key.Key_Escape)
    painter.let_go(32)
    assert painter.selected == [10, 11, 12, 15, 16]
    assert np.array_equal(painter.layers.points.data, before)
    zoom = painter.viewer.scene.camera.zoom
    painter.stroke(11, 12, CONTROL)
    assert painter.selected == [10, 15, 16]
    far = painter.pixel(10) + QPoint(60, 60)
    QTest.mouseDClick(painter.native, LEFT, NONE, far)
    QTest.mouseRelease(painter.native, LEFT, NONE, far)
    assert painter.viewer.scene.camera.zoom == zoom
    painter.key(Qt.Key.Key_B)
    assert not painter.dock.select.how.isVisible()
    assert not painter.dock.select.brush.isChecked()
    painter.stroke(20, 22)  # moves the picture, as ever
    assert painter.selected == [10, 15, 16]
    painter.key(Qt.Key.Key_B)
    assert painter.dock.select.brush.isChecked()
    painter.dock.select.lasso.click()
    assert painter.dock.mouse.tool == "lasso"
    painter.dock.select.lasso.click()
    QTest.mouseDClick(painter.native, LEFT, NONE, far)
    assert painter.viewer.scene.camera.zoom == 2 * zoom
    QTest.mouseRelease(painter.native, LEFT, NONE, far)


def test_whatever_is_drawn_can_be_painted(painter, session, slow):
    painter.key(Qt.Key.Key_B)
    check_maps_side_by_side(painter)
    check_a_map_in_space(painter)
    check_a_running_map(painter)
    check_other_data_that_come_during_a_stroke(painter)


def check_stroke(painter, far=0):
    """Paint over 0 to 8 of one of the maps."""
    places = painter.session.view.seen
    painter.at = lambda row: places[far + row]
    painter.stroke(0, 8)
    painter.at = None
    assert painter.selected == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def check_maps_side_by_side(painter):
    """What is painted on either is one set."""
    session, waits = painter.session, painter.qtbot.waitUntil
    session.view.compare(comparing_job(session, session.timeline.newest.number)())
    waits(lambda: painter.layers.other(BESIDE) is not None)
    painter.qtbot.wait(30)  # the camera is fitted
    check_stroke(painter, far=40)
    check_stroke(painter)
    session.view.end_comparison()


def check_a_map_in_space(painter):
    """It is painted as it is seen."""
    session = painter.session
    flat = session.snapshot
    session.snapshot = painter.make_snapshot(50, n_components=3)
    painter.dock.controller.scene.draw(session.snapshot)
    painter.qtbot.wait(30)
    check_stroke(painter)
    session.snapshot = flat
    painter.dock.controller.scene.draw(flat)
    painter.qtbot.wait(30)


def check_a_running_map(painter):
    """It stands still during a stroke, and then is where it has come to."""
    session, points = painter.session, painter.layers.points
    painter.dock.controller.play(session.play_on)
    painter.qtbot.waitUntil(lambda: session.state == "running")
    painter.press(10)
    painter.move(range(10, 13))
    held, end = points.data.copy(), painter.pixel(12)
    turned = session.snapshot.embedding[::-1].copy()
    session.snapshot = replace(session.snapshot, embedding=turned)
    painter.dock.controller.scene.draw(session.snapshot)  # a frame
    assert np.array_equal(points.data, held)
    QTest.mouseRelease(painter.native, LEFT, NONE, end)
    assert painter.selected == [10, 11, 12]
    assert not np.array_equal(points.data, held)


def check_other_data_that_come_during_a_stroke(painter):
    """They are left as they are; must be the last, as no map of theirs is there."""
    painter.press(10)
    painter.move(range(10, 13))
    end = painter.pixel(12)
    painter.session.load(worlds.rows(np.eye(7)))
    QTest.mouseRelease(painter.native, LEFT, NONE, end)
    assert painter.selected == []
