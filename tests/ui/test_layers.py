"""The map on the canvas: written in place, found by identity, never NaN."""

from dataclasses import replace

import numpy as np
import pytest

from napari_embedding_game.ui.canvas.layers import MapLayers, point_size
from napari_embedding_game.ui.canvas.picture import Looks


@pytest.fixture
def lost():
    return []


@pytest.fixture
def layers(viewer, lost, dataset, make_snapshot):
    layers = MapLayers(viewer, lambda: lost.append(True))
    layers.begin(make_snapshot(), dataset.obs)
    return layers


GREY = Looks(np.full((40, 4), 0.5, np.float32), np.ones(40, np.float32))


def test_a_frame_is_written_in_place_and_drawn(viewer, layers, make_snapshot, qtbot):
    array = layers.points.data
    later = make_snapshot(30)
    assert layers.show(later, GREY)
    assert layers.points.data is array
    world = layers.to_world(later.embedding)
    np.testing.assert_allclose(array, world, rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(layers.points.face_color, GREY.colors)


def test_the_map_fills_its_box_however_large_it_is(layers, make_snapshot):
    for iteration in (0, 200, 1000):
        layers.show(make_snapshot(iteration, 1000), GREY)
        low, high = layers.points.data.min(0), layers.points.data.max(0)
        np.testing.assert_allclose([low, high], [[0, 0], [1000, 1000]], atol=1)


def test_a_collapsed_map_is_shown_small(layers, make_snapshot):
    spot = make_snapshot(50)
    spot = replace(spot, embedding=spot.embedding * 0.01)
    layers.show(spot, GREY)
    layers.finish()
    assert np.ptp(layers.points.extent.world[:, 0]) < 100


def test_a_snapshot_with_nan_is_left_out(layers, make_snapshot):
    before = layers.points.data.copy()
    broken = make_snapshot(10)
    broken.embedding[3, 0] = np.nan
    assert not layers.show(broken, GREY)
    np.testing.assert_array_equal(layers.points.data, before)


def test_landmarks_come_and_go(layers, make_snapshot):
    layers.show(make_snapshot(10, n_landmarks=8), GREY)
    assert len(layers.landmarks.data) == 8
    assert "<A> adds one" in layers.landmarks.help  # below the canvas, once selected
    layers.show(make_snapshot(20, n_landmarks=2), GREY)
    assert len(layers.landmarks.data) == 2


def test_a_deleted_points_layer_is_lost_and_not_resurrected(
    viewer, layers, lost, make_snapshot
):
    viewer.layers.remove(layers.points)
    assert lost == [True]
    assert not layers.show(make_snapshot(10), GREY)
    assert [layer.name for layer in viewer.layers] == ["landmarks"]


def test_deleted_landmarks_are_not_drawn_any_more(viewer, layers, lost, make_snapshot):
    viewer.layers.remove(layers.landmarks)
    assert layers.show(make_snapshot(10), GREY)
    assert lost == []
    assert len(viewer.layers) == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda layers: layers.fly_to(39),
        lambda layers: layers.projection(),
        lambda layers: layers.recolor(GREY),
    ],
    ids=["fly to", "hover", "select"],
)
def test_of_a_map_at_rest_that_somebody_edited_nothing_is_used(
    layers, lost, make_snapshot, use
):
    layers.show(make_snapshot(10), GREY)
    layers.points.remove([3, 4])
    assert use(layers) is None
    assert lost == [True]
    assert layers.points is None


def test_points_that_somebody_edited_are_left_alone(layers, lost, make_snapshot):
    layers.points.data = layers.points.data[:30]
    assert not layers.show(make_snapshot(10), GREY)
    assert lost == [True]


def test_layers_are_found_by_identity_not_by_name(viewer, layers, make_snapshot):
    layers.points.name = "my map"
    other = viewer.add_points(np.zeros((40, 2)), name="embedding")
    layers.show(make_snapshot(10), GREY)
    assert not other.data.any()


def test_the_map_lies_beside_images(viewer, dataset, make_snapshot):
    viewer.add_image(np.zeros((3, 200, 300)))
    layers = MapLayers(viewer, lambda: None)
    layers.begin(make_snapshot(), dataset.obs)
    layers.show(make_snapshot(50), GREY)
    layers.finish()
    low, high = layers.points.extent.world
    assert low[-1] > 300 - 1
    assert high[-2] - low[-2] == pytest.approx(200, rel=0.2)


def test_landmarks_are_seen_on_the_canvas_of_either_theme(layers, viewer):
    dark = layers.landmarks.border_color[0].copy()
    assert dark[:3].mean() > 0.8
    viewer.theme = "light"
    layers.follow_theme()
    assert layers.landmarks.border_color[0, :3].mean() < 0.2
    assert layers.landmarks.face_color[0, :3].mean() > 0.8


def test_points_are_readable_in_small_and_in_large_maps():
    assert point_size(100) == 16
    assert 6 < point_size(2_638) < 10
    assert point_size(70_000) == 2
    assert 0.1 < point_size(20_000_000) < 0.2


def test_layers_that_are_expected_are_hidden_until_there_is_a_map(
    viewer, dataset, make_snapshot
):
    layers = MapLayers(viewer, lambda: None)
    layers.expect(40, 4)
    points = layers.points
    assert [layer.visible for layer in viewer.layers] == [False, False]
    layers.begin(make_snapshot(), dataset.obs)
    assert layers.show(make_snapshot(), GREY)
    assert layers.points is points
    assert [layer.visible for layer in viewer.layers] == [True, True]


def test_expected_layers_go_when_nothing_comes_and_a_map_stays(
    viewer, dataset, make_snapshot, lost
):
    layers = MapLayers(viewer, lambda: lost.append(True))
    layers.expect(40, 4)
    layers.discard()
    assert not viewer.layers
    layers.begin(make_snapshot(), dataset.obs)
    layers.show(make_snapshot(), GREY)
    layers.expect(39, 4)
    layers.discard()
    assert [len(layer.data) for layer in viewer.layers] == [40, 4]
    assert lost == []


def test_a_layer_that_somebody_hid_stays_hidden(viewer, layers, dataset, make_snapshot):
    layers.show(make_snapshot(), GREY)
    layers.points.visible = False
    layers.begin(make_snapshot(), dataset.obs)
    layers.show(make_snapshot(10), GREY)
    assert not layers.points.visible


def test_napari_list_of_layers_is_not_drawn_with_every_frame(
    viewer, layers, make_snapshot
):
    told = []
    layers.show(make_snapshot(), GREY)
    viewer.layers.events.connect(lambda event: told.append(event.type))
    layers.show(make_snapshot(10), GREY)
    layers.recolor(GREY)
    assert "set_data" not in told
    layers.points.refresh()
    assert "set_data" in told
