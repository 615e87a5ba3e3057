import warnings
from dataclasses import asdict, replace

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core import pipeline
from napari_embedding_game.core import settings as core_settings
from napari_embedding_game.core.dynamics import play
from napari_embedding_game.core.errors import EmbeddingWarning, InputError
from napari_embedding_game.core.estimator import to_parameters
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.papers.reproductions.metrics import knn_accuracy


@parametrize_with_checks(
    [
        EmbeddingGame(n_neighbors=3, max_iter=30, random_state=0),
        EmbeddingGame(n_neighbors=3, method="pca", random_state=0),
    ]
)
def test_it_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted(digits):
    X, _ = digits
    return EmbeddingGame(random_state=0).fit(X)


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).normal(size=(120, 6))


def small(**changes):
    settings = {"n_landmarks": 10, "max_iter": 40, "random_state": 0}
    return EmbeddingGame(**to_parameters({**settings, **changes}))


def test_neighbours_on_the_map_of_the_digits_are_the_same_digit(digits, fitted):
    assert knn_accuracy(fitted.embedding_, digits[1]) >= 0.97


def test_attributes(fitted):
    n = 1797
    assert fitted.embedding_.shape == (n, 2)
    assert fitted.landmarks_.shape == (200, 2)
    assert fitted.labels_.shape == fitted.pressure_.shape == (n,)
    assert fitted.embedding_.dtype == fitted.landmarks_.dtype == np.float32
    assert fitted.pressure_.dtype == np.float32
    assert fitted.labels_.dtype == np.int32
    assert isinstance(fitted.energy_, float)
    assert np.isfinite(fitted.energy_)
    assert fitted.repulsion_ == 300
    assert (fitted.n_iter_, fitted.n_features_in_) == (500, 64)
    assert fitted.random_state_ == 0
    assert 0 < (fitted.pressure_ > 0).mean() < 1


@pytest.mark.parametrize("approximation", ["landmarks", "mesh", "exact"])
def test_a_map_on_a_line_is_all_on_it(cloud, approximation):
    fitted = small(n_components=1, approximation=approximation).fit(cloud)
    squared = (fitted.embedding_ - fitted.embedding_.T) ** 2
    pulls = fitted.affinity_matrix_.multiply(np.log1p(squared)).sum() / 2
    if approximation == "landmarks":
        apart = fitted.landmarks_ - fitted.landmarks_.T
        to_each = 1 / (1 + (fitted.embedding_ - fitted.landmarks_.T) ** 2)
        pushes = to_each.sum() ** 2 / (1 / (1 + apart**2)).sum()
    else:
        pushes = (1 / (1 + squared)).sum() - len(cloud)
    wanted = pulls + fitted.repulsion_ / len(cloud) * pushes
    assert fitted.energy_ == pytest.approx(wanted, rel=2e-3)
    assert (fitted.pressure_ > 0).any()
    assert np.isfinite(fitted.pressure_).all()
    assert (fitted.stretch_ > 0).all()


def test_a_minimiser_ends_with_less_energy_than_the_game(cloud):
    game = small(method="ee", approximation="exact").fit(cloud)
    fitted = small(method="ee_spectral_direction", max_iter=None).fit(cloud)
    assert fitted.energy_ < game.energy_
    assert fitted.landmarks_.shape == (10, 2)
    again = clone(fitted).fit_transform(cloud)
    np.testing.assert_array_equal(again, fitted.embedding_)


@pytest.mark.parametrize(
    ("method", "repulsion"), [("game", 300.0), ("tsne", 1.0), ("umap", 5.0)]
)
def test_the_repulsion_that_was_used_can_be_given_again(cloud, method, repulsion):
    auto = small(method=method, perplexity=8.0).fit(cloud)
    assert auto.repulsion_ == repulsion
    given = clone(auto).set_params(repulsion=auto.repulsion_).fit(cloud)
    assert given.repulsion_ == repulsion
    np.testing.assert_array_equal(auto.embedding_, given.embedding_)


