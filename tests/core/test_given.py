"""Neighbours from distances that are given."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, kneighbors_graph
from sklearn.utils import get_tags

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import knn_graph


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 60)
    return 6 * rng.normal(size=(4, 8))[labels] + rng.normal(size=(240, 8)), labels


def as_scanpy_has_them(X, n_neighbors):
    """Distances to ``n_neighbors - 1`` others, as its ``pp.neighbors`` stores them."""
    return kneighbors_graph(X, n_neighbors - 1, mode="distance")


def test_distances_between_all_rows_give_the_neighbours_that_are_searched(clouds):
    X, _ = clouds
    wanted = knn_graph(X, 10)
    found = knn_graph(cdist(X, X), 10, metric="precomputed")
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_allclose(found.distances, wanted.distances, rtol=1e-4)
    assert found.search == "precomputed"


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_stored_distances_are_the_neighbours(clouds, layout):
    X, _ = clouds
    given = as_scanpy_has_them(X, 15).asformat(layout)
    before = given.copy()
    wanted = knn_graph(X, 14)
    for n_neighbors in (14, 15):  # 15 with the row itself
        found = knn_graph(given, n_neighbors, metric="precomputed")
        np.testing.assert_array_equal(found.indices, wanted.indices)
    nearest = knn_graph(given, 5, metric="precomputed")
    np.testing.assert_array_equal(nearest.indices, wanted.indices[:, :5])
    assert (given != before).nnz == 0


def test_neighbours_at_distance_0_count_and_the_diagonal_does_not():
    row, column = [0, 0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 2, 1, 0]
    values = [0.0, 0.0, 2.0, 0.0, 1.0, 1.0, 2.0]
    given = sparse.csr_matrix((values, (row, column)), shape=(3, 3))
    assert given.nnz == 7
    found = knn_graph(given, 2, metric="precomputed")
    np.testing.assert_array_equal(found.indices, [[1, 2], [0, 2], [1, 0]])
    np.testing.assert_array_equal(found.distances, [[0, 2], [0, 1], [1, 2]])


def test_a_map_from_distances_keeps_what_belongs_together(clouds):
    X, labels = clouds
    given = as_scanpy_has_them(X, 15)
    game = EmbeddingGame(metric="precomputed", random_state=0, max_iter=100)
    y = game.fit_transform(given)
    score = cross_val_score(KNeighborsClassifier(5), y, labels).mean()
    assert score > 0.95
    assert get_tags(game).input_tags.pairwise
    assert not get_tags(EmbeddingGame()).input_tags.pairwise


@pytest.mark.parametrize(
    ("change", "settings", "says"),
    [
        (lambda d: d[:, :50], {}, "as many columns as rows, not 240 x 50"),
        (lambda d: -d, {}, "values below 0"),
        (lambda d: d * 0, {}, "All distances between neighbours are 0"),
        (lambda d: d, {"n_neighbors": 16}, "Row 0 has 14 neighbours .* to 15 or less"),
        (lambda d: d, {"method": "tsne"}, "times the perplexity, to 15 or less"),
        (lambda d: d, {"init": "pca"}, '"pca" needs the rows'),
        (lambda d: d, {"method": "two_kernel_lle"}, '"lle" needs the rows'),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(clouds, change, settings, says):
    given = change(as_scanpy_has_them(clouds[0], 15))
    with pytest.raises(InputError, match=says):
        EmbeddingGame(metric="precomputed", **settings).fit(given)
