"""The map in napari's scene: turned, rolled, in the grid, beside 4-D images.

Everything is done with the mouse on the real canvas, the docks are opened from
napari's Plugins menu.  Where things are drawn is asked of vispy's own transforms.
"""

from dataclasses import replace

import numpy as np
import pytest
from napari.utils.notifications import notification_manager
from napari.utils.triangulation_backend import TriangulationBackend, set_backend
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_embedding_game.session.run.record import Moment
from napari_embedding_game.session.run.run import UNPACED
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.layers import COMPARED
from napari_embedding_game.ui.canvas.projection import layer_projection
from napari_embedding_game.ui.compat import find_layer_visual
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.workspace import get_workspace, make_workspace

TITLE = "Map (Embedding Game)"
LEFT, SHIFT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier


class Scene:
    """A window with a map in it, and a mouse over its canvas."""

    def __init__(self, viewer, qtbot, look_at):
        self.viewer, self.qtbot = viewer, qtbot
        self.session = get_workspace(viewer).session
        docked = viewer.window.dock_widgets.values()
        self.dock = next(x for x in docked if isinstance(x, GameDock))
        self.seen = look_at(viewer, self.dock)
        self.canvas = viewer.window._qt_viewer.canvas
        self.native = self.seen.native

    @property
    def layers(self):
        return self.seen.layers

    def drawn(self, layer=None):
        """Return the pixels to which vispy brings the points of a layer."""
        layer, dims = layer or self.layers.points, self.viewer.dims
        node = self.canvas.layer_to_visual[layer].node.points_markers
        to_canvas = node.transforms.get_transform("visual", "canvas")
        first = dims.ndim - layer.ndim
        axes = [axis - first for axis in dims.order if axis >= first][::-1]
        homogeneous = np.zeros((len(layer.data), 4))
        homogeneous[:, : layer.ndim] = layer.data[:, axes]
        homogeneous[:, 3] = 1
        mapped = to_canvas.map(homogeneous)
        return mapped[:, :2] / mapped[:, 3:]

    def show_all(self):
        """Have napari draw what has changed."""
        self.viewer.reset_view(reset_camera_angle=False)
        self.qtbot.settle()

    def is_on_canvas(self, pixels):
        low, high = pixels.min(axis=0), pixels.max(axis=0)
        size = np.array([self.native.width(), self.native.height()])
        return (low >= 0).all() and (high <= size).all()

    def clicked(self, row):
        """Click on a point where it is drawn; return the cluster that is selected."""
        self.session.selection.clear()
        QTest.mouseClick(self.native, LEFT, pos=self.place(self.drawn()[row]))
        return self.session.selection.clusters

    def clicks_select_their_clusters(self):
        labels = self.session.clusters.labels
        rows = range(0, len(labels), 9)
        return [self.clicked(r) for r in rows] == [(int(labels[r]),) for r in rows]

    def draw_around(self, corners, is_seen=lambda: None):
        """Draw a lasso through pixels; return the mask of what is selected."""
        places = [self.place(corner) for corner in corners]
        self.seen.press(places, SHIFT)
        is_seen()
        QTest.mouseRelease(self.native, LEFT, SHIFT, places[-1])
        return self.session.selection.points

    def lasso_takes_what_it_holds(self):
        """Draw around the left half of what is drawn."""
        pixels = self.drawn()
        (left, top), (_, bottom) = pixels.min(axis=0) - 4, pixels.max(axis=0) + 4
        middle = np.median(pixels[:, 0]) + 0.5
        size = np.array([self.native.width(), self.native.height()]) - 1
        corners = np.array(
            [(left, top), (middle, top), (middle, bottom), (left, bottom)]
        )
        corners = np.clip(corners, 0, size)
        self.session.selection.clear()
        found = self.draw_around(corners)
        # The corners are whole pixels: what is that near the line is not told.
        is_clear = np.abs(pixels[:, 0] - middle) > 1.5
        return (found == (pixels[:, 0] < middle))[is_clear].all() and found.any()

    def names_stand_on_their_points(self):
        """Whether each name is written at a point of its cluster."""
        self.qtbot.settle()
        names = self.dock.map_names.names
        pixels = self.layers.projection().to_pixels(names.positions)
        drawn, labels = self.drawn(), self.session.clusters.labels
        away = [
            np.abs(drawn[labels == cluster.id] - pixel).sum(axis=1).min()
            for cluster, pixel in zip(names.clusters, pixels, strict=True)
        ]
        return len(away) > 0 and max(away) < 1

    @staticmethod
    def place(pixel):
        return QPoint(*np.round(pixel).astype(int))