def test_the_seed_decides_and_is_kept(cloud):
    first, again = small(random_state=7).fit(cloud), small(random_state=7).fit(cloud)
    np.testing.assert_array_equal(first.embedding_, again.embedding_)
    drawn = small(random_state=None).fit(cloud)
    repeated = small(random_state=drawn.random_state_).fit(cloud)
    np.testing.assert_array_equal(drawn.embedding_, repeated.embedding_)
    of_state = [
        small(random_state=np.random.RandomState(3)).fit(cloud).embedding_
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*of_state)


def test_the_unit_and_the_type_of_the_data_do_not_matter(cloud):
    plain, single = small().fit_transform(cloud), np.float32(cloud)
    for other in (cloud * 1024, single, single * 1e-35, sparse.csr_matrix(cloud)):
        np.testing.assert_allclose(small().fit_transform(other), plain, atol=0.5)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_same_numbers_of_any_kind_make_the_same_map(digits, metric):
    """As these lie far from 0, where float32 would take their differences away."""
    import pandas as pd
    import torch

    whole = digits[0][:300].astype(int) + (10**8 if metric == "euclidean" else 100)
    X = whole.astype(float)
    plain = small(metric=metric, max_iter=20).fit(X)
    expected = np.sort(cdist(X, X, metric), axis=1)[
        :, 1 : plain.knn_indices_.shape[1] + 1
    ]
    np.testing.assert_allclose(plain.knn_distances_, expected, rtol=1e-3, atol=1e-9)
    kinds = [
        whole,
        X.tolist(),
        X.astype(">f8"),
        torch.tensor(X),
        pd.DataFrame(X).astype("Float64").rename(columns=str),
        sparse.csr_array(X),
    ]
    if metric == "cosine":
        kinds += [X.astype(np.float32), sparse.csr_matrix(X)]
    for other in kinds:
        model = small(metric=metric, max_iter=20).fit(other)
        np.testing.assert_array_equal(model.embedding_, plain.embedding_)
        np.testing.assert_array_equal(model.transform(other), plain.transform(X))


def test_a_value_far_larger_than_all_others_changes_its_own_row_only(digits):
    X = digits[0][:300]
    plain = small(max_iter=5).fit(X).knn_indices_
    for dtype in (np.float32, np.float64):
        spoilt = X.astype(dtype)
        spoilt[7, 3] = 1e30
        found = small(max_iter=5).fit(spoilt).knn_indices_
        known = ~(plain == 7).any(axis=1)
        known[7] = False
        apart = cdist(X, X)
        np.testing.assert_array_equal(
            np.take_along_axis(apart, found, 1)[known],
            np.take_along_axis(apart, plain, 1)[known],
        )


def test_a_run_ends_where_fit_ends(cloud):
    model = small()
    run = model.play(cloud)
    snapshots = list(run)
    assert snapshots[0].iteration == 0
    assert snapshots[-1].finished
    whole = small().fit(cloud)
    np.testing.assert_array_equal(model.embedding_, whole.embedding_)
    np.testing.assert_array_equal(model.pressure_, whole.pressure_)
    np.testing.assert_array_equal(model.labels_, whole.labels_)
    assert model.energy_ == whole.energy_
    assert list(run) == []
    model.play(cloud[:40])  # not watched: the model is of the former fit in all
    assert len(model.knn_indices_) == len(model.isolation_) == len(model.embedding_)


