"""Many points are one picture while they move, and it looks as napari's points do."""

from dataclasses import replace

import numpy as np
import pytest

from napari_embedding_game.ui import compat
from napari_embedding_game.ui.canvas import map_picture, points_layer
from napari_embedding_game.ui.canvas.map_layers import MapLayers

COLORS = np.random.default_rng(3).random((40, 4)).astype(np.float32)
COLORS[:, 3] = 1.0
MAGNIFICATION = np.linspace(1, 3, 40)
ABOVE = np.arange(40) < 20


@pytest.fixture
def viewer(make_napari_viewer):
    viewer = make_napari_viewer(show=True)
    viewer.window.resize(700, 500)
    return viewer


@pytest.fixture
def always(monkeypatch):
    """Draw even a few points as a picture while they move."""
    monkeypatch.setattr(map_picture, "MOVING_SECONDS", 0.0)


@pytest.fixture
def layers(viewer, dataset, make_snapshot, qtbot, always):
    layers = MapLayers(viewer, lambda: None)
    layers.begin(make_snapshot(), dataset.obs)
    yield layers
    layers.close()


def show(layers, make_snapshot, iteration=20):
    snapshot = make_snapshot(iteration)
    assert layers.show(snapshot, COLORS, MAGNIFICATION, ABOVE)
    return snapshot


def is_picture(viewer, layers):
    """Whether the picture is to be seen, and not napari's points."""
    scene = compat.scene_of(viewer, layers.points)
    assert layers._picture.is_shown is not scene.points.visible
    return layers._picture.is_shown


def canvas(viewer, qtbot):
    qtbot.wait(60)
    return viewer.screenshot(canvas_only=True, flash=False)[..., :3].astype(float)


def looks_as_napari_draws_it(viewer, layers, qtbot):
    assert is_picture(viewer, layers)
    picture = canvas(viewer, qtbot)
    layers._picture.close()
    layers._picture = None
    points = canvas(viewer, qtbot)
    assert np.abs(points - points[0, 0]).max() > 50  # there is something
    # The edges of discs differ by a shade.
    assert np.abs(picture - points).mean() < 1.0
    assert (np.abs(picture - points).max(axis=2) > 90).mean() < 0.004
    return True


def zoomed(viewer, layers):
    compat.camera_of(viewer).zoom *= 2.2
    compat.camera_of(viewer).center = (0, 300, 420)


def in_a_grid(viewer, layers):
    viewer.canvas.grid.enabled = True


def transposed(viewer, layers):
    viewer.dims.transpose()


def moved_by_hand(viewer, layers):
    layers.points.scale = (0.5, 0.7)
    layers.points.translate = (100, 50)


def turned_over(viewer, layers):
    compat.camera_of(viewer).orientation2d = ("up", "left")


def fainter(viewer, layers):
    layers.points.opacity = 0.4


@pytest.mark.parametrize(
    "change",
    [None, zoomed, in_a_grid, transposed, moved_by_hand, turned_over, fainter],
)
def test_the_picture_looks_as_the_points(viewer, layers, make_snapshot, qtbot, change):
    show(layers, make_snapshot)
    if change is not None:
        change(viewer, layers)
        qtbot.wait(100)
    assert looks_as_napari_draws_it(viewer, layers, qtbot)


def test_frames_follow_one_another(viewer, layers, make_snapshot, qtbot):
    show(layers, make_snapshot, 5)
    before = canvas(viewer, qtbot)
    snapshot = make_snapshot(40)
    flat = replace(snapshot, embedding=snapshot.embedding * np.float32([1, 0.3]))
    assert layers.show(flat, COLORS, MAGNIFICATION, ABOVE)
    assert np.abs(canvas(viewer, qtbot) - before).max() > 90
    assert looks_as_napari_draws_it(viewer, layers, qtbot)


