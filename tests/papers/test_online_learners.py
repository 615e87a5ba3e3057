import numpy as np
import pytest
import torch

from napari_embedding_game.papers.learners import (
    Average,
    BestResponsePlus,
    FollowTheLeader,
    MirrorDescent,
    OptimisticDescent,
    RegularizedLeader,
    convergence_bound,
    in_ball,
    play,
)

ROUNDS = 40


@pytest.fixture
def seen():
    """What the other player did in some rounds, and the weights of the rounds."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(ROUNDS, 5)), rng.uniform(0.5, 2, ROUNDS)


def actions(learner, seen):
    """Let a learner meet an opponent that plays a fixed sequence."""
    found = []
    for other, weight in zip(*seen, strict=True):
        if learner.prescient:
            learner.observe(weight, other)
        found.append(learner.act())
        if not learner.prescient:
            learner.observe(weight, other)
    return np.array(found)


def on_sphere(slope):
    """Least <slope, z> on the ball of radius 2."""
    return -2 * slope / np.linalg.norm(slope)


def least_in_ball(objective):
    """Minimise over the ball of radius 2 numerically, from several starts."""
    from scipy.optimize import minimize

    inside = {"type": "ineq", "fun": lambda z: 4 - z @ z, "jac": lambda z: -2 * z}
    options = {"ftol": 1e-14, "maxiter": 500}
    found = minimize(
        objective, np.full(5, 0.1), method="SLSQP", constraints=inside, options=options
    )
    return found.x


# --- Each does what Alg. 4 and 5 say, by numerical minimisation over the ball


@pytest.mark.parametrize("prescient", [False, True])
def test_ftl_minimises_the_sum_of_losses(seen, prescient):
    learner = FollowTheLeader(on_sphere, np.zeros(5), prescient=prescient)
    found = actions(learner, seen)
    losses, weights = seen
    for t in (1, 2, 9, 30):
        n = t + prescient
        total = weights[:n] @ losses[:n]
        wanted = least_in_ball(lambda z, total=total: z @ total)
        np.testing.assert_allclose(found[t], wanted, atol=1e-5)
    if not prescient:
        np.testing.assert_array_equal(found[0], np.zeros(5))


def test_best_response_minimises_the_loss_of_the_round(seen):
    found = actions(BestResponsePlus(on_sphere), seen)
    for t in (0, 3, 17):
        wanted = least_in_ball(lambda z, t=t: z @ seen[0][t])
        np.testing.assert_allclose(found[t], wanted, atol=1e-5)


@pytest.mark.parametrize("prescient", [False, True])
def test_ftrl_minimises_losses_and_regulariser(seen, prescient):
    start = np.full(5, 0.2)
    learner = RegularizedLeader(start, 0.1, in_ball(2), prescient=prescient)
    found = actions(learner, seen)
    losses, weights = seen
    for t in (0, 5, 39):
        n = t + prescient
        total = weights[:n] @ losses[:n]
        wanted = least_in_ball(
            lambda z, total=total: z @ total + (z - start) @ (z - start) / 0.2
        )
        np.testing.assert_allclose(found[t], wanted, atol=1e-5)


@pytest.mark.parametrize("prescient", [False, True])
def test_omd_minimises_the_last_loss_and_the_divergence(seen, prescient):
    learner = MirrorDescent(np.full(5, 0.2), 0.6, in_ball(2), prescient=prescient)
    found = actions(learner, seen)
    losses, weights = seen
    assert np.isclose(np.linalg.norm(found, axis=1), 2).any()  # the ball matters
    for t in (1, 6, 39):
        slope = weights[t - 1 + prescient] * losses[t - 1 + prescient]
        before = found[t - 1]
        wanted = least_in_ball(
            lambda z, slope=slope, before=before: (
                z @ slope + (z - before) @ (z - before) / 1.2
            )
        )
        np.testing.assert_allclose(found[t], wanted, atol=1e-5)


def test_a_prescient_learner_is_one_round_ahead(seen):
    for kind in (MirrorDescent, RegularizedLeader):
        behind = actions(kind(np.zeros(5), 0.3), seen)
        ahead = actions(kind(np.zeros(5), 0.3, prescient=True), seen)
        np.testing.assert_array_equal(ahead[:-1], behind[1:])


def test_optimistic_steps_count_the_change_twice():
    learner = OptimisticDescent(np.zeros(1), 1.0)
    found = actions(learner, (np.array([[1.0], [3.0], [3.0]]), np.ones(3)))
    # -1, then -(2 * 3 - 1)
    np.testing.assert_array_equal(found.ravel(), [0, -1, -6])


# --- Regret


def regret(found, seen):
    """Weighted loss above that of the best fixed action in the ball."""
    losses, weights = seen
    total = weights @ losses
    own = np.sum(weights * np.sum(losses * found, axis=1))
    return own - total @ on_sphere(total)


@pytest.mark.parametrize(
    "learner",
    [
        FollowTheLeader(on_sphere, prescient=True),
        BestResponsePlus(on_sphere),
    ],
)
def test_prescient_learners_have_no_regret(seen, learner):
    assert regret(actions(learner, seen), seen) <= 1e-9


def test_the_regret_of_omd_is_bounded(seen):
    """Lemma 6.21."""
    losses, weights = seen
    step = 0.3
    found = actions(MirrorDescent(np.zeros(5), step, in_ball(2)), seen)
    steepness = np.sum((weights[:, None] * losses) ** 2)
    assert regret(found, seen) <= 2**2 / (2 * step) + step / 2 * steepness


def test_optimism_has_less_regret_when_losses_change_slowly():
    angle = np.linspace(0, 4, 400)
    losses = np.column_stack([np.cos(angle), np.sin(angle)])
    slow = losses, np.ones(400)
    plain = actions(MirrorDescent(np.zeros(2), 0.05, in_ball(2)), slow)
    hopeful = actions(OptimisticDescent(np.zeros(2), 0.05, in_ball(2)), slow)
    assert regret(hopeful, slow) < regret(plain, slow)


# --- The Fenchel game


def quadratic(seed=0, n=6):
    """f, its gradient from f and from the conjugate, and its minimum."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    Q = A @ A.T + np.eye(n)
    least = rng.normal(size=n)
    inverse = np.linalg.inv(Q)
    return (
        lambda w: (w - least) @ Q @ (w - least) / 2,
        lambda w: Q @ (w - least),
        lambda x: np.linalg.solve(inverse, x - least),
        least,
        np.linalg.norm(Q, 2),
    )


