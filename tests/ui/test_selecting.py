"""One selection for the map, the lasso and the image."""

from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_embedding_game.session.cluster_report import to_levels
from napari_embedding_game.session.sources import MeasuredSource
from napari_embedding_game.ui.canvas import mouse
from napari_embedding_game.ui.canvas.overlay import COLOR
from napari_embedding_game.ui.canvas.projection import layer_projection
from napari_embedding_game.ui.images.linked_layers import ObjectLayers
from napari_embedding_game.ui.images.object_colors import FADING
from napari_embedding_game.ui.images.objects_view import CONTEXT, RING
from napari_embedding_game.ui.widgets.teach import TeachWidget
from worlds import color_at, names_read

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
SHIFT, CONTROL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier


def grid(side, step=4):
    """Squares of side x side labels, each 3 x 3 pixels."""
    labels = np.zeros((side * step, side * step), np.int32)
    numbers = np.arange(1, side * side + 1).reshape(side, side)
    for row in range(3):
        for column in range(3):
            labels[row::step, column::step] = numbers
    return labels


@pytest.fixture
def nuclei(load, qtbot, viewer, dock, session, play):
    """25 measured objects on the map, linked to their layer."""
    labels = grid(5, 8)
    image = np.random.default_rng(0).random(labels.shape)
    layer = viewer.add_labels(labels, name="nuclei")
    source = MeasuredSource(image, labels, "nuclei")
    load(lambda: dock.controller.reading.load(source, linked=ObjectLayers(layer)))
    play()
    return layer


def clicker(viewer, dock, labels):
    """Return what clicks on a place of the labels, in a viewer without a window."""
    drawn = layer_projection(viewer, labels, includes_slices=True)

    def click(place, adds):
        (pixel,) = drawn.to_pixels(np.array([place]))
        keys = ["Control"] if adds else []
        event = SimpleNamespace(pos=pixel, modifiers=keys, view_direction=None)
        dock.mouse.select_at_click(event)

    return click


def test_of_a_time_series_the_slice_on_show_is_lit(
    load, qtbot, viewer, dock, session, play, lit
):
    movie = np.stack([grid(5, 8)] * 2)
    movie[0, movie[0] == 13] = 0
    layer = viewer.add_labels(movie, name="movie")
    source = MeasuredSource(movie / 7.0, movie, "movie", {"first_axis": "time"})
    load(lambda: dock.controller.reading.load(source, linked=ObjectLayers(layer)))
    play()
    session.selection.select_points(np.array([27]))
    assert layer.features.empty  # a label is two objects: it has no single place
    viewer.dims.set_point(0, 0)
    assert lit(layer) == []
    viewer.dims.set_point(0, 1)
    assert lit(layer) == [4]
    layer.data[0] = grid(5, 8)  # with one that is no row, as at the border
    click = clicker(viewer, dock, layer)
    viewer.dims.set_point(0, 0)
    click([17.0, 17.0], False)
    assert session.selection.rows.tolist() == [27]
    click([17.0, 25.0], False)
    assert session.selection.rows.tolist() == [12]


