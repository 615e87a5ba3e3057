"""Which point the mouse rests on."""

from types import SimpleNamespace

import numpy as np
import pytest
from napari.components import ViewerModel

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.ui.canvas.hover_watch import REST_MS, HoverWatch, point_at
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.canvas.map_picture import Looks
from napari_embedding_game.ui.canvas.nearest import nearest


@pytest.fixture
def hovering(viewer):
    """A mouse over rows that stand at the whole numbers."""
    hovering = HoverWatch(viewer, lambda w: int(w[0]) if w[0] == int(w[0]) else None)
    hovering.told = []
    hovering.changed.connect(hovering.told.append)
    yield hovering
    hovering.close()
    assert viewer.mouse_move_callbacks == []


def move(viewer, place, *, buttons=()):
    event = SimpleNamespace(pos=(place, 4), buttons=list(buttons))
    for callback in viewer.mouse_move_callbacks:
        callback(viewer, event)


def test_a_mouse_that_passes_tells_nothing(qtbot, viewer, hovering):
    hovering._rest.setTimeout(1000)  # so that a busy machine is no rest
    for place in (1.0, 2.0, 3.0):
        move(viewer, place)
        qtbot.wait(400)
    assert hovering.told == []
    qtbot.waitUntil(lambda: hovering.told == [3])
    assert hovering.pixel == (3.0, 4)


def test_the_next_point_is_told_at_once_and_leaving_too(qtbot, viewer, hovering):
    move(viewer, 1.0)
    qtbot.waitUntil(lambda: hovering.told == [1])
    move(viewer, 2.0)
    assert hovering.told == [1, 2]
    move(viewer, 2.0)
    assert hovering.told == [1, 2]
    move(viewer, 2.5)
    assert hovering.told == [1, 2, None]
    move(viewer, 4.0)
    assert hovering.told == [1, 2, None]  # only after a rest again


def test_a_button_that_is_held_takes_it_away(qtbot, viewer, hovering):
    move(viewer, 1.0)
    qtbot.waitUntil(lambda: hovering.told == [1])
    move(viewer, 1.0, buttons=[1])
    assert hovering.told == [1, None]
    qtbot.wait(2 * REST_MS)
    assert hovering.told == [1, None]


def snapshot_of(embedding):
    n = len(embedding)
    return Snapshot(
        iteration=1,
        n_iter=1,
        embedding=embedding.astype(np.float32),
        landmarks=embedding[:2].astype(np.float32),
        energy=0.0,
        labels=np.zeros(n, np.int32),
        pressure=np.zeros(n, np.float32),
        finished=True,
    )


@pytest.fixture
def drawn():
    """A map of some points in a viewer without a window."""

    def draw(embedding):
        import pandas as pd

        viewer, snapshot = ViewerModel(), snapshot_of(embedding)
        layers = MapLayers(viewer, lambda: None)
        layers.begin(snapshot, pd.DataFrame(index=range(len(embedding))))
        n = len(embedding)
        layers.show(snapshot, Looks(np.ones((n, 4)), np.ones(n, np.float32)))
        session = SimpleNamespace(
            snapshot=snapshot,
            drawn=snapshot,
            seen=snapshot.embedding,
            hiding=SimpleNamespace(of_places=lambda n_maps: None),
        )
        return viewer, session, layers

    return draw


def pixel_of(session, layers, row):
    """Return where a point is drawn on the canvas."""
    places = layers.to_world(session.snapshot.embedding[[row]])
    return layers.projection().to_pixels(places)[0]


def test_a_point_is_found_where_it_is_drawn_and_nowhere_else(drawn):
    rng = np.random.default_rng(0)
    viewer, session, layers = drawn(rng.uniform(-5, 5, (50, 2)))
    for row in range(50):
        assert point_at(session, layers, pixel_of(session, layers, row)) == row
    layers.fly_to(0)
    viewer.scene.camera.zoom = 20.0
    pixel = pixel_of(session, layers, 0)
    size = 20 * layers.points.size[0]
    assert point_at(session, layers, pixel + np.array([size / 2 - 1, 0])) == 0
    assert point_at(session, layers, pixel + np.array([size / 2 + 1, 0])) != 0
    assert point_at(session, layers, pixel - 1e6) is None
    layers.points.visible = False
    assert point_at(session, layers, pixel) is None


def test_a_point_is_found_where_a_turned_camera_shows_it(drawn):
    viewer, session, layers = drawn(np.random.default_rng(0).uniform(-5, 5, (50, 2)))
    viewer.dims.ndisplay = 3
    viewer.scene.camera.angles = (20, 40, -60)
    for perspective in (0, 40):
        viewer.scene.camera.perspective = perspective
        viewer.reset_view(reset_camera_angle=False)
        found = [
            point_at(session, layers, pixel_of(session, layers, row))
            for row in range(50)
        ]
        assert found == list(range(50))


def test_a_map_that_is_seen_from_its_edge_has_no_points_to_find(drawn):
    viewer, session, layers = drawn(np.random.default_rng(0).uniform(-5, 5, (50, 2)))
    viewer.dims.ndisplay = 3
    viewer.scene.camera.set_view_direction((0, 0, 1))
    middle = np.array(viewer.canvas.size[::-1]) / 2
    assert point_at(session, layers, middle) is None


def test_no_point_is_found_once_some_were_deleted(drawn):
    _, session, layers = drawn(np.random.default_rng(0).uniform(-5, 5, (50, 2)))
    pixel = pixel_of(session, layers, 49)
    layers.points.remove([3])
    assert point_at(session, layers, pixel) is None


def test_the_nearest_of_a_million_points_is_found(drawn):
    _, session, layers = drawn(np.random.default_rng(0).normal(size=(1_000_000, 2)))
    pixel = pixel_of(session, layers, 77_777)
    assert point_at(session, layers, pixel) == 77_777
    assert nearest(session.snapshot.embedding, layers.place_at(pixel)) == 77_777
