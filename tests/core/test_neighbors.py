import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph import leaves
from napari_embedding_game.core.graph.neighbors import choose_search, knn_graph
from napari_embedding_game.core.threads import limit_threads

K = 8


@pytest.fixture(scope="module")
def cloud():
    """Points near a curved surface in 12 dimensions, far from the origin."""
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 3, size=(1500, 2))
    waves = np.concatenate([np.sin(t @ rng.normal(size=(2, 6))), t, t**2], axis=1)
    return 50 + waves + 0.02 * rng.normal(size=(1500, 10))


def neighbours(X, metric="euclidean", k=K):
    """The k nearest other rows by brute force, and their distances."""
    distances = cdist(X, X, "cityblock" if metric == "manhattan" else metric)
    np.fill_diagonal(distances, np.inf)
    indices = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return indices, np.take_along_axis(distances, indices, axis=1)


def recall(found, wanted):
    return (found[:, :, None] == wanted[:, None, :]).any(axis=2).mean()


class InSinglePrecision:
    """Finds what pynndescent does, which compiles its search for half a minute."""

    def __init__(self, X, metric, n_neighbors, random_state, n_jobs):
        X = X.astype(np.float32)
        distances = cdist(X, X, {"manhattan": "cityblock"}[metric])
        indices = np.argsort(distances, axis=1)[:, :n_neighbors]
        self.neighbor_graph = indices, np.take_along_axis(distances, indices, axis=1)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("search", ["exact", "brute"])
def test_exact_searches_find_what_brute_force_finds(cloud, search, metric):
    X = cloud - 50 if metric == "cosine" else cloud
    graph = knn_graph(X, K, metric=metric, search=search)
    wanted, distances = neighbours(X, metric)
    assert recall(graph.indices, wanted) > 0.999
    np.testing.assert_allclose(graph.distances, distances, rtol=2e-3, atol=1e-5)
    assert (np.diff(graph.distances, axis=1) >= 0).all()
    assert graph.indices.dtype == np.int32
    assert graph.distances.dtype == np.float32
    assert (graph.n_points, graph.n_neighbors) == (1500, K)
    assert graph.search == search


@pytest.mark.parametrize(
    ("search", "metric"),
    [("leaves", "euclidean"), ("leaves", "cosine"), ("descent", "manhattan")],
)
def test_approximate_searches_find_nearly_all(cloud, search, metric):
    X = cloud - 50 if metric == "cosine" else cloud
    # Of sparse rows pynndescent compiles half as much.
    as_is = sparse.csr_matrix if search == "descent" else np.asarray
    graph = knn_graph(as_is(X), K, metric=metric, search=search)
    wanted, distances = neighbours(X, metric)
    assert recall(graph.indices, wanted) > 0.98
    same = graph.indices == wanted
    np.testing.assert_allclose(
        graph.distances[same], distances[same], rtol=5e-3, atol=1e-5
    )


@pytest.mark.parametrize(
    ("scale", "dtype", "settings"),
    [
        (1e40, np.float64, {}),
        (1e308, np.float64, {}),
        (1e40, np.float64, {"search": "brute"}),
        (1e40, np.float64, {"metric": "manhattan"}),
    ],
)
def test_distances_beyond_single_precision_are_told(cloud, scale, dtype, settings):
    X = ((cloud[:100] - 50) / 16 * scale).astype(dtype)
    with pytest.raises(InputError, match="divide all of them by a common number"):
        knn_graph(X, K, **settings)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan", "correlation"])
def test_sparse_rows_have_the_neighbours_of_the_dense_ones(metric):
    rng = np.random.default_rng(1)
    X = sparse.random(300, 40, density=0.3, random_state=rng, format="csr")
    found = knn_graph(X, K, metric=metric)
    wanted, _ = neighbours(X.toarray(), metric)
    assert recall(found.indices, wanted) > 0.999
    assert found.search == ("brute" if metric == "manhattan" else "exact")
    by_row = np.argsort(np.tile(X.tocoo().row, 2), kind="stable")
    halves = np.tile(X.data / 2, 2)[by_row], np.tile(X.indices, 2)[by_row], 2 * X.indptr
    run_in_chunks = knn_graph(sparse.csr_matrix(halves, X.shape), K, metric=metric)
    np.testing.assert_array_equal(run_in_chunks.indices, found.indices)


