"""The error that is told of forces by a grid, against derivatives by torch."""

import numpy as np
import pytest
import torch

from napari_embedding_game.core.energy.mesh import Mesh
from napari_embedding_game.core.energy.pair_functions import KERNELS
from napari_embedding_game.core.inspect.cover import grid_error, grid_error_of
from napari_embedding_game.core.inspect.quality import COARSE
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot, undefined


def cloud(spread, d=2, n=300):
    return np.random.default_rng(0).normal(0, spread, (n, d)).astype(np.float32)


def map_of(points):
    return Snapshot(
        iteration=9,
        n_iter=9,
        embedding=points,
        landmarks=points[:20],
        energy=1.0,
        labels=np.zeros(len(points), np.int32),
        pressure=undefined(len(points)),
    )


@pytest.mark.parametrize("kernel", ["cauchy", "gaussian"])
def test_the_error_is_that_to_the_derivative_of_all_pairs(kernel):
    points = cloud(6)
    y = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    (2 * KERNELS[kernel].value(torch.pdist(y).square()).sum()).backward()
    exact = y.grad.numpy()
    _, by_grid = Mesh(KERNELS[kernel], 1)(points)
    expected = np.sqrt(((by_grid - exact) ** 2).sum() / (exact**2).sum())
    assert grid_error(points, kernel) == pytest.approx(expected, rel=0.3)  # a sample
    assert grid_error(points, kernel, len(points)) == pytest.approx(expected, rel=1e-6)
    assert expected < COARSE


def test_a_wide_map_in_space_is_told_to_be_coarse():
    assert grid_error(cloud(25, d=3), "cauchy") > COARSE
    assert grid_error(cloud(4, d=3), "cauchy") < COARSE


def test_it_is_asked_of_maps_by_a_grid_only():
    shown = map_of(cloud(6))
    assert grid_error_of(shown, Settings(method="tsne")) < COARSE
    assert np.isnan(grid_error_of(shown, Settings(method="game")))
    unplayed = Settings(method="umap", approximation="mesh")
    assert np.isnan(grid_error_of(shown, unplayed))


def test_a_single_point_is_pushed_by_nothing():
    assert np.isnan(grid_error(cloud(1, n=1), "cauchy"))
