"""The whole family: every member with every approximation that it is offered with."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from sklearn.manifold import trustworthiness

from napari_embedding_game.core import settings as choices
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.methods import (
    APPROXIMATIONS,
    METHODS,
    Method,
    inverse_point_count,
)
from napari_embedding_game.core.energy.objective import (
    AllPairs,
    LandmarkBound,
    make_objective,
)
from napari_embedding_game.core.energy.pair_functions import UMAP_A, UMAP_B
from napari_embedding_game.core.energy.pressure import compute_labels_and_pressure
from napari_embedding_game.core.energy.torch_forces import TorchForces
from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.settings import (
    Settings,
    fill_affinity,
    fill_approximation_by_size,
    resolve_method,
    resolve_repulsion,
)

TOLERANCE = {"f4": 2e-5, "f8": 1e-10}
CPU = torch.device("cpu")
PAIRWISE = [
    (name, approximation)
    for name, member in METHODS.items()
    for approximation in member.approximations
    if not member.make_layouts and approximation != "mesh"
]
"""A grid is not exact, and goes by the outermost points: tests/core/test_mesh.py."""
L = 9


def chosen(edges, member):
    return CompiledForces(edges, member.attraction, member.kernel)


def torch_in_blocks(edges, member):
    return TorchForces(edges, CPU, member.attraction, member.kernel, 1000)


def problem_of(make_problem, member, n=70, d=2, dtype=np.float64):
    profiles = (member.attraction, member.kernel)
    return make_problem(n, d, L, member.affinity, dtype, profiles=profiles)


def objective_of(problem, member, approximation, forces=chosen):
    repulsion = member.lambda_scale(problem.edges) * member.repulsion
    return make_objective(
        approximation, forces(problem.edges, member), repulsion, L, 3, member.aggregate
    )


def twin_energy(problem, objective, y, z):
    total = problem.twin.sum_of(objective, y, z)
    if objective.aggregate == "log":
        # Landmarks' bound counts each point with itself, where the kernels are 1.
        own = len(y) if isinstance(objective, LandmarkBound) else 0
        total = torch.log(torch.maximum(total - own, total / 2))
    return problem.twin.attraction(y) + objective.repulsion * total


def difference(found, wanted):
    found = torch.as_tensor(found, dtype=torch.float64)
    return float(torch.linalg.norm(found - wanted) / torch.linalg.norm(wanted))


# What is compiled is compiled for what is played: float64 would take a minute.
@pytest.mark.parametrize(
    ("forces", "d", "dtype"),
    [(chosen, 2, "f4"), (chosen, 3, "f4"), (torch_in_blocks, 3, "f8")],
)
@pytest.mark.parametrize(("name", "approximation"), PAIRWISE)
def test_value_and_gradients_are_those_of_the_formula(
    make_problem, name, approximation, forces, d, dtype
):
    member = METHODS[name]
    problem = problem_of(make_problem, member, d=d, dtype=dtype)
    objective = objective_of(problem, member, approximation, forces)
    energy, y_gradient, z_gradient = objective.energy_and_gradients(
        problem.y, problem.z
    )
    y = problem.y.double().requires_grad_()
    z = problem.z.double().requires_grad_()
    wanted = twin_energy(problem, objective, y, z)
    wanted.backward()
    assert difference(energy, wanted.detach()) < TOLERANCE[dtype]
    assert difference(y_gradient, y.grad) < TOLERANCE[dtype]
    if approximation == "landmarks":
        assert difference(z_gradient, z.grad) < TOLERANCE[dtype]


# --- Pressure -----------------------------------------------------------------------

PRESSURED = [
    (name, way)
    for name in ("game", "ee", "ssne", "tsne", "umap_exact")
    for way in ("exact", "landmarks")
    if way in METHODS[name].approximations
] + [("umap", "sampled_edges"), ("game", "sampled_edges")]
HEIGHTS = np.concatenate([[0.0], np.geomspace(1e-3, 50, 80)])


def lifted(y, k, height):
    across = torch.zeros(len(y), 1, dtype=y.dtype)
    across[k] = height
    return torch.hstack([y, across])


def downhill(energy):
    """The height at which the energy, falling from the map up, is least."""
    values = [energy(HEIGHTS[0])]
    for height in HEIGHTS[1:]:
        values.append(energy(height))
        if values[-1] >= values[-2]:
            break
    if len(values) == 2:
        return 0.0
    bracket = HEIGHTS[len(values) - 3], HEIGHTS[len(values) - 1]
    return minimize_scalar(energy, bounds=bracket, options={"xatol": 1e-6}).x


def played(problem, name, approximation):
    settings = Settings(
        method=name, approximation=approximation, n_landmarks=L, max_iter=40
    )
    for snapshot in play(problem.edges, problem.y.numpy(), settings):
        last = snapshot
    # Squeezed, so that some points are stuck.
    return tuple(torch.tensor(0.6 * x) for x in (last.embedding, last.landmarks))


@pytest.mark.parametrize(("name", "approximation"), PRESSURED)
def test_pressure_minimises_the_energy_of_one_lifted_point(
    make_problem, name, approximation
):
    member = METHODS[name]
    problem = problem_of(make_problem, member, n=60, dtype=np.float32)
    y, z = played(problem, name, approximation)
    objective = objective_of(problem, member, approximation)
    before = float(objective.compute_sums(y, z).total)
    _, found = compute_labels_and_pressure(objective, y, z)
    y, z, twin = y.double(), z.double(), problem.twin
    at_0 = lifted(y, 0, 0.0)
    flat = torch.hstack([z, torch.zeros(L, 1, dtype=torch.float64)])
    at_rest, all_at_rest = twin.kernel_sum(y, z), twin.others_sum(at_0)
    r = float(at_rest / twin.kernel_sum(z, z))
    closest = torch.cdist(y, z).argmin(dim=1)

    def own_change(y, k):
        """Of what the nearest landmark pushes, the share that stands for k itself."""
        apart = torch.stack([rows[k] - flat[closest[k]] for rows in (y, at_0)])
        now, then = twin.k(apart.square().sum(dim=1))
        return min(1, 1 / r) * (now - then)

    def sum_of(y, k):
        if approximation != "landmarks":
            return before + twin.others_sum(y) - all_at_rest
        # Landmarks push as hard as they did before the point was lifted.
        change = twin.kernel_sum(y, flat) - at_rest - own_change(y, k)
        return before + 2 * r * change

    def energy(k, height):
        raised = lifted(y, k, height)
        total = sum_of(raised, k)
        own = 60 * (approximation == "landmarks")
        total = torch.log(total - own) if member.aggregate == "log" else total
        return float(twin.attraction(raised) + objective.repulsion * total)

    points = range(0, 60, 8)
    wanted = [downhill(partial(energy, k)) for k in points]
    np.testing.assert_allclose(found[points], wanted, atol=3e-4)
    assert (np.array(wanted) > 0).any()


def test_pressure_of_ee_is_the_papers_closed_form(make_problem):
    member = METHODS["ee"]
    problem = problem_of(make_problem, member, dtype=np.float32)
    weights = np.random.default_rng(0).uniform(0, 1, (70, 70))
    weights += weights.T
    np.fill_diagonal(weights, 0)
    forces = chosen(problem.edges, member)
    objective = AllPairs(forces, 3.0)
    objective.weights = weights
    _, found = compute_labels_and_pressure(objective, problem.y, problem.z)
    pull = np.asarray(problem.edges.to_csr_matrix().sum(axis=1)).ravel() / 2
    near = np.exp(-(torch.cdist(problem.y, problem.y).numpy() ** 2))
    push = 3.0 * (weights * near).sum(axis=1)
    wanted = np.sqrt(np.maximum(np.log(push / pull), 0))
    assert 0.1 < (wanted > 0).mean() < 1
    np.testing.assert_allclose(found, wanted, atol=1e-5)


# --- What each member is --------------------------------------------------------------


def test_tsne_is_openly_t_sne(make_problem):
    """Its energy is the Kullback-Leibler divergence, up to factor and constant."""
    member = METHODS["tsne"]
    problem = problem_of(make_problem, member)
    objective = objective_of(problem, member, "exact", torch_in_blocks)
    P = problem.edges.to_csr_matrix().toarray()
    P = P / P.sum()
    for y in (problem.y, 0.3 * problem.y):
        q = 1 / (1 + torch.cdist(y, y).numpy() ** 2)
        np.fill_diagonal(q, 0)
        divergence = (P * np.log(np.where(P > 0, P, 1))).sum()
        divergence -= (P * np.log(np.where(P > 0, q / q.sum(), 1))).sum()
        entropy = -(P * np.log(np.where(P > 0, P, 1))).sum()
        energy = objective.energy_and_gradients(y, problem.z)[0] / objective.repulsion
        assert energy - entropy == pytest.approx(divergence, rel=1e-6)


def test_two_kernel_pca_is_the_squared_difference_of_two_kernels(make_problem):
    member = METHODS["two_kernel_pca"]
    problem = problem_of(make_problem, member)
    objective = objective_of(problem, member, "exact", torch_in_blocks)
    wanted = problem.edges.to_csr_matrix().toarray() / problem.edges.scale
    energies = []
    for y in (problem.y, 0.3 * problem.y):
        q = 1 / (1 + torch.cdist(y, y).numpy() ** 2)
        np.fill_diagonal(q, 0)
        squared = ((wanted - q) ** 2).sum() - (wanted**2).sum()
        energy = objective.energy_and_gradients(y, problem.z)[0] / objective.repulsion
        assert energy == pytest.approx(squared, rel=1e-5)
        energies.append(squared)
    assert energies[0] != pytest.approx(energies[1], rel=0.1)


def test_two_kernel_lle_is_lemma_4(make_problem):
    member = METHODS["two_kernel_lle"]
    problem = problem_of(make_problem, member)
    objective = objective_of(problem, member, "exact", torch_in_blocks)
    n = len(problem.y)
    from napari_embedding_game.papers.lle_edges import reconstruction_weights

    W = np.zeros((n, n))
    np.put_along_axis(
        W,
        problem.graph.indices.astype(int),
        reconstruction_weights(problem.X, problem.graph.indices),
        axis=1,
    )
    np.testing.assert_allclose(W.sum(axis=1), 1, rtol=1e-5)
    M = (np.eye(n) - W).T @ (np.eye(n) - W)
    different = ~np.eye(n, dtype=bool)
    q = 1 / (1 + torch.cdist(problem.y, problem.y).numpy() ** 2)
    loss = (M * q)[different].sum() + q[different].sum() / n
    energy = objective.energy_and_gradients(problem.y, problem.z)[0]
    assert energy == pytest.approx(loss, rel=1e-5)


def test_exact_umap_is_the_papers_cross_entropy(make_problem):
    member = METHODS["umap_exact"]
    problem = problem_of(make_problem, member)
    objective = objective_of(problem, member, "exact", torch_in_blocks)
    w = problem.edges.to_csr_matrix().toarray() / problem.edges.scale
    different = ~np.eye(len(w), dtype=bool)
    s = torch.cdist(problem.y, problem.y).numpy() ** 2 + 1e-3
    p = UMAP_A * s**UMAP_B
    cross = w * np.log1p(p) + (w - 1) * np.log(1 - 1 / (1 + p))
    energy = (
        objective.energy_and_gradients(problem.y, problem.z)[0] / objective.repulsion
    )
    assert energy == pytest.approx(cross[different].sum(), rel=1e-5)


# --- Choosing


def test_the_first_approximation_is_the_methods_own():
    assert resolve_method("tsne", None)[1] == "mesh"
    assert resolve_method("ssne", None)[1] == "landmarks"
    assert resolve_method("umap", None)[1] == "sampled_edges"


def test_umaps_repulsion_is_that_of_so_many_random_partners_for_each_pull():
    n, k = 20, 3
    ring = sum(np.roll(np.eye(n), step, axis=1) for step in range(1, k + 1))
    edges = Edges.from_symmetric_matrix(ring + ring.T)  # n k pulls, of weight 1
    scale = METHODS["umap"].lambda_scale(edges)
    # A random partner of each pull adds 1 / n to n pairs, each of which counts twice.
    assert scale == pytest.approx(n * k / n / n / 2)


def test_settings_left_open_are_the_methods_own():
    assert resolve_repulsion(Settings(method="umap")) == 5.0
    assert resolve_repulsion(Settings(method="umap", repulsion=2.0)) == 2.0
    assert fill_affinity(Settings(method="tsne")).affinity == "entropic"
    assert fill_affinity(Settings(method="tsne", affinity="fuzzy")).affinity == "fuzzy"


def test_a_new_member_is_a_declaration_and_a_line(make_problem, monkeypatch):
    example = Method(
        title="Gaussian game",
        attraction="log1p",
        kernel="gaussian",
        lambda_scale=inverse_point_count,
        repulsion=300,
    )
    monkeypatch.setitem(METHODS, "gaussian_game", example)
    problem = make_problem(70, 2, L, profiles=("log1p", "gaussian"))
    settings = Settings(method="gaussian_game", n_landmarks=L, max_iter=60)
    first, *_, last = play(problem.edges, problem.y.numpy(), settings)
    assert last.energy < first.energy
    assert set(example.approximations) == set(APPROXIMATIONS)


def test_many_points_of_the_game_are_played_on_a_grid_unless_told_otherwise(
    monkeypatch,
):
    monkeypatch.setattr(choices, "MANY_POINTS", 200)
    left = Settings()
    assert fill_approximation_by_size(left, 200) == replace(left, approximation="mesh")
    assert fill_approximation_by_size(left, 199) is left
    deep = replace(left, n_components=3)
    assert fill_approximation_by_size(deep, 200) is deep
    chosen = replace(left, approximation="landmarks")
    assert fill_approximation_by_size(chosen, 200) is chosen
    for other in (replace(left, method="ee"), replace(left, method="given")):
        assert fill_approximation_by_size(other, 200) is other
    tsne = replace(deep, method="tsne")  # all pairs are quicker than a grid in space
    assert fill_approximation_by_size(tsne, 200) == replace(tsne, approximation="exact")
    assert fill_approximation_by_size(tsne, choices.FEW_IN_SPACE) is tsne
    X = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    own = EmbeddingGame(random_state=0, max_iter=5).fit_transform(X)
    told = {
        how: EmbeddingGame(
            random_state=0, max_iter=5, method_params={"approximation": how}
        )
        for how in ("mesh", "landmarks")
    }
    np.testing.assert_array_equal(own, told["mesh"].fit_transform(X))
    assert not np.array_equal(own, told["landmarks"].fit_transform(X))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA card")
@pytest.mark.filterwarnings(
    "ignore::napari_embedding_game.core.errors.EmbeddingWarning"
)
def test_maps_of_a_graphics_card_are_as_good():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8)) + 4 * rng.normal(size=(6, 8)).repeat(100, axis=0)
    for method in METHODS:
        maps = (
            EmbeddingGame(method=method, method_params={"device": device}).fit(X)
            for device in ("cpu", "cuda")
        )
        kept, on_card = (trustworthiness(X, one.embedding_) for one in maps)
        assert on_card > kept - 0.02, method
