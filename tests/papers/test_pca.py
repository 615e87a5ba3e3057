"""Gradient descent to the principal components."""

from itertools import islice

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from sklearn.decomposition import PCA

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.papers.pca import (
    START,
    low_rank_rows,
    principal_energy,
    principal_gradient,
    principal_steps,
)


@pytest.fixture
def X():
    """60 rows with standard deviations 5, 4, 1 ... around a mean that is not 0."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 8)) * [5, 4, 1, 1, 0.5, 0.5, 0.1, 0.1] + 7


def apart(layout, X):
    """How far from PCA, up to an orthogonal map, relative to PCA's length."""
    wanted = PCA(layout.shape[1], svd_solver="full").fit_transform(X)
    turn, _ = orthogonal_procrustes(layout, wanted)
    return np.linalg.norm(layout @ turn - wanted) / np.linalg.norm(wanted)


def after(n_steps, steps):
    return next(islice(steps, n_steps, None))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_gradient_is_that_of_the_formula(X, d):
    rng = np.random.default_rng(1)
    y = rng.normal(size=(60, d)) + 2
    C = np.eye(60) - 1 / 60
    wanted = -4 * C @ (X @ X.T - y @ y.T) @ C @ y
    np.testing.assert_allclose(principal_gradient(X, y), wanted, rtol=1e-10, atol=1e-8)


def test_the_gradient_is_that_of_the_loss(X):
    rng = np.random.default_rng(1)
    y, direction = rng.normal(size=(2, 60, 2))
    C = np.eye(60) - 1 / 60

    def loss(y):
        return np.linalg.norm(C @ (X @ X.T - y @ y.T) @ C) ** 2

    h = 1e-5
    slope = (loss(y + h * direction) - loss(y - h * direction)) / (2 * h)
    found = (principal_gradient(X, y) * direction).sum()
    np.testing.assert_allclose(found, slope, rtol=1e-6)
    np.testing.assert_allclose(principal_energy(X, y + 3), loss(y) - loss(0 * y))


@pytest.mark.parametrize("d", [1, 2])
def test_it_ends_at_the_principal_components(X, d):
    steps = principal_steps(X, d)
    start = next(steps)
    assert apart(start, X) > 0.5
    assert apart(after(300, steps), X) < 1e-8


def test_the_unit_and_the_place_of_the_start_mean_nothing(X):
    start = np.random.default_rng(2).normal(size=(60, 2))
    steps = principal_steps(X, start=start)
    first = next(steps)
    longest = np.linalg.norm(PCA(1).fit_transform(X)) / np.sqrt(60)
    assert first.std() == pytest.approx(START * longest, rel=0.01)
    moved = principal_steps(X, start=1e5 * start - 20)
    np.testing.assert_allclose(next(moved), first, rtol=1e-7, atol=1e-9)
    assert apart(after(300, steps), X) < 1e-8


def test_it_never_swings_away(X):
    lengths = [np.linalg.norm(y) for y in islice(principal_steps(X), 200)]
    assert np.isfinite(lengths).all()
    assert max(lengths) < 1.1 * lengths[-1]


def test_sparse_rows_give_the_same(X):
    dense = after(20, principal_steps(X))
    scattered = after(20, principal_steps(sparse.csr_matrix(X)))
    np.testing.assert_allclose(scattered, dense, rtol=1e-9)


def test_a_moved_cloud_gives_the_same(X):
    y = after(20, principal_steps(X))
    moved = after(20, principal_steps(X + 100))
    np.testing.assert_allclose(moved, y, rtol=1e-7, atol=1e-9)


def test_low_rank_rows_are_nearly_the_best(X):
    rows = low_rank_rows(X, 3, np.random.default_rng(0))
    assert rows.shape == (60, 3)
    centred = X - X.mean(axis=0)
    gram = centred @ centred.T
    left = np.linalg.norm(gram - rows @ rows.T)
    values = np.linalg.eigvalsh(gram)[:-3]
    assert left < 1.01 * np.linalg.norm(values)


def test_low_rank_rows_of_data_of_lower_rank_are_exact(X):
    flat = X[:, :3] @ np.random.default_rng(1).normal(size=(3, 40)) + 100
    rows = low_rank_rows(flat, 6, np.random.default_rng(0))
    centred = flat - flat.mean(axis=0)
    np.testing.assert_allclose(rows @ rows.T, centred @ centred.T, atol=1e-8)


def test_low_rank_steps_come_close(X):
    layout = after(300, principal_steps(X, 2, low_rank=3))
    assert apart(layout, X) < 0.01


def test_low_rank_points_the_same_way(X):
    rows = low_rank_rows(X, 3, np.random.default_rng(0))
    for y in islice(principal_steps(X), 1, 20):
        assert (principal_gradient(X, y) * principal_gradient(rows, y)).sum() > 0


def test_the_seed_decides(X):
    a, b, c = (after(5, principal_steps(X, random_state=s)) for s in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)


def test_layouts_are_copies(X):
    steps = principal_steps(X)
    start = next(steps)
    kept = start.copy()
    next(steps)
    np.testing.assert_array_equal(start, kept)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 9}, "from 1 to 8"),
        ({"n_components": 0}, "from 1 to 8"),
        ({"low_rank": 1}, "from 2"),
        ({"low_rank": 9}, "to 8"),
    ],
)
def test_numbers_out_of_range(X, options, message):
    with pytest.raises(InputError, match=message):
        next(principal_steps(X, **options))


def test_rows_without_use(X):
    with pytest.raises(InputError):
        next(principal_steps(np.ones((10, 3))))
    X[3, 2] = np.nan
    with pytest.raises(InputError, match="missing"):
        next(principal_steps(X))
