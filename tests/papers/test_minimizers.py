"""Minimisers over all pairs, by themselves and as methods in place of the game."""

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
from napari_embedding_game.core.energy.objective import AllPairs
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.estimator import to_parameters
from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.settings import Settings, fill_affinity
from napari_embedding_game.papers import minimizers, without_landmarks
from napari_embedding_game.papers.minimizers import (
    make_point_energy,
    minimize_by_homotopy,
    minimize_by_spectral_direction,
)
from napari_embedding_game.papers.pressured_points import minimize_by_pressured_points

WAYS = ["spectral_direction", "homotopy", "pressured_points"]
N = 60


def rows(apart=3):
    rng = np.random.default_rng(0)
    centres = np.repeat(apart * rng.normal(size=(3, 6)), N // 3, axis=0)
    return centres + rng.normal(size=(N, 6))


def energy_of(found, method="ee", strength=None):
    spec = METHODS[method]
    forces = CompiledForces(found, spec.attraction, spec.kernel)
    repulsion = spec.lambda_scale(found) * (strength or spec.repulsion)
    return AllPairs(forces, repulsion, aggregate=spec.aggregate)


def objective_of(name, weighted=False, strength=None, apart=3):
    """Three groups of points under a method, in double precision."""
    X = rows(apart)
    found = build_edges(knn_graph(X, 12), METHODS[name].affinity, X=X)
    found = replace(found, weights=found.weights.astype(np.float64))
    objective = energy_of(found, name, strength)
    if weighted:
        far = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        objective.weights = far / far.mean()
    return objective


def start(seed=0, d=2):
    return 0.1 * np.random.default_rng(seed).normal(size=(N, d))


# --- The minimisers -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["ee", "ssne"])
def test_it_goes_down_to_where_the_map_is_flat(name, monkeypatch):
    monkeypatch.setattr(minimizers, "TOLERANCE", 1e-9)
    objective, layout = objective_of(name), start()
    steps = list(minimize_by_spectral_direction(objective, layout))
    np.testing.assert_array_equal(layout, start())
    energies = [step.energy for step in steps]
    assert all(b < a for a, b in pairwise(energies))
    own = make_point_energy(objective)
    first, last = (own(step.y)[1] for step in (steps[0], steps[-1]))
    assert np.linalg.norm(last) < 1e-2 * np.linalg.norm(first)
    assert own(steps[-1].y)[0] == energies[-1]


def test_homotopy_is_not_above_the_median_of_random_starts():
    objective = objective_of("ee")
    whole = objective.repulsion
    ends = [
        list(minimize_by_spectral_direction(objective, start(seed)))[-1].energy
        for seed in range(7)
    ]
    energies = [
        step.energy for step in minimize_by_homotopy(objective, start(), n_steps=15)
    ]
    assert objective.repulsion == whole
    assert energies[-1] <= np.median(ends)
    assert np.isnan(energies[0])  # under a part of the repulsion
    line = np.column_stack([start()[:, 0], np.zeros(N)])
    *_, last = minimize_by_homotopy(objective, line, n_steps=3)
    assert np.ptp(last.y[:, 0]) > 0  # shaken along the axes of its map
    assert not last.y[:, 1].any()


@pytest.mark.parametrize(
    ("name", "weighted"), [("ee", False), ("ee", True), ("ssne", False)]
)
@pytest.mark.parametrize("from_random", [False, True])
def test_it_ends_flat_and_not_above_the_spectral_direction(name, weighted, from_random):
    objective = objective_of(name, weighted=weighted, apart=1)
    *_, sd = minimize_by_spectral_direction(objective, start())
    *_, end = minimize_by_pressured_points(objective, start() if from_random else sd.y)
    slack = 2e-2 if from_random else 1e-4
    assert end.energy <= sd.energy + slack * abs(sd.energy)
    energy = make_point_energy(objective)(end.y)[0]
    assert end.energy == pytest.approx(energy, rel=1e-12)


def test_it_helps_maps_that_are_stuck():
    objective = objective_of("ee", weighted=True, strength=1000, apart=1)
    gains = []
    for seed in range(4):
        *_, sd = minimize_by_spectral_direction(objective, start(seed))
        *_, end = minimize_by_pressured_points(objective, sd.y)
        gains.append(1 - end.energy / sd.energy)
    # As a rule, not always: nothing binds it to the energy that it began from.
    assert np.mean(gains) > 0.02
    assert np.sum(np.array(gains) > 0) >= 3


# --- As methods, in the place of the game -------------------------------------------

BLOBS = make_blobs(200, 6, centers=5, cluster_std=5, random_state=0)[0]
BLOBS = BLOBS.astype(np.float32)


def started(d=2, **changes):
    given = {"perplexity": 8, "n_components": d, "init": "pca", "n_jobs": 1, **changes}
    settings = fill_affinity(Settings(method="ee", **given))
    return settings, *pipeline.make_edges_and_layout(
        pipeline.find_neighbors(BLOBS, settings), BLOBS, settings
    )


@pytest.fixture(scope="module")
def ee():
    return started()


def begin(of, way, method="ee", driving=None, **settings):
    given, found, layout = of
    settings = {"method": f"{method}_{way}", "n_landmarks": 12, **settings}
    return play(found, layout, replace(given, **settings), **(driving or {}))


@pytest.mark.parametrize("way", WAYS)
def test_it_ends_where_the_minimiser_ends(ee, way):
    _, found, layout = ee
    own = energy_of(found)
    if way == "pressured_points":
        *_, stuck = minimize_by_spectral_direction(own, layout)
        *_, end = minimize_by_pressured_points(own, stuck.y)
        end = min(stuck, end, key=lambda step: step.energy)
    else:
        by = minimize_by_homotopy
        if way == "spectral_direction":
            by = minimize_by_spectral_direction
        *_, end = by(own, layout)
    game = begin(ee, way)
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
        stuck = list(minimize_by_pressured_points(objective, layout, max_iter=2))
        return (step._replace(y=step.y + 1, energy=1e9) for step in stuck)

    monkeypatch.setattr(without_landmarks, "minimize_by_pressured_points", upwards)
    *_, stuck = begin(ee, "spectral_direction")
    *_, last = begin(ee, "pressured_points")
    np.testing.assert_array_equal(last.embedding, stuck.embedding)
    assert last.energy == stuck.energy


@pytest.mark.parametrize("method", ["ee", "ssne"])
def test_the_most_iterations_are_those_of_points_whose_energy_falls(ee, method):
    way = "spectral_direction"
    shown = list(begin(ee, way, method, {"frame_iterations": 1}, max_iter=9))
    moved = [np.any(a.embedding != b.embedding) for a, b in pairwise(shown)]
    assert moved == [True] * 9 + [False] * FITTING
    assert [s.iteration for s in shown] == list(range(9 + FITTING + 1))
    own = energy_of(ee[1], method)
    for snapshot in shown[:12:4]:
        y = torch.tensor(snapshot.embedding)
        assert snapshot.energy == pytest.approx(own.energy(y, y[:1]), rel=1e-6)
    energies = [snapshot.energy for snapshot in shown]
    assert all(b <= a for a, b in pairwise(energies))
    *_, unseen = begin(ee, way, method, {"diagnose": False}, max_iter=9)
    assert unseen.energy == shown[-1].energy
    for name in ("embedding", "landmarks", "labels", "pressure"):
        np.testing.assert_array_equal(getattr(unseen, name), getattr(shown[-1], name))


def test_it_is_not_steered_and_can_be_left_after_every_step(ee):
    *_, undisturbed = begin(ee, "spectral_direction", max_iter=4)
    playing = begin(
        ee, "spectral_direction", driving={"frame_iterations": 1}, max_iter=4
    )
    snapshot = next(playing)
    while not snapshot.finished:
        other = Settings(method="ee_spectral_direction", repulsion=2000.0)
        snapshot = playing.send(other)
    np.testing.assert_array_equal(snapshot.embedding, undisturbed.embedding)
    for way in WAYS:
        game = begin(ee, way, driving={"frame_iterations": 1})
        assert [next(game).iteration for _ in range(3)] == [0, 1, 2]
        game.close()
    game = play(*ee[1:], ee[0])
    next(game)
    with pytest.raises(InputError, match="begin a new run"):
        game.send(Settings(method="ee_homotopy"))


def test_the_seed_shakes_a_homotopy(ee):
    maps = []
    for seed in (0, 0, 1):
        of = replace(ee[0], random_state=seed), *ee[1:]
        maps.append(list(begin(of, "homotopy", max_iter=30))[-1].embedding)
    np.testing.assert_array_equal(maps[0], maps[1])
    assert not np.array_equal(maps[0], maps[2])


def test_a_homotopy_that_ends_under_a_part_of_the_repulsion_says_so(ee):
    *_, last = begin(ee, "homotopy", max_iter=30)
    assert "After 30 iterations only a part of the repulsion acts" in last.warning
    *_, last = begin(ee, "homotopy")
    assert not last.warning


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"approximation": "landmarks"}, "choose the approximation exact"),
        ({"affinity": "lle"}, "choose auto or mixed"),
    ],
)
def test_what_does_not_go_together_is_told(settings, sentence):
    model = EmbeddingGame(
        **to_parameters({"method": "ee_spectral_direction", **settings})
    )
    with pytest.raises(InputError, match=sentence):
        model.fit(BLOBS)


def test_its_repulsion_can_be_chosen():
    maps = [
        EmbeddingGame(
            method="ee_spectral_direction", repulsion=repulsion, random_state=0
        ).fit_transform(BLOBS)
        for repulsion in (100, 1000)
    ]
    assert maps[0].std() < maps[1].std()