def test_too_many_neighbours_are_fewer_with_a_warning(cloud):
    with pytest.warns(UserWarning, match="with 5 rows, 4 neighbours are used") as said:
        model = small().fit(cloud[:5])
    assert model.embedding_.shape == (5, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(n_neighbors=4).fit(cloud[:5])
    assert len(said) == 1


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"repulsion": -1}, "repulsion must be a number above 0, not -1."),
        ({"repulsion": np.nan}, "repulsion must be a number above 0, not nan."),
        ({"affinity": "cosy"}, "affinity must be"),
        ({"init": "tsne"}, "'tsne'"),
        ({"metric": "crow"}, "'crow'"),
        ({"n_components": 4}, "n_components must be a whole number from 1 to 3, not 4"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number at least 1, not 0"),
        ({"n_neighbors": "15"}, "not '15'"),
        ({"n_jobs": 1.5}, r"n_jobs must be a whole number, not 1\.5"),
        ({"learning_rate": 0}, "learning_rate must be above 0, as no point would"),
        ({"learning_rate": 1e40}, "learning_rate must be a number at least 0, not 1e"),
        ({"momentum": 2}, "momentum must be a number from 0 up to below 1, not 2"),
        ({"schedule": "slow"}, "'slow'"),
        ({"method": "chess"}, "'chess'"),
        ({"metric": 3}, "metric must be the name of a distance"),
        ({"device": "abacus"}, "'abacus'"),
        ({"device": "cuda:99"}, "no device cuda:99"),
        ({"random_state": -1}, "random_state must be a whole number from 0"),
        ({"method": "pca", "affinity": "fuzzy"}, "choose auto or inner_products"),
        ({"method": "umap", "approximation": "exact"}, "take the approximation exact"),
    ],
)
def test_impossible_settings_are_told_before_the_search(
    cloud, settings, says, monkeypatch
):
    from napari_embedding_game.core import pipeline as steps

    if "metric" not in settings or not isinstance(settings["metric"], str):
        monkeypatch.setattr(steps, "find_neighbors", lambda *_: pytest.fail("searched"))
    with pytest.raises(InputError, match=says) as told:
        small(**settings).fit(cloud)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("rows", "settings"),
    [(10_001, {"method": "ee_homotopy"}), (50_001, {"approximation": "exact"})],
)
def test_too_many_rows_are_told_before_the_search(rows, settings, monkeypatch):
    from napari_embedding_game.core import pipeline as steps

    monkeypatch.setattr(steps, "find_neighbors", lambda *_: pytest.fail("searched"))
    X = np.random.default_rng(0).normal(size=(rows, 2))
    with pytest.raises(InputError, match="at most"):
        small(**settings).fit(X)


def test_rare_settings_are_method_params(cloud):
    defaults, offered = asdict(Settings()), EmbeddingGame().get_params()
    assert len(offered) == 16
    assert {name: defaults.get(name) for name in offered} | {"random_state": None} == (
        offered
    )
    with pytest.raises(InputError, match=r"takes .*momentum.*, not momentumm"):
        EmbeddingGame(method_params={"momentumm": 3}).fit(cloud)
    with pytest.raises(InputError, match="give n_neighbors itself"):
        EmbeddingGame(method_params={"n_neighbors": 3}).fit(cloud)


@pytest.mark.parametrize("unknown", [{"foo": 3}, {"sample_weight": np.ones(120)}])
def test_what_fit_does_not_know_is_not_ignored(cloud, unknown):
    for way in (small().fit, small().fit_transform):
        with pytest.raises(TypeError, match=next(iter(unknown))):
            way(cloud, **unknown)
    pipeline = make_pipeline(StandardScaler(), small())
    given = {f"embeddinggame__{name}": value for name, value in unknown.items()}
    with pytest.raises(TypeError, match=next(iter(unknown))):
        pipeline.fit_transform(cloud, **given)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"landmark_learning_rate": 0.0}, "few spots: set the landmarks' learning"),
        ({"repulsion": 1e-6}, "collapsed onto a few spots: set the repulsion"),
        ({"learning_rate": 1e4}, r"far apart, up to \de\+\d+ from the middle"),
        ({"method": "pca", "max_iter": 3}, "still moving after 3 iterations"),
    ],
)
def test_a_map_that_says_little_is_warned_of(settings, says):
    X = np.random.default_rng(0).normal(size=(400, 6))
    model = EmbeddingGame(**{"random_state": 0, **settings})
    with pytest.warns(EmbeddingWarning, match=says) as said:
        model.fit_transform(X)
    assert len(said) == 1
    assert model.embedding_.shape == (400, 2)


