import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_embedding_game.core.energy import pair_loops
from napari_embedding_game.core.energy.methods import APPROXIMATIONS
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.energy.pair_sums import CompiledForces, TorchForces
from napari_embedding_game.core.energy.pressure import pressure
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import Edges

REPULSION = 0.7
EXACT = [name for name in APPROXIMATIONS if name != "mesh"]
"""Those that are what they say to the last digit; the grid: test_mesh.py."""
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-10}


def compiled(edges, **functions):
    return CompiledForces(edges, n_jobs=1, **functions)


def torch_whole(edges, **functions):
    return TorchForces(edges, torch.device("cpu"), **functions)


def twin_energy(problem, objective, y, z):
    total = problem.twin.sum_of(objective, y, z)
    return problem.twin.attraction(y) + REPULSION * total


def difference(found, wanted):
    found, wanted = (torch.as_tensor(x, dtype=torch.float64) for x in (found, wanted))
    return float(torch.linalg.norm(found - wanted) / torch.linalg.norm(wanted))


@pytest.mark.parametrize(("d", "dtype"), [(2, np.float32), (3, np.float64)])
@pytest.mark.parametrize("make_forces", [compiled, torch_whole])
@pytest.mark.parametrize("approximation", EXACT)
def test_value_and_both_gradients_are_those_of_the_papers_formula(
    make_problem, approximation, make_forces, d, dtype
):
    problem = make_problem(pair_loops.CHUNK + 5, d, 13, "uniform", dtype)
    objective = make_objective(
        approximation, make_forces(problem.edges), REPULSION, 13, 3
    )
    energy, y_gradient, z_gradient = objective.evaluate(problem.y, problem.z)
    y = problem.y.double().requires_grad_()
    z = problem.z.double().requires_grad_()
    wanted = twin_energy(problem, objective, y, z)
    wanted.backward()
    assert y_gradient.dtype == z_gradient.dtype == problem.y.dtype
    assert difference(energy, wanted.detach()) < TOLERANCE[dtype]
    assert difference(y_gradient, y.grad) < TOLERANCE[dtype]
    if approximation == "landmarks":
        assert difference(z_gradient, z.grad) < TOLERANCE[dtype]


@pytest.mark.parametrize("make_forces", [compiled, torch_whole])
def test_landmarks_beside_sampled_edges_climb_the_bound_of_the_game(
    make_problem, make_forces
):
    problem = make_problem(100, 2, 9, dtype=np.float64)
    forces = make_forces(problem.edges)
    beside = make_objective("sampled_edges", forces, REPULSION, 9)
    z = problem.z.clone().requires_grad_()
    problem.twin.game(problem.y, z, REPULSION).backward()
    assert difference(beside.evaluate(problem.y, problem.z)[2], z.grad) < 1e-10


@pytest.mark.parametrize("kernel", ["cauchy", "gaussian"])
@pytest.mark.parametrize("make_forces", [compiled, torch_whole])
def test_with_a_landmark_on_each_point_a_logarithm_is_that_of_all_pairs(
    make_problem, make_forces, kernel
):
    problem = make_problem(90, 2, 90, "fuzzy", np.float64)
    forces = make_forces(problem.edges, kernel=kernel)
    of_game, of_all = (
        make_objective(approximation, forces, REPULSION, 90, aggregate="log")
        for approximation in ("landmarks", "exact")
    )
    y = problem.y / 4  # near enough to repel one another
    energy, gradient, climb = of_game.evaluate(y, y)
    wanted, wanted_gradient, _ = of_all.evaluate(y, y)
    assert energy == pytest.approx(wanted, rel=1e-10)
    assert difference(gradient, wanted_gradient) < 1e-10
    assert float(climb.norm()) < 1e-10
    np.testing.assert_allclose(
        pressure(of_game, y, y)[1], pressure(of_all, y, y)[1], rtol=0.05, atol=1e-3
    )


def test_far_points_keep_a_logarithm(make_problem):
    problem = make_problem(90, 2, 5, "fuzzy", np.float64)
    objective = make_objective(
        "landmarks", compiled(problem.edges), REPULSION, 5, aggregate="log"
    )
    y, z = 1e3 * problem.y, 1e3 * problem.z
    assert float(objective.sums(y, z).total) < 90
    energy, gradient, _ = objective.evaluate(y, z)
    assert math.isfinite(energy)
    assert torch.isfinite(gradient).all()


def exact_pairs(y):
    return float((1 / (1 + torch.cdist(y, y) ** 2)).sum())


def ring(n):
    """Edges that matter to none of the landmark sums."""
    indptr = np.arange(n + 1, dtype=np.uint32)
    indices = ((np.arange(n) + 1) % n).astype(np.uint32)
    return Edges(indptr, indices, np.ones(n))