def test_objects_are_lit_clicked_gone_to_and_have_the_colours_of_the_map(
    qtbot, viewer, dock, session, nuclei, lit
):
    before, n_layers = nuclei.colormap, len(viewer.layers)
    session.selection.select_cluster(session.clusters.clusters[0].id)
    expected = session.dataset.objects.label_ids[session.selection.points]
    assert lit(nuclei) == sorted(expected.tolist())
    assert len(viewer.layers) == n_layers
    others = nuclei.colormap.map(np.setdiff1d(nuclei.data, [0, *expected]))
    assert others[:, 3].max() <= FADING
    session.selection.clear()
    assert nuclei.colormap is before
    click = clicker(viewer, dock, nuclei)
    click([1.0, 9.0], False)
    assert session.dataset.objects.label_ids[session.selection.rows].tolist() == [2]
    click([9.0, 1.0], True)
    assert lit(nuclei) == [2, 6]
    click([1.0, 9.0], True)
    assert lit(nuclei) == [6]
    click([6.0, 6.0], False)  # between the objects
    assert lit(nuclei) == [6]
    nuclei.visible = False
    click([1.0, 9.0], False)
    assert lit(nuclei) == [6]
    nuclei.visible = True
    session.selection.clear()
    session.selection.select_points(np.array([24]))
    dock.selection_controls.show_objects_button.click()
    assert viewer.scene.camera.center[1:] == (33.0, 33.0)
    session.selection.select_points(np.array([0, 24]))
    dock.selection_controls.show_objects_button.click()
    middle = session.dataset.objects.centers[[0, 24]].mean(axis=0)
    assert viewer.scene.camera.center[1:] == tuple(middle)
    session.selection.clear()
    box = dock.display_controls.objects
    assert box.isVisibleTo(dock.display_controls)
    box.click()

    def colors(rows=slice(None)):
        ids = session.dataset.objects.label_ids[rows]
        return nuclei.colormap.map(ids)

    def on_map():
        return dock.controller.scene.map_layers.points.face_color

    np.testing.assert_allclose(colors(), on_map(), atol=1e-3)
    dock.display_controls.color_by.value = "intensity_mean"
    np.testing.assert_allclose(colors(), on_map(), atol=1e-3)
    assert len(np.unique(colors(), axis=0)) > 9
    dock.controller.scene.map_layers.points.face_color = (
        "lime"  # as napari's own controls
    )
    qtbot.waitUntil(lambda: np.allclose(colors(), [0, 1, 0, 1]))
    dock.display_controls.color_by.value = "Cluster"
    dock.display_controls.color_by.value = "intensity_mean"
    session.selection.select_points(np.array([3]))
    assert colors(3)[3] == 1
    assert (np.delete(colors()[:, 3], 3) < 0.5).all()
    session.selection.clear()
    box.click()
    assert nuclei.colormap is before
    session.selection.select_points(np.array([5]))
    assert lit(nuclei) == [6]
    dock.close()
    assert nuclei.colormap is before


def test_clusters_and_positions_stand_in_the_features_of_the_labels(
    qtbot, session, nuclei
):
    cluster, places = "embedding_game_cluster", ["embedding_game_x", "embedding_game_y"]
    labels = session.dataset.objects.label_ids

    def names():
        return session.clusters.clustering.names_by_point.tolist()

    def written():
        return nuclei.features.set_index("index").reindex(labels)

    qtbot.waitUntil(lambda: cluster in nuclei.features)
    np.testing.assert_array_equal(written()[places], session.snapshot.embedding)
    assert written()[cluster].tolist() == names()
    # A person's table has another order, labels that are no rows, and lacks one.
    theirs = {"index": [99, *range(25, 1, -1), 77], "mine": np.arange(26)}
    nuclei.features = theirs
    session.clusters.rename(session.clusters.clusters[0].id, "Round")
    qtbot.waitUntil(lambda: cluster in nuclei.features)
    assert nuclei.features["mine"].tolist() == list(range(26))
    assert written()[cluster].tolist()[1:] == names()[1:]
    assert nuclei.features[cluster].tolist()[::25] == ["", ""]
    assert "Round" in names()
    nuclei.features = {"mine": np.arange(10)}  # without labels, row by row
    session.clusters.rename(session.clusters.clusters[0].id, "Flat")
    qtbot.waitUntil(lambda: cluster in nuclei.features)
    assert nuclei.features[cluster].tolist() == ["", *names()[:9]]


def test_deleted_labels_are_unlinked_until_they_are_open_again(
    qtbot, viewer, dock, session, nuclei, load
):
    click = clicker(viewer, dock, nuclei)
    session.selection.select_points(np.array([3]))
    viewer.layers.remove(nuclei)
    qtbot.waitUntil(lambda: dock.controller.workspace.linked_layers.current is None)
    told = dock.data_controls.relink_panel.text.text()
    assert "The labels 'nuclei' of these objects are not open" in told
    click([1.0, 9.0], False)
    assert session.selection.rows.tolist() == [3]
    TeachWidget(viewer).close()  # another dock does not take them along
    columns = "intensity_mean", "intensity_max"
    load(lambda: dock.controller.reading.reload_with_options(columns=columns))
    assert dock.data_controls.relink_panel.text.text() == told  # however they are read
    view = dock.workspace.map_tree.to_saved_session().maps[0].view
    assert view["layers"]["labels"]["name"] == "nuclei"
    again = viewer.add_labels(nuclei.data.copy(), name="nuclei")
    qtbot.waitUntil(lambda: dock.controller.workspace.linked_layers.current is not None)
    assert dock.controller.workspace.linked_layers.current.labels is again


