"""Minimisers over all pairs, by themselves and in the place of the game."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core import pipeline
from napari_embedding_game.core.dynamics.play import FITTING, play
from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.energy.objective import AllPairs, make_objective
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.settings import (
    Settings,
    choose,
    optimizers,
    resolve,
)
from napari_embedding_game.papers import full_batch, offered
from napari_embedding_game.papers.minimizers import (
    homotopy,
    lbfgs,
    point_energy,
    spectral_direction,
)
from napari_embedding_game.papers.pressured_points import pressured_points

DOWN = {"spectral_direction": spectral_direction, "lbfgs": lbfgs}
OPTIMIZERS = [*DOWN, "homotopy", "pressured_points"]
N = 60


def rows(apart=3):
    rng = np.random.default_rng(0)
    centres = np.repeat(apart * rng.normal(size=(3, 6)), N // 3, axis=0)
    return centres + rng.normal(size=(N, 6))


def objective_of(name, approximation="exact", weighted=False, strength=None, apart=3):
    """Three groups of points under a method, in double precision."""
    method, X = METHODS[name], rows(apart)
    found = edges(knn_graph(X, 12, n_jobs=1), method.affinity, X=X)
    found = replace(found, weights=found.weights.astype(np.float64))
    forces = CompiledForces(found, 1, method.attraction, method.kernel)
    repulsion = method.lambda_scale(found) * (strength or method.repulsion)
    aggregate = method.aggregate
    objective = make_objective(approximation, forces, repulsion, 20, 0, aggregate)
    if weighted:
        far = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        objective.weights = far / far.mean()
    return objective


def start(seed=0, d=2):
    return 0.1 * np.random.default_rng(seed).normal(size=(N, d))


# --- The minimisers -----------------------------------------------------------------


@pytest.mark.parametrize("minimizer", DOWN.values(), ids=DOWN)
@pytest.mark.parametrize("name", ["ee", "ssne", "tsne"])
def test_it_goes_down_to_where_the_map_is_flat(name, minimizer):
    objective, layout = objective_of(name), start()
    steps = list(minimizer(objective, layout, tolerance=1e-9))
    np.testing.assert_array_equal(layout, start())
    energies = [step.energy for step in steps]
    assert all(b < a for a, b in pairwise(energies))
    assert [step.iteration for step in steps] == list(range(len(steps)))
    energy_of = point_energy(objective)
    first, last = (energy_of(step.y)[1] for step in (steps[0], steps[-1]))
    assert np.linalg.norm(last) < 1e-2 * np.linalg.norm(first)
    assert energy_of(steps[-1].y)[0] == energies[-1]


def test_landmarks_and_edges_that_push_are_refused():
    for minimizer in (*DOWN.values(), homotopy):
        with pytest.raises(InputError, match="landmarks"):
            next(minimizer(objective_of("ee", "landmarks"), start()))
    pushing = objective_of("two_kernel_lle")
    with pytest.raises(InputError, match="lbfgs"):
        next(spectral_direction(pushing, start()))
    for objective in (pushing, objective_of("ee", "sampled_edges")):
        steps = list(lbfgs(objective, start(), max_iter=5))
        assert steps[-1].energy < steps[0].energy
    for approximation in ("landmarks", "sampled_edges"):
        with pytest.raises(InputError, match="exact"):
            next(pressured_points(objective_of("ee", approximation), start()))


def test_homotopy_is_not_above_the_median_of_random_starts():
    objective = objective_of("ee")
    whole = objective.repulsion
    ends = [
        list(spectral_direction(objective, start(seed)))[-1].energy for seed in range(7)
    ]
    steps = homotopy(objective, start(), n_steps=15)
    first = next(steps)
    assert objective.repulsion < whole
    rest = list(steps)
    assert objective.repulsion == whole
    assert rest[-1].energy <= np.median(ends)
    weights = [step.repulsion for step in (first, *rest)]
    assert weights == sorted(weights)
    assert (weights[0], weights[-1]) == (pytest.approx(1e-4 * whole), whole)


# --- Pressured points ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "weighted"), [("ee", False), ("ee", True), ("ssne", False)]
)
@pytest.mark.parametrize("from_random", [False, True])
def test_it_ends_flat_and_not_above_the_spectral_direction(name, weighted, from_random):
    objective = objective_of(name, weighted=weighted, apart=1)
    *_, sd = spectral_direction(objective, start())
    steps = list(pressured_points(objective, start() if from_random else sd.y))
    assert not steps[-1].heights.any()
    slack = 2e-2 if from_random else 1e-4
    assert steps[-1].energy <= sd.energy + slack * abs(sd.energy)
    energy = point_energy(objective)(steps[-1].y)[0]
    assert steps[-1].energy == pytest.approx(energy, rel=1e-12)
    mu = np.array([step.mu for step in steps])
    assert mu[0] == 0
    assert (np.diff(mu) >= 0).all()
    # m is the mean degree of paper 4, whose weights are half of those of Edges
    degrees = np.asarray(objective.forces.edges.matrix().sum(axis=1))
    multiples = mu / (degrees.mean() / 2)
    np.testing.assert_allclose(multiples, multiples.round(), atol=1e-9)


def test_it_helps_maps_that_are_stuck():
    objective = objective_of("ee", weighted=True, strength=1000, apart=1)
    gains = []
    for seed in range(4):
        *_, sd = spectral_direction(objective, start(seed))
        *_, end = pressured_points(objective, sd.y)
        gains.append(1 - end.energy / sd.energy)
    # As a rule, not always: nothing binds it to the energy that it began from.
    assert np.mean(gains) > 0.02
    assert np.sum(np.array(gains) > 0) >= 3


# --- In the place of the game -------------------------------------------------------

BLOBS = make_blobs(200, 6, centers=5, cluster_std=5, random_state=0)[0]
BLOBS = BLOBS.astype(np.float32)


def started(method, d=2, X=BLOBS, **changes):
    given = {"perplexity": 8, "n_components": d, "init": "pca", "n_jobs": 1, **changes}
    settings = resolve(Settings(method=method, **given))
    return settings, *pipeline.place(pipeline.neighbors(X, settings), X, settings)


@pytest.fixture(scope="module")
def ee():
    return started("ee")


def begin(of, optimizer, method="ee", driving=None, **settings):
    given, found, layout = of
    settings = {"method": method, "n_landmarks": 12, **settings}
    settings = replace(given, optimizer=optimizer, **settings)
    return play(found, layout, settings, **(driving or {}))


def energy_of(found, method="ee", repulsion=None):
    """The energy over all pairs of the points of a map."""
    spec = METHODS[method]
    forces = CompiledForces(found, 1, spec.attraction, spec.kernel)
    repulsion = spec.lambda_scale(found) * (repulsion or spec.repulsion)
    return AllPairs(forces, repulsion, spec.aggregate)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_it_ends_where_the_minimiser_ends(ee, optimizer):
    _, found, layout = ee
    own = energy_of(found)
    if optimizer == "pressured_points":
        *_, stuck = spectral_direction(own, layout)
        *_, end = pressured_points(own, stuck.y)
        end = min(stuck, end, key=lambda step: step.energy)
    else:
        by = {**DOWN, "homotopy": homotopy}[optimizer]
        *_, end = by(own, layout)
    game = begin(ee, optimizer)
    first = next(game)
    assert (first.iteration, first.n_iter) == (0, 0)
    np.testing.assert_array_equal(first.embedding, layout)
    *_, last = game
    assert last.finished
    assert last.iteration == last.n_iter
    assert last.energy == pytest.approx(end.energy, rel=1e-6)
    np.testing.assert_array_equal(last.embedding, end.y.astype(np.float32))


def test_it_goes_back_where_pressured_points_find_nothing_lower(ee, monkeypatch):
    def upwards(objective, layout, **settings):
        stuck = list(pressured_points(objective, layout, max_iter=2))
        return (step._replace(y=step.y + 1, energy=1e9) for step in stuck)

    monkeypatch.setattr(full_batch, "pressured_points", upwards)
    *_, stuck = begin(ee, "spectral_direction")
    *_, last = begin(ee, "pressured_points")
    np.testing.assert_array_equal(last.embedding, stuck.embedding)
    assert last.energy == stuck.energy


@pytest.mark.parametrize("method", ["ee", "tsne"])
@pytest.mark.parametrize("optimizer", DOWN)
def test_the_most_iterations_are_those_of_points_whose_energy_falls(
    ee, method, optimizer
):
    of = ee if method == "ee" else started(method)
    shown = list(begin(of, optimizer, method, {"frame_iterations": 1}, max_iter=9))
    moved = [np.any(a.embedding != b.embedding) for a, b in pairwise(shown)]
    assert moved == [True] * 9 + [False] * FITTING
    assert [s.iteration for s in shown] == list(range(9 + FITTING + 1))
    own = energy_of(of[1], method)
    for snapshot in shown[:12:4]:
        y = torch.tensor(snapshot.embedding)
        assert snapshot.energy == pytest.approx(own.energy(y, y[:1]), rel=1e-6)
    energies = [snapshot.energy for snapshot in shown]
    assert all(b <= a for a, b in pairwise(energies))
    *_, unseen = begin(of, optimizer, method, {"diagnose": False}, max_iter=9)
    assert unseen.energy == shown[-1].energy
    for name in ("embedding", "landmarks", "labels", "pressure"):
        np.testing.assert_array_equal(getattr(unseen, name), getattr(shown[-1], name))


def test_it_is_not_steered_and_can_be_left_after_every_step(ee):
    *_, undisturbed = begin(ee, "lbfgs", max_iter=4)
    playing = begin(ee, "lbfgs", driving={"frame_iterations": 1}, max_iter=4)
    snapshot = next(playing)
    while not snapshot.finished:
        other = Settings(method="ee", optimizer="lbfgs", repulsion=2000.0)
        snapshot = playing.send(other)
    np.testing.assert_array_equal(snapshot.embedding, undisturbed.embedding)
    for optimizer in OPTIMIZERS:
        game = begin(ee, optimizer, driving={"frame_iterations": 1})
        assert [next(game).iteration for _ in range(3)] == [0, 1, 2]
        game.close()
    game = begin(ee, "game")
    next(game)
    with pytest.raises(InputError, match="begin a new run"):
        game.send(Settings(method="ee", optimizer="lbfgs"))


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_maps_of_one_and_three_dimensions(optimizer, d):
    *_, last = begin(started("ee", d), optimizer, max_iter=8)
    assert last.embedding.shape == (200, d)
    assert last.landmarks.shape == (12, d)
    assert np.isfinite(last.embedding).all()


def test_the_seed_shakes_a_homotopy_along_the_axes_of_its_map(ee):
    maps = []
    for seed in (0, 0, 1):
        of = replace(ee[0], random_state=seed), *ee[1:]
        maps.append(list(begin(of, "homotopy", max_iter=30))[-1].embedding)
    np.testing.assert_array_equal(maps[0], maps[1])
    assert not np.array_equal(maps[0], maps[2])
    line = np.column_stack([start()[:, 0], np.zeros(N)])
    *_, last = homotopy(objective_of("ee"), line, n_steps=3, max_iter=20)
    assert np.ptp(last.y[:, 0]) > 0
    assert not last.y[:, 1].any()


# --- What goes together -------------------------------------------------------------


def test_which_optimisers_a_method_takes():
    steps = "optimistic", "adaptive_rates"
    assert optimizers("ee") == optimizers("ssne") == ("game", *OPTIMIZERS, *steps)
    both = ("game", *DOWN, *steps)
    assert optimizers("tsne") == optimizers("game") == both
    pushed = ("game", "lbfgs", *steps)
    assert optimizers("two_kernel_lle") == optimizers("game", "lle") == pushed
    assert optimizers("two_kernel_lle", "uniform") == both
    assert optimizers("umap") == ("game", *steps)
    assert optimizers("pca") == ("game",)
    assert choose("ee", None, "lbfgs")[1] == "exact"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"optimizer": "adam"}, "optimizer must be"),
        ({"approximation": "landmarks"}, "choose the approximation exact"),
        ({"approximation": "mesh"}, "does not take the approximation mesh: choose"),
        ({"method": "tsne", "optimizer": "homotopy"}, "ee and ssne"),
        ({"method": "game", "optimizer": "pressured_points"}, "ee and ssne"),
        ({"method": "umap"}, "not defined for all pairs.* Choose game"),
    ],
)
def test_what_does_not_go_together_is_told(ee, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        next(begin(ee, **{"optimizer": "lbfgs", **settings}))


@pytest.mark.parametrize("method", ["two_kernel_lle", "ee"])
def test_edges_that_push_are_told(method, monkeypatch):
    of = started(method, affinity="lle")
    words = r"only pull.* lle push. Choose game or lbfgs"
    with pytest.raises(InputError, match=words):
        next(begin(of, "spectral_direction", method))
    monkeypatch.setattr(pipeline, "neighbors", lambda *_: pytest.fail("it searched"))
    params = {"affinity": "lle", "optimizer": "spectral_direction"}
    with pytest.raises(InputError, match=words):
        EmbeddingGame(method=method, method_params=params).fit(BLOBS)


def test_too_many_points_are_told_with_the_way_out(ee, monkeypatch):
    monkeypatch.setattr(offered, "MOST_POINTS", 199)
    with pytest.raises(InputError, match=r"200 of them: choose the optimizer game"):
        next(begin(ee, "lbfgs"))
