import numpy as np
import pytest

from napari_embedding_game.ui.placement import HEADROOM, MANY_POINTS, Frame, free_box


def square(half, n=4, center=0.0):
    corners = np.array([[-half, -half], [half, half]]) + center
    return np.resize(corners, (n, 2))


def world(frame, positions):
    return positions * frame.scale + frame.translate


@pytest.fixture
def frame():
    frame = Frame(free_box([]))
    frame.follow(square(5), settle=True)
    return frame


def test_the_map_fills_its_box(frame):
    np.testing.assert_allclose(world(frame, square(5))[:2], [[0, 0], [1000, 1000]])


def test_a_growing_map_never_leaves_the_box(frame):
    for half in (5.1, 6, 9, 20):
        frame.follow(square(half, center=half / 3))
        low, high = world(frame, square(half, center=half / 3))[:2]
        assert low.min() > -15
        assert high.max() < 1015


def test_a_shrinking_map_is_followed_gently(frame):
    scale = frame.scale
    frame.follow(square(4))
    assert scale < frame.scale < scale * 5 / 4
    frame.follow(square(4), settle=True)
    assert frame.scale == pytest.approx(scale * 5 / 4)


def test_a_frame_of_many_points_is_moved_rarely(frame):
    n, scales = MANY_POINTS + 2, []
    for half in np.linspace(5, 20, 60):
        frame.follow(square(half, n))
        scales.append(frame.scale)
        assert np.abs(world(frame, square(half))[:2] - 500).max() < 510
    assert 3 < len(set(scales)) < np.log(4) / np.log(1 + HEADROOM) + 3


def test_the_way_back_from_the_world(frame):
    point = np.array([3.0, -2.0])
    np.testing.assert_allclose(frame.to_data(world(frame, point)), point)


def test_boxes_lie_right_of_everything_else():
    box = free_box([np.array([[0, 0], [100, 300]]), np.array([[-50, 10], [20, 400]])])
    assert box.corner[0] == -50
    assert box.corner[1] > 400
    assert box.side == 150
    empty = np.full((2, 2), np.nan)
    assert free_box([empty]) == free_box([])
