"""The picture of the map: where the points are, in their colours, with every view."""

import numpy as np
import pytest

from napari_embedding_game.ui.canvas import picture as map_picture
from napari_embedding_game.ui.canvas.layers import COMPARED, MapLayers
from napari_embedding_game.ui.canvas.picture import PointStyle, paint_points
from napari_embedding_game.ui.canvas.projection import (
    CanvasProjection,
    layer_projection,
)
from napari_embedding_game.ui.compat import find_layer_visual
from napari_embedding_game.ui.tasks.worker import count_running_workers

RED, BLUE = np.array([1, 0, 0, 1], np.float32), np.array([0, 0, 1, 1], np.float32)


def looks(n, chosen=None):
    """Blue points, those that are chosen red."""
    colors = np.tile(BLUE, (n, 1))
    if chosen is not None:
        colors[chosen] = RED
    return PointStyle(colors, np.full(n, 2.0, np.float32), chosen)


@pytest.fixture
def viewer(make_napari_viewer):
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(700, 500)
    return viewer


@pytest.fixture
def layers(viewer, make_snapshot):
    layers = MapLayers(viewer, print)
    layers.set_landmarks_visible(False)
    layers.prepare_layers(make_snapshot())
    layers.show_snapshot(make_snapshot(50), looks(40, np.arange(40) == 7))
    yield layers
    layers.close()


def shown(viewer, qtbot):
    """Return the canvas as it is seen, and where the points are on it."""
    points = viewer.layers["embedding"]
    qtbot.settle()
    qtbot.waitUntil(lambda: not count_running_workers())
    qtbot.settle()
    picture = viewer.screenshot(canvas_only=True, flash=False)[..., :3].astype(int)
    pixels = layer_projection(viewer, points).to_pixels(
        points.data[:, [a for a in viewer.dims.order if a < 2][-2:]]
    )
    scale = picture.shape[0] / viewer.canvas.size[0]
    return picture, np.round(scale * pixels - 0.5).astype(int)


def test_points_are_seen_where_they_are_in_their_colours(
    viewer, layers, qtbot, monkeypatch
):
    """However they are looked at, by our picture and by napari where that cannot be."""
    points = layers.points
    camera, grid, markers = (
        viewer.scene.camera,
        viewer.canvas.grid,
        find_layer_visual(viewer, points).markers,
    )
    points.visible = False
    qtbot.settle()
    hidden = viewer.screenshot(canvas_only=True, flash=False)
    assert not hidden[..., :3].any()
    points.visible = True
    for thing, name, value in (
        (camera, "zoom", camera.zoom * 1.2),
        (grid, "enabled", True),
        (viewer.dims, "order", (1, 0)),
        (points, "translate", (40, 10)),
        (points, "blending", "additive"),  # no picture can be: napari draws
        (points, "rotate", 20),  # the same
    ):
        if name == "blending":
            assert len(markers.symbol) == 1  # napari's blank
        before = getattr(thing, name)
        setattr(thing, name, value)
        are_in_their_colours(*shown(viewer, qtbot), name)
        setattr(thing, name, before)
    assert len(markers.symbol) == 40
    what_somebody_sets_in_the_layer_is_drawn(viewer, layers, qtbot)
    what_comes_into_view_is_painted(viewer, qtbot)
    a_screenshot_is_painted_once(viewer, qtbot, monkeypatch)
    markers_of_points_that_go_are_not_filled(viewer, layers)
    a_closed_dock_leaves_the_points_to_napari(viewer, layers, qtbot)


def are_in_their_colours(picture, pixels, change):
    height, width = picture.shape[:2]
    inside = ((pixels > 2) & (pixels < [width - 3, height - 3])).all(axis=1)
    assert inside.sum() > 20, change
    for row in np.flatnonzero(inside):
        x, y = pixels[row]
        red, _, blue = picture[y, x]
        is_beside = np.abs(pixels - pixels[7]).sum(1)[row] < 9
        assert (red > blue) == (row == 7) or is_beside, change
        assert max(red, blue) > 150, change


def what_somebody_sets_in_the_layer_is_drawn(viewer, layers, qtbot):
    """By our picture, and by napari where it cannot be; frames leave it so."""
    points, order = layers.points, np.arange(40)
    camera = viewer.scene.camera

    def lit():
        picture, pixels = shown(viewer, qtbot)
        return picture[pixels[:, 1], pixels[:, 0]]

    def n_lit():
        return (shown(viewer, qtbot)[0].max(axis=2) > 100).sum()

    points.shown = order % 2 == 0
    assert np.array_equal(lit().max(axis=1) > 100, order % 2 == 0)
    points.shown = False
    assert not lit().any()
    points.shown = True
    n_usual = n_lit()
    points.size = points.size * 2
    assert n_lit() > 2 * n_usual
    layers.show_snapshot(layers._snapshot, looks(40, order == 3))  # as in a selection
    assert n_lit() > 2 * n_usual
    assert np.argmax(lit()[3]) == 0
    points.symbol = "cross"
    discs, pixels = shown(viewer, qtbot)
    reach = int(points.size[3] * camera.zoom / 3)
    x, y = pixels[3]
    assert discs[y, x + reach, 0] > 100 > discs[y - reach, x - reach, 0]  # no disc
    points.symbol = "disc"
    points.face_color = "lime"
    assert (lit()[:, 1] > 100).all()
    points.selected_data = {5}
    points.current_face_color = "red"
    points.current_size = 1.0
    points.selected_data = set()
    assert np.array_equal(np.flatnonzero(lit()[:, 0] > 100), [5])
    assert points.size[5] == 1
    points.size = points.size.max()
    points.face_color = "lime"
    is_lit = lit()[:, 1].mean()
    points.opacity = 0.3
    assert lit()[:, 1].mean() < 0.5 * is_lit
    points.opacity, points.blending = 0.9, "additive"
    assert lit()[:, 1].mean() > 0.8 * is_lit
    points.blending, points.border_width, points.border_color = (
        "translucent",
        0.9,
        "red",
    )
    assert (shown(viewer, qtbot)[0][..., 0] > 100).any()  # as napari draws it
    points.border_width = 0.0
    assert layers._point_look._look.point_opacity == 0.9


