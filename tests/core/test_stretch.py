import numpy as np
import pytest

from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.stretch import compute_stretch
from napari_embedding_game.core.settings import Settings


def by_hand(neighbors, y):
    """Return the stretch as its formula says, point by point."""
    lengths = [((y[i] - y[row[row >= 0]]) ** 2).sum(axis=1)
               for i, row in enumerate(neighbors)]  # fmt: skip
    unit = np.median(np.concatenate(lengths))
    return [np.sqrt(np.expm1(np.log1p(of / unit).mean())) for of in lengths]


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_it_is_what_its_formula_says(n_components):
    rng = np.random.default_rng(0)
    neighbors = (np.arange(40)[:, None] + rng.permuted([range(1, 8)] * 40, axis=1)) % 40
    neighbors[::3, 4:] = -1  # some have fewer
    y = rng.normal(size=(40, n_components)).astype(np.float32)
    found = compute_stretch(neighbors, y)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_hand(neighbors, y.astype(float)), rtol=1e-5)


@pytest.mark.parametrize("affinity", ["uniform", "mixed", "entropic", "inner_products"])
def test_the_neighbors_are_those_of_the_graph(affinity):
    X = np.random.default_rng(5).normal(size=(60, 4)).astype(np.float32)
    graph = knn_graph(X, 20)
    made = build_edges(graph, affinity, X=X)
    np.testing.assert_array_equal(made.nearest, graph.indices[:, :15])


@pytest.mark.parametrize("method", ["game", "tsne", "umap", "two_kernel_pca"])
def test_snapshots_have_it(method):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 6)).astype(np.float32)
    graph = build_edges(knn_graph(X, 10))
    settings = Settings(method=method, n_landmarks=10, max_iter=20)
    for snapshot in play(graph, rng.normal(size=(120, 2)), settings):
        assert snapshot.stretch.shape == (120,)
        if snapshot.finished:
            break
    np.testing.assert_allclose(
        snapshot.stretch, compute_stretch(graph.nearest, snapshot.embedding), rtol=1e-6
    )
    assert 0.0 <= snapshot.stretched_share < 0.5
