"""Sums by a grid beside the sums over all pairs of the points themselves."""

import numpy as np
import pytest
import torch

from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.mesh_repulsion import (
    WIDER,
    Mesh,
    required_spacing,
)
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.energy.objective import COME_BACK, make_objective
from napari_embedding_game.core.energy.pair_functions import KERNELS
from napari_embedding_game.core.energy.torch_forces import TorchMesh
from napari_embedding_game.core.errors import InputError

N = 500
OFFERED = sorted({m.kernel for m in METHODS.values() if "mesh" in m.approximations})


def shapes():
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, N)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    clusters = rng.integers(0, 8, N)
    return {
        "cloud": rng.normal(size=(N, 2)) * 3,
        "wide cloud": rng.normal(size=(N, 2)) * 15,
        "tiny cloud": rng.normal(size=(N, 2)) * 1e-4,
        "clusters": rng.normal(size=(8, 2))[clusters] * 20 + rng.normal(size=(N, 2)),
        "wide clusters": rng.normal(size=(8, 2))[clusters] * 60
        + rng.normal(size=(N, 2)),
        "ring": 10 * ring,
        "line": np.column_stack([np.linspace(0, 40, N), np.zeros(N)]),
        "far away": 1e3 + rng.normal(size=(N, 2)) * 3,
        "one far out": np.vstack([rng.normal(size=(N - 1, 2)) * 3, [[100.0, 0.0]]]),
        "on a line": np.outer(rng.normal(size=N) * 10, [1, 0]),
        "in space": rng.normal(size=(N, 3)) * 4,
        "in space, flat": rng.normal(size=(N, 3)) * [5, 0.1, 2],
    }


SHAPES = shapes()
ERRORS = {
    "ring": 0.025,
    "wide clusters": 0.015,
    "in space": 0.03,
    "in space, flat": 0.03,
}
"""Of the gradient, relative: where forces nearly cancel, and where nodes are few."""
USUAL_ERROR = 0.008


def all_pairs(kernel, y):
    y = torch.tensor(y, dtype=torch.float64, requires_grad=True)
    total = kernel.value(torch.pdist(y).square()).sum() * 2
    total.backward()
    return float(total.detach()), y.grad.numpy()


def off(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", OFFERED)
@pytest.mark.parametrize("shape", SHAPES)
def test_sum_and_gradient_are_those_of_all_pairs(shape, kernel, dtype):
    y = SHAPES[shape]
    wanted, slope = all_pairs(KERNELS[kernel], y)
    total, gradient = Mesh(KERNELS[kernel])(y.astype(dtype))
    assert gradient.dtype == dtype
    assert total == pytest.approx(wanted, rel=5e-4)
    assert off(gradient, slope) < ERRORS.get(shape, USUAL_ERROR)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_pushes_points_off_a_line(dtype):
    y = SHAPES["on a line"].astype(dtype)
    by_torch = TorchMesh(Mesh(KERNELS["cauchy"]), torch.device("cpu"))
    for gradient in (Mesh(KERNELS["cauchy"])(y)[1], by_torch(torch.tensor(y))[1]):
        assert (gradient[:, 1] == 0).all()
        assert (gradient[:, 0] != 0).all()


@pytest.mark.parametrize("d", [2, 3])
def test_one_component_far_off_leaves_the_others_their_fine_grid(d):
    """And each feels its own points."""
    rng = np.random.default_rng(0)
    near, far = rng.normal(size=(N, d)) * 4, rng.normal(size=(60, d))
    far[:, 0] += 3e4
    y = np.vstack([near, far])[rng.permutation(N + 60)]
    mesh = Mesh(KERNELS["cauchy"])
    total, gradient = mesh(y.astype(np.float32))
    wanted, slope = all_pairs(KERNELS["cauchy"], y)
    assert total == pytest.approx(wanted, rel=5e-4)
    assert off(gradient, slope) < 0.03
    assert required_spacing(y) < WIDER


def test_points_that_are_nowhere_are_refused():
    y = np.full((40, 2), np.nan, np.float32)
    with pytest.raises(InputError, match="run off the map"):
        Mesh(KERNELS["cauchy"])(y)


@pytest.mark.parametrize("span", [300, 4_000])
def test_a_wide_map_in_space_has_the_forces_of_all_pairs(make_problem, span):
    problem = make_problem(200, 3, 9)
    wide = problem.y * (span / float(np.ptp(problem.y.numpy(), axis=0).max()))
    forces = CompiledForces(problem.edges)
    found, wanted = (
        make_objective(way, forces, 1.0, 9).energy_and_gradients(wide, problem.z)
        for way in ("mesh", "exact")
    )
    assert found[0] == pytest.approx(wanted[0], rel=1e-3)
    assert off(found[1].numpy(), wanted[1].numpy()) < 0.03


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_points_and_points_in_one_place(n, dtype):
    kernel = KERNELS["cauchy"]
    total, gradient = Mesh(kernel)(np.ones((n, 2), dtype))
    assert total == pytest.approx(n * (n - 1), abs=1e-9)
    np.testing.assert_allclose(gradient, 0, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_torch_does_the_same(shape):
    y, kernel = SHAPES[shape], KERNELS["cauchy"]
    mesh = Mesh(kernel)
    total, gradient = mesh(y)
    found = TorchMesh(Mesh(kernel), torch.device("cpu"))(torch.tensor(y))
    assert float(found[0]) == pytest.approx(total, rel=1e-10)
    assert off(found[1].numpy(), gradient) < 1e-7


@pytest.mark.parametrize(
    "name", [n for n, m in METHODS.items() if "mesh" in m.approximations]
)
def test_the_energy_is_that_of_all_pairs(make_problem, name):
    member = METHODS[name]
    functions = member.attraction, member.kernel
    problem = make_problem(200, 2, 9, member.affinity, profiles=functions)
    forces = CompiledForces(problem.edges, *functions)
    repulsion = member.lambda_scale(problem.edges) * member.repulsion
    found, wanted = (
        make_objective(
            way, forces, repulsion, 9, 0, member.aggregate
        ).energy_and_gradients(problem.y, problem.z)
        for way in ("mesh", "exact")
    )
    assert found[0] == pytest.approx(wanted[0], rel=1e-3)
    assert off(found[1].numpy(), wanted[1].numpy()) < 0.05


@pytest.mark.parametrize("approximation", ["mesh", "exact", "sampled_edges"])
def test_lost_landmarks_that_only_tile_come_back_onto_points(
    make_problem, approximation
):
    problem = make_problem(100, 2, 9)
    forces = CompiledForces(problem.edges)
    sums = make_objective(approximation, forces, 1.0, n_landmarks=9)
    z = problem.z.clone()
    z[3] = 1e4
    held = z.clone()
    for _ in range(COME_BACK):
        assert torch.equal(z, held)
        sums.update_landmarks(problem.y, z)
    assert (problem.y == z[3]).all(dim=1).any()
