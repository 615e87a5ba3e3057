"""Rows that join a finished map, which hardly moves."""

import numpy as np
import pytest
from scipy import sparse

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core.errors import EmbeddingWarning, InputError
from napari_embedding_game.core.estimator import to_parameters
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.new_rows.likeness import measure_apartness
from napari_embedding_game.papers.reproductions.metrics import neighbor_recall

pytestmark = pytest.mark.filterwarnings("ignore:The points were still moving")


@pytest.fixture(scope="module")
def rows(digits):
    X, y = digits
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


@pytest.fixture
def cloud():
    return np.random.default_rng(0).normal(size=(160, 6)).astype(np.float32)


def small(**changes):
    settings = {"n_landmarks": 10, "max_iter": 40, "random_state": 0, "perplexity": 8.0}
    return EmbeddingGame(**to_parameters({**settings, **changes}))


def test_a_map_that_grows_is_nearly_a_fit_of_all_rows_and_hardly_moves(rows):
    X = rows[0]
    model = EmbeddingGame(random_state=0).fit(X[:1200])
    for begin in (1200, 1500):
        before = model.embedding_
        model.partial_fit(X[begin : begin + 300])
        moved = np.linalg.norm(model.embedding_[:begin] - before, axis=1)
        assert np.median(moved) < 0.007 * np.ptp(before, axis=0).max()
    everything = EmbeddingGame(random_state=0).fit(X)
    assert model.n_samples_seen_ == len(X)
    np.testing.assert_array_equal(model.knn_indices_, everything.knn_indices_)
    assert abs(model.affinity_matrix_ - everything.affinity_matrix_).max() < 1e-3
    assert model.energy_ < 1.04 * everything.energy_
    kept = [
        neighbor_recall(model.knn_indices_, one.embedding_)
        for one in (model, everything)
    ]
    assert kept[0] > kept[1] - 0.02
    for name in ("labels", "stretch", "isolation", "pressure"):
        found = getattr(model, f"{name}_")
        assert found.shape == (len(X),)
        assert np.isfinite(found).all()


def test_clusters_keep_their_numbers(rows):
    X = rows[0]
    model = EmbeddingGame(random_state=0, n_clusters=10).fit(X[:1000])
    for n in (1000, 1100):
        before = model.labels_
        model.partial_fit(X[n : n + 100])
        assert (model.labels_[:n] == before).mean() > 0.8
        of_landmarks = model.landmark_clusters_
        assert {*model.labels_} == {*of_landmarks[of_landmarks >= 0]} == {*range(10)}
        assert (model.predict(X[:n]) == model.labels_[:n]).mean() > 0.8


def test_digits_sorted_by_class_are_told_to_fit_again(rows):
    X, y = rows
    X = X[np.argsort(y, kind="stable")]
    model = small().fit(X[:700])
    with pytest.warns(EmbeddingWarning, match="fit all rows again"):
        model.partial_fit(X[720:900])
    with pytest.warns(EmbeddingWarning, match=r"1 of 60 new rows .* unlike all"):
        model.partial_fit(np.concatenate([X[:59], 1e3 * X[:1]]))


def test_apartness_is_0_by_chance_and_1_among_themselves():
    near = np.random.default_rng(0).integers(400, size=(100, 50))  # the last 100 new
    assert abs(measure_apartness(near, 300)) < 0.02
    assert measure_apartness(near % 100 + 300, 300) == 1
    assert measure_apartness(near[:1], 400) == 0


@pytest.mark.filterwarnings("ignore:About half of the 40 new rows")
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
def test_neighbours_are_those_of_a_search_among_all_rows(cloud, metric):
    model = small(metric=metric).fit(cloud[:120]).partial_fit(cloud[120:])
    exact = knn_graph(cloud, 15, metric=metric)
    np.testing.assert_array_equal(model.knn_indices_, exact.indices)
    cloud[130:150] = cloud[20]  # more copies than there are neighbours
    model = small(metric=metric).fit(cloud[:120]).partial_fit(cloud[120:])
    lists, exact = model.knn_indices_, knn_graph(cloud, 15, metric=metric)
    np.testing.assert_allclose(model.knn_distances_, exact.distances, atol=1e-3)
    for row, near in enumerate(lists):
        assert len({row, *near}) == 16


@pytest.mark.parametrize(
    "way",
    [
        {"method": "tsne"},
        {"method": "ee", "n_components": 3},
        {"method": "umap"},
        {"approximation": "mesh", "n_components": 1, "schedule": "paper"},
        {"n_clusters": 4, "large_picture": 1.0},
    ],
)
def test_games_of_all_kinds_take_rows_and_any_threads_give_the_same(cloud, way):
    model = small(n_jobs=1, **way).partial_fit(cloud[:140])  # the first call fits
    before = model.embedding_
    model.partial_fit(cloud[140:])
    assert model.embedding_.shape == (160, model.n_components)
    moved = np.linalg.norm(model.embedding_[:140] - before, axis=1)
    assert 0 < np.median(moved) < 0.05 * np.ptp(before, axis=0).max()
    assert len(np.unique(model.labels_)) <= (model.n_clusters or 10)
    again = small(n_jobs=2, **way).fit(cloud[:140])
    again.partial_fit(sparse.csr_matrix(cloud[140:]))
    assert again.map_hash_ == model.map_hash_
    placed = model.transform(cloud)
    np.testing.assert_array_equal(placed, model.embedding_)


def test_what_is_refused_leaves_the_fit(cloud):
    model = small().fit(cloud[:120])
    before = dict(vars(model))
    cloud[130, 2] = np.nan
    with pytest.raises(InputError, match="missing or infinite"):
        model.partial_fit(cloud[120:])
    with pytest.raises(InputError, match="so large"):
        model.partial_fit(np.full((2, 6), 1e39))
    assert vars(model) == before


@pytest.mark.parametrize("method", ["given", "ee_homotopy", "pca"])
def test_maps_that_are_no_games_take_no_rows(method):
    with pytest.raises(AttributeError) as told:
        _ = EmbeddingGame(method=method).partial_fit
    assert "choose another method" in str(told.value.__cause__)
