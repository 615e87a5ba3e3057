"""What stands for all pairs of points, against sums and derivatives over all pairs."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from napari_embedding_game.core.energy.mesh import Mesh
from napari_embedding_game.core.energy.pair_functions import KERNELS as PAIRS
from napari_embedding_game.core.inspect import cover
from napari_embedding_game.core.inspect.cover import (
    bound_share,
    grid_error,
    outside_share,
)
from napari_embedding_game.core.inspect.quality import COARSE

KERNELS = {
    "cauchy": lambda d: 1 / (1 + d**2),
    "gaussian": lambda d: np.exp(-(d**2)),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_bound_is_that_of_equation_3(kernel):
    rng = np.random.default_rng(0)
    y, z = rng.normal(0, 5, (60, 2)), rng.normal(0, 5, (7, 2))
    k = KERNELS[kernel]
    by_hand = k(cdist(y, z)).sum() ** 2 / k(cdist(z, z)).sum() / k(cdist(y, y)).sum()
    assert bound_share(y, z, kernel) == pytest.approx(by_hand)
    assert bound_share(y, y, kernel) == pytest.approx(1)
    assert by_hand < 1


def test_of_many_points_some_are_enough(monkeypatch):
    monkeypatch.setattr(cover, "_MOST_ROWS", 400)
    rng = np.random.default_rng(1)
    y = rng.normal(0, 5, (2_000, 2)).astype(np.float32)
    z = y[::50]
    k = KERNELS["cauchy"]
    by_hand = k(cdist(y, z)).sum() ** 2 / k(cdist(z, z)).sum() / k(cdist(y, y)).sum()
    assert bound_share(y, z, "cauchy") == pytest.approx(by_hand, rel=0.15)


def test_landmarks_far_from_all_points_are_outside():
    y = np.random.default_rng(2).uniform(0, 3, (100, 2))
    z = np.concatenate([y[:6], y[:2] + 40])
    assert outside_share(y, z) == 0.25
    assert outside_share(y, z[:0]) == 0


def cloud(spread, d=2, n=300):
    return np.random.default_rng(0).normal(0, spread, (n, d)).astype(np.float32)


@pytest.mark.parametrize("kernel", ["cauchy", "gaussian"])
def test_the_error_is_that_to_the_derivative_of_all_pairs(kernel):
    points = cloud(6)
    y = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    (2 * PAIRS[kernel].value(torch.pdist(y).square()).sum()).backward()
    exact = y.grad.numpy()
    _, by_grid = Mesh(PAIRS[kernel], 1)(points)
    expected = np.sqrt(((by_grid - exact) ** 2).sum() / (exact**2).sum())
    assert grid_error(points, kernel) == pytest.approx(expected, rel=0.3)  # a sample
    assert grid_error(points, kernel, len(points)) == pytest.approx(expected, rel=1e-6)
    assert expected < COARSE


def test_a_wide_map_in_space_is_told_to_be_coarse():
    assert grid_error(cloud(25, d=3), "cauchy") > COARSE
    assert grid_error(cloud(4, d=3), "cauchy") < COARSE


def test_a_single_point_is_pushed_by_nothing():
    assert np.isnan(grid_error(cloud(1, n=1), "cauchy"))
