import numpy as np
import pytest

from napari_embedding_game.ui.canvas.frame import Frame, free_box


def square(half, n=4, center=0.0):
    corners = np.array([[-half, -half], [half, half]]) + center
    return np.resize(corners, (n, 2))


@pytest.fixture
def frame():
    frame = Frame(free_box([]))
    frame.follow(square(5), settle=True)
    return frame


def test_the_map_fills_its_box(frame):
    np.testing.assert_allclose(frame.to_world(square(5))[:2], [[1000, 0], [0, 1000]])


def test_the_map_stands_as_a_figure_of_it_does(frame):
    middle, right, above = frame.to_world(np.array([[0, 0], [1, 0], [0, 1]]))
    np.testing.assert_allclose(right - middle, [0, 100])  # a later column
    np.testing.assert_allclose(above - middle, [-100, 0])  # an earlier row


def test_a_growing_map_never_leaves_the_box(frame):
    for half in (5.1, 6, 9, 20):
        frame.follow(square(half, center=half / 3))
        low, high = frame.to_world(square(half, center=half / 3))[:2]
        assert low.min() > -15
        assert high.max() < 1015


def test_a_shrinking_map_is_followed_gently(frame):
    scale = frame.scale
    frame.follow(square(4))
    assert scale < frame.scale < scale * 5 / 4
    frame.follow(square(4), settle=True)
    assert frame.scale == pytest.approx(scale * 5 / 4)


def test_boxes_lie_right_of_everything_else():
    box = free_box([np.array([[0, 0], [100, 300]]), np.array([[-50, 10], [20, 400]])])
    assert box.corner[0] == -50
    assert box.corner[1] > 400
    assert box.side == 150
    empty = np.full((2, 2), np.nan)
    assert free_box([empty]) == free_box([])


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("swapped", [False, True])
def test_places_are_written_as_they_are_worked_out(d, swapped):
    rng = np.random.default_rng(0)
    positions = rng.normal(0, 30, (200, d)).astype(np.float32)
    frame = Frame(free_box([]), d)
    frame.follow(positions, settle=True)
    axes = [*range(d)][:: -1 if swapped else 1]
    world = np.full((200, d), np.nan, np.float32)
    frame.write_world(positions, world, axes)
    expected = frame.to_world(positions)
    np.testing.assert_allclose(world[:, axes], expected, atol=2e-3)  # of 1,000
