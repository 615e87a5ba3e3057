from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.energy.objective import (
    AllPairs,
    make_objective,
)
from napari_embedding_game.core.energy.pair_sums import make_forces
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.papers.minimizers import spectral_direction
from napari_embedding_game.papers.pressured_points import _Task, pressured_points

N = 60


def objective_of(name, weighted=False, approximation="exact", strength=None):
    """Three groups of points under a member of the family."""
    member = METHODS[name]
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(3, 6)), N // 3, axis=0)
    X += rng.normal(size=(N, 6))
    found = edges(knn_graph(X, 12, n_jobs=1), member.affinity, X=X)
    found = replace(found, weights=found.weights.astype(np.float64))
    forces = make_forces(
        found, torch.device("cpu"), 1, member.attraction, member.kernel
    )
    repulsion = member.lambda_scale(found) * (strength or member.repulsion)
    if weighted:
        far = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        found = AllPairs(forces, repulsion, member.aggregate)
        found.weights = far / far.mean()
        return found
    return make_objective(approximation, forces, repulsion, 20, 0, member.aggregate)


def start(seed=0):
    return 0.1 * np.random.default_rng(seed).normal(size=(N, 2))


@pytest.mark.parametrize(
    ("name", "weighted"),
    [("ee", False), ("ee", True), ("ssne", False), ("tsne", False)],
)
@pytest.mark.parametrize("from_random", [False, True])
def test_it_ends_flat_and_not_above_the_spectral_direction(name, weighted, from_random):
    objective = objective_of(name, weighted)
    sd = list(spectral_direction(objective, start()))[-1]
    layout = start() if from_random else sd.y
    steps = list(pressured_points(objective, layout))
    assert not steps[-1].heights.any()
    slack = 2e-2 if from_random else 1e-4
    assert steps[-1].energy <= sd.energy + slack * abs(sd.energy)
    mu = np.array([step.mu for step in steps])
    assert mu[0] == 0
    assert (np.diff(mu) >= 0).all()
    # m is the mean degree of paper 4, whose weights are half of those of Edges
    degrees = np.asarray(objective.forces.edges.matrix().sum(axis=1))
    multiples = mu / (degrees.mean() / 2)
    np.testing.assert_allclose(multiples, multiples.round(), atol=1e-9)


def test_it_helps_a_map_that_is_stuck():
    objective = objective_of("ee", weighted=True, strength=1000)
    gains = []
    for seed in range(4):
        sd = list(spectral_direction(objective, start(seed)))[-1]
        *_, end = pressured_points(objective, sd.y)
        gains.append(1 - end.energy / sd.energy)
    # As a rule, not always: nothing binds it to the energy that it began from.
    assert np.mean(gains) > 0.02
    assert np.sum(np.array(gains) > 0) >= 3


@pytest.mark.parametrize("name", ["ee", "ssne"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mu", [0.0, 3.0])
def test_heights_are_the_minima_of_one_point(name, weighted, mu):
    objective = objective_of(name, weighted)
    task = _Task(objective, None)
    y = 3 * start(1)
    flat = np.column_stack([y, np.zeros(N)])
    found = np.abs(task.lift(flat, np.zeros(N, bool), mu).x[:, -1])
    energy_of = task.penalised(mu)
    for k in range(0, N, 9):

        def energy(h, k=k):
            x = flat.copy()
            x[k, -1] = h
            return energy_of(x)[0]

        wanted = minimize_scalar(energy, bounds=(0, 10), method="bounded").x
        assert found[k] == pytest.approx(wanted, abs=2e-4)
    assert found.any()


def test_points_that_are_not_pressured_stay_on_the_map():
    steps = list(pressured_points(objective_of("ee"), start(), max_iter=30))
    assert len(steps) == 31
    shares = [np.count_nonzero(step.heights) / N for step in steps]
    assert min(shares) > 0
    assert min(shares) < 1


@pytest.mark.parametrize("approximation", ["landmarks", "sampled_edges"])
def test_it_needs_all_pairs(approximation):
    with pytest.raises(InputError, match="exact"):
        pressured_points(objective_of("ee", approximation=approximation), start())
