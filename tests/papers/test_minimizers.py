from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.energy.objective import AllPairs, make_objective
from napari_embedding_game.core.energy.pair_sums import make_forces
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import Edges, edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.papers.minimizers import (
    PointEnergy,
    homotopy,
    lbfgs,
    spectral_direction,
)
from napari_embedding_game.papers.spectral_direction import SpectralDirection

MINIMIZERS = {"spectral_direction": spectral_direction, "lbfgs": lbfgs}
CPU = torch.device("cpu")
TIGHT = 1e-9


def rows(n=60):
    rng = np.random.default_rng(0)
    return np.repeat(rng.normal(size=(3, 6)) * 3, n // 3, axis=0) + rng.normal(
        size=(n, 6)
    )


def objective_of(name, approximation="exact", n_neighbors=12, weights=None):
    member = METHODS[name]
    X = rows()
    found = edges(knn_graph(X, n_neighbors, n_jobs=1), member.affinity, X=X)
    found = replace(found, weights=found.weights.astype(np.float64))
    forces = make_forces(found, CPU, 1, member.attraction, member.kernel)
    strength = member.lambda_scale(found) * member.repulsion
    if weights is not None:
        found = AllPairs(forces, strength, member.aggregate)
        found.weights = weights
        return found
    return make_objective(approximation, forces, strength, 20, 0, member.aggregate)


def start(seed=0, d=2):
    return 0.1 * np.random.default_rng(seed).normal(size=(60, d))


@pytest.mark.parametrize("minimizer", MINIMIZERS.values(), ids=MINIMIZERS)
@pytest.mark.parametrize("name", ["ee", "ssne", "tsne"])
def test_it_goes_down_to_where_the_map_is_flat(name, minimizer):
    objective = objective_of(name)
    steps = list(minimizer(objective, start(), tolerance=TIGHT))
    energies = [step.energy for step in steps]
    assert all(b < a for a, b in pairwise(energies))
    assert [step.iteration for step in steps] == list(range(len(steps)))
    energy_of = PointEnergy(objective)
    first, last = (energy_of(step.y)[1] for step in (steps[0], steps[-1]))
    assert np.linalg.norm(last) < 1e-2 * np.linalg.norm(first)
    assert energy_of(steps[-1].y)[0] == energies[-1]


@pytest.mark.parametrize("name", ["ee", "ssne"])
def test_both_find_the_same_minimum_from_near_it(name):
    objective = objective_of(name)
    near = list(spectral_direction(objective, start(), tolerance=1e-3))[-1].y
    ends = [
        list(each(objective, near, tolerance=TIGHT))[-1].energy
        for each in MINIMIZERS.values()
    ]
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)


def test_a_driver_may_stop_and_the_layout_stays_as_it_was():
    objective, layout = objective_of("ee"), start()
    before = layout.copy()
    for minimizer in MINIMIZERS.values():
        steps = minimizer(objective, layout)
        seen = [next(steps).energy for _ in range(4)]
        steps.close()
        assert len(set(seen)) == 4
        np.testing.assert_array_equal(layout, before)
        assert len(list(minimizer(objective, layout, max_iter=2))) == 3


@pytest.mark.parametrize("minimizer", MINIMIZERS.values(), ids=MINIMIZERS)
def test_sampled_pairs_can_be_minimised_and_landmarks_are_refused(minimizer):
    steps = list(minimizer(objective_of("ee", "sampled_edges"), start(), max_iter=5))
    assert steps[-1].energy < steps[0].energy
    with pytest.raises(InputError, match="landmarks"):
        minimizer(objective_of("ee", "landmarks"), start())


def test_edges_that_push_have_no_spectral_direction_but_lbfgs():
    objective = objective_of("two_kernel_lle")
    with pytest.raises(InputError, match="lbfgs"):
        spectral_direction(objective, start())
    steps = list(lbfgs(objective, start(), max_iter=5))
    assert steps[-1].energy < steps[0].energy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_inverse_gives_the_direction_that_a_factor_gives(dtype):
    found = edges(knn_graph(rows(), 40, n_jobs=1), "entropic")
    found = replace(found, weights=found.weights.astype(dtype))
    by_factor = SpectralDirection(found)(start())
    by_inverse = SpectralDirection(found, invert=True)(start())
    within = 2000 * np.finfo(dtype).eps * np.abs(by_factor).max()
    np.testing.assert_allclose(by_inverse, by_factor, rtol=0, atol=within)


@pytest.mark.parametrize("n_neighbors", [5, 40])
def test_the_direction_solves_the_attractions_hessian(n_neighbors):
    found = edges(knn_graph(rows(), n_neighbors, n_jobs=1), "entropic")
    weights = found.matrix().toarray().astype(np.float64)
    hessian = 2 * (np.diag(weights.sum(axis=1)) - weights)
    direct = SpectralDirection(found)
    # each of the three groups, which five neighbours leave unconnected
    groups = start().reshape(3, 20, 2)
    centred = (groups - groups.mean(axis=1, keepdims=True)).reshape(60, 2)
    solved = -direct(hessian @ centred)
    np.testing.assert_allclose(solved, centred, atol=0.05 * np.abs(centred).max())
    free = np.arange(60) % 3 > 0
    gradient = start()[:, 0]
    across = direct.of_heights(gradient, free, 0.7)
    assert not across[~free].any()
    own = (hessian + 1.4 * np.eye(60))[np.ix_(free, free)]
    wanted = -np.linalg.solve(own, gradient[free])
    assert np.corrcoef(across[free], wanted)[0, 1] > 0.98
    assert not direct.of_heights(gradient, np.zeros(60, bool), 0.7).any()


def test_points_without_edges_are_no_trouble():
    lonely = Edges(
        np.zeros(61, np.uint32), np.zeros(0, np.uint32), np.zeros(0, np.float64)
    )
    assert np.isfinite(SpectralDirection(lonely)(start())).all()


def test_homotopy_is_not_above_the_median_of_random_starts():
    objective = objective_of("ee")
    whole = objective.repulsion
    ends = [
        list(spectral_direction(objective, start(seed)))[-1].energy for seed in range(7)
    ]
    steps = list(homotopy(objective, start(), n_steps=15))
    assert steps[-1].energy <= np.median(ends)
    weights = [step.repulsion for step in steps]
    assert weights == sorted(weights)
    assert (weights[0], weights[-1]) == (pytest.approx(1e-4 * whole), whole)
    assert [step.iteration for step in steps] == list(range(len(steps)))


def test_homotopy_gives_the_repulsion_back():
    objective = objective_of("ee")
    whole = objective.repulsion
    steps = homotopy(objective, start())
    next(steps)
    assert objective.repulsion < whole
    steps.close()
    assert objective.repulsion == whole
    with pytest.raises(InputError, match="step"):
        homotopy(objective, start(), n_steps=0)
    with pytest.raises(InputError, match="landmarks"):
        homotopy(objective_of("ee", "landmarks"), start())
