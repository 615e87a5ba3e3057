"""Online learners do what Alg. 4 and 5 say, by minimisation over the ball."""

import numpy as np
import pytest
from scipy.optimize import minimize

from napari_embedding_game.papers.learners import (
    best_response,
    convergence_bound,
    follow_the_leader,
    follow_the_regularized_leader,
    mirror_descent,
    optimistic_descent,
    play_rounds,
)

START = np.full(5, 0.2)


@pytest.fixture
def seen():
    """What the other player did in 40 rounds, and the weights of the rounds."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 5)), rng.uniform(0.5, 2, 40)


def fixed(actions):
    """Play these actions whatever the other does."""
    for action in actions:
        _ = yield action
    yield None


def actions(learner, seen, prescient=False):
    losses, weights = seen
    rounds = play_rounds(learner, fixed(losses), weights, "x" if prescient else None)
    return np.array([own for own, _ in rounds])


def in_ball(radius):
    return lambda z: z * min(1.0, radius / np.linalg.norm(z))


def on_sphere(slope):
    """Least <slope, z> on the ball of radius 2."""
    return -2 * slope / np.linalg.norm(slope)


def least_in_ball(objective):
    inside = {"type": "ineq", "fun": lambda z: 4 - z @ z, "jac": lambda z: -2 * z}
    options = {"ftol": 1e-14, "maxiter": 500}
    return minimize(
        objective, np.full(5, 0.1), method="SLSQP", constraints=inside, options=options
    ).x


def ftl(t, found, losses, weights):
    return lambda z: z @ (weights @ losses)


def best(t, found, losses, weights):
    return lambda z: z @ losses[-1]


def ftrl(t, found, losses, weights):
    return lambda z: z @ (weights @ losses) + (z - START) @ (z - START) / 0.2


def omd(t, found, losses, weights):
    last = found[t - 1]
    return lambda z: z @ losses[-1] * weights[-1] + (z - last) @ (z - last) / 1.2


@pytest.mark.parametrize("prescient", [False, True])
@pytest.mark.parametrize(
    ("make", "loss"),
    [
        (lambda: follow_the_leader(on_sphere, np.zeros(5)), ftl),
        (lambda: best_response(on_sphere, np.zeros(5)), best),
        (lambda: follow_the_regularized_leader(START, 0.1, in_ball(2)), ftrl),
        (lambda: mirror_descent(START, 0.6, in_ball(2)), omd),
    ],
    ids=["FTL", "BestResp", "FTRL", "OMD"],
)
def test_each_minimises_what_the_paper_says(make, loss, prescient, seen):
    found = actions(make(), seen, prescient)
    for t in (1, 6, 39):
        n = t + prescient
        wanted = least_in_ball(loss(t, found, seen[0][:n], seen[1][:n]))
        np.testing.assert_allclose(found[t], wanted, atol=1e-5)


def test_optimistic_steps_count_the_change_twice():
    seen = np.array([[1.0], [3.0], [3.0]]), np.ones(3)
    found = actions(optimistic_descent(np.zeros(1), 1.0), seen)
    # -1, then -(2 * 3 - 1)
    np.testing.assert_array_equal(found.ravel(), [0, -1, -6])


# --- Regret


def regret(found, seen):
    """Weighted loss above that of the best fixed action in the ball."""
    losses, weights = seen
    total = weights @ losses
    own = np.sum(weights * np.sum(losses * found, axis=1))
    return own - total @ on_sphere(total)


@pytest.mark.parametrize("learner", [follow_the_leader, best_response])
def test_prescient_learners_have_no_regret(seen, learner):
    assert regret(actions(learner(on_sphere), seen, True), seen) <= 1e-9


# --- The Fenchel game


@pytest.mark.parametrize("n_rounds", [1, 10, 1000])
@pytest.mark.parametrize("seed", range(2))
def test_gradient_descent_is_a_fenchel_game_and_stays_below_the_bound(n_rounds, seed):
    """Theorem 6.20, the best response of the conjugate function, and Lemma 6.22."""
    rng = np.random.default_rng(seed)
    A, least = rng.normal(size=(6, 6)), rng.normal(size=6)
    Q = A @ A.T + np.eye(6)
    inverse, distance = np.linalg.inv(Q), np.linalg.norm(least)
    slope = np.linalg.norm(Q, 2) * distance
    step = distance / (slope * np.sqrt(n_rounds))
    w = np.zeros(6)
    answer = best_response(lambda x: np.linalg.solve(inverse, x - least))
    own = []
    for x, _ in play_rounds(
        mirror_descent(w, step), answer, np.ones(n_rounds + 1), "y"
    ):
        np.testing.assert_allclose(x, w, rtol=0, atol=1e-11)
        w = w - step * Q @ (w - least)
        own.append(x)
    away = np.mean(own[1:], axis=0) - least
    assert away @ Q @ away / 2 <= convergence_bound(distance, slope, n_rounds)
    assert convergence_bound(5, 4, 9) == 3 * 4 * 5 / (2 * 3)


def test_the_step_of_a_smooth_function_descends_within_its_bound():
    """Alg. 6 with 1 / (2 L): f(w_T) and f(mean) are within L R^2 / T of the minimum."""
    rng = np.random.default_rng(3)
    A, lowest = rng.normal(size=(8, 5)), rng.normal(size=5)
    C = A.T @ A
    smoothness, n_rounds = float(np.linalg.eigvalsh(C)[-1]), 60

    def f(w):
        return float((w - lowest) @ C @ (w - lowest)) / 2

    x = mirror_descent(START, 1 / (2 * smoothness))
    y = best_response(lambda w: C @ (w - lowest))
    found = np.array([w for w, _ in play_rounds(x, y, np.ones(n_rounds + 1), "y")])
    w = START
    for played in found:  # the game is gradient descent
        np.testing.assert_allclose(played, w, atol=1e-12)
        w = w - C @ (w - lowest) / (2 * smoothness)
    values = [f(w) for w in found]
    assert values == sorted(values, reverse=True)
    bound = smoothness * float((START - lowest) @ (START - lowest)) / n_rounds
    assert max(values[-1], f(found[1:].mean(axis=0))) <= bound
