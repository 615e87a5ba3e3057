"""New rows on a finished map: transform and predict of every method."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.errors import EmbeddingWarning, InputError
from napari_embedding_game.core.estimator import to_parameters
from napari_embedding_game.core.graph.choices import AFFINITIES
from napari_embedding_game.core.graph.neighbors import knn_graph

pytestmark = pytest.mark.filterwarnings("ignore:The points were still moving")


@pytest.fixture(scope="module")
def parts(digits):
    X, y = digits
    old, new = np.split(np.random.default_rng(0).permutation(len(X)), [1500])
    return (X[old], y[old]), (X[new], y[new])  # the last are of other writers


@pytest.fixture(scope="module")
def fitted(parts):
    return EmbeddingGame(random_state=0, n_clusters=10).fit(parts[0][0])


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).normal(size=(140, 6)).astype(np.float32)


def small(**changes):
    settings = {"n_landmarks": 10, "max_iter": 40, "random_state": 0, "n_jobs": 1}
    return EmbeddingGame(**to_parameters({**settings, "perplexity": 8.0, **changes}))


def labels_of_nearest(places, embedding, labels, k=15):
    apart = np.square(places[:, None] - embedding[None]).sum(axis=2)
    votes = labels[np.argsort(apart, axis=1)[:, :k]]
    return np.array([np.bincount(row).argmax() for row in votes])


def test_new_digits_come_to_lie_among_their_own(parts, fitted):
    (_, old), (X, y) = parts
    placed = fitted.transform(X)
    assert placed.dtype == np.float32
    assert (labels_of_nearest(placed, fitted.embedding_, old) == y).mean() > 0.93


def test_the_order_and_the_size_of_batches_change_nothing(parts, fitted):
    X = parts[1][0]
    placed = fitted.transform(X)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(fitted.transform(X[order]), placed[order])
    for begin in (0, 1, 7, 100):
        np.testing.assert_array_equal(
            fitted.transform(X[begin : 2 * begin + 1]), placed[begin : 2 * begin + 1]
        )
    by_column = np.asfortranarray(X)
    np.testing.assert_array_equal(fitted.transform(by_column), placed)


def test_fitted_rows_have_their_places(parts, fitted):
    X = parts[0][0]
    np.testing.assert_array_equal(fitted.transform(X), fitted.embedding_)
    np.testing.assert_array_equal(fitted.transform(X[5:6]), fitted.embedding_[5:6])


@pytest.mark.parametrize("share", [1e-3, 0.05, 0.3])
def test_rows_near_fitted_ones_land_near_their_places(parts, fitted, share):
    X = parts[0][0][:300]
    rho = knn_graph(parts[0][0], 1).distances[:300]
    noise = np.random.default_rng(0).normal(size=X.shape)
    noise *= share * rho / np.linalg.norm(noise, axis=1, keepdims=True)
    moved = np.linalg.norm(
        fitted.transform(X + noise) - fitted.embedding_[:300], axis=1
    )
    span = np.ptp(fitted.embedding_, axis=0).max()
    assert np.median(moved) < 0.01 * span
    assert np.median(moved) < share * span


NOT_PLACED = {"pca", "two_kernel_lle"}


@pytest.mark.parametrize("method", sorted(NOT_PLACED))
def test_maps_of_the_rows_themselves_take_no_new_ones(method, cloud):
    model = small(method=method).fit(cloud[:120])
    check_map(model)
    with pytest.raises(AttributeError) as told:
        model.transform(cloud)
    assert "choose another method" in str(told.value.__cause__)


def check_map(model):
    assert model.embedding_.shape == (120, 2)
    assert np.isfinite(model.embedding_).all()
    assert (model.embedding_.std(axis=0) > 0).all()
    assert len(np.unique(model.labels_)) > 1
    assert np.isfinite(model.energy_)


@pytest.mark.parametrize(
    "method",
    sorted({n for n in METHODS if "homotopy" not in n} - NOT_PLACED - {"given"}),
)
def test_every_other_method_places_rows(method, cloud):
    model = small(method=method).fit(cloud[:120])
    check_map(model)
    placed = model.transform(cloud)
    span = np.ptp(model.embedding_, axis=0).max()
    assert placed.shape == (140, 2)
    assert np.isfinite(placed).all()
    back = np.linalg.norm(placed[:120] - model.embedding_, axis=1)
    assert np.median(back) < 0.01 * span
    new = placed[120:]
    assert np.ptp(new, axis=0).max() > 0.2 * span
    assert (np.abs(new) < 2 * np.abs(model.embedding_).max()).all()


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(
    "approximation",
    ["landmarks", "mesh", "sampled_edges", "sampled_landmarks", "exact"],
)
def test_maps_of_all_dimensions_and_approximations_take_rows(cloud, d, approximation):
    init = ("spectral", "pca", "random")[d - 1]
    options = {"n_components": d, "init": init, "n_landmarks": 60}  # fewer collapse
    model = small(**options, approximation=approximation)
    model.fit(cloud[:120])
    assert model.embedding_.shape == (120, d)
    placed = model.transform(cloud[120:])
    assert placed.shape == (20, d)
    assert (np.abs(placed) < 2 * np.abs(model.embedding_).max()).all()


@pytest.mark.parametrize("affinity", AFFINITIES)
def test_rows_are_placed_by_any_edges(parts, affinity):
    (X, old), (new, y) = parts
    model = EmbeddingGame(random_state=0, max_iter=200, affinity=affinity)
    placed = model.fit(X).transform(new)
    assert (labels_of_nearest(placed, model.embedding_, old) == y).mean() > 0.85


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_other_metrics_place_rows(parts, metric):
    (X, old), (new, y) = parts
    model = EmbeddingGame(random_state=0, metric=metric, max_iter=200).fit(X)
    placed = model.transform(new)
    assert (labels_of_nearest(placed, model.embedding_, old) == y).mean() > 0.9
    np.testing.assert_array_equal(model.transform(new[9:12]), placed[9:12])


def test_sparse_and_dense_rows_are_placed_alike(parts):
    (X, _), (new, _) = parts
    dense = EmbeddingGame(random_state=0, max_iter=100).fit(X)
    np.testing.assert_array_equal(
        dense.transform(sparse.csr_matrix(new)), dense.transform(new)
    )
    from_sparse = EmbeddingGame(random_state=0, max_iter=100).fit(sparse.csr_matrix(X))
    placed = from_sparse.transform(sparse.csr_matrix(new))
    np.testing.assert_array_equal(from_sparse.transform(new), placed)
    np.testing.assert_array_equal(
        from_sparse.transform(sparse.csr_matrix(new[3:5])), placed[3:5]
    )


# --- Rows that are unlike all fitted ones -------------------------------------------


def test_rows_of_another_scale_are_told_and_like_ones_are_not(parts, fitted):
    X = parts[1][0]
    likeness = fitted.score_samples(X)
    assert (likeness < 0.01).mean() < 0.04
    assert 0.4 < np.median(likeness) < 0.6
    fitted.transform(X)  # without a warning, which would be an error here
    with pytest.warns(EmbeddingWarning, match=r"^297 of 297 new rows \(100%\)") as told:
        fitted.transform(X * 1e6)
    assert told[0].filename == __file__
    with pytest.warns(EmbeddingWarning, match="297 of 297") as told:
        fitted.predict(X * 1e6)
    assert told[0].filename == __file__
    assert (fitted.score_samples(X * 1e6) == 1 / 1501).all()


def test_one_row_of_another_scale_among_many_is_named(parts, fitted):
    X = parts[1][0].copy()
    X[17] *= 1000
    with pytest.warns(
        EmbeddingWarning, match=r"most unlike is row 17 \(counted from 0"
    ):
        fitted.transform(X)
    with pytest.warns(EmbeddingWarning, match=r"^1 of 1 new rows .* is row 0 "):
        fitted.transform(X[17:18])
    changed = fitted.score_samples(X)
    np.testing.assert_array_equal(
        np.delete(changed, 17), np.delete(fitted.score_samples(parts[1][0]), 17)
    )


def test_a_digit_that_was_left_out_is_told(parts):
    (X, old), (new, y) = parts
    model = EmbeddingGame(random_state=0, max_iter=1).fit(X[old != 4])
    with pytest.warns(EmbeddingWarning, match="are unlike all fitted rows"):
        model.transform(new[y == 4])
    assert (model.score_samples(new[y == 4]) < 0.01).mean() > 0.6
    model.transform(new[y != 4])


def test_a_row_is_scored_where_few_rows_are_fitted(cloud):
    model = small().fit(cloud[:60])
    assert (model.score_samples(cloud * 1e6) == 1 / 61).all()
    with pytest.warns(EmbeddingWarning, match="1 of 3 new rows"):
        model.transform(np.vstack([cloud[100:102], cloud[102:103] * 1e6]))


def test_no_rows_have_no_diagnostics(fitted):
    found = fitted._fitted.place_with_diagnostics(np.empty((0, 64), np.float32))
    assert [each.shape for each in found] == [(0, 2), (0,), (0,)]
    assert fitted._fitted.compute_distance_ratios(np.empty((0, 64))).shape == (0,)


# --- What cannot be placed ----------------------------------------------------------


def test_a_map_of_given_distances_takes_no_rows(cloud):
    apart = np.linalg.norm(cloud[:, None] - cloud[None], axis=2)
    model = small(metric="precomputed").fit(apart)
    with pytest.raises(AttributeError) as told:
        model.transform(apart[:3])
    assert "precomputed distances: fit the rows" in str(told.value.__cause__)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda X: X[:, :5], "5 features"),
        (lambda X: np.where(X > 1, np.nan, X), "NaN"),
        (lambda X: X * np.float32(1e30), "single precision"),
        (lambda X: X[:0], "0 sample"),
        (lambda X: X[0], "2D array"),
    ],
)
def test_rows_that_cannot_be_placed_are_told(cloud, change, says):
    model = small().fit(cloud[:120])
    with pytest.raises(ValueError, match=says):
        model.transform(change(cloud[120:]))


# --- Clusters -----------------------------------------------------------------------


def test_clusters_are_merged_landmarks(parts, fitted):
    from sklearn.metrics import adjusted_rand_score

    (_, old), (X, y) = parts
    assert fitted.labels_.shape == (1500,)
    np.testing.assert_array_equal(np.unique(fitted.labels_), np.arange(10))
    assert adjusted_rand_score(old, fitted.labels_) > 0.7
    predicted = fitted.predict(X)
    assert predicted.dtype == np.int32
    assert adjusted_rand_score(y, predicted) > 0.7
    np.testing.assert_array_equal(fitted.predict(parts[0][0]), fitted.labels_)


def test_a_number_of_clusters_that_is_none_is_refused(cloud):
    for wrong in (0, 2.5, "many"):
        with pytest.raises(InputError, match="n_clusters must be a whole number"):
            small(n_clusters=wrong).fit(cloud)


# --- Starts that are given ----------------------------------------------------------


def test_an_array_is_a_start(cloud):
    start = np.random.default_rng(1).normal(size=(140, 2))
    model = small(init=start)
    first = next(iter(run := model.play(cloud)))
    run.stop()
    np.testing.assert_array_equal(first.embedding, start.astype(np.float32))
    again = clone(model).fit(cloud)
    np.testing.assert_array_equal(
        again.embedding_, small(init=start).fit_transform(cloud)
    )


@pytest.mark.parametrize(
    "init",
    [
        np.zeros((140, 2)),
        np.eye(3, 2),
        np.full((140, 2), np.nan),
        1e9 * np.eye(140, 2),
        [["a", "b"]] * 140,
    ],
)
def test_an_array_that_is_no_start_is_told(cloud, init):
    with pytest.raises(InputError, match="140 x 2 numbers from -1e"):
        small(init=init).fit(cloud)


# --- scikit-learn's ways ------------------------------------------------------------


def test_tables_keep_their_rows_and_get_names(cloud):
    import pandas as pd

    names = [f"gene{i}" for i in range(6)]
    table = pd.DataFrame(cloud, columns=names, index=[f"cell{i}" for i in range(140)])
    model = small().set_output(transform="pandas").fit(table[:120])
    np.testing.assert_array_equal(model.feature_names_in_, names)
    placed = model.transform(table[120:])
    assert list(placed.columns) == ["embeddinggame0", "embeddinggame1"]
    assert list(model.get_feature_names_out()) == list(placed.columns)
    np.testing.assert_array_equal(placed.index, table.index[120:])
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(table[120:].rename(columns={"gene0": "gene9"}))
