"""Many points are one picture while they move, and it looks as napari's points do."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from napari_embedding_game.ui import compat
from napari_embedding_game.ui.canvas import map_picture, pace, painting, points_layer
from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.point_looks import DrawingOrder

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
    """Draw even a few points as a picture while they move, and then as points.

    However long that takes: other tests run beside it.
    """
    monkeypatch.setattr(map_picture, "MOVING_SECONDS", 0.0)
    monkeypatch.setattr(map_picture, "RESTING_SECONDS", 60.0)


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


@pytest.fixture
def slow(monkeypatch):
    """The window's thread paints one in two points, and napari never draws them."""
    monkeypatch.setattr(map_picture, "RESTING_SECONDS", 0.0)
    monkeypatch.setattr(pace.Pace, "stride", lambda self, n_points, n_pixels: 2)


def red_but(some):
    colors = np.tile(np.float32([1, 0, 0, 1]), (40, 1))
    colors[some] = [0, 1, 0, 1]
    return colors


def test_some_points_stand_for_all_while_they_move(
    viewer, layers, make_snapshot, qtbot, slow
):
    # Those outside of the sample are red: none is to be seen.
    colors = red_but(painting._one_in(40, 2))
    assert layers.show(make_snapshot(20), colors)
    layers.landmarks.visible = False
    moving = canvas(viewer, qtbot)
    assert moving[..., 1].max() > 200
    assert moving[..., 0].max() < 30
    qtbot.wait(120)  # another thread paints nothing while they do
    assert layers._picture._worker is None
    layers.finish()
    qtbot.waitUntil(lambda: not layers._picture._is_sample)
    assert is_picture(viewer, layers)
    assert canvas(viewer, qtbot)[..., 0].max() > 200
    # A move of the camera shows a sample at once, and all of them a little later.
    compat.camera_of(viewer).zoom *= 1.2
    qtbot.waitUntil(lambda: layers._picture._is_sample)
    qtbot.waitUntil(lambda: not layers._picture._is_sample)
    assert looks_as_napari_draws_it(viewer, layers, qtbot)


@pytest.fixture
def held(monkeypatch):
    """Paintings of all points in another thread wait for this event."""
    event = threading.Event()
    paint = painting.FlatPainting.paint

    def wait(self, stride=1):
        if stride == 1:
            assert event.wait(20)
        return paint(self, stride)

    monkeypatch.setattr(painting.FlatPainting, "paint", wait)
    yield event
    event.set()


def test_a_painting_that_comes_too_late_is_dropped(
    viewer, layers, make_snapshot, qtbot, slow, held
):
    layers.show(make_snapshot(20), red_but(slice(None)))
    layers.landmarks.visible = False
    layers.finish()
    qtbot.waitUntil(lambda: layers._picture._worker is not None)
    layers.recolor(np.tile(np.float32([0, 0, 1, 1]), (40, 1)))
    uploaded, show_painted = [], layers._picture._show_painted
    layers._picture._show_painted = lambda scene, painted, *, is_sample: (
        uploaded.append(is_sample) or show_painted(scene, painted, is_sample=is_sample)
    )
    held.set()
    qtbot.waitUntil(lambda: not layers._picture._is_sample)
    assert uploaded == [False]  # what was begun before that never came
    drawn = canvas(viewer, qtbot)
    assert drawn[..., 2].max() > 200
    assert drawn[..., 1].max() < 30


@pytest.mark.parametrize("end", ["removed", "closed"])
def test_a_map_may_go_while_it_is_painted(
    viewer, layers, make_snapshot, qtbot, slow, held, monkeypatch, end
):
    monkeypatch.setattr(map_picture, "LEAST_DRAWN", 10)
    layers.show(make_snapshot(20), COLORS)
    layers.finish()
    qtbot.waitUntil(lambda: layers._picture._worker is not None)
    worker, points = layers._picture._worker, layers.points
    threading.Timer(0.1, held.set).start()
    viewer.layers.remove(points) if end == "removed" else layers.close()
    assert worker.isFinished()
    qtbot.wait(30)
    assert layers._picture is None
    if end == "closed":  # napari draws some: all would hold it up
        assert compat.scene_of(viewer, points).points.visible
        assert len(points._view_indices) == 10