@pytest.fixture
def scene(make_napari_viewer, qtbot, look_at, from_menu, engine, dataset):
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(1300, 800)
    session = make_workspace(viewer, Session(engine, UNPACED)).session
    from_menu(viewer.window.plugins_menu, "Embedding Game", TITLE)
    scene = Scene(viewer, qtbot, look_at)
    session.load(dataset)
    yield scene
    scene.dock.controller.session_store.close()


@pytest.fixture
def mapped(scene, qtbot):
    """The same, with a map, and its landmarks at rest."""
    scene.dock.display_controls.landmarks.setChecked(True)
    play(scene, qtbot)
    qtbot.waitUntil(lambda: scene.dock.overlay.isVisible())
    qtbot.settle()
    return scene


def play(scene, qtbot):
    scene.dock.run_controls.run_button.click()
    qtbot.waitUntil(lambda: scene.session.state == "finished")
    scene.dock.method_fold.set_expanded(True)


def follows(scene):
    """Whether clicks, lasso and names go by what is drawn."""
    assert scene.is_on_canvas(scene.drawn())
    assert scene.clicks_select_their_clusters()
    assert scene.lasso_takes_what_it_holds()
    assert scene.names_stand_on_their_points()
    return True


# Windows are dear: what can be asked of one after another is.
def test_under_a_turned_camera_and_where_a_person_moves_the_layer(mapped):
    mapped.viewer.dims.ndisplay = 3
    mapped.viewer.scene.camera.angles = (15, 40, -50)
    for perspective in (0, 35):
        mapped.viewer.scene.camera.perspective = perspective
        mapped.show_all()
        assert follows(mapped), perspective
    mapped.viewer.dims.ndisplay = 2
    cannot_be_deleted_or_dragged(mapped)
    mapped.layers.points.translate = (120, -60)
    mapped.layers.points.rotate = 25
    mapped.show_all()
    assert follows(mapped)


def test_when_the_axes_are_rolled(mapped):
    image = mapped.viewer.add_image(np.zeros((200, 300, 400)))
    for order in ((2, 0, 1), (1, 2, 0), (0, 2, 1)):
        stands_upright_beside(mapped, image, order)


def stands_upright_beside(mapped, image, order):
    mapped.viewer.dims.order = order
    mapped.qtbot.settle()
    assert follows(mapped), order
    # It stands upright, and beside the image.
    embedding, pixels = mapped.session.snapshot.embedding, mapped.drawn()
    across = np.polyfit(embedding[:, 0], pixels[:, 0], 1)[0]
    up = np.polyfit(embedding[:, 1], pixels[:, 1], 1)[0]
    assert across == pytest.approx(-up, rel=1e-3)
    assert across > 0
    width = image.data.shape[order[-1]] * mapped.viewer.scene.camera.zoom
    center = mapped.viewer.scene.camera.center[-1] * mapped.viewer.scene.camera.zoom
    assert pixels[:, 0].min() > width - center + mapped.native.width() / 2


def test_in_the_grid(mapped):
    set_backend(TriangulationBackend.pure_python)  # numba compiles for 9 seconds
    points, shapes = mapped.layers.points, mapped.viewer.add_shapes()
    shapes.add_rectangles([[0, 0], [500, 500]])  # which somebody draws around points
    before = points.data.copy()
    shapes.add_rectangles([[0, 0], [600, 600]])
    # As of napari's button, to be painted.
    labels = mapped.viewer.add_labels(np.zeros((1000, 1000), int))
    mapped.qtbot.settle()
    assert np.array_equal(points.data, before)
    mapped.viewer.layers.remove(labels)
    mapped.viewer.layers.remove(shapes)
    mapped.viewer.add_image(np.zeros((300, 300)))  # it comes to lie on the map
    mapped.qtbot.waitUntil(lambda: points.data[:, 1].min() > 300)
    mapped.viewer.canvas.grid.enabled = True
    for spacing in (0.1, 30):  # a share of the picture, and pixels
        follows_in_the_grid(mapped, spacing)
    # While napari lays the grid out anew, nothing is seen.
    layer = mapped.viewer.layers["embedding"]
    node = find_layer_visual(mapped.viewer, layer).node
    former, node.parent = node.parent, None
    assert layer_projection(mapped.viewer, layer) is None
    node.parent = former
    assert layer_projection(mapped.viewer, layer) is not None
    layer.visible = False  # napari takes its node out of the grid
    mapped.viewer.screenshot(flash=False)
    layer.visible = True


