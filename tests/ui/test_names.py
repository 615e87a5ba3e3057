"""The names of clusters over the canvas: which, and in step with the edits."""

from dataclasses import replace

import numpy as np
from napari.settings import get_settings
from qtpy.QtCore import QPoint, QPointF, QRect, QSize, Qt
from qtpy.QtGui import QImage, QPainter
from qtpy.QtTest import QTest

from napari_embedding_game.ui.canvas.names import UNSELECTED_OPACITY
from napari_embedding_game.ui.style.halo_text import (
    ON_DARK,
    measure_half_size,
    paint_text_with_halo,
)
from worlds import names_read


def written(dock, qtbot, expected):
    qtbot.waitUntil(lambda: sorted(names_read(dock)) == sorted(expected))


def test_names_follow_edits_selection_and_zoom(play, qtbot, viewer, dock, session):
    play()
    written(dock, qtbot, "0123")
    session.clusters.rename(0, "B cells")
    session.clusters.rename(2, "NK")
    written(dock, qtbot, ["B cells", "NK", "1", "3"])
    members = session.snapshot.embedding[session.clusters.labels == 0]
    assert (members == dock.map_names.names.positions[0]).all(axis=1).any()
    session.clusters.merge([0, 2])
    written(dock, qtbot, ["B cells", "1", "3"])
    session.clusters.undo()
    written(dock, qtbot, ["B cells", "NK", "1", "3"])
    session.selection.select_cluster(1)
    shown = names_read(dock)
    assert (shown["1"], shown["B cells"]) == (1, UNSELECTED_OPACITY)
    session.selection.select_points(np.array([0]))  # of cluster 0
    assert names_read(dock)["B cells"] == 1
    viewer.scene.camera.zoom = 0.001
    assert len(names_read(dock)) == 1  # the others would touch it
    dock.display_controls.names.setChecked(False)
    written(dock, qtbot, [])


def test_names_grow_with_the_letters_of_napari(play, qtbot, dock, monkeypatch):
    play()
    written(dock, qtbot, "0123")
    before, appearance = dock.map_names.names.half_sizes, get_settings().appearance
    monkeypatch.setattr(appearance, "font_size", 2 * appearance.font_size)
    after = dock.map_names.names.half_sizes
    assert (after[:, 0] > 1.5 * before[:, 0]).all()
    monkeypatch.undo()
    np.testing.assert_array_equal(dock.map_names.names.half_sizes, before)


def test_a_name_has_room_for_its_letters_and_their_halo(qtbot):
    picture = QImage(300, 100, QImage.Format.Format_ARGB32)
    for text, is_bold in (("Tg", False), ("ÄÅ T cells, NK", True)):
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        paint_text_with_halo(painter, QPointF(150, 50), text, is_bold, ON_DARK)
        painter.end()
        inked = np.array(
            [(y, x) for y in range(100) for x in range(300) if picture.pixel(x, y)]
        )
        away = np.abs(inked + 0.5 - [50, 150]).max(axis=0)
        room = np.array(measure_half_size(text, is_bold))
        assert (away < room).all()
        assert (room < away + 8).all()  # and hardly more


def test_names_hide_while_the_game_is_played(slow, play, qtbot, dock, session):
    play("running")
    assert names_read(dock) == {}
    dock.run_controls.pause_button.click()
    written(dock, qtbot, "0123")
    dock.run_controls.pause_button.click()
    qtbot.waitUntil(lambda: session.state == "running")
    assert names_read(dock) == {}
    session.stop()  # and are read in a branch that moves
    dock.controller.play(dock.workspace.session.continue_run)
    qtbot.waitUntil(lambda: session.state == "running")
    written(dock, qtbot, "0123")
    dock.display_controls.color_by.value = "kind"  # acts at once
    colors = dock.controller.scene.map_layers.points.face_color
    assert len(np.unique(colors[::2], axis=0)) == 1
    assert not np.array_equal(colors[0], colors[1])
    assert session.state == "running"


def is_painted(overlay, part):
    """Whether there is something light."""
    picture = overlay.grab(part).toImage()
    step = 1 + picture.width() // 300
    sides = range(0, picture.width(), step), range(0, picture.height(), step)
    colors = [picture.pixelColor(x, y) for x in sides[0] for y in sides[1]]
    return max(color.lightness() for color in colors) > 200


def test_names_stand_where_their_clusters_are_drawn_and_go_with_them(
    seen, session, qtbot
):
    viewer, dock = seen.viewer, seen.dock
    written(dock, qtbot, "0123")
    canvas, overlay, names = seen.native, dock.overlay, dock.map_names.names
    assert overlay.parent() is canvas
    assert overlay.size() == canvas.size()
    pixels = dock.controller.scene.map_layers.projection().to_pixels(names.positions)
    for cluster, pixel in zip(names.clusters, pixels, strict=True):
        place = QPointF(*pixel).toPoint()
        session.selection.clear()
        assert is_painted(overlay, QRect(place - QPoint(6, 6), QSize(13, 13)))
        QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place)
        assert session.selection.clusters == (cluster.id,)
    # That of a small cluster stands above it, here on another one.
    embedding, labels = session.snapshot.embedding.copy(), session.clusters.labels
    places = (0, 0, 1_000), (0.08, 0.02, 60), (3, 0, 20), (3, 3, 20)
    for number, (x, y, smaller) in enumerate(places):
        embedding[labels == number] /= smaller
        embedding[labels == number] += x, y
    session.selection.clear()
    session.snapshot = replace(session.snapshot, embedding=embedding)
    dock.controller.scene.show_stored_map()
    qtbot.settle()
    at, _ = dock.map_names.label_positions_and_opacities(
        dock.controller.scene.map_layers.projection()
    )
    place = QPointF(*at[0]).toPoint()
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place)
    assert session.selection.clusters == (0,)
    points = dock.controller.scene.map_layers.points

    for is_visible in (False, True):
        points.visible = is_visible
        assert is_painted(overlay, overlay.rect()) == is_visible
    viewer.window.remove_dock_widget(dock)
    assert not canvas.findChildren(type(overlay))
