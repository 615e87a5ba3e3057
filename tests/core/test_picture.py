"""A picture of points: the same as discs that are worked out pixel by pixel."""

import numpy as np
import pytest

from napari_embedding_game.core.inspect.picture import paint_points

SHAPE = 30, 40
RED, GREEN = (1.0, 0, 0, 1), (0, 1.0, 0, 1)


def paint(
    positions, sizes, colors, rows=(1, 0), columns=(1, 0), shape=SHAPE, **options
):
    positions = np.atleast_2d(np.asarray(positions, float))
    sizes = np.broadcast_to(np.asarray(sizes, float), len(positions))
    colors = np.broadcast_to(np.asarray(colors, float), (len(positions), 4))
    return paint_points(positions, sizes, colors, rows, columns, SHAPE, **options)


def by_numpy(positions, sizes, colors, opacity):
    """Paint discs one after another over the whole picture."""
    row, column = np.indices(SHAPE) + 0.5
    picture = np.zeros((*SHAPE, 4))
    for (y, x), size, color in zip(positions, sizes, colors, strict=True):
        distance = np.hypot(row - y, column - x)
        radius = max(size / 2, 0.5)
        share = np.clip(radius + 0.5 - distance, 0, 1) * color[3] * opacity
        top = np.append(color[:3], 1.0) * 255
        picture = picture * (1 - share[..., None]) + share[..., None] * top
    return picture


@pytest.mark.parametrize("opacity", [1.0, 0.6])
def test_discs_lie_over_one_another_with_smooth_edges(opacity):
    rng = np.random.default_rng(0)
    positions = rng.uniform(-5, 45, (60, 2))
    sizes, colors = rng.uniform(0, 9, 60), rng.random((60, 4))
    drawn = paint(positions, sizes, colors, opacity=opacity)
    expected = by_numpy(positions, sizes, colors, opacity)
    # Each disc rounds down once: after some over one another a few of 255.
    assert np.abs(drawn - expected).max() < 6
    assert np.abs(drawn - expected).mean() < 1.5


def test_the_last_is_above_or_the_last_in_order():
    both = [[10, 10], [10, 10]]
    assert tuple(paint(both, 5, [RED, GREEN])[10, 10]) == (0, 255, 0, 255)
    drawn = paint(both, 5, [RED, GREEN], order=np.array([1, 0]))
    assert tuple(drawn[10, 10]) == (255, 0, 0, 255)
    # Of some points only.
    drawn = paint(both, 5, [RED, GREEN], order=np.array([0]))
    assert tuple(drawn[10, 10]) == (255, 0, 0, 255)
    assert not paint(both, 5, [RED, GREEN], order=np.array([], int)).any()


def test_positions_are_taken_to_pixels():
    drawn = paint([[2, 3]], 2, RED, rows=(-5, 25), columns=(8, 4))
    rows, columns = np.nonzero(drawn[..., 3])
    np.testing.assert_allclose([rows.mean() + 0.5, columns.mean() + 0.5], [15, 28])
    # A diameter of 2 units, of which one is 5 x 8 pixels.
    assert abs(len(rows) - np.pi * 40) < 30


def test_a_small_point_is_still_seen_and_one_outside_is_not():
    assert paint([[10.5, 10.5]], 0.0, RED)[10, 10, 3] == 255
    outside = [[-9, 5], [5, 99], [np.nan, 3], [3, np.inf]]
    assert not paint(outside, 4, RED).any()


def test_a_disc_across_the_border_is_cut():
    drawn = paint([[0, 0]], 20, RED)
    assert drawn[0, 0, 3] == 255
    assert drawn[8, 0, 3] == 255
    assert not drawn[12:, 12:].any()


def test_arrays_of_any_type_and_layout_are_taken():
    positions = np.asfortranarray(np.array([[4, 7], [20, 30]], np.int64))
    drawn = paint_points(
        positions, np.array([4, 4]), np.ones((2, 4)), (1, 0), (1, 0), SHAPE
    )
    assert drawn.dtype == np.uint8
    assert drawn[4, 7, 3] == drawn[20, 30, 3] == 255
