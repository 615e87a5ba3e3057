"""The brush on the canvas, with the mouse."""

from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QWidget

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect.brushing import ListedBy
from napari_embedding_game.ui.canvas import brush_neighbors
from napari_embedding_game.ui.canvas.brush import HOW, RADIUS
from napari_embedding_game.ui.canvas.brush_neighbors import LISTING, SEARCHING, WITHOUT
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
        self.at = None
        """Returns where a row is drawn, on whichever map."""

    def drawn_layers(self):
        both = self.layers.points, self.layers.beside.layer
        return [layer for layer in both if layer is not None]

    def pixel(self, row):
        place = self.at or (lambda row: self.session.snapshot.embedding[row])
        world = self.layers.to_world(place(row))
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
def painter(make_napari_viewer, session, qtbot, click_run, make_snapshot):
    from napari_embedding_game.ui.game_dock import GameDock

    viewer = make_napari_viewer(show=True)
    dock = GameDock(viewer, Workspace(session), warm_up=False)
    viewer.window.add_dock_widget(dock, name="game")
    click_run(dock)
    qtbot.wait(50)
    painter = Painter(qtbot, viewer, dock, session)
    painter.make_snapshot = make_snapshot
    yield painter
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


@pytest.fixture
def graph(engine, make_snapshot):
    """What the engine finds when it searches, held by its gate."""
    found = SimpleNamespace(indices=make_snapshot().neighbors)
    engine.neighbors = lambda X, start: engine.gate.wait(10) and found
    yield engine.gate
    engine.gate.set()


def forget_neighbors(painter):
    session = painter.session
    session.snapshot = replace(session.snapshot, neighbors=None)
    painter.dock.controller.render(session.snapshot)


def test_where_a_map_keeps_no_neighbours_they_are_searched_for(
    painter, graph, session, engine, slow
):
    dock, points, waits = painter.dock, painter.layers.points, painter.qtbot.waitUntil
    dock.controller.brush.set_radius(8)
    forget_neighbors(painter)
    hand = dock.select.hand.neighbors
    graph.clear()
    painter.key(Qt.Key.Key_B)
    assert painter.told == f"{HOW} {SEARCHING}"
    before = points.data.copy()
    painter.press(1)
    painter.move(range(1, 6))
    waits(lambda: painter.told == f"5 selected. {SEARCHING}")
    assert np.array_equal(points.data, before)
    graph.set()  # they come while the button is held
    waits(lambda: "4 selected" in painter.told and "1 stranger" in painter.told)
    waits(lambda: not np.array_equal(points.data[3], before[3]))
    painter.let_go(5)
    assert painter.selected == [1, 2, 4, 5]
    assert np.array_equal(points.data, before)
    assert painter.told == HOW
    assert hand.enabled
    check_a_running_map(painter)
    session.stop()
    engine.neighbors = Mock(side_effect=InputError("Not so many."))
    check_nobody_knows(painter)


def check_nobody_knows(painter):
    """It says so."""
    session, dataset = painter.session, painter.session.dataset
    painter.key(Qt.Key.Key_B)
    session.dataset = replace(dataset, X=dataset.X.copy())
    forget_neighbors(painter)
    painter.key(Qt.Key.Key_B)
    painter.qtbot.waitUntil(lambda: painter.told == f"{HOW} {WITHOUT} Not so many.")
    session.dataset = replace(
        dataset,
        X=np.zeros((40, 0), "f4"),
        var_names=(),
        missing_reason="No data.",
    )
    painter.stroke(1, 5)
    assert painter.selected == [1, 2, 3, 4, 5]
    assert painter.told == f"{HOW} {WITHOUT} No data."


def test_a_press_waits_for_no_lists(painter, session, monkeypatch):
    may_list, made = Event(), ListedBy.__init__
    monkeypatch.setattr(brush_neighbors, "MOST_AT_ONCE", 0)
    monkeypatch.setattr(
        ListedBy, "__init__", lambda *args: may_list.wait(10) and made(*args)
    )
    painter.dock.controller.brush.set_radius(8)
    painter.key(Qt.Key.Key_B)
    painter.press(1)
    painter.move(range(1, 6))
    painter.qtbot.waitUntil(lambda: painter.told == f"5 selected. {LISTING}")
    may_list.set()
    painter.qtbot.waitUntil(lambda: "4 selected" in painter.told)
    painter.let_go(5)
    check_maps_side_by_side(painter)
    check_groups_side_by_side(painter)
    check_a_map_in_space(painter)


def check_stroke(painter, layer, expected, far=0):
    """Brush over 0 to 8 of one of the maps: 3 is moved there and not taken."""
    before = [layer.data.copy() for layer in painter.drawn_layers()]
    places = painter.session.seen
    painter.at = lambda row: places[far + row]
    painter.press(0)
    painter.move(range(9))
    moved = layer.data
    index = 3 if layer is painter.layers.points else far + 3 - 40
    home = before[painter.drawn_layers().index(layer)][index]
    painter.qtbot.waitUntil(lambda: not np.array_equal(moved[index], home))
    step = moved[index] - home
    painter.let_go(8)
    assert painter.selected == expected
    for layer, was in zip(painter.drawn_layers(), before, strict=True):
        assert np.array_equal(layer.data, was)
    painter.at = None
    return step


def check_maps_side_by_side(painter):
    """Points move on the map under the brush, and the set is one for all."""
    session, waits = painter.session, painter.qtbot.waitUntil
    session.comparing.take(session.comparing.job(session.timeline.newest.number)())
    session.comparing.lay_side_by_side(True)
    waits(lambda: painter.layers.beside.layer is not None)
    painter.qtbot.wait(30)  # the camera is fitted
    painter.dock.controller.brush.set_radius(4)
    beside = painter.layers.beside.layer
    check_stroke(painter, beside, [0, 1, 2, 4, 5, 6, 7, 8], far=40)
    check_stroke(painter, painter.layers.points, [0, 1, 2, 4, 5, 6, 7, 8])
    session.comparing.end()


def check_groups_side_by_side(painter):
    """Neighbours in other groups, which lie elsewhere, are not looked at."""
    session = painter.session
    session.look.split_by = "kind"
    painter.qtbot.wait(30)
    lists = painter.dock.controller.brush._neighbors
    painter.qtbot.waitUntil(lambda: lists.lists is not None)
    known = (lists.lists.neighbors >= 0).any(axis=1)
    assert np.flatnonzero(known).tolist() == [3, 23]  # B has T on both sides, and T B
    session.look.split_by = ""


def check_a_map_in_space(painter):
    """Points move parallel to the canvas."""
    session = painter.session
    session.snapshot = painter.make_snapshot(50, n_components=3)
    painter.dock.controller.render(session.snapshot)
    painter.qtbot.wait(30)
    step = check_stroke(painter, painter.layers.points, [0, 1, 2, 4, 5, 6, 7, 8])
    ahead = painter.layers.projection().ahead
    assert abs(step @ ahead) < 1e-3 * np.linalg.norm(step)


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