@pytest.mark.parametrize("n_above", [0, 3, 60, 100])
@pytest.mark.parametrize("n_hidden", [0, 20])
def test_a_sample_holds_what_was_chosen_and_few_others(n_above, n_hidden):
    lot = np.random.default_rng(0).permutation(100)
    chosen = np.isin(np.arange(100), lot[:n_above])
    hidden = np.isin(np.arange(100), lot[100 - n_hidden :])
    order = DrawingOrder(chosen, hidden)
    n_drawn, n_shown = 100 - n_hidden, min(n_above, 100 - n_hidden)
    assert (order.n_drawn, order.n_above) == (n_drawn, n_shown)
    looks = painting.Looks(np.ones(100), np.ones((100, 4)), order, 1.0, (9, 9), 81)
    sample = painting.sampled(looks, 4)
    rows = sample.rows
    assert len(np.unique(rows)) == sample.n_points == len(rows) <= 38
    assert chosen[sample.above].all()
    assert not chosen[sample.below].any()
    assert not hidden[rows].any()
    assert sample.n_above >= min(n_shown, 10)
    places = [order.rows.tolist().index(row) for row in rows]
    assert (np.diff(places) > 0).all()  # in the same order of drawing
    stands_for = np.dot(sample.weights, [len(sample.below), sample.n_above])
    np.testing.assert_allclose(stands_for, n_drawn)


def test_more_points_than_pixels_are_a_density(
    viewer, layers, make_snapshot, qtbot, monkeypatch
):
    monkeypatch.setattr(map_picture, "RESTING_SECONDS", 0.0)
    kinds = []
    layers._on_kind = lambda: kinds.append(layers.is_density)
    layers._end_picture()  # so that the next one tells it there
    counted = map_picture.Looks
    monkeypatch.setattr(
        map_picture, "Looks", lambda **given: counted(**{**given, "n_pixels": 30})
    )
    layers.show(make_snapshot(20), COLORS)
    layers.finish()
    assert kinds == [True]
    compat.camera_of(viewer).zoom *= 40  # few of them are seen
    qtbot.waitUntil(lambda: kinds == [True, False])
    assert is_picture(viewer, layers)


def test_few_chosen_points_are_found_on_a_density():
    rng = np.random.default_rng(0)
    positions = rng.uniform(0, 60, (9000, 2)).astype(np.float32)
    positions[7] = 20.5, 30.5
    colors = np.tile(np.float32([0.2, 0.2, 0.2, 1]), (9000, 1))
    colors[7] = 1, 0, 0, 1
    order = DrawingOrder(np.arange(9000) == 7)
    sizes = np.full(9000, 0.01)
    looks = painting.Looks(sizes, colors, order, 1.0, (60, 60), 3600)
    flat = painting.FlatPainting(looks, positions, (1.0, 0.0), (1.0, 0.0))
    for stride, n_red in ((1, 9), (8, 2)):  # pixels, of which a sample has fewer
        painted = flat.paint(stride)
        assert painted.is_density
        red = painted.picture[..., 0].astype(int) - painted.picture[..., 1] > 150
        assert red.sum() >= n_red
        place = np.argwhere(red).mean(axis=0)[::-1] + 0.5
        x, y = place * np.diag(painted.matrix)[:2] + painted.matrix[3, :2]
        np.testing.assert_allclose([y, x], [20.5, 30.5], atol=1.0)


def test_a_slow_machine_paints_fewer_points():
    def stride_at(seconds, frames=30):
        for _ in range(frames):
            n_painted = 1_000_000 // one.stride(1_000_000, 0)
            one.measured(n_painted, 0, seconds * n_painted)
        return one.stride(1_000_000, 0)

    one = pace.Pace()
    assert one.stride(100_000, 0) == 1
    assert stride_at(1e-7) == 8  # 125,000 take 12.5 ms
    one.measured(125_000, 0, 60.0)  # has waited for something else
    assert one.stride(1_000_000, 0) <= 16
    assert stride_at(4e-9) == 1
    assert stride_at(1e-3) == 64  # never fewer than some
    assert one.stride(10_000, 10_000_000) == 1


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