def test_other_colours_are_drawn(viewer, layers, make_snapshot, qtbot):
    show(layers, make_snapshot)
    layers.recolor(np.tile(np.float32([0, 1, 0, 1]), (40, 1)))
    drawn = canvas(viewer, qtbot)
    assert is_picture(viewer, layers)
    assert (drawn[..., 1] > 150).sum() > 40  # of opacity 0.9
    layers.landmarks.visible = False
    drawn = canvas(viewer, qtbot)
    assert drawn[..., 0].max() == drawn[..., 2].max() == 0


def test_at_rest_the_points_are_drawn_themselves(viewer, layers, make_snapshot, qtbot):
    show(layers, make_snapshot)
    assert is_picture(viewer, layers)
    layers.finish()
    assert not is_picture(viewer, layers)
    node = compat.scene_of(viewer, layers.points).points
    np.testing.assert_allclose(
        np.sort(node._data["a_position"][:, :2], axis=0),
        np.sort(layers.points.data[:, ::-1], axis=0),
        rtol=1e-6,
    )
    # While the camera moves they are a picture again, and soon not any more.
    compat.camera_of(viewer).zoom *= 1.2
    qtbot.waitUntil(lambda: is_picture(viewer, layers))
    qtbot.waitUntil(lambda: not is_picture(viewer, layers))
    layers.recolor(COLORS)
    assert is_picture(viewer, layers)
    qtbot.waitUntil(lambda: not is_picture(viewer, layers))


def test_points_that_take_too_long_stay_a_picture(
    viewer, layers, make_snapshot, qtbot, monkeypatch
):
    monkeypatch.setattr(map_picture, "RESTING_SECONDS", 0.0)
    show(layers, make_snapshot)
    layers.finish()
    assert is_picture(viewer, layers)
    compat.camera_of(viewer).zoom *= 1.2
    qtbot.wait(400)
    assert looks_as_napari_draws_it(viewer, layers, qtbot)


def test_some_of_very_many_points_stand_for_all_while_they_move(
    viewer, layers, make_snapshot, qtbot, monkeypatch
):
    monkeypatch.setattr(map_picture, "RESTING_SECONDS", 0.0)
    monkeypatch.setattr(map_picture, "MOST_MOVING", 20)
    assert layers.show(make_snapshot(20), COLORS, MAGNIFICATION)
    some = map_picture._sample(40, None)
    layers.landmarks.visible = False
    # Those outside of the sample are red: none is to be seen.
    colors = np.tile(np.float32([1, 0, 0, 1]), (40, 1))
    colors[some] = [0, 1, 0, 1]
    layers.recolor(colors)
    moving = canvas(viewer, qtbot)
    assert moving[..., 1].max() > 200
    assert moving[..., 0].max() < 30
    layers.finish()
    rest = canvas(viewer, qtbot)
    assert is_picture(viewer, layers)
    assert rest[..., 0].max() > 200


@pytest.mark.parametrize("n_chosen", [0, 3, 60, 100])
def test_a_sample_holds_what_was_chosen_and_few_others(n_chosen, monkeypatch):
    monkeypatch.setattr(map_picture, "MOST_MOVING", 40)
    rng = np.random.default_rng(0)
    order = rng.permutation(100)
    sample = map_picture._sample(100, order)
    assert len(sample) <= 40
    assert len(np.unique(sample)) == len(sample)
    above = order[100 - n_chosen :]
    assert np.isin(above[-20:], sample).all()
    places = np.argsort(order)[sample]
    assert (np.diff(places) > 0).all()  # in the same order of drawing


def in_three_dimensions(viewer, layers):
    viewer.dims.ndisplay = 3


def rotated(viewer, layers):
    layers.points.rotate = 20


def added_up(viewer, layers):
    layers.points.blending = "additive"


@pytest.mark.parametrize("change", [in_three_dimensions, rotated, added_up])
def test_where_a_picture_cannot_be_napari_draws(
    viewer, layers, make_snapshot, qtbot, change
):
    snapshot = show(layers, make_snapshot)
    assert is_picture(viewer, layers)
    change(viewer, layers)
    qtbot.waitUntil(lambda: not is_picture(viewer, layers))
    shown = compat.scene_of(viewer, layers.points).points._data["a_position"]
    world = layers.to_world(snapshot.embedding)
    np.testing.assert_allclose(
        np.sort(shown[:, :2], axis=0), np.sort(world[:, ::-1], axis=0), atol=1e-2
    )
    show(layers, make_snapshot, 30)
    assert not is_picture(viewer, layers)


