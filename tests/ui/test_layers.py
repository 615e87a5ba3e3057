"""The map on the canvas: written in place, found by identity, never NaN."""

from dataclasses import replace

import numpy as np
import pytest

from napari_embedding_game.ui.canvas.layers import MapLayers
from napari_embedding_game.ui.canvas.picture import Looks


@pytest.fixture
def lost():
    return []


@pytest.fixture
def layers(viewer, lost, make_snapshot):
    layers = MapLayers(viewer, lost.append)
    layers.begin(make_snapshot())
    return layers


GREY = Looks(np.full((40, 4), 0.5, np.float32), np.ones(40, np.float32))


def test_a_map_fills_its_box_and_one_that_collapsed_is_small(layers, make_snapshot):
    for iteration in (0, 200, 1000):
        layers.show(make_snapshot(iteration, 1000), GREY)
        low, high = layers.points.data.min(0), layers.points.data.max(0)
        np.testing.assert_allclose([low, high], [[0, 0], [1000, 1000]], atol=1)
    before = layers.points.data.copy()
    broken = make_snapshot(10)
    broken.embedding[3, 0] = np.nan
    assert not layers.show(broken, GREY)
    np.testing.assert_array_equal(layers.points.data, before)
    spot = make_snapshot(50)
    spot = replace(spot, embedding=spot.embedding * 0.01)
    layers.show(spot, GREY)
    layers.finish()
    assert np.ptp(layers.points.extent.world[:, 0]) < 100


def test_landmarks_that_were_far_do_not_make_a_map_small_once_hidden(
    viewer, layers, make_snapshot
):
    early = make_snapshot(10)
    layers.show(replace(early, landmarks=early.landmarks * 50), GREY)
    layers.finish()
    assert np.ptp(layers.landmarks.extent.world[:, 0]) > 5_000
    layers.show_landmarks(False)
    layers.show(make_snapshot(20), GREY)
    layers.finish()
    viewer.reset_view()
    assert np.ptp(layers.landmarks.extent.world[:, 0]) < 2_000


@pytest.mark.parametrize("use", ["fly to", "hover"])
def test_of_a_map_at_rest_that_somebody_edited_nothing_is_used(
    layers, lost, make_snapshot, use
):
    layers.show(make_snapshot(10), GREY)
    layers.points.remove([3, 4])
    assert (layers.fly_to(39) if use == "fly to" else layers.projection()) is None
    assert lost == ["embedding"]
    assert layers.points is None


def test_a_layer_that_somebody_hid_stays_hidden(layers, make_snapshot):
    layers.show(make_snapshot(), GREY)
    layers.points.visible = False
    layers.begin(make_snapshot())
    layers.show(make_snapshot(10), GREY)
    assert not layers.points.visible
    layers.landmarks.visible = False
    layers.show_landmarks(True)
    layers.show(make_snapshot(20), GREY)
    assert not layers.landmarks.visible
    layers.show_landmarks(False)
    layers.show_landmarks(True)  # of the next run
    assert layers.landmarks.visible
