"""PCA by attraction and repulsion: its steps, and as a method of the family."""

from itertools import islice

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from sklearn.decomposition import PCA

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core import pipeline
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.choices import AFFINITIES
from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.settings import Settings, fill_affinity, list_affinities
from napari_embedding_game.papers.pca import (
    SPREAD,
    iterate_pca_descent,
    pca_energy,
    pca_gradient,
)


@pytest.fixture
def X():
    """60 rows with standard deviations 5, 4, 1 ... around a mean that is not 0."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 8)) * [5, 4, 1, 1, 0.5, 0.5, 0.1, 0.1] + 7


@pytest.fixture(scope="module")
def many():
    """250 rows with standard deviations 5, 4, 2, 1 ... around a mean that is not 0."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(250, 40)) * [5, 4, 2, *[1] * 37] + 7


def components(X, d=2):
    return PCA(d, svd_solver="full").fit_transform(X)


def apart(found, wanted, is_scaled=False):
    """How far two layouts are, up to an orthogonal map and perhaps a scale."""
    found = found.astype(np.float64)
    turn, overlap = orthogonal_procrustes(found, wanted)
    scale = overlap / np.linalg.norm(found) ** 2 if is_scaled else 1
    return np.linalg.norm(found @ turn * scale - wanted) / np.linalg.norm(wanted)


def after(n_steps, steps):
    return next(islice(steps, n_steps, None))


# --- The steps ----------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
def test_gradient_and_energy_are_those_of_the_formula(X, d):
    rng = np.random.default_rng(1)
    y, direction = rng.normal(size=(2, 60, d))
    C = np.eye(60) - 1 / 60

    def loss(y):
        return np.linalg.norm(C @ (X @ X.T - y @ y.T) @ C) ** 2

    wanted = -4 * C @ (X @ X.T - y @ y.T) @ C @ y
    found = pca_gradient(X, y + 2)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-8)
    slope = (loss(y + 1e-5 * direction) - loss(y - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose((found * direction).sum(), slope, rtol=1e-6)
    np.testing.assert_allclose(pca_energy(X, y + 3), loss(y) - loss(0 * y))


@pytest.mark.parametrize("d", [1, 2])
def test_it_ends_at_the_principal_components_and_never_swings_away(X, d):
    layouts = list(islice(iterate_pca_descent(X, d), 301))
    assert apart(layouts[0], components(X, d)) > 0.5
    assert apart(layouts[-1], components(X, d)) < 1e-8
    lengths = [np.linalg.norm(y) for y in layouts]
    assert max(lengths) < 1.1 * lengths[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 9}, "at most 8"),
        ({"X": np.ones((10, 3))}, "the same"),
    ],
)
def test_what_cannot_be_used_is_told(X, options, message):
    with pytest.raises(InputError, match=message):
        next(iterate_pca_descent(**{"X": X, **options}))


# --- A method -----------------------------------------------------------------------


def game_of(X, method="pca", **settings):
    chosen = fill_affinity(Settings(method=method, **settings))
    placed = pipeline.make_edges_and_layout(
        pipeline.find_neighbors(X, chosen), X, chosen
    )
    return play(*placed, chosen, frame_iterations=1)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_map_is_pca_up_to_one_scale(many, d, unit):
    found = EmbeddingGame(d, method="pca", random_state=0).fit_transform(unit * many)
    assert apart(found, components(many, d), True) < 1e-3
    longest = np.linalg.svd(found - found.mean(axis=0), compute_uv=False)[0]
    assert longest / np.sqrt(len(many)) == pytest.approx(SPREAD, rel=0.02)


@pytest.mark.parametrize("init", ["random", "spectral", "pca"])
def test_the_map_of_the_digits_is_pca_from_every_start(digits, init):
    game = EmbeddingGame(method="pca", init=init, random_state=0)
    found = game.fit_transform(digits[0])
    assert apart(found, components(digits[0]), True) < 1e-3
    assert len(np.unique(game.labels_)) > 190
    assert np.isnan(game.pressure_).all()
    assert (game.affinity_, game.repulsion_) == ("inner_products", 1.0)
    assert game.n_iter_ < 500
    eigenvalues = np.linalg.eigvalsh(np.cov(digits[0].T) * (len(found) - 1))
    wanted = -(eigenvalues[-2:] ** 2).sum()
    assert game.energy_ == pytest.approx(wanted, rel=1e-6)


def test_points_are_seen_to_move_and_landmarks_to_settle(many):
    shown = list(game_of(many, n_landmarks=20))
    assert [s.iteration for s in shown[:3]] == [0, 1, 2]
    stopped = EmbeddingGame(method="pca", random_state=0).fit(many, stop_at=17)
    assert stopped.n_iter_ == 17
    iterations = [s.iteration for s in shown]
    assert iterations == sorted(set(iterations))
    assert [s.finished for s in shown] == [False] * (len(shown) - 1) + [True]
    energies = [s.energy for s in shown]
    # The energy goes down, until it is the same to the last digits.
    assert (np.diff(energies) <= 1e-12 * abs(energies[-1])).all()
    assert not np.array_equal(shown[0].embedding, shown[1].embedding)
    assert all(s.landmarks.shape == (20, 2) for s in shown)
    assert not any(s.has_pressure or s.warning for s in shown)
    last = shown[-1]
    assert last.n_iter == last.iteration
    assert len(np.unique(last.labels)) == 20


def test_points_that_have_not_settled_are_told(many):
    *_, last = game_of(many, max_iter=12)
    assert "still moving after 12 iterations" in last.warning
    assert last.iteration == 112


@pytest.mark.parametrize(
    ("n", "columns"), [(2, [1.0, 3.0, -2.0]), (60, [1.0, 2.0]), (60, [1e-9, 2e-9, 0])]
)
def test_an_axis_that_the_data_do_not_have_is_settled_at_once(n, columns):
    line = np.random.default_rng(0).normal(size=(n, 1)) @ [columns]
    *_, last = game_of(line + 7 * np.array(columns), n_neighbors=1)
    assert not last.warning
    assert last.iteration < 300
    long, none = np.linalg.svd(last.embedding, compute_uv=False)
    assert none < 1e-4 * long
    assert apart(last.embedding, components(line), True) < 1e-3


def test_what_does_not_go_together_is_told(many):
    assert list_affinities("pca") == ("inner_products",)
    for affinity in (*AFFINITIES, "lle"):
        words = f"{METHODS['pca'].title} cannot .*'{affinity}': choose auto"
        with pytest.raises(InputError, match=words):
            next(game_of(many, affinity=affinity, perplexity=5.0))
    with pytest.raises(InputError, match=r"inner_products.*choose auto or mixed"):
        next(game_of(many, "tsne", affinity="inner_products"))
    with pytest.raises(InputError, match="cannot be steered"):
        EmbeddingGame(method="pca", repulsion=3.0).fit(many)
    with pytest.raises(InputError, match="1 dimensions, not 2"):
        EmbeddingGame(method="pca").fit(many[:, :1])
    with pytest.raises(InputError, match="needs the rows"):
        next(play(build_edges(knn_graph(many, 5)), many[:, :2], Settings(method="pca")))
    game = game_of(many, "game")
    next(game)
    with pytest.raises(InputError, match="begin a new run"):
        game.send(Settings(method="pca"))


def test_sparse_rows_give_the_same_map(many):
    rows = np.where(many > 9, many, 0).astype(np.float32)
    game = EmbeddingGame(method="pca", init="random", random_state=0)
    found = game.fit_transform(sparse.csr_matrix(rows))
    assert apart(found, components(rows.astype(float)), True) < 1e-3