@given(
    n=st.integers(2, 40),
    n_landmarks=st.integers(1, 40),
    d=st.sampled_from([2, 3]),
    width=st.floats(1e-3, 1e3),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=100)
def test_landmarks_never_exceed_the_sum_over_all_pairs(
    twin, n, n_landmarks, d, width, seed
):
    rng = np.random.default_rng(seed)
    y = torch.tensor(rng.normal(size=(n, d)) * width)
    z = torch.tensor(rng.normal(size=(n_landmarks, d)) * width)
    assert twin.bound_of(compiled(ring(n)), y, z) <= exact_pairs(y) * (1 + 1e-9)


def averages_to(draw_energy, wanted, n_draws=300):
    draws = np.array([draw_energy(seed) for seed in range(n_draws)])
    assert draws.std() > 0
    error = draws.std() / np.sqrt(n_draws)
    return abs(draws.mean() - wanted) < 4 * error


@pytest.mark.parametrize("approximation", ["sampled_edges", "sampled_landmarks"])
def test_sampling_is_unbiased_for_the_sum_over_all_pairs(make_problem, approximation):
    problem = make_problem(30, 2, 4, dtype=np.float64)
    forces = compiled(problem.edges)

    def energy(seed):
        objective = make_objective(approximation, forces, REPULSION, 4, seed)
        return objective.evaluate(problem.y, problem.z)[0]

    whole = float(problem.twin.true_energy(problem.y, REPULSION))
    if approximation == "sampled_edges":  # of different points, each 1 from itself
        whole -= REPULSION * len(problem.y)
    assert averages_to(energy, whole)


def test_every_point_draws_as_many_partners_as_there_are_landmarks(make_problem):
    problem = make_problem(90, 2, 4)
    objective = make_objective("sampled_edges", compiled(problem.edges), 1.0, 7)
    heads, tails = problem.twin.ends_of(objective.pairs)
    assert heads.shape == (7, 90)
    assert (np.bincount(np.concatenate([heads, tails]).ravel()) == 2 * 7).all()
    assert (heads != tails).all()


def test_all_partners_are_all_pairs(make_problem):
    problem = make_problem(40, 2, 4, dtype=np.float64)
    forces = compiled(problem.edges)
    wanted = make_objective("exact", forces, 1.0, 4).evaluate(problem.y, problem.z)
    for n_partners in (39, 100):
        drawn = make_objective("sampled_edges", forces, 1.0, n_partners)
        energy, gradient, _ = drawn.evaluate(problem.y, problem.z)
        assert energy == pytest.approx(wanted[0], rel=1e-12)
        assert torch.allclose(gradient, wanted[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("approximation", ["sampled_edges", "sampled_landmarks"])
def test_one_point_alone_has_nobody_to_be_pushed_by(approximation):
    alone = Edges(np.zeros(2, np.uint32), np.zeros(0, np.uint32), np.zeros(0))
    y = torch.zeros(1, 2, dtype=torch.float64)
    objective = make_objective(approximation, compiled(alone), 1.0, 5)
    assert torch.equal(objective.evaluate(y, y.clone())[1], y)


def test_sampled_landmarks_stay_on_their_points(make_problem):
    problem = make_problem(40, 2, 6)
    objective = make_objective("sampled_landmarks", compiled(problem.edges), 1.0, 6)
    objective.follow(problem.y, problem.z)
    assert len(objective.members.unique()) == 6
    assert torch.equal(problem.z, problem.y[objective.members])


@pytest.mark.parametrize("n", [100, pair_loops.CHUNK, 3 * pair_loops.CHUNK + 1])
@pytest.mark.parametrize("d", [2, 3])
def test_any_number_of_threads_gives_the_same_bits(make_problem, monkeypatch, d, n):
    monkeypatch.setattr("napari_embedding_game.core.threads.PARALLEL_WORK", 0)
    problem = make_problem(n, d, 11)
    pairs = make_objective("sampled_edges", compiled(problem.edges), 1.0, 3).pairs

    def sums(n_jobs):
        forces = CompiledForces(problem.edges, n_jobs)
        yield from forces.repel(problem.y, problem.z)
        yield from (forces.attract(problem.y), forces.attraction_energy(problem.y))
        yield from forces.pair_repulsion(problem.y, pairs)
        yield from forces.all_pairs(problem.y)
        objective = make_objective("landmarks", forces, 1.0, 11)
        yield from pressure(objective, problem.y, problem.z)

    for others in zip(*map(sums, (1, 2, 5)), strict=True):
        for other in others[1:]:
            np.testing.assert_array_equal(others[0], other)


def test_an_unknown_method_is_named(make_problem):
    problem = make_problem(20, 2, 2)
    with pytest.raises(InputError, match="'chess'"):
        make_objective("chess", compiled(problem.edges), 1.0, 2)