def follows_in_the_grid(mapped, spacing):
    viewer = mapped.viewer
    viewer.canvas.grid.spacing = spacing
    mapped.show_all()
    cells = viewer.canvas.grid.actual_shape(viewer.layers)
    assert follows(mapped), spacing
    assert mapped.dock.overlay.isVisible()

    def no_layer_comes():
        assert viewer.canvas.grid.actual_shape(viewer.layers) == cells
        assert mapped.dock.overlay.line

    x, y, width, height = mapped.layers.projection().canvas_box
    corners = [(x + 4, y + 4), (x + width - 4, y + 4), (x + width - 4, y + height - 4)]
    mapped.draw_around(np.array(corners), no_layer_comes)
    # In the part of the image there are no points.
    mapped.session.selection.clear()
    inside = mapped.drawn()[5] - (x, y)
    row, column = viewer.canvas.grid.position(2, viewer.layers)
    if spacing > 1:
        corner = np.array([column * (width + spacing), row * (height + spacing)])
        QTest.mouseClick(mapped.native, LEFT, pos=mapped.place(corner + inside))
        assert mapped.session.selection.is_empty


def cannot_be_deleted_or_dragged(mapped):
    """Points stay, and the person is told once why."""
    told = []
    hear = notification_manager.notification_ready.connect(
        lambda notification: told.append(notification.message)
    )
    points = mapped.layers.points
    mapped.viewer.layers.selection.active = points
    mapped.native.setFocus()
    QTest.keyClick(mapped.native, Qt.Key.Key_A)
    assert len(points.selected_data) == len(points.data) == 40
    QTest.keyClick(mapped.native, Qt.Key.Key_Delete)
    assert len(points.data) == 40
    points.selected_data = set()
    notification_manager.notification_ready.disconnect(hear)
    assert sum("cannot be moved or deleted" in message for message in told) == 1
    controls = mapped.viewer.window._qt_viewer.controls.widgets[points]
    assert not controls.select_button.isEnabled()
    points.mode = "select"
    assert points.mode == "pan_zoom"
    mapped.viewer.dims.ndisplay = 3
    mapped.viewer.dims.ndisplay = 2
    assert not points.editable


# Maps of three dimensions


@pytest.fixture
def spatial(mapped, qtbot):
    """A map of three dimensions that a person has asked for, seen at an angle."""
    click_dimensions(mapped, 3)
    qtbot.waitUntil(lambda: mapped.session.state == "finished")
    mapped.viewer.scene.camera.angles = (-20, 35, 10)
    mapped.show_all()
    mapped.qtbot.settle()
    return mapped


def click_dimensions(scene, n):
    """Choose a number of dimensions."""
    box = scene.dock.method_controls.controls["n_components"].native
    scene.dock.tabs.setCurrentIndex(0)
    scene.dock.scroll.ensureWidgetVisible(box)
    QTest.keyClicks(box, str(n))


def test_a_map_in_space_is_clicked_and_dragged_as_it_is_seen(spatial, qtbot):
    under_a_turned_camera(spatial)
    for perspective in (0, 35):
        is_dragged_parallel_to_the_canvas(spatial, qtbot, perspective)
    lie_side_by_side_as_the_camera_sees_them(spatial, qtbot)


def under_a_turned_camera(spatial):
    assert spatial.viewer.dims.ndisplay == 3
    assert [layer.ndim for layer in spatial.viewer.layers] == [3, 3]
    spatial.viewer.scene.camera.angles = (25, -40, 30)
    for perspective in (0, 35):
        spatial.viewer.scene.camera.perspective = perspective
        spatial.show_all()
        assert follows(spatial), perspective
        # vispy agrees with the projection.
        embedding = spatial.session.snapshot.embedding
        expected = spatial.layers.projection().to_pixels(embedding)
        np.testing.assert_allclose(spatial.drawn(), expected, atol=1e-2)


def is_dragged_parallel_to_the_canvas(spatial, qtbot, perspective):
    spatial.viewer.scene.camera.perspective = perspective
    qtbot.settle()
    names = spatial.dock.map_names
    before = spatial.session.snapshot.embedding
    begun = names.label_positions_and_opacities(spatial.layers.projection())[0][0]
    assert names.make_name_handle(begun) is not None
    by = np.array([60, -40])
    spatial.session.pace = UNPACED
    spatial.seen.press([spatial.place(begun + share * by) for share in (0, 0.5, 1)])
    cluster = names.names.clusters[0]
    angles = spatial.viewer.scene.camera.angles
    QTest.mouseRelease(spatial.native, LEFT, pos=spatial.place(begun + by))
    assert spatial.session.timeline.marks[-1].label.endswith("moved by hand")
    rows = spatial.session.clusters.clustering.rows_in_cluster(cluster.id)
    moved = spatial.session.run.warm_start.embedding - before
    assert np.ptp(moved[rows], axis=0).max() < 1e-4
    drawn = spatial.layers.projection()
    assert spatial.viewer.scene.camera.angles == angles  # it was no turn
    step = moved[rows[0]]
    most = np.linalg.norm(step) * np.linalg.norm(drawn.view_direction)
    assert abs(step @ drawn.view_direction) < 1e-3 * most
    qtbot.waitUntil(lambda: spatial.session.state == "finished")


