"""Energies. Values and gradients of each method: test_methods; the grid: test_mesh."""

import numpy as np
import pytest
import torch

from napari_embedding_game.core.energy import pair_loops
from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.methods import APPROXIMATIONS
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.energy.pressure import compute_labels_and_pressure
from napari_embedding_game.core.energy.torch_forces import TorchForces
from napari_embedding_game.core.threads import limit_threads

REPULSION = 0.7
EXACT = [name for name in APPROXIMATIONS if name != "mesh"]
"""Those that are what they say to the last digit; the grid: test_mesh.py."""
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-10}


def compiled(edges, **functions):
    return CompiledForces(edges, **functions)


def torch_whole(edges, **functions):
    return TorchForces(edges, torch.device("cpu"), **functions)


# What is compiled is compiled for what is played.
DTYPES = {compiled: np.float32, torch_whole: np.float64}


def difference(found, wanted):
    found, wanted = (torch.as_tensor(x, dtype=torch.float64) for x in (found, wanted))
    return float(torch.linalg.norm(found - wanted) / torch.linalg.norm(wanted))


@pytest.mark.parametrize("make_forces", [compiled, torch_whole])
def test_landmarks_beside_sampled_edges_climb_the_bound_of_the_game(
    make_problem, make_forces
):
    dtype = DTYPES[make_forces]
    problem = make_problem(100, 2, 9, dtype=dtype)
    forces = make_forces(problem.edges)
    beside = make_objective("sampled_edges", forces, REPULSION, 9)
    z = problem.z.clone().requires_grad_()
    problem.twin.game(problem.y, z, REPULSION).backward()
    climb = beside.energy_and_gradients(problem.y, problem.z)[2]
    assert difference(climb, z.grad) < TOLERANCE[dtype]


@pytest.mark.parametrize("kernel", ["cauchy", "gaussian"])
@pytest.mark.parametrize("make_forces", [compiled, torch_whole])
def test_with_a_landmark_on_each_point_a_logarithm_is_that_of_all_pairs(
    make_problem, make_forces, kernel
):
    dtype = DTYPES[make_forces]
    problem, within = make_problem(90, 2, 90, "fuzzy", dtype), TOLERANCE[dtype]
    forces = make_forces(problem.edges, kernel=kernel)
    of_game, of_all, of_points = (
        make_objective(approximation, forces, REPULSION, 90, aggregate="log")
        for approximation in ("landmarks", "exact", "sampled_landmarks")
    )
    y = problem.y / 4  # near enough to repel one another
    energy, gradient, climb = of_game.energy_and_gradients(y, y)
    wanted, wanted_gradient, _ = of_all.energy_and_gradients(y, y)
    assert energy == pytest.approx(wanted, rel=within)
    assert difference(gradient, wanted_gradient) < within
    assert float(climb.norm()) < within * float(gradient.norm())
    energy, gradient, _ = of_points.energy_and_gradients(y, y)
    assert energy == pytest.approx(wanted, rel=within)
    assert difference(gradient, wanted_gradient) < within
    if make_forces is compiled:
        heights = (
            compute_labels_and_pressure(each, y, y)[1] for each in (of_game, of_all)
        )
        np.testing.assert_allclose(*heights, rtol=0.05, atol=1e-3)


def averages_to(draw_energy, wanted, n_draws=300):
    draws = np.array([draw_energy(seed) for seed in range(n_draws)])
    assert draws.std() > 0
    error = draws.std() / np.sqrt(n_draws)
    return abs(draws.mean() - wanted) < 4 * error


@pytest.mark.parametrize("approximation", ["sampled_edges", "sampled_landmarks"])
def test_sampling_is_unbiased_for_the_sum_over_all_pairs(make_problem, approximation):
    problem = make_problem(30, 2, 4)
    forces = compiled(problem.edges)

    def energy(seed):
        objective = make_objective(approximation, forces, REPULSION, 4, seed)
        return objective.energy_and_gradients(problem.y, problem.z)[0]

    whole = float(problem.twin.all_pairs_energy(problem.y, REPULSION))
    if approximation == "sampled_edges":  # of different points, each 1 from itself
        whole -= REPULSION * len(problem.y)
    assert averages_to(energy, whole)


def test_all_partners_are_all_pairs(make_problem):
    problem = make_problem(40, 2, 4)
    forces = compiled(problem.edges)
    wanted = make_objective("exact", forces, 1.0, 4).energy_and_gradients(
        problem.y, problem.z
    )
    for n_partners in (39, 100):
        drawn = make_objective("sampled_edges", forces, 1.0, n_partners)
        energy, gradient, _ = drawn.energy_and_gradients(problem.y, problem.z)
        assert energy == pytest.approx(wanted[0], rel=1e-6)
        assert difference(gradient, wanted[1]) < 1e-6


@pytest.mark.parametrize("is_weighted", [False, True])
def test_no_pair_of_a_point_with_itself_is_summed(make_problem, is_weighted):
    problem = make_problem(40, 2, 4)
    weights = None
    if is_weighted:
        weights = np.random.default_rng(0).random((40, 40), np.float32)
        weights += weights.T
    found, wanted = (
        make_forces(problem.edges).repulsion_of_all_pairs(problem.y, weights)
        for make_forces in (torch_whole, compiled)
    )
    assert float(found[0]) == pytest.approx(wanted[0], rel=1e-5)
    assert difference(found[1], wanted[1]) < 1e-5


@pytest.mark.parametrize("n", [100, pair_loops.CHUNK, 3 * pair_loops.CHUNK + 1])
@pytest.mark.parametrize("d", [2, 3])
def test_any_number_of_threads_gives_the_same_bits(make_problem, monkeypatch, d, n):
    monkeypatch.setattr("napari_embedding_game.core.threads.PARALLEL_WORK", 0)
    problem = make_problem(n, d, 11)
    pairs = make_objective("sampled_edges", compiled(problem.edges), 1.0, 3).pairs

    forces = compiled(problem.edges)
    objective = make_objective("landmarks", forces, 1.0, 11)

    def sums(n_jobs):
        with limit_threads(n_jobs):
            yield from forces.kernel_sum_and_gradients(problem.y, problem.z)
            yield from (
                forces.attraction_gradient(problem.y),
                forces.attraction_energy(problem.y),
            )
            yield from forces.repulsion_of_sampled_pairs(problem.y, pairs)
            yield from forces.repulsion_of_all_pairs(problem.y)
            yield from compute_labels_and_pressure(objective, problem.y, problem.z)

    for others in zip(*(list(sums(n)) for n in (1, 2, 5)), strict=True):
        for other in others[1:]:
            np.testing.assert_array_equal(others[0], other)