def what_comes_into_view_is_painted(viewer, qtbot):
    viewer.reset_view()
    camera = viewer.scene.camera
    zoom = camera.zoom
    camera.zoom = 8 * zoom
    shown(viewer, qtbot)
    figure = viewer.export_figure(flash=False)[..., :3]
    assert (figure[::4, ::4].max(axis=2) > 150).sum() > 40
    camera.zoom = zoom
    at_once = viewer.screenshot(flash=False)  # as a script does
    picture, pixels = shown(viewer, qtbot)
    assert all(picture[y, x].max() > 150 for x, y in pixels)
    assert all(at_once[y, x, :3].max() > 150 for x, y in pixels)


def a_screenshot_is_painted_once(viewer, qtbot, monkeypatch):
    painted = []
    monkeypatch.setattr(
        map_picture,
        "paint_points",
        lambda *how: painted.append(how) or paint_points(*how),
    )
    viewer.screenshot(flash=False)
    qtbot.settle()
    assert len(painted) == 1
    canvas = find_layer_visual(viewer, viewer.layers["embedding"]).canvas
    monkeypatch.setattr(type(canvas), "devicePixelRatioF", lambda _: 2.0)
    canvas.update()  # as on another screen
    qtbot.waitUntil(lambda: len(painted) == 2)
    monkeypatch.undo()


def markers_of_points_that_go_are_not_filled(viewer, layers):
    layers.show_extra_points(COMPARED, np.zeros((3, 2), np.float32), looks(3))
    markers = find_layer_visual(viewer, layers.find_points_layer(COMPARED)).markers
    layers.show_extra_points(COMPARED, None, looks(0))
    assert len(markers.symbol) == 1


def a_closed_dock_leaves_the_points_to_napari(viewer, layers, qtbot):
    layers.close()
    picture, pixels = shown(viewer, qtbot)
    assert picture[pixels[7, 1], pixels[7, 0]].max() > 100
    viewer.layers.clear()


PLANE = CanvasProjection(np.eye(3)[[1, 0, 2]], (0.0, 0.0, 40.0, 30.0))
"""Pixels as the places are."""


def test_a_point_is_a_round_disc_of_its_size():
    of = PointStyle(RED[None], np.array([12.0], np.float32))
    red = paint_points(np.array([[15.0, 20.0]], np.float32), of, PLANE).picture[..., 0]
    rows, columns = np.indices(red.shape)
    from_middle = np.hypot(rows + 0.5 - 15, columns + 0.5 - 20)
    assert (red[from_middle < 5.5] == 255).all()
    assert not red[from_middle >= 6.5].any()
    rim = red[(from_middle > 5.6) & (from_middle < 6.4)]
    assert ((rim > 0) & (rim < 255)).all()


def test_the_chosen_are_above():
    positions = np.tile([[15.0, 20.0]], (3, 1)).astype(np.float32)
    chosen = np.array([0, 1, 0], bool)
    painted = paint_points(positions, looks(3, chosen), PLANE)
    assert painted.picture[15, 20, 0] > 200
    assert painted.picture[15, 20, 2] < 60


def test_no_group_covers_another_because_it_is_later_in_the_file():
    rng, n = np.random.default_rng(0), 1_000
    positions = rng.uniform([0, 0], [30, 40], (n, 2)).astype(np.float32)
    for few in (n // 2, n // 10):
        is_last = np.arange(n) >= n - few
        colors = np.where(is_last[:, None], RED, BLUE)
        of = PointStyle(colors, np.full(n, 4.0, np.float32))
        picture = paint_points(positions, of, PLANE).picture
        red = (picture[..., 0] > picture[..., 2]).mean()
        assert 0.7 * few / n < red < 1.4 * few / n


def test_more_points_than_pixels_are_a_density_on_which_the_chosen_are_found():
    rng = np.random.default_rng(0)
    positions = rng.uniform([0, 0], [15, 40], (5_000, 2)).astype(np.float32)
    positions[0] = 25, 30
    chosen = np.arange(5_000) == 0
    painted = paint_points(positions, looks(5_000, chosen), PLANE)
    assert (painted.picture[25, 29:31, 0] > 200).all()
    assert (painted.picture[:14, :, 2] > 0).mean() > 0.99
    assert not painted.picture[16:22].any()
    chosen = np.arange(5_000) % 3 == 0  # too many to be discs
    picture = paint_points(positions, looks(5_000, chosen), PLANE).picture
    rows, columns = positions[chosen].astype(int).T
    assert (picture[rows, columns, 0] > 100).all()
    assert not picture[rows, columns, 2].any()


def test_in_space_the_nearest_is_on_top():
    matrix = np.array([[0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]], float)
    space = CanvasProjection(matrix, (0.0, 0.0, 40.0, 30.0), np.array([1.0, 0, 0]))
    positions = np.array([[0, 15, 20], [5, 15, 20]], np.float32)
    for sight, top in ((positions, 0), (positions * [-1, 1, 1], 2)):
        picture = paint_points(sight, looks(2, np.array([True, False])), space).picture
        assert picture[15, 20, top] > 200
