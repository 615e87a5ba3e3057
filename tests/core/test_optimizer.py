import numpy as np
import pytest
import torch

from napari_embedding_game.core import threads
from napari_embedding_game.core.dynamics.optimizer import Player, direction
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.dynamics.schedule import resolve_schedule
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.energy.pair_sums import CompiledForces
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


@pytest.mark.parametrize("affinity", ["uniform", "fuzzy"])
def test_without_momentum_it_is_the_papers_algorithm_step_for_step(
    make_problem, affinity
):
    problem = make_problem(120, 2, 10, affinity, np.float64)
    y, z = Player(problem.y.clone()), Player(problem.z.clone())
    objective = make_objective("landmarks", CompiledForces(problem.edges, 1), 0.5, 10)
    literal = algorithm_1(problem.twin, problem.y, problem.z, 0.5, [1] * 40)
    for wanted_y, wanted_z in literal:
        down, up = objective.gradients(y.places, z.places)
        y.step(down, -ETA_Y)
        z.step(up, ETA_Z)
        torch.testing.assert_close(y.places, wanted_y, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(z.places, wanted_z, rtol=1e-8, atol=1e-8)


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
        problem.twin.game(y, z, 60 / 120 * schedule.repulsion(i / 20)).backward()
        for found, old, down, eta in [
            (after.embedding, y, -1, schedule.learning_rate),
            (after.landmarks, z, 1, schedule.landmark_learning_rate),
        ]:
            step = down * eta * schedule.rate(i / 20) * old.grad
            wanted = (old + step / (old.grad**2).mean().sqrt()).detach()
            np.testing.assert_allclose(found, wanted, atol=1e-3)
        before = after
    assert before.iteration == 20


def one_player(gradients, rate, **options):
    """Where a player at 0 goes that sees these gradients one after the other."""
    player, places = Player(torch.zeros(1, 2)), []
    for gradient in gradients:
        player.step(torch.tensor([gradient]), rate, **options)
        places.append(player.places[0].tolist())
    return places


def test_a_step_is_as_long_as_the_rate_whatever_the_gradient():
    for scale in (1e-12, 1.0, 1e12):
        (place,) = one_player([[3 * scale, -4 * scale]], -0.5)
        assert np.sqrt(np.mean(np.square(place))) == pytest.approx(0.5, rel=1e-5)
        assert place[0] < 0 < place[1]


def test_paper_schedule():
    schedule = resolve_schedule(Settings(schedule="paper"))
    done = np.arange(schedule.n_iter) / schedule.n_iter
    rates = [schedule.rate(share) for share in done]
    assert rates == [1.0] * 3000 + [0.1] * 3000
    assert schedule.learning_rate == ETA_Y
    assert schedule.landmark_learning_rate == ETA_Z
    assert schedule.momentum == 0
    assert {schedule.repulsion(share) for share in done} == {1.0}


def test_fast_schedule_is_short_and_ends_slowly_at_the_full_repulsion():
    schedule = resolve_schedule(Settings())
    done = np.linspace(0, 1, 101)
    rates = [schedule.rate(share) for share in done]
    repulsion = [schedule.repulsion(share) for share in done]
    assert schedule.n_iter <= 500
    assert rates[0] == 1
    assert np.all(np.diff(rates) < 0)
    assert rates[-1] == pytest.approx(0.01)
    assert 0 < repulsion[0] < 1
    assert np.all(np.diff(repulsion) >= 0)
    assert repulsion[50:] == [1.0] * 51


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("is_scaled", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.9])
def test_the_compiled_step_is_that_of_torch(momentum, is_scaled, dtype):
    rng = torch.Generator().manual_seed(0)
    gradients = torch.randn(4, 1500, 2, generator=rng, dtype=torch.float64).to(dtype)
    scale = torch.rand(1500, 1, generator=rng).to(dtype) + 0.5 if is_scaled else None
    found, wanted = (Player(torch.zeros(1500, 2, dtype=dtype)) for _ in range(2))
    for gradient in gradients:
        found.step(gradient, 0.3, momentum, scale)
        wanted.take(direction(gradient, scale), 0.3, momentum)
    torch.testing.assert_close(found.places, wanted.places)
    assert found.places.abs().max() > 0.1


def test_a_step_has_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(threads, "PARALLEL_WORK", 0)
    gradients = torch.randn(8, 3 * 1024 + 1, 2)
    players = [Player(torch.zeros(3 * 1024 + 1, 2), n_jobs) for n_jobs in (1, 2)]
    for gradient in gradients:
        for player in players:
            player.step(gradient, 0.3, momentum=0.9)
    assert torch.equal(players[0].places, players[1].places)
