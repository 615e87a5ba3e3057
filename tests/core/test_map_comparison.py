"""One map laid on another, and what differs."""

import numpy as np
import pytest

from napari_embedding_game.core.inspect.map_comparison import compare_maps


@pytest.fixture
def first():
    return np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)


def turned(points, angle=1.0, mirrored=True):
    c, s = np.cos(angle), np.sin(angle)
    rotation = np.array([[c, -s], [s, c]]) @ np.diag([1, -1 if mirrored else 1])
    return 7 * points @ rotation + [30, -4]


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_map_that_is_turned_mirrored_and_scaled_is_the_same_map(first, mirrored):
    found = compare_maps(first, turned(first, mirrored=mirrored))
    np.testing.assert_allclose(found.aligned, first, atol=1e-4)
    assert found.movement.max() < 1e-4
    assert found.neighbors_kept == 1
    assert found.aligned.dtype == found.movement.dtype == np.float32


def test_points_that_went_elsewhere_are_those_that_moved(first):
    second = turned(first)
    second[:5] += 7 * 4  # by 4 and 4 units of the first map, whose radius is 1.4
    found = compare_maps(first, second)
    assert set(np.argsort(found.movement)[-5:]) == set(range(5))
    assert found.movement[:5].min() > 2
    assert np.median(found.movement) < 0.2
    assert 0.9 < found.neighbors_kept < 1


@pytest.mark.parametrize(("d", "e"), [(2, 3), (3, 2), (1, 2)])
def test_maps_of_other_dimensions(d, e):
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(200, 3)) * [3, 2, 0.1]
    found = compare_maps(wide[:, :d].astype(np.float32), wide[:, :e])
    assert found.aligned.shape == (200, d)
    assert np.isfinite(found.movement).all()
    assert np.median(found.movement) < (0.05 if 1 not in (d, e) else 1)
