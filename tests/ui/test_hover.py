"""The tooltip of the point under the mouse, in a window."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import QEvent, QPoint, Qt
from qtpy.QtGui import QMouseEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication, QToolTip

from napari_embedding_game.data.dataset import Dataset


def mouse_to(canvas, place):
    """Move the mouse for the canvas alone: QTest would move the screen's own, which
    may be over a window that another test has left.
    """
    where, none = canvas.mapToGlobal(place).toPointF(), Qt.MouseButton.NoButton
    keys, move = Qt.KeyboardModifier.NoModifier, QEvent.Type.MouseMove
    event = QMouseEvent(move, place.toPointF(), where, none, none, keys)
    QApplication.sendEvent(canvas, event)


@pytest.fixture
def session(session, dataset):
    """With pictures and texts."""
    images = np.arange(40, dtype=np.uint8)[:, None, None] * np.ones((1, 8, 8), np.uint8)
    texts = [f"text <{i}>" for i in range(40)]
    session.load(replace(dataset, images=images, obs=dataset.obs.assign(text=texts)))
    return session


@pytest.fixture
def hover(seen, session, qtbot):
    """Move the mouse onto the point of a row; returns what is told of it."""
    # With room around it: the canvas may have become smaller since the map was fitted.
    seen.viewer.fit_to_view(margin=0.3)

    def move(row):
        for _ in range(40):
            (place,) = seen.pixels(session.snapshot.embedding[row])
            # To where it is already would be no move, and vispy leaves out those that
            # follow at once, as they do on a busy machine.
            mouse_to(seen.native, place + QPoint(40, 0))
            qtbot.wait(20)
            mouse_to(seen.native, place)
            # What comes between, as a window beside this one that is shown, takes the
            # mouse away: then it is moved again.
            with suppress(qtbot.TimeoutError):
                qtbot.waitUntil(lambda: f"cell{row}<" in QToolTip.text(), timeout=700)
                return QToolTip.text()
        raise AssertionError(f"not on {row}, but on {seen.dock.hover.row}")

    return move


def test_a_tooltip_tells_of_a_point_and_goes_with_mouse_and_dock(
    hover, seen, session, qtbot
):
    session.clusters.rename(0, "B cells")
    told = hover(3)
    assert QToolTip.isVisible()
    assert "B cells" in told
    assert "text &lt;3&gt;" in told
    qtbot.waitUntil(lambda: "<img" in QToolTip.text())  # when it has been made
    parts = pd.Categorical.from_codes(np.arange(40) // 10, list("wxyz"))
    mixed = pd.Categorical(list("pqrst") * 8)
    for name, values in {**dict.fromkeys("abcdef", mixed), "my label": parts}.items():
        session.add_columns(Dataset.with_map_column, name, values)
    told = hover(30)
    assert "Cluster 3" in told
    assert ">my label<" in told  # it says what a cell is, if it is the last
    assert ">z<" in told
    value = f"{session.dataset.profile_names[0]} ({session.dataset.column_noun})"
    session.add_columns(
        Dataset.with_map_column, session.dataset.profile_names[0], mixed
    )
    session.look.color_by = value
    assert f">{value}<" in hover(31)  # and not what the column of that name says
    session.look.color_by = "Pressure"
    assert ">Crowded (pressure)<" in hover(30)  # of none, too, as it is asked for
    says_the_rest_without_a_picture(hover, session)
    goes_with_the_mouse_and_with_the_dock(hover, seen, qtbot)


def says_the_rest_without_a_picture(hover, session):
    class Gone(list):
        def __getitem__(self, row):
            raise OSError(f"no page {row}")

    session.dataset = replace(session.dataset, images=Gone(session.dataset.images))
    assert "<img" not in hover(12)


def goes_with_the_mouse_and_with_the_dock(hover, seen, qtbot):
    viewer, canvas, camera = seen.viewer, seen.native, seen.viewer.scene.camera
    left = Qt.MouseButton.LeftButton
    for leave in (
        lambda: mouse_to(canvas, QPoint(3, 3)),
        lambda: QTest.mousePress(canvas, left, pos=QPoint(2, 2)),
        lambda: setattr(camera, "zoom", camera.zoom * 1.01),
    ):
        hover(3)
        leave()
        qtbot.waitUntil(lambda: not QToolTip.isVisible())
        QTest.mouseRelease(canvas, left, pos=QPoint(2, 2))
    hover(3)
    viewer.window.remove_dock_widget(seen.dock)
    qtbot.waitUntil(lambda: not QToolTip.isVisible())
    assert viewer.mouse_move_callbacks == []
