import numpy as np
import pytest
from scipy.spatial.distance import cdist

from napari_embedding_game.core.inspect import cover
from napari_embedding_game.core.inspect.cover import (
    bound_share,
    outside_share,
)

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
