"""A picture of more points than pixels, counted pixel by pixel."""

import numpy as np
import pytest

from napari_embedding_game.core.inspect.density import (
    FAINTEST,
    FAINTEST_ABOVE,
    PointPart,
    paint_parts,
    points_near,
)

SHAPE = 4, 6
RED, BLUE = (1.0, 0, 0, 1), (0, 0, 1.0, 1)
SAME = (1, 0), (1, 0), SHAPE


def paint_density(positions, colors, *lines, order=None, n_above=0, **options):
    """Return the picture of points, the last of an order above the others."""
    if order is None:
        order = np.arange(len(positions))
    split = np.split(order, [len(order) - n_above])
    below, above = ([PointPart(positions, colors, order=part)] for part in split)
    return paint_parts(below, above if n_above else (), *lines, **options)


def repeated(*counts_and_colors):
    """Return points in one pixel of the first row after another, and their colours."""
    counts = [n for n, _ in counts_and_colors]
    columns = np.repeat(np.arange(len(counts)), counts)
    positions = np.column_stack([np.full(len(columns), 0.5), columns + 0.5])
    colors = np.repeat([color for _, color in counts_and_colors], counts, axis=0)
    return positions.astype(np.float32), colors.astype(np.float32)


def test_a_pixel_is_the_stronger_the_more_points_it_has():
    positions, colors = repeated((1, RED), (10, RED), (100, RED), (0, RED))
    drawn = paint_density(positions, colors, *SAME)
    opacity = drawn[0, :, 3] / 255
    assert opacity[3] == 0
    assert (drawn[1:] == 0).all()
    # 0 to 1 in equal steps of the logarithm; the fullest pixels have the same.
    steps = np.log([1, 10, 10]) / np.log(10)
    np.testing.assert_allclose(
        opacity[:3], FAINTEST + (1 - FAINTEST) * steps, atol=5e-3
    )
    assert (drawn[..., 0] == drawn[..., 3]).all()  # multiplied by it already


def test_a_colour_is_the_mean_and_opacity_counts():
    half = (0, 1.0, 0, 0.5)
    positions, colors = repeated((6, RED), (9, half))
    positions[:] = positions[0]
    mixed = paint_density(positions, colors, *SAME, opacity=0.5)[0, 0].astype(float)
    np.testing.assert_allclose(mixed[3], 0.5 * 255 * (6 + 9 / 2) / 15, atol=1)
    np.testing.assert_allclose(mixed[:2] / mixed[3], [6 / 10.5, 4.5 / 10.5], atol=0.01)


def test_chosen_points_are_not_lost_among_others():
    positions, colors = repeated((500, RED), (500, RED))
    colors[3] = BLUE
    order = np.append(np.delete(np.arange(1000), 3), 3)
    drawn = paint_density(positions, colors, *SAME, order=order, n_above=1)
    assert drawn[0, 0, 0] == 0
    assert drawn[0, 0, 2] >= FAINTEST_ABOVE * 255 - 1
    assert drawn[0, 1, 0] == 255
    only = paint_density(positions, colors, *SAME, order=order[-1:], n_above=1)
    assert only[0, 0, 2] == drawn[0, 0, 2]
    assert not paint_density(positions, colors, *SAME, order=order[:0]).any()


def test_a_sample_is_as_strong_as_all():
    positions, colors = repeated((1000, RED), (64, RED))
    all_ = paint_density(positions, colors, *SAME)
    order = np.arange(0, len(positions), 8)
    some = paint_density(positions, colors, *SAME, order=order, weights=(8.0, 1.0))
    np.testing.assert_allclose(some.astype(int), all_, atol=3)


@pytest.mark.parametrize("order", [None, np.array([1, 4, 0], int)])
def test_points_beside_the_picture_are_left_out(order):
    places = [[0, 0], [3.9, 5.9], [-0.1, 2], [4, 2], [2, np.nan], [np.inf, 1]]
    positions, colors = np.array(places), np.ones((6, 4))
    drawn = paint_density(positions, colors, *SAME, order=order)
    assert (drawn[..., 3] > 0).sum() == 2
    assert drawn[0, 0, 3] > 0
    assert drawn[3, 5, 3] > 0
    assert len(points_near(positions, *SAME, 0.0, order=order)) == 2
    assert len(points_near(positions, (0.5, 0), (1, 0), SHAPE, 0.0)) == 3
