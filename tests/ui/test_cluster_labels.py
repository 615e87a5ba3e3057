"""The names of clusters over the canvas: which, and in step with the edits."""

import numpy as np
import pytest
from qtpy.QtCore import QPointF, Qt
from qtpy.QtGui import QColor, QImage, QPainter
from qtpy.QtTest import QTest

from napari_embedding_game.ui.canvas.overlays.cluster_labels import (
    STEPPED_BACK,
    to_be_named,
)
from napari_embedding_game.ui.compat import canvas_widget
from napari_embedding_game.ui.style.halo_text import (
    HALO,
    ON_DARK,
    ON_LIGHT,
    half_size,
    write,
)
from napari_embedding_game.ui.workspace import Workspace


def written(dock, qtbot, expected):
    qtbot.waitUntil(lambda: sorted(dock.names.shown()) == sorted(expected))


def test_names_follow_rename_merge_and_run(play, qtbot, dock, session):
    play()
    written(dock, qtbot, "0123")
    session.clusters.rename(0, "B cells")
    session.clusters.rename(2, "T cells")
    written(dock, qtbot, ["B cells", "T cells", "1", "3"])
    place = dock.controller.layers.to_map(dock.names.names.places[0])
    members = session.snapshot.embedding[session.clusters.labels == 0]
    assert np.abs(members - place).sum(axis=1).min() < 1e-3
    session.clusters.rename(2, "NK")
    written(dock, qtbot, ["B cells", "NK", "1", "3"])
    session.clusters.merge([0, 2])
    written(dock, qtbot, ["B cells", "1", "3"])
    session.clusters.undo()
    written(dock, qtbot, ["B cells", "NK", "1", "3"])


def test_names_hide_while_the_game_is_played(slow, play, qtbot, dock, session):
    play("running")
    assert dock.names.shown() == {}
    dock.run.pause.native.click()
    written(dock, qtbot, "0123")
    dock.run.pause.native.click()
    qtbot.waitUntil(lambda: session.state == "running")
    assert dock.names.shown() == {}


def test_names_are_read_in_a_branch_that_moves(slow, play, qtbot, dock, session):
    play("running")
    session.stop()
    dock.controller.play_on()
    qtbot.waitUntil(lambda: session.state == "running")
    written(dock, qtbot, "0123")


def test_names_hide_where_they_would_touch(play, qtbot, viewer, dock, session):
    play()
    session.clusters.rename(3, "B cells")
    written(dock, qtbot, ["B cells", "0", "1", "2"])
    viewer.scene.camera.zoom = 0.001
    assert list(dock.names.shown()) == ["B cells"]


def test_names_can_be_turned_off(play, qtbot, dock, session):
    play()
    written(dock, qtbot, "0123")
    dock.look.names.value = False
    written(dock, qtbot, [])
    assert not session.look.show_names
    dock.look.names.value = True
    written(dock, qtbot, "0123")


def test_of_many_clusters_only_given_names_are_written(session):
    book = session.clusters
    book.receive(np.arange(40, dtype=np.int32), 40)
    assert len(to_be_named(book.clusters)) == 40
    book.restart(41)
    book.receive(np.arange(41, dtype=np.int32), 41)
    assert to_be_named(book.clusters) == ()
    book.rename(7, "B cells")
    assert [c.name for c in to_be_named(book.clusters)] == ["B cells"]


def test_names_of_other_clusters_step_back(play, qtbot, dock, session):
    play()
    written(dock, qtbot, "0123")
    session.selection.select(1)
    shown = dock.names.shown()
    assert shown["1"] == 1
    assert shown["0"] == STEPPED_BACK
    session.selection.select_points(np.array([0]))  # of cluster 0
    assert dock.names.shown()["0"] == 1


@pytest.mark.parametrize("colors", [ON_DARK, ON_LIGHT])
@pytest.mark.parametrize("ground", ["black", "white", "#f28e2b"])
def test_a_name_is_read_on_any_colour(qtbot, colors, ground):
    image = QImage(120, 40, QImage.Format.Format_RGB32)
    image.fill(QColor(ground))
    painter = QPainter(image)
    write(painter, QPointF(60, 20), "T cells", True, colors)
    painter.end()
    grey = [[QColor(image.pixel(x, y)).lightnessF() for x in range(120)] for y in (20,)]
    assert max(grey[0]) - min(grey[0]) > 0.8
    height, width = half_size("T cells", True)
    changed = np.array(
        [
            [image.pixelColor(x, y) != QColor(ground) for x in range(120)]
            for y in range(40)
        ]
    )
    rows, columns = np.nonzero(changed)
    assert abs(rows.mean() - 20) < 3
    assert columns.min() > 60 - width - HALO
    assert columns.max() < 60 + width + HALO
    assert rows.max() - rows.min() < 2 * height


@pytest.fixture
def shown(make_napari_viewer, session, qtbot, click_run):
    from napari_embedding_game.ui.game_dock import GameDock

    viewer = make_napari_viewer(show=True)
    dock = GameDock(viewer, Workspace(session), warm_up=False)
    viewer.window.add_dock_widget(dock, name="game")
    click_run(dock)
    qtbot.waitUntil(lambda: dock.overlay.widget is not None)
    qtbot.wait(50)
    yield viewer, dock
    dock.controller.session_store.close()


def test_names_stand_where_their_clusters_are_drawn(shown, session, qtbot):
    _, dock = shown
    canvas = canvas_widget(dock)
    overlay, names = dock.overlay.widget, dock.names.names
    assert overlay.parent() is canvas
    assert overlay.size() == canvas.size()
    pixels = dock.controller.layers.projection().to_pixels(names.places)
    picture = overlay.grab().toImage()
    for cluster, (x, y) in zip(names.clusters, pixels, strict=True):
        place = QPointF(x, y).toPoint()
        around = [
            QColor(picture.pixel(place.x() + dx, place.y() + dy)).lightness()
            for dx in range(-6, 7)
            for dy in range(-6, 7)
        ]
        assert max(around) > 200
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place)
        assert session.selection.clusters == (cluster.id,)


def test_names_go_with_the_points_and_with_the_dock(shown, qtbot):
    viewer, dock = shown
    overlay = dock.overlay.widget
    assert overlay.isVisible()
    dock.controller.layers.points.visible = False
    assert not overlay.isVisible()
    dock.controller.layers.points.visible = True
    assert overlay.isVisible()
    viewer.window.remove_dock_widget(dock)
    assert canvas_widget(dock) is None
    assert dock.overlay.widget is None
