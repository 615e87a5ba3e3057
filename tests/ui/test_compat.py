"""The window works on where napari has not what is taken of it beyond its API."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from napari.components import ViewerModel
from napari.layers import Labels, Layer, Points
from qtpy.QtWidgets import QMainWindow, QWidget

from napari_embedding_game.ui import compat
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.compat import (
    VIEWS,
    LockedPoints,
    MapPoints,
    camera_of,
    canvas_widget,
    colors_of,
    draw,
    in_place,
    points_class,
    unwrap,
    write_looks,
)
from napari_embedding_game.ui.point_looks import PointLooks
from napari_embedding_game.ui.style.colors import CodedColors

GREY = np.full((40, 4), 0.5, np.float32)
RED = np.array([1, 0, 0, 1], np.float32)


@pytest.fixture
def show(viewer, dataset, make_snapshot):
    """Draw a map with its first five points in red and above the others."""

    def act():
        layers = MapLayers(viewer, lambda: None)
        layers.begin(make_snapshot(), dataset.obs)
        colors, above = GREY.copy(), np.arange(40) < 5
        colors[:5] = RED
        snapshot = make_snapshot(20)
        assert layers.show(snapshot, colors, above=above)
        return layers, layers.to_world(snapshot.embedding)

    return act


def is_drawn(layers, world):
    points = layers.points
    np.testing.assert_allclose(points.data, world, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(points.face_color[:5], np.tile(RED, (5, 1)))
    np.testing.assert_allclose(points.face_color[5:], GREY[5:])
    return True


def test_what_is_taken_of_napari_is_there(show):
    """Else the window is slower, and a newer way is to be found."""
    layers, world = show()
    assert is_drawn(layers, world)
    assert compat.has_views()
    assert points_class(MapPoints) is MapPoints
    for name in ("data", "size", "symbol", "face_color"):
        held = getattr(layers.points, name)
        with in_place(layers.points, name) as array:
            assert array is held
    assert layers.points._view_data is not layers.points.data  # in another order
    np.testing.assert_allclose(layers.points._view_data[-5:], layers.points.data[:5])


@pytest.fixture
def written(monkeypatch):
    """Note how often the colours of all points of a layer are written."""
    written, write = [], PointLooks.write_colors
    monkeypatch.setattr(
        PointLooks,
        "write_colors",
        lambda looks, colors: written.append(len(colors)) or write(looks, colors),
    )
    return written


def test_colours_are_written_when_somebody_asks_for_them(viewer, written, monkeypatch):
    monkeypatch.setattr(compat, "MOST_IN_THUMBNAIL", 10)
    layer = MapPoints(np.arange(80.0).reshape(40, 2), size=3, face_color=GREY)
    viewer.add_layer(layer)
    codes = np.arange(40, dtype=np.int32) // 4 % 2
    table = np.array([[0, 1, 0, 1], [0, 0, 1, 1]], np.float32)
    looks = PointLooks(CodedColors(table, codes), 2.0, chosen=codes == 1)
    layer.leave_out(True)
    write_looks(layer, looks)
    assert colors_of(layer) is looks
    assert (layer.size == 2.0).all()
    layer.features = pd.DataFrame({"kind": codes})
    layer.refresh()
    shown = layer.thumbnail[..., :3].reshape(-1, 3).max(axis=0)
    assert shown.tolist() == [0, 255, 255]  # of the points' colours
    assert written == []
    np.testing.assert_array_equal(layer.face_color, table[codes])
    assert written == [40]
    assert colors_of(layer) is layer.face_color
    write_looks(layer, looks)
    layer.face_color = "red"  # by a person: none of the former comes back
    assert (layer.face_color == RED).all()
    write_looks(layer, looks)
    copy = Layer.create(*layer.as_layer_data_tuple())
    np.testing.assert_array_equal(copy.face_color, table[codes])
    layer.leave_out(False)
    write_looks(layer, looks)
    draw(viewer, layer)
    np.testing.assert_array_equal(layer._view_face_color, table[codes])


def test_without_napari_s_place_for_colours_they_are_written_at_once(written):
    layer = Points(np.zeros((3, 2)))
    looks = PointLooks(np.tile(RED, (3, 1)), 2.0)
    write_looks(layer, looks)
    assert written == [3]
    assert (layer.face_color == RED).all()
    assert (layer.size == 2.0).all()


def test_a_layer_of_many_alike_points_is_as_napari_makes_it(viewer, monkeypatch):
    world = np.random.default_rng(0).normal(size=(70, 2)).astype(np.float32)
    settings = {"size": 3.0, "border_width": 0.0, "face_color": "gray"}
    plain = compat.alike_points(world.copy(), **settings)
    monkeypatch.setattr(compat, "ALIKE_FROM", 50)
    alike = compat.alike_points(world, **settings)
    assert alike.data is world
    for name in ("size", "symbol", "border_width", "shown", "border_color"):
        np.testing.assert_array_equal(getattr(alike, name), getattr(plain, name))
    np.testing.assert_array_equal(alike.extent.world, plain.extent.world)
    assert len(alike.features) == 70
    alike.leave_out(True)
    viewer.add_layer(alike)  # nothing is numbered for it
    assert len(alike._view_indices) == 0
    assert alike.thumbnail[..., :3].any()
    alike.leave_out(False)
    draw(viewer, alike)
    np.testing.assert_array_equal(alike._view_indices, np.arange(70))
    np.testing.assert_array_equal(alike._view_face_color, plain.face_color)
    # A person may change some of them all the same.
    alike.selected_data = {3, 5}
    alike.current_symbol = "square"
    alike.current_border_width = 0.5
    alike.current_face_color = "red"
    with in_place(alike, "face_color") as colors:
        assert colors is alike.face_color
    assert (alike.face_color[[3, 5]] == RED).all()
    assert alike.border_width.sum() == 1.0
    assert set(map(str, alike.symbol)) == {"square"}
    monkeypatch.setattr(compat, "OF_EACH", ("_data", "_elsewhere"))
    assert len(compat.alike_points(world, **settings).data) == 70


@pytest.mark.parametrize("missing", VIEWS[1:])  # the first is what these are made of
def test_without_one_of_its_views_napari_draws_points_by_its_own(
    show, viewer, monkeypatch, missing
):
    plain = Points(np.arange(80.0).reshape(40, 2), size=3, face_color=GREY)
    fast = MapPoints(np.arange(80.0).reshape(40, 2), size=3, face_color=GREY)
    for layer in (plain, fast):
        viewer.add_layer(layer)
    fast.draw_last(np.arange(40) < 5)
    asked = [name for name in VIEWS if name != missing]
    expected = {name: getattr(plain, name) for name in asked}
    monkeypatch.delattr(Points, missing)
    for name in asked:
        np.testing.assert_array_equal(getattr(fast, name), expected[name])


@pytest.mark.parametrize("missing", ["_slice_input", "_update_properties"])
def test_without_its_inner_state_a_layer_is_drawn(show, monkeypatch, missing):
    layers, world = show()
    assert is_drawn(layers, world)
    points = layers.points
    real = type(points).__getattribute__

    def hidden(layer, name):
        asked_by = sys._getframe(1).f_globals["__name__"]
        if name == missing and asked_by == compat.__name__:
            raise AttributeError(name)
        return real(layer, name)

    monkeypatch.setattr(MapPoints, "__getattribute__", hidden)
    np.testing.assert_allclose(points._view_data, points.data[points._view_indices])
    points.current_symbol = "square"
    assert set(map(str, points.symbol)) == {"square"}


def test_where_napari_names_layers_otherwise_they_are_its_own_points(
    show, viewer, monkeypatch
):
    monkeypatch.delattr(LockedPoints, "_type_string")
    assert points_class(MapPoints) is Points
    layers, world = show()
    assert is_drawn(layers, world)
    assert {type(layer) for layer in viewer.layers} == {Points}


@pytest.mark.parametrize("name", ["data", "size", "face_color"])
def test_arrays_that_are_only_copies_are_assigned(show, monkeypatch, name):
    held = getattr(Points, name)
    handed_out = property(lambda layer: held.fget(layer).copy(), held.fset)
    monkeypatch.setattr(Points, name, handed_out)
    layers, world = show()
    assert is_drawn(layers, world)
    assert len(np.unique(layers.points.size)) == 1


def test_labels_that_are_only_copies_are_assigned(monkeypatch):
    held = Labels.data
    layer = Labels(np.zeros((4, 4), np.uint8))
    monkeypatch.setattr(
        Labels, "data", property(lambda layer: held.fget(layer).copy(), held.fset)
    )
    with in_place(layer, "data") as pixels:
        pixels[1:3] = 1
    assert layer.data.sum() == 8


def test_arrays_that_cannot_be_written_are_assigned():
    layer = Labels(np.zeros((4, 4), np.uint8))
    layer.data.flags.writeable = False
    with in_place(layer, "data") as pixels:
        pixels[1:3] = 1
    assert layer.data.sum() == 8


def test_without_a_pause_of_events_a_layer_is_drawn(show, viewer):
    layers, _ = show()
    drawn = []
    layers.points.events.set_data.connect(lambda: drawn.append(True))
    draw(viewer, layers.points)
    assert drawn == [True]
    without = SimpleNamespace(layers=SimpleNamespace(events=object()))
    draw(without, layers.points)
    assert drawn == [True, True]


def test_a_viewer_without_a_proxy_is_itself(viewer):
    assert unwrap(viewer) is viewer

    class Proxy:
        __wrapped__ = viewer

    assert unwrap(Proxy()) is viewer


def test_the_camera_is_found_where_it_was_and_where_it_is():
    class Former:
        camera = "camera"

    assert camera_of(Former()) == "camera"
    viewer = ViewerModel()
    assert camera_of(viewer) is viewer.scene.camera


def test_a_window_without_an_opengl_widget_has_no_canvas(qtbot, docked, click_run):
    window = QMainWindow()
    qtbot.addWidget(window)
    middle = QWidget()
    window.setCentralWidget(middle)
    inside = QWidget(middle)
    assert canvas_widget(inside) is None


def test_without_a_canvas_the_map_is_played_and_nothing_is_painted_over_it(
    qtbot, docked, click_run, monkeypatch
):
    monkeypatch.setattr(compat, "QOpenGLWidget", QMainWindow)  # none is in there
    layers = click_run(docked)
    assert canvas_widget(docked) is None
    docked.names.update()
    assert docked.names.overlay is None
    assert layers.points.visible
