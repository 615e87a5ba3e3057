import numpy as np
import pytest

from napari_embedding_game.core.inspect.map_comparison import measure_kept_neighbors


def by_hand(first, second, k):
    def nearest(y, i, count):
        far = ((y - y[i]) ** 2).sum(axis=1)
        far[i] = np.inf
        return set(np.argsort(far)[:count].tolist())

    wide = min(5 * k, len(first) - 1)
    return [
        len(nearest(first, i, k) & nearest(second, i, wide)) / k
        for i in range(len(first))
    ]


@pytest.fixture
def clusters():
    """Eight clusters of 100 points, (800, 2), and the number of each point's."""
    rng = np.random.default_rng(0)
    middles = 20 * np.array([[np.cos(a), np.sin(a)] for a in np.pi / 4 * np.arange(8)])
    numbers = np.repeat(np.arange(8), 100)
    return middles[numbers] + rng.normal(size=(800, 2)), numbers


def test_it_is_what_its_formula_says():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(130, 2)), rng.normal(size=(130, 3))
    np.testing.assert_allclose(
        measure_kept_neighbors(first, second, 6), by_hand(first, second, 6)
    )
    for n in (40, 77):  # the 75 nearest of 76 would be kept by any map
        assert measure_kept_neighbors(first[:n], second[:n]).mean() < 0.4


def test_clusters_that_lie_elsewhere_turned_and_mirrored_keep_all(clusters):
    y, numbers = clusters
    rng = np.random.default_rng(2)
    elsewhere = np.empty_like(y)
    for one in range(8):
        inside = y[numbers == one]
        turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
        elsewhere[numbers == one] = (inside - inside.mean(axis=0)) @ turn + 90 * one
    assert measure_kept_neighbors(y, 0.01 * elsewhere).min() > 0.9


def test_points_that_change_their_cluster_with_the_seed_come_out(clusters):
    y = clusters[0]
    rng = np.random.default_rng(3)
    planted = rng.choice(800, 16, replace=False)
    kept = []
    for seed in range(5):
        other = y + rng.normal(0, 0.2, y.shape)
        if seed in (1, 3):
            other[planted] = y[(planted + 400) % 800] + 0.01
        kept.append(measure_kept_neighbors(y, other))
    found, is_planted = np.mean(kept, axis=0), np.isin(np.arange(800), planted)
    assert found[is_planted].max() < found[~is_planted].min()
