"""Inside a game the points have another order, and nobody sees it."""

import numpy as np
import pytest

from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.graph import memory_order as module
from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.start import make_start_layout
from napari_embedding_game.core.settings import Settings


@pytest.fixture
def played():
    """Return the last snapshot of a short game on 300 points."""
    X = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    weighted = build_edges(knn_graph(X), "fuzzy")
    layout = make_start_layout(weighted, X)

    def last(**changes):
        settings = Settings(max_iter=5, n_landmarks=20, **changes)
        return list(play(weighted, layout, settings))[-1]

    return last


@pytest.mark.parametrize("method", ["game", "tsne"])
def test_what_comes_out_is_in_the_order_of_the_data(played, monkeypatch, method):
    plain = played(method=method)
    monkeypatch.setattr(module, "MIN_POINTS", 10)
    monkeypatch.setattr(module, "POINTS_PER_BIN", 30)
    sorted_inside = played(method=method)
    for name in ("embedding", "landmarks", "pressure"):
        mine, other = getattr(sorted_inside, name), getattr(plain, name)
        np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4)
    assert (sorted_inside.labels == plain.labels).mean() > 0.99
    assert sorted_inside.energy == pytest.approx(plain.energy, rel=1e-4)


def test_points_that_follow_each_other_lie_near(monkeypatch):
    monkeypatch.setattr(module, "MIN_POINTS", 10)
    monkeypatch.setattr(module, "POINTS_PER_BIN", 20)
    for seed in range(5):  # memory that was freed may hold the order of the first
        layout = np.random.default_rng(seed).random((2_000, 2))
        order = module.memory_order(layout)
        assert sorted(order) == list(range(len(layout)))
        steps = [
            np.abs(np.diff(each, axis=0)).mean(axis=0)
            for each in (layout[order], layout)
        ]
        assert (steps[0] < 0.2 * steps[1]).all()