def test_objects_of_a_multiscale_image_are_measured_and_lit(
    viewer, dock, session, load, play, lit
):
    labels = np.kron(grid(5, 8), np.ones((8, 8), np.int32))
    levels = [labels, labels[::2, ::2], labels[::4, ::4]]
    pyramid = viewer.add_labels(levels, name="nuclei", multiscale=True)
    viewer.add_image(labels / 7.0, name="dapi")
    load(dock.data_controls.measure_panel.measure_button.click)
    play()
    objects = session.dataset.objects
    assert objects.boxes.max() > pyramid.data[1].shape[0]  # the finest was measured
    for rows in ([3, 7], [1]):
        session.selection.select_points(np.array(rows))
        assert lit(pyramid) == sorted(objects.label_ids[rows].tolist())
    clicker(viewer, dock, pyramid)(objects.centers[12], False)
    assert session.selection.rows.tolist() == [12]
    session.selection.clear()
    assert lit(pyramid) == []


def a_lasso_with_the_mouse(seen, session):
    overlay, camera = seen.dock.overlay, seen.viewer.scene.camera
    embedding = session.snapshot.embedding
    (left, low), (right, _) = embedding.min(axis=0) - 0.4, embedding.max(axis=0) + 0.4
    corners = (left, low), (left, 0.5), (right, 0.5), (right, low)
    for key in (SHIFT, NONE):
        if key == NONE:
            session.selection.clear()
            seen.dock.selection_controls.lasso_button.click()
        before, pixels = camera.center, seen.pixels(corners)
        seen.press(pixels, key)
        assert overlay.line
        assert len(seen.viewer.layers) == 2  # the line is none
        drawn = color_at(overlay, (pixels[0] + pixels[1]) / 2)
        assert drawn.name() == COLOR.name()
        QTest.mouseRelease(seen.native, LEFT, key, pixels[-1])
        assert not overlay.line
        np.testing.assert_array_equal(session.selection.points, embedding[:, 1] < 0.5)
        assert camera.center == before
    camera.zoom /= 4  # of a map that is alone all of the canvas is its box
    right, low = seen.native.width() - 6, seen.native.height() - 6
    seen.drag([QPoint(x, y) for x, y in ((5, 5), (right, 5), (right, low), (5, low))])
    assert session.selection.points.all()
    camera.zoom *= 4


def test_lasso_and_brush_over_the_image_select_what_they_surround(
    qtbot, seen, session, monkeypatch
):
    monkeypatch.setattr(mouse, "BRUSH_RADIUS", 12)
    for is_stack in (False, True):
        layer = select_over_the_image(qtbot, seen, session, is_stack)
        seen.dock.selection_controls.brush_button.click()
        seen.viewer.layers.remove(layer)


def objects_are_shown_large_and_the_map_comes_back(qtbot, seen, session, layer):
    camera, overlay = seen.viewer.scene.camera, seen.dock.overlay
    seen.viewer.layers.selection.active = seen.layers.points
    before = camera.center, camera.zoom
    session.selection.select_points(session.dataset.obs["label"].to_numpy() == 7)
    for _ in range(2):  # the second time from where it is
        seen.dock.selection_controls.show_objects_button.click()
        assert camera.center[-2:] == (9.0, 9.0)
        shorter = min(seen.native.width(), seen.native.height())
        assert camera.zoom == pytest.approx(shorter / (CONTEXT * 3))
        (edge,) = seen.pixels([(9 - RING * 1.5 * 2**0.5, 9)], layer)
        assert ringed(overlay, edge)
    qtbot.waitUntil(lambda: not overlay.isVisible() or not ringed(overlay, edge))
    seen.key(Qt.Key.Key_M)
    assert (camera.center, camera.zoom) == before
    seen.key(Qt.Key.Key_M)  # from anywhere else all of the map
    assert (camera.center, camera.zoom) != before
    camera.center, camera.zoom = before