@pytest.mark.parametrize(
    "X",
    [
        np.full((20, 3), 7.0),
        np.array([[1.0, np.nan]] * 20),
        np.ma.masked_less(np.arange(40).reshape(20, 2), 3),
        [["a", "b"]] * 20,
    ],
)
def test_unusable_data_are_told(X):
    with pytest.raises(ValueError, match=r"the same|NaN|string"):
        small().fit(X)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, pd.DataFrame])
def test_the_first_missing_value_is_told_by_its_row(cloud, kind):
    X = cloud.copy()
    X[[7, 30], 4] = np.nan, np.inf
    table = kind(X).rename(columns="gene{}".format) if kind is pd.DataFrame else kind(X)
    column = '"gene4"' if kind is pd.DataFrame else "4"
    where = rf"2 of 120 rows, first in row 7 \(counted from 0\), column {column}: leave"
    with pytest.raises(InputError, match=where):
        small().fit(table)
    fitted = small().fit(kind(cloud) if kind is not pd.DataFrame else table.fillna(0)
                         .replace(np.inf, 0))  # fmt: skip
    with pytest.raises(InputError, match=where):
        fitted.transform(table)


# As a part of other people's programs


def test_a_method_without_new_rows_has_no_transform(cloud):
    for settings in ({"method": "pca"}, {"metric": "precomputed"}):
        model = small(**settings)
        assert not hasattr(model, "transform")
        assert not hasattr(model, "predict")
        with pytest.raises(AttributeError, match="has no attribute") as told:
            _ = model.transform
        assert "New rows cannot be placed" in str(told.value.__cause__)
    model = small().set_output(transform="pandas").fit(cloud)
    assert isinstance(model.transform(cloud[:3]), pd.DataFrame)


def test_parameters_are_searched_by_a_grid(cloud):
    labels = (cloud[:, 0] > 0).astype(int)
    pipeline = make_pipeline(
        small(method="tsne", n_landmarks=20, max_iter=150),
        KNeighborsClassifier(n_neighbors=3),
    )
    grid = {
        "embeddinggame__perplexity": [4.0, 9.0],
        "embeddinggame__affinity": ["entropic", "uniform"],
    }
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise")
    search.fit(cloud, labels)
    assert len({*search.cv_results_["mean_test_score"]}) > 1
    used = search.best_estimator_[0]
    assert used._fitted.settings.perplexity == used.perplexity


def manhattan(one, other):
    return np.abs(one - other).sum()


def test_a_metric_may_be_a_function(cloud):
    named = small(metric="manhattan").fit(cloud)
    model = small(metric=manhattan).fit(cloud)
    np.testing.assert_array_equal(model.knn_indices_, named.knn_indices_)
    np.testing.assert_array_equal(model.embedding_, named.embedding_)
    np.testing.assert_array_equal(model.transform(cloud), model.embedding_)
    near = cloud[:9] + 1e-6
    np.testing.assert_allclose(model.transform(near), model.embedding_[:9], atol=0.1)
    with pytest.raises(InputError, match=r"5,001: compile it by numba\.njit"):
        small(metric=manhattan).fit(np.arange(5001.0)[:, None])


def test_a_callback_sees_the_map_and_ends_the_fit(cloud):
    seen = []

    def look(iteration, energy, embedding):
        seen.append((iteration, energy, embedding.copy()))
        embedding[:] = 0
        return iteration == 21

    model = small().fit(cloud, callback=look, callback_every=7)
    assert [iteration for iteration, *_ in seen] == [7, 14, 21]
    assert np.isfinite([energy for _, energy, _ in seen]).all()
    assert (model.n_iter_, model.energy_) == (21, seen[-1][1])
    until = small().fit(cloud, stop_at=21)
    np.testing.assert_array_equal(model.embedding_, until.embedding_)
    np.testing.assert_array_equal(seen[-1][2], until.embedding_)
    whole = small().fit_transform(cloud, callback=lambda *_: None, callback_every=7)
    np.testing.assert_array_equal(whole, small().fit_transform(cloud))
    with pytest.raises(InputError, match="callback_every"):
        small().fit(cloud, callback=look, callback_every=0)