def test_a_hidden_layer_shows_nothing(viewer, layers, make_snapshot, qtbot):
    show(layers, make_snapshot)
    layers.points.visible = layers.landmarks.visible = False
    show(layers, make_snapshot, 30)
    empty = canvas(viewer, qtbot)
    assert empty.max() == 0
    layers.points.visible = True
    qtbot.wait(60)
    assert looks_as_napari_draws_it(viewer, layers, qtbot)


def test_the_layer_may_be_removed(viewer, layers, make_snapshot, qtbot):
    show(layers, make_snapshot)
    viewer.layers.remove(layers.points)
    compat.camera_of(viewer).zoom *= 1.5
    layers.landmarks.visible = False
    assert canvas(viewer, qtbot).max() == 0
    assert layers.points is None


def test_few_points_are_left_to_napari(viewer, dataset, make_snapshot, monkeypatch):
    layers = MapLayers(viewer, lambda: None)
    layers.begin(make_snapshot(), dataset.obs)
    show(layers, make_snapshot)
    assert not is_picture(viewer, layers)
    layers.close()


def test_without_a_way_to_the_canvas_napari_draws(
    viewer, layers, make_snapshot, monkeypatch
):
    monkeypatch.setattr(map_picture, "scene_of", lambda viewer, layer: None)
    drawn = []
    layers.points.events.set_data.connect(lambda: drawn.append(True))
    show(layers, make_snapshot)
    show(layers, make_snapshot, 30)
    assert len(drawn) == 2
    assert not layers._picture.is_shown


def test_a_snapshot_with_nan_keeps_the_picture(viewer, layers, make_snapshot):
    show(layers, make_snapshot)
    broken = make_snapshot(30)
    embedding = broken.embedding.copy()
    embedding[3] = np.nan
    assert not layers.show(replace(broken, embedding=embedding), COLORS)
    assert is_picture(viewer, layers)


@pytest.mark.parametrize("perspective", [0, 40])
def test_points_in_space_are_a_picture_too(
    viewer, layers, make_snapshot, qtbot, monkeypatch, perspective
):
    monkeypatch.setattr(points_layer, "MOST_BALLS", 0)
    snapshot = make_snapshot(20, n_components=3)
    layers.show(snapshot, COLORS, MAGNIFICATION)
    layers.points.opacity = 1.0
    layers.landmarks.visible = False
    camera = compat.camera_of(viewer)
    camera.perspective, camera.angles = perspective, (-30, 40, 15)
    camera.zoom *= 1.5
    qtbot.wait(100)
    assert looks_as_napari_draws_it(viewer, layers, qtbot)


def test_the_foremost_point_in_space_is_on_top(
    viewer, layers, make_snapshot, qtbot, monkeypatch
):
    monkeypatch.setattr(points_layer, "MOST_BALLS", 0)
    snapshot = make_snapshot(20, n_components=3)
    embedding = np.zeros((40, 3), np.float32)
    embedding[:, 2] = np.linspace(-3, 3, 40)  # z grows towards the eye
    colors = np.tile(np.float32([0, 0, 1, 1]), (40, 1))
    colors[39] = 1, 0, 0, 1
    layers.show(replace(snapshot, embedding=embedding), colors)
    layers.points.opacity = 1.0
    layers.landmarks.visible = False
    compat.camera_of(viewer).angles = (0, 0, 0)
    qtbot.wait(100)
    assert is_picture(viewer, layers)
    drawn = canvas(viewer, qtbot)
    is_red, is_blue = drawn[..., 0] > 200, drawn[..., 2] > 200
    assert is_red.sum() > 4 * is_blue.sum()  # smooth edges lie on one another
