"""Which point the mouse rests on."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from napari.components import ViewerModel

from napari_embedding_game.core.types import Snapshot
from napari_embedding_game.ui.hovering import REACH, REST_MS, Hovering, point_at
from napari_embedding_game.ui.layers import MapLayers


@pytest.fixture
def hovering(viewer):
    """A mouse over rows that stand at the whole numbers."""
    hovering = Hovering(viewer, lambda w: int(w[0]) if w[0] == int(w[0]) else None)
    hovering.told = []
    hovering.changed.connect(hovering.told.append)
    yield hovering
    hovering.close()
    assert viewer.mouse_move_callbacks == []


def move(viewer, place, *, buttons=()):
    event = SimpleNamespace(position=(place, 0.0), pos=(3, 4), buttons=list(buttons))
    for callback in viewer.mouse_move_callbacks:
        callback(viewer, event)


def test_a_mouse_that_passes_tells_nothing(qtbot, viewer, hovering):
    for place in (1.0, 2.0, 3.0):
        move(viewer, place)
        qtbot.wait(REST_MS // 4)
    assert hovering.told == []
    qtbot.waitUntil(lambda: hovering.told == [3])
    assert hovering.pixel == (3, 4)


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
        layers.show(snapshot, np.ones((len(embedding), 4), np.float32))
        session = SimpleNamespace(snapshot=snapshot)
        return viewer, session, layers

    return draw


def test_a_point_is_found_where_it_is_drawn_and_nowhere_else(drawn):
    rng = np.random.default_rng(0)
    embedding = rng.uniform(-5, 5, (50, 2))
    viewer, session, layers = drawn(embedding)
    for row in range(50):
        world = layers.to_world(session.snapshot.embedding[row])
        assert point_at(viewer, session, layers, world) == row
    viewer.scene.camera.zoom = 50.0
    world = layers.to_world(session.snapshot.embedding[0])
    size = layers.points.size[0]
    off = world + np.array([0, size / 2 + REACH / 50])
    found = point_at(viewer, session, layers, off)
    assert found != 0
    assert point_at(viewer, session, layers, world - 1e6) is None
    viewer.dims.ndisplay = 3
    assert point_at(viewer, session, layers, world) is None
    viewer.dims.ndisplay = 2
    layers.points.visible = False
    assert point_at(viewer, session, layers, world) is None


def test_no_point_is_found_once_some_were_deleted(drawn):
    viewer, session, layers = drawn(np.random.default_rng(0).uniform(-5, 5, (50, 2)))
    world = layers.to_world(session.snapshot.embedding[49])
    layers.points.selected_data = {3}
    layers.points.remove_selected()
    assert point_at(viewer, session, layers, world) is None


def test_the_nearest_of_100_000_points_is_found_within_10_ms(drawn):
    rng = np.random.default_rng(0)
    viewer, session, layers = drawn(rng.normal(size=(100_000, 2)))
    world = layers.to_world(session.snapshot.embedding[77_777])
    times = []
    for _ in range(5):
        begun = time.process_time()
        assert point_at(viewer, session, layers, world) == 77_777
        times.append(time.process_time() - begun)
    assert min(times) < 0.010
