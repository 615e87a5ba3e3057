"""Which point of the map is at a pixel."""

import numpy as np
import pandas as pd
import pytest
from napari.components import ViewerModel

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.ui.canvas.layers import MapLayers
from napari_embedding_game.ui.canvas.pick import BESIDE, row_at
from napari_embedding_game.ui.canvas.picture import Looks


@pytest.fixture
def drawn():
    """A map of some points in a viewer without a window."""

    def draw(places):
        places, n = places.astype(np.float32), len(places)
        labels, pressure = np.zeros(n, np.int32), np.zeros(n, np.float32)
        snapshot = Snapshot(
            iteration=1,
            n_iter=1,
            embedding=places,
            landmarks=places[:2],
            energy=0.0,
            labels=labels,
            pressure=pressure,
            finished=True,
        )
        viewer = ViewerModel()
        layers = MapLayers(viewer, lambda: None)
        layers.begin(snapshot, pd.DataFrame(index=range(n)))
        layers.show(snapshot, Looks(np.ones((n, 4)), np.ones(n, np.float32)))
        return viewer, layers, places

    return draw


def pixel_of(layers, place):
    return layers.projection().to_pixels(place[None])[0]


def all_are_found(layers, places):
    found = [row_at(layers, places, pixel_of(layers, place)) for place in places]
    return found == list(range(len(places)))


@pytest.fixture
def some():
    return np.random.default_rng(0).uniform(-5, 5, (50, 2))


def test_a_point_is_found_where_it_is_drawn_and_nowhere_else(drawn, some):
    viewer, layers, places = drawn(some)
    assert all_are_found(layers, places)
    layers.fly_to(0)
    viewer.scene.camera.zoom = 20.0
    pixel = pixel_of(layers, places[0])
    size = 20 * layers.points.size[0]
    assert row_at(layers, places, pixel + np.array([size / 2 - 1, 0])) == 0
    assert row_at(layers, places, pixel + np.array([size / 2 + 1, 0])) != 0
    assert row_at(layers, places, pixel - 1e6) is None
    layers.points.visible = False
    assert row_at(layers, places, pixel) is None


def test_a_click_beside_a_point_means_it_and_one_off_the_map_none(drawn):
    _, layers, places = drawn(np.array([[0.0, 0.0], [100.0, 100.0]]))
    wide = layers.projection().zoom * 100
    for share, found in ((0.5 * BESIDE, 0), (2 * BESIDE, None)):
        pixel = pixel_of(layers, places[0]) + np.array([share * wide, 0])
        assert row_at(layers, places, pixel, reach=0.0, beside=BESIDE) == found


@pytest.mark.parametrize("perspective", [0, 40])
def test_a_point_is_found_where_a_turned_camera_shows_it(drawn, some, perspective):
    viewer, layers, places = drawn(some)
    viewer.dims.ndisplay = 3
    viewer.scene.camera.angles = (20, 40, -60)
    viewer.scene.camera.perspective = perspective
    viewer.reset_view(reset_camera_angle=False)
    assert all_are_found(layers, places)