def test_given_neighbours_make_the_map_and_new_rows_are_placed(cloud):
    found = small().fit(cloud)
    near = NearestNeighbors(n_neighbors=21).fit(cloud)
    distances, indices = near.kneighbors(cloud)  # with the rows themselves
    for given in (
        (found.knn_indices_, found.knn_distances_),
        (indices, distances),
        (indices[:, ::-1], distances[:, ::-1]),
    ):
        model = small().fit(cloud, neighbors=given)
        np.testing.assert_array_equal(model.knn_indices_, found.knn_indices_)
        np.testing.assert_allclose(model.embedding_, found.embedding_, atol=0.05)
        assert model.transform(cloud[:9] + 0.2).shape == (9, 2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda i, d: (i[:-1], d[:-1]), "a row for each of the 120 rows"),
        (lambda i, d: (i + 1, d), "from 0 to 119"),
        (lambda i, d: (i, -d), "at least 0"),
        (lambda i, d: i, "two arrays"),
        (lambda i, d: (i[:, :9], d[:, :9]), "holds 9 other rows .*, and 15 are asked"),
        (lambda i, d: (i[:, [0, *range(15)]], d[:, [0, *range(15)]]), "twice in row 0"),
    ],
)
def test_neighbours_that_cannot_be_are_told(cloud, change, says):
    distances, indices = NearestNeighbors(n_neighbors=15).fit(cloud).kneighbors()
    with pytest.raises(InputError, match=says):
        small().fit(cloud, neighbors=change(indices, distances))


def test_too_large_a_perplexity_is_smaller_with_a_warning(cloud):
    with pytest.warns(UserWarning, match="needs at least 91 rows; with 31 rows, 10 is"):
        model = small(method="tsne").fit(cloud[:31])
    same = small(method="tsne", perplexity=10.0).fit(cloud[:31])
    np.testing.assert_array_equal(model.embedding_, same.embedding_)


def test_a_model_in_a_mapped_file_places_rows_without_a_warning(cloud, tmp_path):
    model = small().fit(cloud)
    joblib.dump(model, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    new = cloud[:9] + 0.2
    np.testing.assert_array_equal(mapped.transform(new), model.transform(new))
    np.testing.assert_array_equal(mapped.predict(new), model.predict(new))


# Steering, as it is recorded in the window


def test_a_steered_fit_is_the_steered_run(cloud, monkeypatch):
    monkeypatch.setattr(play, "FRAME_SECONDS", 0.0)  # every iteration is seen
    steering = [(10, {"repulsion": 600.0}), (20, {"n_landmarks": 6})]
    model = small().fit(cloud, steering=steering, stop_at=35)
    shown = small()
    run = shown.play(cloud)
    for snapshot in run:
        for iteration, changed in steering:
            if snapshot.iteration == iteration:
                run.set(**changed)
        if snapshot.iteration == 35:
            break
    np.testing.assert_array_equal(model.embedding_, shown.embedding_)
    np.testing.assert_array_equal(model.landmarks_, shown.landmarks_)
    assert (len(model.landmarks_), model.n_iter_) == (6, 35)
    assert not np.array_equal(model.embedding_, small().fit(cloud).embedding_)
    assert model.get_params()["n_landmarks"] == 10  # what was asked for


def test_a_fit_goes_on_when_it_is_steered_at_its_end(cloud):
    model = small().fit(cloud, steering=[(40, {"repulsion": 480.0})])
    assert model.n_iter_ > 40


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"steering": [(5, {"n_neighbors": 3})]}, "n_neighbors cannot be changed"),
        ({"steering": [(5, {"n_landmarks": 0})]}, "n_landmarks"),
        ({"steering": [(9, {}), (5, {})]}, "at least 10, not 5"),
        ({"steering": [(-1, {})]}, "iteration of steering"),
        ({"steering": [(300, {"momentum": 0.1})]}, "ends after 40 iterations"),
        ({"steering": [(9, {})], "stop_at": 9}, "from 0 to 8, not 9"),
        ({"stop_at": 0}, "stop_at"),
    ],
)
def test_steering_that_cannot_be_is_refused(cloud, options, told):
    with pytest.raises(InputError, match=told):
        small().fit(cloud, **options)


