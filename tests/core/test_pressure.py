"""Against the definition: lift one point and see where the whole energy is least."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.energy.methods import APPROXIMATIONS
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.energy.pair_sums import CompiledForces
from napari_embedding_game.core.energy.pressure import pressure
from napari_embedding_game.core.settings import Settings

N, L, STRENGTH = 90, 20, 300.0
POINTS = np.arange(0, N, 9)
HEIGHTS = np.concatenate([[0.0], np.geomspace(1e-3, 50, 80)])


@pytest.fixture(scope="module", params=[2, 3])
def played(request, make_problem):
    """A short game in float64: a map in which some points are stuck."""
    problem = make_problem(N, request.param, L, "fuzzy", np.float64)
    settings = Settings(repulsion=STRENGTH, n_landmarks=L, max_iter=60)
    for snapshot in play(problem.edges, problem.y.numpy(), settings):
        last = snapshot
    problem.y = torch.tensor(last.embedding, dtype=torch.float64)
    problem.z = torch.tensor(last.landmarks, dtype=torch.float64)
    return problem


def lifted(y, k, height):
    across = torch.zeros(len(y), 1, dtype=y.dtype)
    across[k] = height
    return torch.hstack([y, across])


def flat(z):
    return torch.hstack([z, torch.zeros(len(z), 1, dtype=z.dtype)])


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
    options = {"xatol": 1e-9}
    return minimize_scalar(energy, bracket, bounds=bracket, options=options).x


def exact_pressure(problem, energy):
    """The heights of ``POINTS``; ``energy`` takes lifted y, flat z, who is lifted."""
    z = flat(problem.z)

    def height(k):
        return downhill(lambda h: float(energy(lifted(problem.y, k, h), z, k)))

    return np.array([height(k) for k in POINTS])


def objective_of(problem, approximation):
    forces = CompiledForces(problem.edges, 1)
    return make_objective(approximation, forces, STRENGTH / N, L, random_state=1)


def own_push(y, z, k, r):
    """The part of the push of point k's nearest landmark that stands for k itself."""
    squared = (y[k] - z).square()
    nearest = squared[:, :-1].sum(dim=1).argmin()  # on the map, not from above it
    return min(1, 1 / r) / (1 + squared[nearest].sum())


def test_holding_the_sum_of_all_repulsions_costs_a_few_percent(played):
    y, z, twin = played.y, played.z, played.twin
    r = float(twin.kernel_sum(y, z) / twin.kernel_sum(z, z))

    def energy(lifted_y, flat_z, k):
        own = own_push(lifted_y, flat_z, k, r)
        bound = (twin.kernel_sum(lifted_y, flat_z) - own) ** 2
        bound = bound / twin.kernel_sum(flat_z, flat_z)
        return twin.attraction(lifted_y) + STRENGTH / N * bound

    wanted = exact_pressure(played, energy)
    _, found = pressure(objective_of(played, "landmarks"), played.y, played.z)
    cost = np.abs(found[POINTS] - wanted).max() / wanted.max()
    assert 1e-6 < cost < 0.05  # falls with the number of points: here there are 90


@pytest.mark.parametrize(
    ("approximation", "share"),
    [("exact", 1), ("mesh", 1), ("sampled_edges", 1), ("sampled_landmarks", 0.5)],
)
def test_without_landmarks_all_points_push(played, approximation, share):
    """Half as hard from sampled landmarks, which push other points and not back."""
    strength = share * STRENGTH / N

    def energy(y, z, k):
        return played.twin.attraction(y) + strength * played.twin.others_sum(y)

    _, found = pressure(objective_of(played, approximation), played.y, played.z)
    wanted = exact_pressure(played, energy)
    np.testing.assert_allclose(found[POINTS], wanted, atol=2e-4)
    assert (found[POINTS] > 0).any()


def test_of_many_points_it_is_known_under_landmarks_alone(played, monkeypatch):
    monkeypatch.setattr("napari_embedding_game.core.energy.pressure.MOST_POINTS", N - 1)
    for approximation in APPROXIMATIONS:
        labels, found = pressure(
            objective_of(played, approximation), played.y, played.z
        )
        assert len(np.unique(labels)) > 1
        assert np.isnan(found).all() == (approximation != "landmarks")


def test_with_a_landmark_on_every_point_it_is_that_of_all_pairs(played):
    """A point is not pushed by the landmark that stands for itself alone."""
    y = played.y
    under_landmarks, under_all = (
        objective_of(played, approximation) for approximation in ("landmarks", "exact")
    )
    # Weaker, so that some points stay on the map.
    under_landmarks.repulsion = under_all.repulsion = 0.05 * STRENGTH / N
    _, found = pressure(under_landmarks, y, y.clone())
    _, wanted = pressure(under_all, y, y[:1])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert 0 < (wanted > 0).mean() < 1
