"""What is drawn in and what steps out around chosen points."""

import numpy as np
import pytest

from napari_embedding_game.core.inspect.correction import correct_layout

RNG = np.random.default_rng(0)
N = 50
GROUP = np.repeat([0, 1], N)


@pytest.fixture
def torn():
    """Two groups; three points of each lie in the middle of the other."""
    embedding = RNG.normal(size=(2 * N, 2)).astype(np.float32)
    embedding[N:, 0] += 30.0
    embedding[:3, 0] += 30.0
    embedding[N : N + 3, 0] -= 30.0
    neighbors = np.array([RNG.choice(N, 10, False) + N * g for g in GROUP])
    return embedding, neighbors.astype(np.int32)


def test_neighbours_come_in_and_strangers_step_out_and_nobody_else_moves(torn):
    embedding, neighbors = torn
    before = embedding.copy()
    chosen = embedding[:, 0] < 15  # as with a lasso around the left one
    found = correct_layout(embedding, neighbors, chosen)
    assert np.array_equal(found.moved_in, [0, 1, 2])
    assert np.array_equal(found.moved_out, [N, N + 1, N + 2])
    middle = np.median(embedding[3:N], axis=0)
    away = np.linalg.norm(found.embedding - middle, axis=1)
    rim = np.quantile(np.linalg.norm(embedding[3:N] - middle, axis=1), 0.95)
    assert (away[:3] < rim).all()
    assert (away[N : N + 3] > rim).all()
    others = np.setdiff1d(np.arange(2 * N), [0, 1, 2, N, N + 1, N + 2])
    assert np.array_equal(found.embedding[others], before[others])
    assert np.array_equal(embedding, before)


def test_strangers_inside_step_out_where_they_are_not_chosen_too(torn):
    embedding, neighbors = torn
    chosen = (GROUP == 0) & (embedding[:, 0] < 15)
    found = correct_layout(embedding, neighbors, chosen)
    inside = np.linalg.norm(embedding[N : N + 3] - embedding[3:N].mean(0), axis=1) < 1
    assert set(np.flatnonzero(inside) + N) <= set(found.moved_out.tolist())
    assert np.array_equal(found.moved_in, [0, 1, 2])


@pytest.mark.parametrize("which", ["none", "all", "one", "strangers"])
def test_where_nothing_is_to_be_right_about_nothing_moves(torn, which):
    embedding, neighbors = torn
    neighbors[9] = 7  # it belongs to a stranger
    chosen = np.zeros(2 * N, bool)
    chosen[
        {"none": [], "all": slice(None), "one": [7], "strangers": [1, N + 1]}[which]
    ] = True
    found = correct_layout(embedding, neighbors, chosen)
    assert np.array_equal(found.embedding, embedding)
    assert len(found.moved_in) == len(found.moved_out) == 0


def test_a_stranger_on_a_single_spot_goes_home_and_not_onto_it(torn):
    embedding, neighbors = torn
    embedding[3:13] = embedding[3]
    neighbors[3:13] = np.arange(3, 13)
    chosen = np.isin(np.arange(2 * N), [*range(3, 13), N])  # N lies in that group
    found = correct_layout(embedding, neighbors, chosen)
    assert N in found.moved_out
    home = embedding[neighbors[N]].mean(axis=0)
    np.testing.assert_allclose(found.embedding[N], home, rtol=1e-4)
