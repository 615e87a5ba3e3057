"""The brush on the canvas, with the mouse."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget

from napari_embedding_game.ui.canvas.brush import (
    HOW,
    RADIUS,
)
from napari_embedding_game.ui.workspace import Workspace

LEFT = Qt.MouseButton.LeftButton
NONE, SHIFT, ALT = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)


class Painter:
    """A person with the brush in a window; the map has 40 points on a circle."""

    def __init__(self, qtbot, viewer, dock, session):
        self.qtbot, self.viewer, self.dock, self.session = qtbot, viewer, dock, session
        self.native = viewer.window._qt_viewer.canvas.native
        self.layers = dock.controller.layers

    def pixel(self, row):
        world = self.layers.to_world(self.session.snapshot.embedding[row])
        place = self.layers.projection().to_pixels(world[None])[0]
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

    @property
    def told(self):
        return self.dock.select.brush_size.told.text()


@pytest.fixture
def painter(make_napari_viewer, session, qtbot, click_run):
    from napari_embedding_game.ui.game_dock import GameDock

    viewer = make_napari_viewer(show=True)
    dock = GameDock(viewer, Workspace(session), warm_up=False)
    viewer.window.add_dock_widget(dock, name="game")
    click_run(dock)
    qtbot.wait(50)
    yield Painter(qtbot, viewer, dock, session)
    dock.controller.session_store.close()


def test_a_stroke_corrects_the_map_and_becomes_the_selection(painter, qtbot, session):
    dock, points = painter.dock, painter.layers.points
    dock.select.lasso.native.click()
    dock.select.brush.native.click()
    assert not dock.select.lasso.native.isChecked()
    assert painter.told == HOW
    brush, camera = dock.controller.brush, painter.viewer.scene.camera
    brush.set_radius(8)
    snapshot, before, center = session.snapshot, points.data.copy(), camera.center
    painter.press(0)
    painter.move(range(9))
    # Beside 2 and 4 the map has put 3, which is like 23 alone.
    qtbot.waitUntil(lambda: not np.array_equal(points.data[3], before[3]))
    assert "1 stranger stepped out" in painter.told
    ring = painter.native.findChild(QWidget, "brush")
    edge = painter.pixel(8) + QPoint(8, 0)
    color = ring.grab().toImage().pixelColor(edge)  # its edge is smooth
    assert color.red() > 200 > 60 > color.blue()
    assert painter.selected == []
    painter.let_go(8)
    assert painter.selected == [0, 1, 2, 4, 5, 6, 7, 8]
    assert np.array_equal(points.data, before)
    assert session.snapshot is snapshot
    assert camera.center == center
    assert painter.told == HOW
    # The looks are those of any selection.
    colors, sizes = points.face_color.copy(), points.size.copy()
    dock.controller.render(session.drawn)
    assert np.array_equal(points.face_color, colors)
    assert np.array_equal(points.size, sizes)
    check_modifiers_and_keys(painter)


def check_modifiers_and_keys(painter):
    """Go on in the same window, which takes a second to be made."""
    before = painter.layers.points.data.copy()
    painter.stroke(10, 12)
    painter.stroke(15, 16, SHIFT)
    assert painter.selected == [10, 11, 12, 15, 16]
    painter.press(30)
    painter.move(range(30, 33))
    painter.qtbot.waitUntil(lambda: "3 selected" in painter.told)
    painter.key(Qt.Key.Key_Escape)
    painter.let_go(32)
    assert painter.selected == [10, 11, 12, 15, 16]
    assert np.array_equal(painter.layers.points.data, before)
    zoom, box = (
        painter.viewer.scene.camera.zoom,
        painter.viewer.canvas.overlays._zoom_box,
    )
    painter.press(11, ALT)
    painter.move(range(11, 13))
    assert not box.visible  # napari's own, which Alt brings
    painter.let_go(12, ALT)
    assert painter.selected == [10, 15, 16]
    far = painter.pixel(10) + QPoint(60, 60)
    QTest.mouseDClick(painter.native, LEFT, NONE, far)
    QTest.mouseRelease(painter.native, LEFT, NONE, far)
    assert painter.viewer.scene.camera.zoom == zoom
    size = painter.dock.select.brush_size.slider
    painter.key(Qt.Key.Key_BracketRight)
    assert size.value() == painter.dock.controller.brush.radius == 10
    painter.key(Qt.Key.Key_BracketLeft)
    assert size.value() == 8
    size.setValue(RADIUS)
    assert painter.dock.controller.brush.radius == RADIUS
    painter.key(Qt.Key.Key_B)
    assert not painter.dock.select.brush_size.isVisible()
    assert not painter.dock.select.brush.native.isChecked()
    painter.stroke(20, 22)  # moves the picture, as ever
    assert painter.selected == [10, 15, 16]
    painter.key(Qt.Key.Key_B)
    assert painter.dock.select.brush.native.isChecked()
    painter.dock.select.lasso.native.click()
    assert not painter.dock.controller.brush.is_on
    QTest.mouseDClick(painter.native, LEFT, NONE, far)
    assert painter.viewer.scene.camera.zoom == 2 * zoom
    QTest.mouseRelease(painter.native, LEFT, NONE, far)


def test_where_nothing_can_be_corrected_the_brush_is_plain(painter, session, slow):
    dock, points, waits = painter.dock, painter.layers.points, painter.qtbot.waitUntil
    dock.controller.brush.set_radius(8)
    painter.key(Qt.Key.Key_B)
    session.snapshot = snapshot = replace(session.snapshot, neighbors=None)
    dock.controller.render(snapshot)
    before = points.data.copy()
    painter.press(1)
    painter.move(range(1, 6))
    waits(lambda: painter.told == f"5 selected. {PLAIN_WITHOUT}")
    assert np.array_equal(points.data, before)
    painter.let_go(5)
    assert painter.selected == [1, 2, 3, 4, 5]
    session.look.split_by = "kind"
    waits(lambda: painter.told == f"{HOW} {PLAIN_BESIDE}")
    session.look.split_by = ""
    check_a_running_map(painter)
    session.stop()
    places = np.pad(snapshot.embedding, ((0, 0), (0, 1)))
    landmarks = np.pad(snapshot.landmarks, ((0, 0), (0, 1)))
    session.snapshot = replace(snapshot, embedding=places, landmarks=landmarks)
    dock.controller.render(session.snapshot)
    painter.press(21)
    painter.move([21, 22])
    waits(lambda: PLAIN_IN_SPACE in painter.told)
    painter.let_go(22)
    assert {21, 22} <= set(painter.selected)
    assert 1 not in painter.selected


def check_a_running_map(painter):
    """It stands still during a stroke, and then is where it has come to."""
    session, points = painter.session, painter.layers.points
    painter.dock.controller.play_on()
    painter.qtbot.waitUntil(lambda: session.state == "running")
    painter.press(10)
    painter.move(range(10, 13))
    painter.qtbot.waitUntil(lambda: "stands still" in painter.told)
    held, end = points.data.copy(), painter.pixel(12)
    turned = session.snapshot.embedding[::-1].copy()
    session.snapshot = replace(session.snapshot, embedding=turned)
    painter.dock.controller.render(session.snapshot)  # a frame
    assert np.array_equal(points.data, held)
    QTest.mouseRelease(painter.native, LEFT, NONE, end)
    assert painter.selected == [10, 11, 12]
    assert not np.array_equal(points.data, held)
