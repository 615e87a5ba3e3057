import numpy as np
import pytest
import torch

from napari_embedding_game.core.dynamics.game import Game
from napari_embedding_game.core.dynamics.optimizer import Player
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.dynamics.schedule import resolve_schedule
from napari_embedding_game.core.dynamics.state import Problem
from napari_embedding_game.core.energy.objective import COME_BACK
from napari_embedding_game.core.settings import Settings

ETA_Y, ETA_Z = 0.03, 0.3


def algorithm_1(twin, y, z, repulsion, rates):
    """The paper's Alg. 1 with the energy of Eq. 3; yields y and z after each step."""
    y, z = y.clone().requires_grad_(), z.clone().requires_grad_()
    for rate in rates:
        y.grad = z.grad = None
        twin.game(y, z, repulsion).backward()
        with torch.no_grad():
            y -= rate * ETA_Y / (y.grad**2).mean().sqrt() * y.grad
            z += rate * ETA_Z / (z.grad**2).mean().sqrt() * z.grad
        yield y.detach().clone(), z.detach().clone()


def test_the_paper_schedule_plays_the_papers_algorithm(make_problem):
    problem = make_problem(120, 2, 1)
    settings = Settings(schedule="paper", repulsion=60, n_landmarks=10, max_iter=40)
    start = problem.y.numpy()
    game = play(problem.edges, start, settings, frame_iterations=1)
    first = next(game)
    y = torch.tensor(first.embedding, dtype=torch.float64)
    z = torch.tensor(first.landmarks, dtype=torch.float64)
    rates = [1] * 20 + [0.1] * 20
    literal = algorithm_1(problem.twin, y, z, 60 / 120, rates)
    for snapshot, (wanted_y, wanted_z) in zip(game, literal, strict=False):
        np.testing.assert_allclose(snapshot.embedding, wanted_y, atol=1e-3)
        np.testing.assert_allclose(snapshot.landmarks, wanted_z, atol=1e-3)
    assert snapshot.iteration == 40
    assert snapshot.finished


def test_the_fast_schedule_weakens_both_rates_and_the_repulsion(make_problem):
    problem = make_problem(120, 2, 1)
    settings = Settings(repulsion=60, n_landmarks=10, max_iter=20, momentum=0.0)
    schedule = resolve_schedule(settings)
    game = play(problem.edges, problem.y.numpy(), settings, frame_iterations=1)
    before = next(game)
    for i, after in enumerate(game):
        y = torch.tensor(before.embedding, dtype=torch.float64).requires_grad_()
        z = torch.tensor(before.landmarks, dtype=torch.float64).requires_grad_()
        problem.twin.game(y, z, 60 / 120 * schedule.repulsion_factor(i / 20)).backward()
        for found, old, down, eta in [
            (after.embedding, y, -1, schedule.learning_rate),
            (after.landmarks, z, 1, schedule.landmark_learning_rate),
        ]:
            step = down * eta * schedule.rate_factor(i / 20) * old.grad
            wanted = (old + step / (old.grad**2).mean().sqrt()).detach()
            np.testing.assert_allclose(found, wanted, atol=1e-3)
        before = after
    assert before.iteration == 20


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.9])
def test_the_compiled_step_is_that_of_torch(momentum):
    rng = torch.Generator().manual_seed(0)
    gradients = torch.randn(4, 1500, 2, generator=rng)
    scale = torch.rand(1500, generator=rng) + 0.5
    found, wanted = (Player(torch.zeros(1500, 2)) for _ in range(2))
    by_torch = wanted._step_by_torch  # as on a graphics card
    for gradient in gradients:
        by_torch(gradient / scale[:, None], 0.3, momentum)
        found.step(gradient, 0.3, momentum, scale)
    torch.testing.assert_close(found.positions, wanted.positions)
    assert found.positions.abs().max() > 0.1
    elsewhere = Player(torch.zeros(1500, 2, device="meta"))  # has no values
    elsewhere.step(gradients[0].to("meta"), 0.3, momentum, scale.to("meta"))
    assert (elsewhere.velocity is None) == (momentum == 0)


def test_a_landmark_that_comes_back_rests_where_it_is_put(make_problem):
    made, device = make_problem(100, 2, 9), torch.device("cpu")
    game = Game(Problem(edges=made.edges, layout=made.y.numpy(), device=device))
    steps = game.apply_and_play(Settings(approximation="mesh", n_landmarks=9))
    next(steps)
    width = float(made.y.abs().max())
    game.landmarks.positions[3] = 1e4
    game.landmarks.velocity = torch.zeros_like(game.landmarks.positions)
    game.landmarks.velocity[3] = 1e4
    for _ in range(COME_BACK + 1):
        next(steps)
    assert float(game.landmarks.positions[3].abs().max()) < 2 * width + 20
