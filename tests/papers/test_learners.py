"""Gradient descent is a Fenchel game."""

from itertools import islice

import numpy as np
import pytest

from napari_embedding_game.papers.learners import convergence_bound, descent_game


@pytest.mark.parametrize("n_rounds", [1, 10, 1000])
def test_gradient_descent_is_a_fenchel_game_and_stays_below_the_bound(n_rounds):
    """Theorem 6.20, the best response of the conjugate function, and Lemma 6.22."""
    rng = np.random.default_rng(0)
    A, least = rng.normal(size=(6, 6)), rng.normal(size=6)
    Q = A @ A.T + np.eye(6)
    inverse, distance = np.linalg.inv(Q), np.linalg.norm(least)
    slope = np.linalg.norm(Q, 2) * distance
    step = distance / (slope * np.sqrt(n_rounds))
    w = np.zeros(6)
    game = descent_game(w, step, lambda x: np.linalg.solve(inverse, x - least))
    own = []
    for x, _ in islice(game, n_rounds + 1):
        np.testing.assert_allclose(x, w, rtol=0, atol=1e-11)
        w = w - step * Q @ (w - least)
        own.append(x)
    away = np.mean(own[1:], axis=0) - least
    assert away @ Q @ away / 2 <= convergence_bound(distance, slope, n_rounds)