@pytest.mark.parametrize(
    ("X", "settings", "says"),
    [
        (np.eye(4), {"n_neighbors": 4}, "4 rows, but 4 neighbours need at least 5"),
        (np.eye(1), {"n_neighbors": 1}, "1 row, but"),
        (np.ones((4, 2)), {"n_neighbors": 2}, "All 4 rows are the same"),
        (sparse.csr_matrix(np.ones((4, 2))), {"n_neighbors": 2}, "are the same"),
        (np.eye(4), {"n_neighbors": 2, "metric": "crow"}, "'crow'"),
        (
            np.eye(4),
            {"n_neighbors": 2, "metric": "crow", "search": "descent"},
            "'crow'",
        ),
    ],
)
def test_what_cannot_be_searched_is_said_in_a_sentence(X, settings, says):
    with pytest.raises(InputError, match=says):
        knn_graph(X, **settings)


@pytest.mark.parametrize("search", ["exact", "leaves"])
@pytest.mark.parametrize("far", [1e3, 1e4])
def test_groups_far_apart_keep_their_neighbours(search, far):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat([0, far], 400), rng.random((800, 2))])
    graph = knn_graph(X, K, search=search)
    assert graph.search == search
    assert recall(graph.indices, neighbours(X)[0]) > 0.999


@pytest.mark.parametrize(
    ("search", "metric"),
    [("brute", "sqeuclidean"), ("brute", "manhattan"), ("descent", "manhattan")],
)
def test_rows_far_from_0_are_searched_by_libraries_too(search, metric, monkeypatch):
    monkeypatch.setattr("pynndescent.NNDescent", InSinglePrecision)
    X = np.random.default_rng(0).random((800, 3)) + 1e9
    graph = knn_graph(X, K, metric=metric, search=search)
    wanted = neighbours(X - 1e9, metric)[0]
    assert recall(graph.indices, wanted) > 0.99


@pytest.mark.parametrize("as_is", [np.asarray, sparse.csr_matrix])
def test_rows_of_zeros_are_near_nobody_by_cosines(as_is):
    X = np.abs(np.random.default_rng(0).normal(size=(200, 40))) ** 8
    X[:K] = 0
    graph = knn_graph(as_is(X), K, metric="cosine")
    np.testing.assert_array_equal(graph.indices[K:], neighbours(X[K:], "cosine")[0] + K)
    assert (graph.indices[:K, :-1] < K).all()
    np.testing.assert_allclose(graph.distances[:K, -1], 1, rtol=1e-6)


@pytest.mark.parametrize("metric", ["mahalanobis", "seuclidean"])
def test_distances_that_need_a_matrix_are_not_searched_without_it(metric):
    assert choose_search(np.empty((5_001, 3)), metric) == "brute"


def test_many_rows_that_are_nearly_all_zeros_are_not_written_out():
    assert choose_search(sparse.eye(20_000, format="csr"), "cosine") == "descent"
    assert choose_search(sparse.eye(4_000, 50_000, format="csr"), "cosine") == "brute"


@pytest.mark.parametrize("as_is", [np.asarray, sparse.csr_matrix])
def test_a_row_that_a_distance_says_nothing_of_is_named(cloud, as_is):
    X = cloud[:60].copy()
    X[7] = 0
    with pytest.raises(InputError, match=r"'correlation' is not defined for row 7 of"):
        knn_graph(as_is(X), 5, metric="correlation")


def test_of_rows_at_the_same_distance_the_first_are_neighbours():
    grid = np.stack(np.meshgrid(range(40), range(40)), axis=-1).reshape(-1, 2)
    inside = np.flatnonzero(((grid > 0) & (grid < 39)).all(axis=1))
    found = knn_graph(grid.astype(np.float32), 2, search="exact").indices[inside]
    np.testing.assert_array_equal(found, inside[:, None] + [-40, -1])


# --- Searches by lists