def lie_side_by_side_as_the_camera_sees_them(spatial, qtbot):
    session, layers = spatial.session, spatial.layers
    here, n, bar = session.snapshot, 40, spatial.dock.timeline_controls
    spatial.dock.trust_fold.set_expanded(True)
    other = replace(here, embedding=here.embedding[::-1] * [1, 1, 0.2])
    moment = Moment(settings=session.settings.value, snapshot=other)
    bar.begin_comparison(session.timeline.add_mark("Other", "hand", moment).number)
    qtbot.waitUntil(lambda: session.view.comparison is not None)
    qtbot.waitUntil(lambda: spatial.dock.map_names.names.panels.any())
    pixels = layers.projection().to_pixels(session.view.positions)
    assert pixels[:n, 0].max() < pixels[n:, 0].min()
    drawn = np.concatenate(
        [spatial.drawn(), spatial.drawn(layers.find_points_layer(COMPARED))]
    )
    np.testing.assert_allclose(drawn, pixels, atol=0.05)
    row = int(np.argmax(pixels[n:, 0]))
    QTest.mouseClick(spatial.native, LEFT, pos=spatial.place(pixels[n + row]))
    assert session.selection.clusters == (int(session.clusters.labels[row]),)
    session.selection.clear()
    spatial.viewer.canvas.grid.enabled = True
    qtbot.settle()
    beside = spatial.drawn(layers.find_points_layer(COMPARED))
    there = layer_projection(
        spatial.viewer, layers.find_points_layer(COMPARED)
    ).canvas_box
    seen = (beside > there[:2]) & (beside < np.add(there[:2], there[2:]))
    names = spatial.dock.map_names
    lie, _ = names.label_positions_and_opacities(layers.projection())
    is_other = names.names.panels == 1
    at = layers.projection(COMPARED).to_pixels(names.names.positions[is_other])
    assert np.abs(at - lie[is_other]).max() < there[2] / 4
    row = int(np.argmax(seen.all(axis=1)))
    QTest.mouseClick(spatial.native, LEFT, pos=spatial.place(beside[row]))
    assert session.selection.clusters == (int(session.clusters.labels[row]),)
    x, y, width, height = there
    right, low = x + width, y + height
    around = np.array([(x, y), (x, low), (right, low), (right, y)], float)
    spatial.dock.mouse.select_in_line(around)
    np.testing.assert_array_equal(session.selection.points, seen.all(axis=1))


def test_a_map_in_space_with_two_axes_by_a_new_dock_and_back_in_time(
    spatial, from_menu, qtbot, look_at
):
    two_axes_are_seen(spatial, qtbot)
    back_to_two_dimensions_and_back_in_time(spatial, qtbot)
    is_found_by_a_dock_that_is_opened_again(spatial, from_menu, look_at)


def two_axes_are_seen(spatial, qtbot):
    viewer, embedding = spatial.viewer, spatial.session.snapshot.embedding
    viewer.dims.ndisplay = 2
    qtbot.settle()
    spatial.show_all()
    assert [layer.ndim for layer in viewer.layers] == [2, 2]
    assert follows(spatial)
    across = np.corrcoef(spatial.drawn()[:, 0], embedding[:, 0])[0, 1]
    assert across == pytest.approx(1.0)
    viewer.dims.ndisplay = 3
    spatial.show_all()
    assert [layer.ndim for layer in viewer.layers] == [3, 3]
    assert follows(spatial)
    columns = spatial.dock.controller.scene.map_layers.points.features.columns
    assert "cluster" in [str(name).lower() for name in columns]


def back_to_two_dimensions_and_back_in_time(spatial, qtbot):
    session, viewer = spatial.session, spatial.viewer
    click_dimensions(spatial, 2)
    qtbot.waitUntil(lambda: session.state == "finished")
    assert viewer.dims.ndisplay == 2
    assert session.snapshot.embedding.shape == (40, 2)
    assert [layer.ndim for layer in viewer.layers] == [2, 2]
    spatial.show_all()
    assert follows(spatial)
    mark = next(m for m in session.timeline.marks if m.label == "3 to 2 dimensions")
    session.show_mark(mark.number)
    assert viewer.dims.ndisplay == 3
    assert spatial.dock.method_controls.controls["n_components"].value == 3
    spatial.show_all()
    assert follows(spatial)


def is_found_by_a_dock_that_is_opened_again(spatial, from_menu, look_at):
    viewer, qtbot = spatial.viewer, spatial.qtbot
    viewer.window.remove_dock_widget(spatial.dock)
    qtbot.settle()
    from_menu(viewer.window.plugins_menu, "Embedding Game", TITLE)
    again = Scene(viewer, qtbot, look_at)
    assert [layer.name for layer in viewer.layers].count("embedding") == 1
    qtbot.settle()
    again.show_all()
    assert follows(again)
    again.dock.controller.session_store.close()
