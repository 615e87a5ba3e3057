"""The card beside the mouse, in a window."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import QEvent, QPoint, QRect, QSize, Qt
from qtpy.QtGui import QMouseEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QLabel, QWidget

from napari_embedding_game.ui.canvas.hover_card import BESIDE, beside
from napari_embedding_game.ui.canvas.hover_watch import point_at
from napari_embedding_game.ui.compat import canvas_widget
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.workspace import Workspace


@pytest.mark.parametrize("place", [(0, 0), (399, 0), (0, 299), (399, 299), (200, 150)])
def test_a_card_never_stands_out_nor_under_the_mouse(place):
    mouse, size, room = QPoint(*place), QSize(150, 100), QRect(0, 0, 400, 300)
    card = QRect(beside(mouse, size, room), size)
    assert room.contains(card)
    assert not card.contains(mouse)


def test_a_card_that_is_larger_than_the_canvas_begins_in_it():
    corner = beside(QPoint(50, 50), QSize(500, 500), QRect(0, 0, 100, 100))
    assert corner == QPoint(0, 0)
    assert beside(QPoint(5, 5), QSize(9, 9), QRect(0, 0, 100, 100)) == (
        QPoint(5, 5) + BESIDE
    )


def mouse_to(canvas, place):
    """Move the mouse for the canvas alone: QTest would move the screen's own, which
    may be over a window that another test has left.
    """
    where = canvas.mapToGlobal(place).toPointF()
    none = Qt.MouseButton.NoButton
    keys = Qt.KeyboardModifier.NoModifier
    move = QEvent.Type.MouseMove
    event = QMouseEvent(move, place.toPointF(), where, none, none, keys)
    QApplication.sendEvent(canvas, event)


@pytest.fixture
def hover(make_napari_viewer, session, dataset, qtbot, click_run):
    """Move the mouse onto the point of a row; returns the card."""
    images = np.arange(40, dtype=np.uint8)[:, None, None] * np.ones((1, 8, 8), np.uint8)
    session.load(
        replace(dataset, images=images, texts=[f"text {i}" for i in range(40)])
    )
    viewer = make_napari_viewer(show=True)
    dock = GameDock(viewer, Workspace(session), warm_up=False)
    viewer.window.add_dock_widget(dock, name="game")
    click_run(dock)
    qtbot.wait(50)
    # With room around it: the canvas may have become smaller since the map was fitted.
    viewer.fit_to_view(margin=0.3)
    canvas = canvas_widget(dock)

    def move(row):
        for _ in range(40):
            world = dock.controller.layers.to_world(session.snapshot.embedding[[row]])
            (pixel,) = dock.controller.layers.projection().to_pixels(world)
            place = QPoint(*map(round, pixel))
            # To where it is already would be no move, and vispy leaves out those that
            # follow at once, as they do on a busy machine.
            mouse_to(canvas, place + QPoint(40, 0))
            qtbot.wait(20)
            mouse_to(canvas, place)
            # What comes between, as a window beside this one that is shown, takes the
            # mouse away: then it is moved again.
            with suppress(qtbot.TimeoutError):
                qtbot.waitUntil(lambda: dock.hover.hovering.row == row, timeout=700)
                return dock.hover.card
        found = point_at(session, dock.controller.layers, pixel)
        raise AssertionError(
            f"the mouse is not on {row}, at {place} of {canvas.size()}, where {found} "
            f"is drawn: {dock.hover.hovering.row} at {dock.hover.hovering.pixel}"
        )

    move.viewer, move.dock, move.canvas = viewer, dock, canvas
    yield move
    dock.controller.session_store.close()


def test_a_card_tells_of_the_point_under_the_mouse(hover, session, qtbot):
    session.clusters.rename(0, "B cells")
    card = hover(3)
    assert card.isVisible()
    assert (card.name.text(), card.cluster.text()) == ("cell3", "B cells")
    assert card.text.text() == "text 3"
    assert not card.picture.pixmap().isNull()
    assert card.picture.pixmap().toImage().pixelColor(40, 40).red() == 3
    corner = hover.canvas.mapFromGlobal(card.pos())
    assert hover.canvas.rect().contains(QRect(corner, card.size()))
    assert card.isWindow()  # not to have all points drawn anew with each move
    parts = pd.Categorical.from_codes(np.arange(40) // 10, list("wxyz"))
    mixed = pd.Categorical(list("pqrst") * 8)
    for name, values in {**dict.fromkeys("abcdef", mixed), "part": parts}.items():
        session.dataset.add_taught(name, values, np.ones(40), {})
    session.columns_changed.emit()
    hover(30)
    assert card.name.text() == "cell30"
    assert card.cluster.text() == "Cluster 3"
    told = [label.text() for label in card.findChildren(QLabel)]
    assert {"part", "z"} <= set(told)  # the clusters explain it, if it is the last


def test_the_card_goes_with_the_mouse_and_takes_neither_click_nor_focus(
    hover, session, qtbot
):
    viewer, canvas = hover.viewer, hover.canvas
    before = QApplication.focusWidget()
    card = hover(3)
    assert QApplication.focusWidget() is before
    assert card.testAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    assert card.windowFlags() & Qt.WindowType.WindowTransparentForInput
    mouse_to(canvas, QPoint(3, 3))
    qtbot.waitUntil(lambda: not card.isVisible())
    for leave in (
        lambda: QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=QPoint(2, 2)),
        lambda: setattr(viewer.scene.camera, "zoom", viewer.scene.camera.zoom * 1.01),
        lambda: session.load(session.dataset),
    ):
        hover(3)
        assert card.isVisible()
        leave()
        QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
        assert not card.isVisible()


def test_the_card_wears_the_theme(hover, qtbot):
    dark = hover(3).styleSheet()
    hover.viewer.theme = "light"
    assert hover(4).styleSheet() != dark


def test_closing_the_dock_takes_the_card_away(hover, qtbot):
    hover(3)
    hover.viewer.window.remove_dock_widget(hover.dock)
    assert hover.dock.hover.card is None
    assert hover.viewer.mouse_move_callbacks == []
    qtbot.waitUntil(lambda: not hover.canvas.findChildren(QWidget, "hover_card"))