def ringed(overlay, edge):
    return color_at(overlay, edge).name() == COLOR.name()


def select_over_the_image(qtbot, seen, session, is_stack):
    viewer, dock, labels = seen.viewer, seen.dock, grid(5, 8)
    labels[18:30, 18:30] = 13  # larger than the brush
    if is_stack:  # the same places in another slice are other objects
        labels = np.stack([np.where(labels, labels + 25, 0), labels])
    layer = viewer.add_labels(labels, name="cells")
    viewer.dims.set_point(0, 1)
    dock.data_fold.set_expanded(True)
    if is_stack:
        qtbot.waitUntil(
            lambda: dock.data_controls.measure_panel.axis_choice.isVisibleTo(dock)
        )
        dock.data_controls.measure_panel.axis_choice.value = "z"
    with qtbot.waitSignal(dock.controller.reading.loaded):
        dock.data_controls.measure_panel.measure_button.click()
    dock.run_controls.run_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    viewer.scene.camera.center, viewer.scene.camera.zoom = (20.0, 20.0), 8.0

    def drag(*places, key=NONE, is_seen=True):
        """Drag through places of the image, (row, column); return the objects."""
        pixels, layer.visible = seen.pixels(places, layer), is_seen
        seen.drag(pixels, key)
        return sorted(session.dataset.obs["label"][session.selection.points])

    assert drag((-1, -1), (-1, 13), (13, 13), (13, -1), key=SHIFT) == [1, 2, 6, 7]
    # What begins further off than 1/20 of their side is not meant for the objects.
    assert drag((-3, 15), (-3, 39), (13, 39), (13, 15), key=SHIFT) == [1, 2, 6, 7]
    viewer.scene.camera.center = 20.0, 20.0
    below = (31, -1), (31, 5), (39, 5), (39, -1)
    assert drag(*below, key=SHIFT | CONTROL) == [1, 2, 6, 7, 21]
    objects_are_shown_large_and_the_map_comes_back(qtbot, seen, session, layer)
    dock.selection_controls.brush_button.click()
    assert drag((28, 13), (28, 39)) == [13]  # in one move
    assert drag((1, 1), (1, 17)) == [1, 2, 3]
    assert drag((19, 19), (19, 20), key=SHIFT) == [1, 2, 3, 13]
    assert drag((1, 9), (1, 10), key=CONTROL) == [1, 3, 13]
    # What is not seen is not painted.
    assert drag((1, 1), (1, 17), is_seen=False) == [1, 3, 13]
    return layer


# Values


def click_level(qtbot, dock, place, modifier=NONE):
    levels = dock.display_controls.legend.level_table
    dock.show()
    qtbot.waitUntil(levels.isVisible)
    qtbot.settle()
    at = levels.visualRect(levels.model().index(place, 0)).center()
    qtbot.mouseClick(levels.viewport(), LEFT, modifier, at)


def test_a_level_of_the_legend_selects_its_points(qtbot, play, dock, session, dataset):
    play()
    dock.display_controls.color_by.value = "kind"
    click_level(qtbot, dock, 0)
    is_b = (dataset.obs["kind"] == "B").to_numpy()
    np.testing.assert_array_equal(session.selection.points, is_b)
    click_level(qtbot, dock, 1, SHIFT)
    assert session.selection.points.all()
    click_level(qtbot, dock, 0, CONTROL)
    np.testing.assert_array_equal(session.selection.points, ~is_b)
    session.selection.clear()
    click_level(qtbot, dock, 0)  # again
    np.testing.assert_array_equal(session.selection.points, is_b)