@pytest.fixture(scope="module")
def long_rows():
    """9,000 rows of 150 columns about a surface of 6 dimensions, in 20 clouds."""
    rng = np.random.default_rng(2)
    inner = (
        rng.normal(size=(9_000, 6))
        + 3 * rng.normal(size=(20, 6))[rng.integers(0, 20, 9_000)]
    )
    waves = np.sin(inner @ rng.normal(size=(6, 150)) / 3)
    return (waves + 0.05 * rng.normal(size=waves.shape)).astype(np.float32)


def true_recall(X, graph, metric="euclidean", count=300):
    """The share of the neighbours of some rows, or of others as near, in a graph."""
    rows = np.random.default_rng(7).choice(len(X), count, replace=False)
    distances = cdist(X[rows], X, metric)
    distances[np.arange(count), rows] = np.inf
    farthest = np.sort(distances, axis=1)[:, graph.n_neighbors - 1, None]
    found = np.take_along_axis(distances, graph.indices[rows].astype(int), axis=1)
    return (found <= farthest * (1 + 1e-4)).mean()


def assert_sound(graph):
    """No row is its own neighbour, none has one twice, the nearest come first."""
    assert (graph.indices != np.arange(graph.n_points)[:, None]).all()
    assert (np.diff(np.sort(graph.indices, axis=1), axis=1) > 0).all()
    assert (np.diff(graph.distances, axis=1) >= 0).all()


@pytest.mark.parametrize("search", ["leaves", "projected"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_searches_by_lists_find_nearly_all_and_measure_it(long_rows, search, metric):
    graph = knn_graph(long_rows, 15, metric=metric, search=search)
    assert graph.search == search
    found = true_recall(long_rows, graph, metric)
    assert found > 0.98
    assert graph.recall == pytest.approx(found, abs=0.02)
    assert_sound(graph)
    rows = np.arange(0, 9_000, 500)
    first = graph.indices[rows, 0]
    wanted = [
        cdist(long_rows[[a]], long_rows[[b]], metric)[0, 0]
        for a, b in zip(rows, first, strict=True)
    ]
    np.testing.assert_allclose(graph.distances[rows, 0], wanted, rtol=1e-3)
    assert (graph.indices.dtype, graph.distances.dtype) == (np.int32, np.float32)


@pytest.mark.parametrize("search", ["leaves", "projected"])
def test_searches_by_lists_do_not_depend_on_threads_or_on_the_unit(long_rows, search):
    plain = knn_graph(long_rows, 15, search=search)
    for n_jobs, scale in ((1, 1), (3, 1), (1, 2.0**-80), (1, 2.0**60)):
        with limit_threads(n_jobs):
            other = knn_graph(long_rows * np.float32(scale), 15, search=search)
        np.testing.assert_array_equal(other.indices, plain.indices)
        np.testing.assert_array_equal(other.distances, plain.distances * scale)


@pytest.mark.parametrize("search", ["leaves", "projected"])
def test_searches_by_lists_find_copies_of_a_row(long_rows, search):
    # More copies than a list is long, and many of them among rows that have none.
    X = np.concatenate([np.repeat(long_rows[:3], 1_500, axis=0), long_rows[3:4_000]])
    graph = knn_graph(X, 15, search=search)
    assert graph.search == search
    assert_sound(graph)
    assert (graph.distances[:4_500] == 0).all()
    assert true_recall(X, graph) > 0.98


def test_noise_of_many_dimensions_is_searched_in_another_way(monkeypatch):
    monkeypatch.setattr(leaves, "_CANDIDATES", 1_024)
    X = np.random.default_rng(0).normal(size=(6_000, 300)).astype(np.float32)
    graph = knn_graph(X, 15, search="projected")
    assert (graph.search, graph.recall) == ("exact", None)
    assert true_recall(X, graph) > 0.999


@pytest.mark.parametrize("far", [1e36, 1e38])
def test_a_row_beside_which_all_others_are_one_is_told(far):
    X = np.random.default_rng(0).normal(size=(300, 5))
    with pytest.raises(InputError, match="lost in single precision"):
        knn_graph(np.vstack([X, np.full((1, 5), far)]), K)
