"""PCA by attraction and repulsion as a member of the family."""

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
from napari_embedding_game.core.graph.choices import affinity_names
from napari_embedding_game.core.graph.edges import edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.settings import Settings, affinities, resolve
from napari_embedding_game.papers.pca import LOW_RANK, SPREAD

NAMES = ["pca", "pca_low_rank"]


@pytest.fixture(scope="module")
def X():
    """250 rows with standard deviations 5, 4, 2, 1 ... around a mean that is not 0."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(250, 40)) * [5, 4, 2, *[1] * 37] + 7


def components(X, d):
    return PCA(d, svd_solver="full").fit_transform(X)


def apart(found, wanted):
    """How far two layouts are, up to an orthogonal map and one common scale."""
    found = found.astype(np.float64)
    turn, overlap = orthogonal_procrustes(found, wanted)
    found = found @ turn * overlap / np.linalg.norm(found) ** 2
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def game_of(
    X, method="pca", affinity="auto", n_components=2, n_neighbors=15, **settings
):
    chosen = resolve(
        Settings(
            method=method,
            affinity=affinity,
            n_components=n_components,
            n_neighbors=n_neighbors,
            **settings,
        )
    )
    placed = pipeline.place(pipeline.neighbors(X, chosen), X, chosen)
    return pipeline.begin(*placed, chosen)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_map_is_pca_up_to_one_scale(X, d, unit):
    found = EmbeddingGame(d, method="pca", random_state=0).fit_transform(unit * X)
    wanted = components(X, d)
    assert apart(found, wanted) < 1e-3
    longest = np.linalg.svd(found - found.mean(axis=0), compute_uv=False)[0]
    assert longest / np.sqrt(len(X)) == pytest.approx(SPREAD, rel=0.02)


@pytest.mark.parametrize("init", ["random", "spectral", "pca"])
def test_the_map_of_the_digits_is_pca_from_every_start(digits, init):
    game = EmbeddingGame(method="pca", init=init, random_state=0)
    assert apart(game.fit_transform(digits[0]), components(digits[0], 2)) < 1e-3
    assert len(np.unique(game.labels_)) > 190
    assert np.isnan(game.pressure_).all()
    assert game.affinity_ == "inner_products"
    assert game.repulsion_ == 1.0
    assert game.n_iter_ < 500


def test_low_rank_is_pca_of_data_of_low_rank(X):
    rng = np.random.default_rng(1)
    flat = X @ rng.normal(size=(40, LOW_RANK)) @ rng.normal(size=(LOW_RANK, 60))
    found = EmbeddingGame(method="pca_low_rank", random_state=0).fit_transform(flat)
    assert apart(found, components(flat, 2)) < 1e-3


def test_low_rank_is_nearly_pca_of_the_digits(digits):
    game = EmbeddingGame(method="pca_low_rank", random_state=0)
    assert apart(game.fit_transform(digits[0]), components(digits[0], 2)) < 0.03


def test_the_energy_is_the_loss_of_pca_without_its_constant(X):
    game = EmbeddingGame(method="pca", random_state=0).fit(X)
    eigenvalues = np.linalg.eigvalsh(np.cov(X.T) * (len(X) - 1))
    assert game.energy_ == pytest.approx(-(eigenvalues[-2:] ** 2).sum(), rel=1e-6)


@pytest.mark.parametrize("method", NAMES)
def test_points_are_seen_to_move_and_landmarks_to_settle(X, method):
    shown = list(game_of(X, method, n_landmarks=20))
    assert [s.iteration for s in shown[:3]] == [0, 5, 10]
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


def test_sparse_rows_give_the_same_map(X):
    rows = np.where(X > 9, X, 0).astype(np.float32)
    dense = EmbeddingGame(method="pca", init="random", random_state=0)
    scattered = dense.fit_transform(sparse.csr_matrix(rows))
    assert apart(scattered, components(rows.astype(float), 2)) < 1e-3


def test_points_that_have_not_settled_are_told(X):
    *_, last = game_of(X, max_iter=12)
    assert "still moving after 12 iterations" in last.warning
    assert last.iteration == 112


def test_a_long_first_component_does_not_pass_for_the_whole():
    """On the way the second is so short that the energy hardly changes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6)) * [30, 3, 0.1, 0.1, 0.1, 0.1]
    *_, last = game_of(X, max_iter=3000)
    assert not last.warning
    assert apart(last.embedding, components(X, 2)) < 1e-3


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize(
    ("n", "columns"), [(2, [1.0, 3.0, -2.0]), (60, [1.0, 2.0]), (60, [1e-9, 2e-9, 0])]
)
def test_an_axis_that_the_data_do_not_have_is_settled_at_once(method, n, columns):
    line = np.random.default_rng(0).normal(size=(n, 1)) @ [columns]
    *_, last = game_of(line + 7 * np.array(columns), method, n_neighbors=1)
    assert not last.warning
    assert last.iteration < 300
    long, none = np.linalg.svd(last.embedding, compute_uv=False)
    assert none < 1e-4 * long
    assert apart(last.embedding, components(line, 2)) < 1e-3


# --- What does not go together


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("affinity", sorted(set(affinity_names()) - {"inner_products"}))
def test_pca_has_no_other_edges(X, method, affinity):
    assert affinities(method) == ("inner_products",)
    words = f"{METHODS[method].title} cannot .*'{affinity}': choose auto"
    with pytest.raises(InputError, match=words):
        EmbeddingGame(
            method=method, method_params={"affinity": affinity, "perplexity": 5.0}
        ).fit(X)


@pytest.mark.parametrize("method", ["game", "tsne"])
def test_no_other_method_has_inner_products(X, method):
    assert "inner_products" not in affinities(method)
    with pytest.raises(InputError, match=r"inner_products.*choose auto or mixed"):
        game_of(X, method, "inner_products")


def test_a_repulsion_of_ones_own_is_refused(X):
    with pytest.raises(InputError, match="cannot be steered"):
        EmbeddingGame(method="pca", repulsion=3.0).fit(X)


def test_more_dimensions_than_the_data_have(X):
    with pytest.raises(InputError, match="1 dimensions, not 2"):
        EmbeddingGame(method="pca_low_rank").fit(X[:, :1])


def test_edges_without_rows_are_named(X):
    graph = knn_graph(X, 5, n_jobs=1)
    with pytest.raises(InputError, match="needs the rows"):
        next(play(edges(graph), X[:, :2], Settings(method="pca")))


def test_a_running_game_does_not_become_pca(X):
    game = game_of(X, "game")
    next(game)
    with pytest.raises(InputError, match="begin a new run"):
        game.send(Settings(method="pca"))
