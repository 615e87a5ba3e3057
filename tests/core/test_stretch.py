import numpy as np
import pytest
from scipy import sparse

from napari_embedding_game.core.dynamics.driver import play
from napari_embedding_game.core.graph.affinities import Edges, edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.stretch import stretch
from napari_embedding_game.core.threads import PARALLEL_WORK, Loops
from napari_embedding_game.core.types import GameSettings


def by_hand(matrix, y):
    """Return the stretch as its formula says, point by point."""
    dense = np.abs(matrix.toarray())
    squared = ((y[:, None] - y[None]) ** 2).sum(axis=2)
    unit = np.median(squared[matrix.toarray() != 0])
    logs = (dense * np.log1p(squared / unit)).sum(axis=1) / dense.sum(axis=1)
    return np.sqrt(np.expm1(logs))


def random_edges(n, rng, signed=False):
    weights = sparse.random(n, n, 0.2, random_state=rng).tolil()
    weights.setdiag(0)
    for i in range(n):
        weights[i, (i + 1) % n] = 1.0
    matrix = sparse.csr_matrix(weights + weights.T)
    if signed:
        matrix.data *= np.sign(np.sin(np.arange(len(matrix.data)) + 1.0))
        matrix = sparse.csr_matrix(matrix + matrix.T)
        matrix.eliminate_zeros()
    return matrix.astype(np.float32)


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("signed", [False, True])
def test_it_is_what_its_formula_says(n_components, signed):
    rng = np.random.default_rng(0)
    matrix = random_edges(40, rng, signed)
    y = rng.normal(size=(40, n_components)).astype(np.float32)
    found = stretch(Edges.from_matrix(matrix), y)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_hand(matrix, y.astype(float)), rtol=1e-5)


def test_scale_and_place_of_the_map_change_nothing():
    rng = np.random.default_rng(1)
    graph, y = Edges.from_matrix(random_edges(30, rng)), rng.normal(size=(30, 2))
    moved = 250.0 * y + 1000.0
    np.testing.assert_allclose(stretch(graph, moved), stretch(graph, y), rtol=2e-3)


def test_a_point_that_was_moved_away_stands_out():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(c, 0.3, size=(100, 5)) for c in (0, 8, 16)])
    graph = edges(knn_graph(X.astype(np.float32), 10))
    y = X[:, :2].astype(np.float32).copy()
    before = stretch(graph, y)
    y[7] = y[250]
    after = stretch(graph, y)
    assert after[7] > 5 > before.max()
    assert after.argmax() == 7


def test_points_without_edges_or_all_in_one_place_have_none():
    alone = Edges.from_matrix(sparse.csr_matrix((3, 3), dtype=np.float32))
    assert (stretch(alone, np.eye(3)) == 0).all()
    pair = np.zeros((3, 3), np.float32)
    pair[0, 1] = pair[1, 0] = 1
    apart = np.array([[0.0, 0], [1, 0], [9, 9]])
    np.testing.assert_allclose(stretch(Edges.from_matrix(pair), apart), [1, 1, 0])
    assert (stretch(Edges.from_matrix(pair), np.zeros((3, 2))) == 0).all()


def test_any_number_of_threads_gives_the_same_bits():
    rng = np.random.default_rng(3)
    n = PARALLEL_WORK // 160 + 1
    rows = np.repeat(np.arange(n), 10)
    columns = rng.integers(n, size=len(rows))
    one_way = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)))
    one_way.resize((n, n))
    graph, y = Edges.from_matrix(one_way + one_way.T), rng.normal(size=(n, 2))
    loops = Loops(2)
    found = [stretch(graph, y, loops) for _ in range(3)]  # both ways are tried
    for other in found:
        np.testing.assert_array_equal(other, stretch(graph, y, Loops(1)))


@pytest.mark.parametrize("method", ["game", "tsne", "umap", "two_kernel_pca"])
def test_snapshots_have_it(method):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 6)).astype(np.float32)
    graph = edges(knn_graph(X, 10))
    settings = GameSettings(method=method, n_landmarks=10, max_iter=20)
    for snapshot in play(graph, rng.normal(size=(120, 2)), settings):
        assert snapshot.stretch.shape == (120,)
        if snapshot.finished:
            break
    np.testing.assert_allclose(
        snapshot.stretch, stretch(graph, snapshot.embedding), rtol=1e-6
    )
    assert 0.0 <= snapshot.stretched_share < 0.5
