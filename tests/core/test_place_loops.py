"""The field of a finished map, and the minimum of one point's energy in it."""

from functools import partial

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.energy.pair_functions import ATTRACTIONS, KERNELS
from napari_embedding_game.core.energy.pair_loops import pad_to_plane
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.new_rows import place_loops
from napari_embedding_game.core.new_rows.transform import compute_frozen_field

N = 2_500
STEP = 1e-2


@pytest.fixture(scope="module", params=[1, 2, 3])
def points(request):
    """Points in the plane, those of the first on a line, or in space."""
    y = np.random.default_rng(0).normal(size=(N, request.param)) * 6
    return pad_to_plane(y.astype(np.float32))


def edges_of(n):
    indices = np.column_stack([np.arange(1, n + 1) % n, np.arange(-1, n - 1) % n])
    matrix = np.arange(0, 2 * n + 1, 2).astype(np.uint32)
    order = np.sort(indices, axis=1).ravel().astype(np.uint32)
    return Edges(matrix, order, np.ones(2 * n, np.float32))


def energy(field, f, k, places, weights, x):
    """Return E(x) by formulas in float64."""
    strength, sources = field[:2]
    x = torch.from_numpy(np.asarray(x, np.float64))
    of_edges = f.value(((x - torch.from_numpy(places)) ** 2).sum(dim=1))
    near = torch.from_numpy(sources.T.astype(float))
    pushed = k.value(((x - near) ** 2).sum(dim=1)).sum()
    return float((torch.from_numpy(weights) * of_edges).sum() + strength * pushed)


@pytest.mark.parametrize("approximation", ["landmarks", "mesh", "exact"])
@pytest.mark.parametrize("name", ["game", "tsne"])
def test_the_field_pushes_a_point_as_the_fit_does(points, name, approximation):
    """Its slope at a point is the gradient of the repulsion there, of whole S."""
    method = METHODS[name]
    landmarks = points[:40]
    edges = edges_of(N)
    d = points.shape[1]
    y = torch.from_numpy(points)
    z = torch.from_numpy(landmarks)
    forces = CompiledForces(edges, method.attraction, method.kernel)
    objective = make_objective(approximation, forces, 1.0, 40, 0, method.aggregate)
    gradient = objective.gradients(y, z)[0] - forces.attraction_gradient(y)
    field = compute_frozen_field(method, approximation, 1.0, points, landmarks)
    some = np.arange(1_000, 1_200)
    slopes = np.empty((200, d))
    for k in range(d):
        ends = []
        for sign in (1, -1):
            at = points[some].astype(float)
            at[:, k] += sign * STEP
            ends.append([value(field, method, x) for x in at])
        slopes[:, k] = (np.array(ends[0]) - ends[1]) / (2 * STEP)
    expected = gradient.numpy()[some]
    # A grid is not exact, and coarse in space.
    tolerance = 0.01 if approximation == "landmarks" else {2: 0.03, 3: 0.1}[d]
    np.testing.assert_allclose(
        slopes, expected, atol=tolerance * np.abs(expected).max()
    )


def value(field, method, x):
    d = len(x)
    scratch = np.empty((1, d), np.float32), np.empty((1, d), np.float32)
    return place_loops._compute_energy_and_stiffness(
        ATTRACTIONS[method.attraction], KERNELS[method.kernel], x, np.zeros((0, d)),
        np.zeros(0), field, scratch, np.empty(d),
    )[0]  # fmt: skip


@pytest.mark.parametrize("name", ["game", "two_kernel_pca"])
def test_a_point_ends_in_a_minimum_of_its_energy(points, name):
    method = METHODS[name]
    f, k, d = ATTRACTIONS[method.attraction], KERNELS[method.kernel], points.shape[1]
    y = points[:300]
    field = compute_frozen_field(method, "exact", 0.01, y, y[:10])
    rng = np.random.default_rng(1)
    found = np.stack([rng.choice(300, 12, replace=False) for _ in range(20)])
    found = found.astype(np.int64)
    weights = rng.uniform(0.2, 2, size=found.shape).astype(np.float32)
    placed = np.empty((20, d), np.float32)
    place_loops.place_rows(0, len(placed), f, k, found, weights, y, field, placed)
    for q in range(20):
        places, pulls = y[found[q]].astype(float), weights[q].astype(float)
        of = partial(energy, field, f, k, places, pulls)
        here = of(placed[q])
        begin = (places * pulls[:, None]).sum(axis=0) / pulls.sum()
        assert here <= min(of(begin), *(of(x) for x in places[:8])) + 1e-4
        free = points.any(axis=0)  # not across a line

        def along(x, q=q, of=of, free=free):
            place = placed[q].astype(float)
            place[free] = x
            return of(place)

        better = minimize(along, placed[q][free], method="Nelder-Mead")
        assert here - better.fun < 1e-3 * abs(here)


def test_a_row_without_a_weight_comes_to_its_nearest_row(points):
    method, d, y = METHODS["game"], points.shape[1], points[:300]
    pair = ATTRACTIONS[method.attraction], KERNELS[method.kernel]
    field = compute_frozen_field(method, "exact", 0.01, y, y[:10])
    found, weights = np.array([[7, 3], [9, 2]]), np.zeros((2, 2), np.float32)
    weights[1, 1] = 1
    placed = np.empty((2, d), np.float32)
    place_loops.place_rows(0, 2, *pair, found, weights, y, field, placed)
    np.testing.assert_array_equal(placed[0], y[7])
    assert np.isfinite(placed).all()
