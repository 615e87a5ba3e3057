"""What landmarks reach of the repulsion among all points, against float64 sums."""

from dataclasses import replace

import numpy as np
import pytest

from napari_embedding_game.core.energy import methods
from napari_embedding_game.core.inspect import cover as module
from napari_embedding_game.core.inspect.cover import repulsion_bound
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot, undefined

KERNELS = {
    "cauchy": lambda s: 1 / (1 + s),
    "gaussian": lambda s: np.exp(-s),
}


def map_of(points, landmarks):
    return Snapshot(
        iteration=9,
        n_iter=9,
        embedding=points.astype(np.float32),
        landmarks=landmarks.astype(np.float32),
        energy=1_000.0,
        labels=np.zeros(len(points), np.int32),
        pressure=undefined(len(points)),
    )


@pytest.fixture
def snapshot():
    rng = np.random.default_rng(0)
    points = rng.normal(0, 4, (300, 2))
    return map_of(points, points[:40] + rng.normal(0, 0.3, (40, 2)))


def sum_of(kernel, a, b):
    apart = a.astype(float)[:, None] - b.astype(float)[None]
    return kernel((apart**2).sum(axis=2)).sum()


@pytest.mark.parametrize("grid_from", [0, 5_000])
def test_bound_and_sum_are_those_of_eq_3(snapshot, grid_from, monkeypatch):
    monkeypatch.setattr(module, "MOST_ONE_BY_ONE", grid_from)
    settings = Settings(method="game", n_landmarks=40, repulsion=60.0)
    found = repulsion_bound(snapshot, settings)
    method = methods.get_method("game")
    kernel = KERNELS[method.kernel]
    y, z = snapshot.embedding, snapshot.landmarks
    total = sum_of(kernel, y, y)
    bound = sum_of(kernel, y, z) ** 2 / sum_of(kernel, z, z)
    assert found.total == pytest.approx(total, rel=2e-3 if grid_from == 0 else 1e-5)
    assert found.bound == pytest.approx(bound, rel=1e-5)
    assert 0 < found.share < 1
    # Eq. 1: the pairs of different points in place of the bound.
    expected = 1_000.0 + 60 / 300 * (total - 300 - bound)
    assert found.true_energy(1_000.0) == pytest.approx(expected, rel=1e-3)


def test_landmarks_everywhere_reach_all(snapshot):
    everywhere = replace(snapshot, landmarks=snapshot.embedding)
    found = repulsion_bound(everywhere, Settings(method="game", n_landmarks=300))
    assert found.share == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(method="tsne", approximation="landmarks"),
        Settings(method="game", approximation="mesh"),
        Settings(method="umap"),
        Settings(method="game", approximation="sampled_edges"),
        Settings(method="umap", approximation="landmarks"),  # is not played
    ],
)
def test_nothing_is_told_where_landmarks_bound_nothing(snapshot, settings):
    assert repulsion_bound(snapshot, settings) is None