def test_gradient_descent_is_a_fenchel_game_step_for_step():
    """Theorem 6.20, the best response worked out from the conjugate function."""
    _, gradient, from_conjugate, least, smoothness = quadratic()
    step = 1 / (2 * smoothness)
    w = np.zeros_like(least)
    mean = Average()
    game = play(MirrorDescent(w, step), BestResponsePlus(from_conjugate), np.ones(200))
    for each in game:
        np.testing.assert_allclose(each.x, w, rtol=0, atol=1e-12)
        np.testing.assert_allclose(each.mean_x, mean.add(1, w), rtol=0, atol=1e-12)
        w = w - step * gradient(w)


@pytest.mark.parametrize("n_rounds", [1, 3, 10, 100, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_the_mean_stays_below_the_bound(n_rounds, seed):
    """Lemma 6.22."""
    value, _, from_conjugate, least, smoothness = quadratic(seed)
    distance = np.linalg.norm(least)
    slope = smoothness * distance
    step = distance / (slope * np.sqrt(n_rounds))
    x = MirrorDescent(np.zeros_like(least), step)
    rounds = [*play(x, BestResponsePlus(from_conjugate), np.ones(n_rounds + 1))]
    mean = np.mean([each.x for each in rounds[1:]], axis=0)
    assert value(mean) <= convergence_bound(distance, slope, n_rounds)


@pytest.mark.parametrize("prescient", ["x", "y", None])
def test_who_sees_what(prescient):
    order = []

    class Player:
        def __init__(self, name):
            self.name = name
            self.prescient = name == prescient

        def act(self):
            order.append(f"{self.name} acts")
            return np.array([ord(self.name)])

        def observe(self, weight, other):
            order.append(f"{self.name} sees {chr(other[0])}")

    (only,) = play(Player("x"), Player("y"), [2.0])
    assert (only.x, only.y) == (ord("x"), ord("y"))
    assert sorted(order) == ["x acts", "x sees y", "y acts", "y sees x"]
    if prescient == "x":
        assert order.index("x sees y") < order.index("x acts")
    if prescient == "y":
        assert order.index("y sees x") < order.index("y acts")
    if prescient is None:
        assert max(map(order.index, ["x acts", "y acts"])) == 1


def test_two_prescient_players_wait_for_each_other():
    players = (BestResponsePlus(on_sphere) for _ in "ab")
    with pytest.raises(ValueError, match="only one"):
        next(play(*players, [1.0]))


def test_weighted_means(seen):
    values, weights = seen
    mean = Average()
    for value, weight in zip(values, weights, strict=True):
        found = mean.add(weight, value)
    np.testing.assert_allclose(found, np.average(values, axis=0, weights=weights))
    assert found is not values[0]


def test_learners_move_tensors():
    learner = MirrorDescent(torch.zeros(3, 2), 0.5)
    learner.observe(1.0, torch.ones(3, 2))
    torch.testing.assert_close(learner.act(), torch.full((3, 2), -0.5))