def test_new_rows_have_their_places_whatever_is_done_with_the_map(cloud):
    model = small().set_output(transform="pandas").fit(cloud)
    new = cloud[:9] + 0.2
    before, clusters = model.transform(new), model.predict(new)
    assert clusters.shape == (9,)
    model.embedding_ /= model.embedding_.std()
    np.testing.assert_array_equal(model.transform(new), before)


def test_clusters_are_those_of_the_window_whatever_the_seed(cloud):
    from napari_embedding_game.core.graph.edges import Edges
    from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge

    model = small(random_state=7, n_landmarks=30).fit(cloud)
    merged = small(random_state=7, n_landmarks=30, n_clusters=4).fit(cloud)
    merging = LandmarkMerge.from_edges(
        Edges.from_symmetric_matrix(model.affinity_matrix_), model.labels_, 30
    )
    np.testing.assert_array_equal(
        merged.labels_, merging.cut_into_clusters(4)[model.labels_]
    )


def test_the_order_in_memory_changes_nothing(cloud):
    wide = np.asfortranarray(np.hstack([cloud, 3 * cloud, cloud**2]).astype("f4"))
    one, other = small().fit(wide), small().fit(np.ascontiguousarray(wide))
    np.testing.assert_array_equal(one.embedding_, other.embedding_)


def test_new_rows_are_placed_by_the_repulsion_at_the_end(cloud):
    model = small().fit(cloud, steering=[(20, {"repulsion": 900.0})])
    assert model.repulsion_ == 900
    new = cloud[:9] + 0.2

    def places_under(repulsion):  # on the same map
        fitted = model._fitted
        settings = replace(fitted.settings, repulsion=repulsion)
        return replace(fitted, settings=settings).place(new)

    np.testing.assert_array_equal(model.transform(new), places_under(900.0))
    assert np.abs(places_under(300.0) - places_under(900.0)).max() > 0.01


def test_a_fit_that_is_refused_at_its_end_leaves_what_was_there(cloud):
    model, late = small(), [(400, {"repulsion": 700.0})]
    with pytest.raises(InputError, match="before the steering at 400"):
        model.fit(cloud, steering=late)
    with pytest.raises(NotFittedError):
        model.transform(cloud)
    before = model.fit(cloud).embedding_
    with pytest.raises(InputError, match="before the steering at 400"):
        model.fit(2 * cloud[:90], steering=late)
    assert model.embedding_ is before
    assert model.transform(cloud[:3]).shape == (3, 2)


def test_the_steps_of_the_pipeline_make_the_map_of_the_estimator(cloud, monkeypatch):
    """Also of so many rows that the game is played on a grid."""
    monkeypatch.setattr("napari_embedding_game.core.settings.MANY_POINTS", 100)
    lines = pipeline.__doc__.split("\n\n")[1]
    settings = Settings(n_landmarks=10, max_iter=40)
    scope = {**vars(pipeline), **vars(core_settings), "play": play.play}
    scope |= {"X": cloud, "settings": settings}
    exec(lines, scope)
    assert scope["settings"].approximation == "mesh"
    *_, last = scope["playing"]
    np.testing.assert_array_equal(last.embedding, small().fit(cloud).embedding_)