@pytest.mark.parametrize("column", ["kind", "counts"])
def test_a_bar_of_the_composition_selects_its_points_everywhere(
    qtbot, play, inspector, session, dataset, column
):
    play()
    session.selection.select_clusters((1, 2))
    qtbot.waitUntil(lambda: inspector.report is not None)
    inspector.details.column.value = column
    qtbot.waitUntil(lambda: inspector.report.column == column)
    level = inspector.report.composition["level"][1]
    bars = inspector.details.composition
    height = bars.rowHeight(1)
    qtbot.mouseClick(bars.viewport(), LEFT, pos=QPoint(20, height + height // 2))
    rows = (to_levels(dataset.obs[column]) == level).to_numpy()
    np.testing.assert_array_equal(session.selection.points, rows)
    assert "Click selects" in bars.toolTip()
    qtbot.mouseClick(bars.viewport(), LEFT, pos=QPoint(20, 20 * height))
    np.testing.assert_array_equal(session.selection.points, rows)


def name_of(seen):
    """Return a pixel at which the first name can be taken."""
    (at,) = seen.pixels(seen.dock.map_names.names.positions[0])
    pixels = (at - QPoint(0, up) for up in range(0, 200, 2))
    taken = seen.dock.map_names.make_name_handle
    return next(p for p in pixels if taken(*ends(p)) is not None)


def ends(*pixels):
    """Return pixels as places of the canvas."""
    return [np.array([pixel.x(), pixel.y()], float) for pixel in pixels]


def test_clusters_and_landmarks_are_dragged_while_the_game_runs(
    qtbot, seen, session, slow
):
    session.settings.n_landmarks = 4
    seen.dock.controller.play(session.continue_run)
    qtbot.waitUntil(lambda: session.state == "running" and bool(names_read(seen.dock)))
    for way in ("let go", "Escape", "pinned"):
        drag_a_cluster(qtbot, seen, session, way)
    session.hand.release_points()
    drag_a_landmark(qtbot, seen, session)


def drag_a_cluster(qtbot, seen, session, way):
    names, hand, by = seen.dock.map_names, session.hand, QPoint(60, 0)
    cluster, run = names.names.clusters[0].id, session.run
    rows = session.clusters.clustering.rows_in_cluster(cluster)
    for _ in range(5):
        middle, hold = session.snapshot.embedding[rows].mean(axis=0), name_of(seen)
        seen.press([hold, hold + by / 3, hold + by])
        begin, end = map(
            seen.layers.projection().position_at_pixel, ends(hold, hold + by)
        )

        def is_at_the_hand(place=middle + end - begin):
            springs = hand.forces.springs
            return bool(springs) and np.allclose(springs[0].place, place)

        with suppress(qtbot.TimeoutError):
            qtbot.waitUntil(is_at_the_hand, timeout=4_000)
            break
        # A frame came in between, and the name was elsewhere when the button went down.
        seen.key(Qt.Key.Key_Escape)
        QTest.mouseRelease(seen.native, LEFT, NONE, hold + by)
        qtbot.settle()
    (spring,) = hand.forces.springs
    assert np.array_equal(spring.rows, rows)
    assert seen.dock.overlay.isVisible()
    assert (
        not seen.dock.selection_controls.release_button.isVisible()
    )  # nothing stays held yet
    if way == "Escape":
        seen.key(Qt.Key.Key_Escape)
    held = CONTROL if way == "pinned" else NONE
    QTest.mouseRelease(seen.native, LEFT, held, hold + by)
    assert [s.is_pinned for s in hand.forces.springs] == [True] * (way == "pinned")
    assert session.run is run  # it goes on, and is no branch
    assert session.selection.is_empty
    assert session.timeline.newest.label.endswith("dragged by hand")


def drag_a_landmark(qtbot, seen, session):
    """It is dragged where its layer is selected."""
    (at,) = seen.pixels(session.snapshot.landmarks[2])
    seen.viewer.layers.selection.active = seen.layers.landmarks
    end = at + QPoint(0, 40)
    seen.press([at, at + QPoint(0, 20), end])
    qtbot.waitUntil(lambda: bool(session.hand.forces.landmarks))
    QTest.mouseRelease(seen.native, LEFT, CONTROL, end)
    (hold,) = session.hand.forces.landmarks
    assert (hold.number, hold.is_pinned) == (2, True)
    assert np.allclose(
        hold.place, seen.layers.projection().position_at_pixel(*ends(end))
    )
    assert seen.dock.selection_controls.by_hand.text() == "By hand: 1 landmark pinned."
    assert session.selection.is_empty
    QTest.mouseClick(seen.dock.selection_controls.release_button, LEFT)
    assert not session.hand.forces
    assert not seen.dock.selection_controls.by_hand.isVisible()


def test_a_map_at_rest_is_chosen_from_and_moved_by_hand(qtbot, seen, session):
    a_lasso_with_the_mouse(seen, session)
    seen.dock.selection_controls.lasso_button.click()  # put away
    session.selection.clear()
    for gives_up in (True, False):
        drag_by_its_name(qtbot, seen, session, gives_up)
    true_neighbours_are_shown_while_the_button_is_down(qtbot, seen.dock, session)
    qtbot.waitUntil(lambda: session.state == "finished")
    session.selection.clear()
    held_points_are_let_go_by_buttons(qtbot, seen.dock.selection_controls, session)


def held_points_are_let_go_by_buttons(qtbot, hand, session):
    assert not hand.hold_button.isVisible()
    session.selection.select_points(np.arange(5))
    QTest.mouseClick(hand.hold_button, LEFT)
    assert hand.by_hand.text() == "By hand: 5 points held."
    qtbot.waitUntil(lambda: len(session.run.played.forced) == 1)
    session.selection.clear()
    assert not hand.hold_button.isVisible()
    assert hand.release_button.isVisible()
    QTest.mouseClick(hand.release_button, LEFT)
    assert hand.by_hand.text() == ""
    session.settings.method = "pca"
    session.selection.select_points(np.arange(5))
    assert hand.hold_button.isHidden()
    assert hand.message.text().startswith("Only a game")


def true_neighbours_are_shown_while_the_button_is_down(qtbot, dock, session):
    points, button = (
        dock.controller.scene.map_layers.points,
        dock.selection_controls.neighbors_button,
    )
    assert not button.isVisible()
    # 3 and 23 lie where the others are that they are not like.
    session.selection.select_points(np.arange(0, 8))
    before, snapshot = points.data.copy(), session.snapshot
    QTest.mousePress(button, LEFT)
    qtbot.waitUntil(lambda: not np.array_equal(points.data, before))
    assert "moved out" in dock.selection_controls.message.text()
    assert session.snapshot is snapshot
    qtbot.wait(300)
    moved = np.flatnonzero((points.data != before).any(axis=1))
    assert 3 in moved
    assert len(moved) < 6
    QTest.mouseRelease(button, LEFT)
    assert np.array_equal(points.data, before)
    assert dock.selection_controls.message.text() == ""
    QTest.mousePress(button, LEFT)
    session.settings.repulsion = 900.0  # the game plays on
    qtbot.waitUntil(lambda: not dock.controller.scene.is_showing_neighbors)
    QTest.mouseRelease(button, LEFT)
    assert not dock.controller.scene.is_showing_neighbors


def drag_by_its_name(qtbot, seen, session, gives_up):
    names, native = seen.dock.map_names, seen.native
    qtbot.waitUntil(lambda: bool(names_read(seen.dock)))
    cluster, hold, by = names.names.clusters[0].id, name_of(seen), QPoint(60, 0)
    assert names.names.texts[0] in names_read(seen.dock)
    center, before = seen.viewer.scene.camera.center, session.snapshot
    rows = session.clusters.clustering.rows_in_cluster(cluster)
    n_marks = len(session.timeline.marks)
    seen.move([QPoint(2, 2), hold])
    qtbot.waitUntil(lambda: native.cursor().shape() == Qt.CursorShape.OpenHandCursor)
    seen.press([hold, hold + by / 3, hold + by])
    qtbot.waitUntil(lambda: native.cursor().shape() == Qt.CursorShape.ClosedHandCursor)
    if gives_up:
        seen.key(Qt.Key.Key_Escape)
    QTest.mouseRelease(native, LEFT, NONE, hold + by)
    assert seen.viewer.scene.camera.center == center
    if gives_up:
        assert session.snapshot is before
        assert len(session.timeline.marks) == n_marks
        return
    qtbot.waitUntil(
        lambda: session.state == "finished" and session.run_record.is_branch
    )
    begun = session.run.warm_start.embedding - before.embedding
    begin, end = map(seen.layers.projection().position_at_pixel, ends(hold, hold + by))
    assert np.allclose(begun[rows], end - begin, atol=1e-3)
    assert not np.delete(begun, rows, axis=0).any()
    assert session.timeline.find_mark(n_marks + 1).label.endswith("moved by hand")
