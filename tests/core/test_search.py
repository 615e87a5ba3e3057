import numpy as np
import pytest
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph import leaves
from napari_embedding_game.core.new_rows import search as module
from napari_embedding_game.core.new_rows.search import FittedSearch, validate_metric
from napari_embedding_game.core.threads import limit_threads


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(20, 12)) * 4
    return (middles[rng.integers(20, size=1300)] + rng.normal(size=(1300, 12))) + 100


def exact(X, fitted, k, metric="euclidean"):
    from sklearn.metrics import pairwise_distances

    apart = pairwise_distances(X, fitted, metric=metric)
    order = np.argsort(apart, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(apart, order, axis=1)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
@pytest.mark.parametrize("n_fitted", [5, 128, 1200])
def test_they_are_the_nearest(rows, metric, n_fitted):
    fitted, X = rows[:n_fitted], rows[1200:]
    found, distances = FittedSearch(fitted, metric)(X, 5)
    expected, apart = exact(X, fitted, 5, metric)
    np.testing.assert_allclose(distances, apart, rtol=1e-3, atol=1e-6)
    assert (found == expected).mean() > 0.995


def test_lists_find_most_of_them(rows, monkeypatch):
    monkeypatch.setattr(module, "MAX_FLAT", 100)
    monkeypatch.setattr(leaves, "_MAX_LEAF", 30)
    fitted, X = rows[:1200], rows[1200:]
    search = FittedSearch(fitted, "euclidean")
    found, _ = search(X, 10)
    expected, _ = exact(X, fitted, 10)
    kept = (found[:, :, None] == expected[:, None, :]).any(axis=2)
    assert kept.mean() > 0.97
    everything, _ = search(X[:3], 1200)  # more than the lists that are looked at hold
    np.testing.assert_array_equal(np.sort(everything), [np.arange(1200)] * 3)
    one_by_one = [search(X[i : i + 1], 10)[0][0] for i in range(100)]
    np.testing.assert_array_equal(found, one_by_one)
    with limit_threads(3):
        np.testing.assert_array_equal(found, search(X, 10)[0])


def test_a_fitted_row_is_at_distance_zero_from_itself(rows):
    for X in (rows, rows.astype(np.float32), rows * 1e20, rows * 1e-20):
        for metric in ("euclidean", "cosine"):
            found, distances = FittedSearch(X, metric)(X[::-7], 1)
            np.testing.assert_array_equal(found[:, 0], np.arange(len(X))[::-7])
            np.testing.assert_array_equal(distances, 0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_rows_without_a_direction_are_1_from_all_or_refused(rows, form):
    fitted, zero = rows[:50], form(np.zeros((1, 12)))
    found, distances = FittedSearch(form(fitted), "cosine")(zero, 3)
    np.testing.assert_array_equal(found, [[0, 1, 2]])
    np.testing.assert_array_equal(distances, 1)
    with_zero = form(np.vstack([fitted, np.zeros(12)]))
    found, distances = FittedSearch(with_zero, "cosine")(zero, 2)
    assert found[0, 0] == 50
    np.testing.assert_allclose(distances, [[0, 1]], atol=1e-6)
    with pytest.raises(InputError, match="'correlation' is not defined for row 0"):
        FittedSearch(form(fitted), "correlation")(zero, 3)


@pytest.mark.parametrize("metric", ["manhattan", "precomputed"])
def test_metrics_that_say_nothing_of_new_rows_are_refused(metric):
    with pytest.raises(InputError, match=r"^New rows cannot be placed [^\n]*\.$"):
        validate_metric(metric)


def test_no_new_rows_have_no_neighbours():
    fitted = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    found, distances = FittedSearch(fitted, "euclidean")(fitted[:0], 5)
    assert found.shape == distances.shape == (0, 5)
