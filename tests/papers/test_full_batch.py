"""Minimisers in the place of the game."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core import pipeline
from napari_embedding_game.core.dynamics.play import FITTING
from napari_embedding_game.core.energy.methods import METHODS, OPTIMIZERS
from napari_embedding_game.core.energy.objective import AllPairs
from napari_embedding_game.core.energy.pair_sums import CompiledForces
from napari_embedding_game.core.energy.pressure import pressure
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import (
    Settings,
    choose,
    optimizers,
    resolve,
)
from napari_embedding_game.papers import full_batch
from napari_embedding_game.papers.minimizers import homotopy, lbfgs, spectral_direction
from napari_embedding_game.papers.pressured_points import pressured_points

N = 200
X = make_blobs(N, 6, centers=5, cluster_std=5, random_state=0)[0].astype(np.float32)


def started(method, d=2, **changes):
    start = Settings(
        method=method, perplexity=8, n_components=d, init="pca", n_jobs=1, **changes
    )
    start = resolve(start)
    return start, *pipeline.place(pipeline.neighbors(X, start), X, start)


@pytest.fixture(scope="module")
def ee():
    return started("ee")


def begin(of, optimizer, method="ee", driving=None, **settings):
    start, edges, layout = of
    settings = {"method": method, "n_landmarks": 12, **settings}
    settings = replace(start, optimizer=optimizer, **settings)
    return pipeline.begin(edges, layout, settings, **(driving or {}))


def objective(edges, method="ee", repulsion=None):
    member = METHODS[method]
    forces = CompiledForces(edges, 1, member.attraction, member.kernel)
    repulsion = member.lambda_scale(edges) * (repulsion or member.repulsion)
    return AllPairs(forces, repulsion, member.aggregate)


def directly(edges, layout, optimizer, **settings):
    """The energies of a minimiser that is driven by hand."""
    own = objective(edges, **settings)
    if optimizer != "pressured_points":
        by = {
            "spectral_direction": spectral_direction,
            "lbfgs": lbfgs,
            "homotopy": homotopy,
        }
        return list(by[optimizer](own, layout))
    stuck = list(spectral_direction(own, layout))
    found = list(pressured_points(own, stuck[-1].y))
    return found if found[-1].energy <= stuck[-1].energy else stuck


@pytest.mark.parametrize(
    "optimizer", ["spectral_direction", "lbfgs", "homotopy", "pressured_points"]
)
def test_it_ends_where_the_minimiser_ends(ee, optimizer):
    game = begin(ee, optimizer)
    first = next(game)
    assert (first.iteration, first.n_iter) == (0, 0)
    np.testing.assert_array_equal(first.embedding, ee[2])
    last = list(game)[-1]
    end = directly(*ee[1:], optimizer)[-1]
    assert last.finished
    assert last.iteration == last.n_iter
    assert last.energy == pytest.approx(end.energy, rel=1e-6)
    np.testing.assert_array_equal(last.embedding, end.y.astype(np.float32))


@pytest.mark.parametrize("method", ["ee", "tsne"])
@pytest.mark.parametrize("optimizer", ["spectral_direction", "lbfgs"])
def test_the_energy_never_rises_and_is_the_objectives(ee, method, optimizer):
    of = ee if method == "ee" else started(method)
    driving = {"frame_iterations": 1}
    snapshots = list(begin(of, optimizer, method, driving, max_iter=25))
    own = objective(of[1], method)
    for snapshot in snapshots[:30:5]:
        y = torch.tensor(snapshot.embedding)
        energy = own.evaluate(y, y[:1])[0]
        assert snapshot.energy == pytest.approx(energy, rel=1e-6)
    energies = [snapshot.energy for snapshot in snapshots]
    assert energies[25] < energies[0]
    assert all(b <= a for a, b in pairwise(energies))


def test_pressured_points_never_end_above_their_spectral_start(ee):
    of = (*ee[:2], 0.1 * np.random.default_rng(0).normal(size=(N, 2)))
    ends = [
        list(begin(of, optimizer, repulsion=1000.0))[-1].energy
        for optimizer in ("spectral_direction", "pressured_points")
    ]
    assert ends[1] < ends[0]  # here below it; never above it, see the next test


def test_it_goes_back_where_pressured_points_find_nothing_lower(ee, monkeypatch):
    def upwards(objective, layout, **settings):
        stuck = list(pressured_points(objective, layout, max_iter=2))
        return (step._replace(y=step.y + 1, energy=1e9) for step in stuck)

    monkeypatch.setattr(full_batch, "pressured_points", upwards)
    *_, stuck = begin(ee, "spectral_direction")
    *_, last = begin(ee, "pressured_points")
    np.testing.assert_array_equal(last.embedding, stuck.embedding)
    assert last.energy == stuck.energy


def test_the_most_iterations_are_those_of_the_points(ee):
    snapshots = list(begin(ee, "lbfgs", driving={"frame_iterations": 1}, max_iter=7))
    moved = [np.any(a.embedding != b.embedding) for a, b in pairwise(snapshots)]
    assert moved == [True] * 7 + [False] * FITTING
    assert [s.iteration for s in snapshots] == list(range(7 + FITTING + 1))
    *_, stuck = begin(ee, "pressured_points", max_iter=5)
    assert stuck.iteration == 5 + FITTING


def test_landmarks_settle_and_pressure_is_that_of_all_pairs(ee):
    snapshots = list(begin(ee, "spectral_direction", max_iter=6))
    moving = [s for s in snapshots if s.iteration <= 6]
    for snapshot in moving:
        rows = {tuple(row) for row in snapshot.embedding}
        assert all(tuple(row) in rows for row in snapshot.landmarks)
    last = snapshots[-1]
    assert not np.array_equal(last.landmarks, moving[-1].landmarks)
    apart = np.square(last.embedding[:, None] - last.landmarks[None]).sum(axis=2)
    np.testing.assert_array_equal(last.labels, apart.argmin(axis=1))
    y = torch.tensor(last.embedding)
    wanted = pressure(objective(ee[1]), y, y[:1])[1]
    np.testing.assert_allclose(last.pressure, wanted, atol=1e-6)
    assert 0 < last.pressured_share < 1


def test_without_diagnosis_the_last_snapshot_is_the_same(ee):
    *rest, last = begin(ee, "lbfgs", driving={"diagnose": False}, max_iter=9)
    *_, seen = begin(ee, "lbfgs", max_iter=9)
    assert np.isnan(rest[0].energy)
    assert last.energy == seen.energy
    for name in ("embedding", "landmarks", "labels", "pressure"):
        np.testing.assert_array_equal(getattr(last, name), getattr(seen, name))


def test_it_is_not_steered(ee):
    playing = begin(ee, "lbfgs", driving={"frame_iterations": 1}, max_iter=4)
    undisturbed = list(playing)[-1]
    playing = begin(ee, "lbfgs", driving={"frame_iterations": 1}, max_iter=4)
    snapshot = next(playing)
    while not snapshot.finished:
        settings = Settings(method="ee", optimizer="lbfgs", repulsion=2000.0)
        snapshot = playing.send(settings)
    np.testing.assert_array_equal(snapshot.embedding, undisturbed.embedding)


def test_it_can_be_left_after_every_step(ee):
    for optimizer in optimizers("ee")[1:]:
        game = begin(ee, optimizer, driving={"frame_iterations": 1})
        seen = [next(game) for _ in range(3)]
        game.close()
        assert [s.iteration for s in seen] == [0, 1, 2]
        with pytest.raises(StopIteration):
            next(game)


@pytest.mark.parametrize("d", [1, 3])
def test_maps_of_one_and_three_dimensions(d):
    of = started("game", d)
    for optimizer in optimizers("game")[1:]:
        *_, last = begin(of, optimizer, "game", max_iter=8)
        assert last.embedding.shape == (N, d)
        assert last.landmarks.shape == (12, d)
        assert np.isfinite(last.embedding).all()


def test_which_optimisers_a_method_takes():
    stepped = "optimistic", "adaptive_rates"
    minimizers = "spectral_direction", "lbfgs", "homotopy", "pressured_points"
    assert optimizers("ee") == optimizers("ssne") == ("game", *minimizers, *stepped)
    assert optimizers("tsne") == optimizers("game")
    assert "homotopy" not in optimizers("tsne")
    assert optimizers("two_kernel_lle") == ("game", "lbfgs", *stepped)
    pushed = ("game", "lbfgs", *stepped)
    assert optimizers("game", "lle") == optimizers("ee", "lle") == pushed
    assert optimizers("two_kernel_lle", "uniform") == optimizers("game")
    assert optimizers("umap") == ("game", *stepped)
    assert optimizers("pca") == ("game",)
    assert choose("ee", None, "lbfgs")[1] == choose("ee", "exact", "lbfgs")[1]
    assert choose("ee", None, "lbfgs")[1] == "exact"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"optimizer": "adam"}, "optimizer must be"),
        ({"approximation": "landmarks"}, "choose the approximation exact"),
        (
            {"optimizer": "pressured_points", "approximation": "mesh"},
            "does not take mesh: choose the approximation exact, or the optimizer game",
        ),
        ({"method": "tsne", "optimizer": "homotopy"}, "many minima"),
        ({"method": "umap"}, "not defined for all pairs.* Choose game"),
        ({"repulsion": -1.0}, "above 0"),
        ({"n_landmarks": 0}, "at least 1"),
        ({"max_iter": 0}, "at least 1"),
    ],
)
def test_what_does_not_go_together_is_told(ee, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        next(begin(ee, **{"optimizer": "lbfgs", **settings}))


@pytest.mark.parametrize("method", ["two_kernel_lle", "ee", "game"])
def test_edges_that_push_are_told(method, monkeypatch):
    of = started(method, affinity="lle")
    words = r"only pull.* lle push. Choose game or lbfgs"
    with pytest.raises(InputError, match=words):
        next(begin(of, "spectral_direction", method))
    monkeypatch.setattr(pipeline, "neighbors", lambda *_: pytest.fail("it searched"))
    asked = EmbeddingGame(
        method=method,
        method_params={"affinity": "lle", "optimizer": "pressured_points"},
    )
    with pytest.raises(InputError, match=words):
        asked.fit(X)


def test_edges_that_only_pull_are_followed_under_a_method_of_others():
    of = started("two_kernel_lle", affinity="uniform")
    shown = list(begin(of, "spectral_direction", "two_kernel_lle", max_iter=2))
    assert shown[-1].energy < shown[0].energy


def test_too_many_points_are_told_with_the_way_out(ee, monkeypatch):
    for name in ("lbfgs", "pressured_points"):
        few = replace(OPTIMIZERS[name], most_points=N - 1)
        monkeypatch.setitem(OPTIMIZERS, name, few)
        with pytest.raises(InputError, match="200 of them: choose the optimizer game"):
            next(begin(ee, name))


def test_a_homotopy_does_not_stay_on_a_line():
    with pytest.raises(InputError, match="2 or 3 dimensions"):
        next(begin(started("ee", 1), "homotopy"))


def test_a_game_does_not_become_a_minimiser(ee):
    game = begin(ee, "game")
    next(game)
    with pytest.raises(InputError, match="begin a new run"):
        game.send(Settings(method="ee", optimizer="lbfgs"))


def test_the_seed_shakes_a_homotopy(ee):
    maps = []
    for seed in (0, 0, 1):
        of = replace(ee[0], random_state=seed), *ee[1:]
        maps.append(list(begin(of, "homotopy", max_iter=30))[-1].embedding)
    np.testing.assert_array_equal(maps[0], maps[1])
    assert not np.array_equal(maps[0], maps[2])


def test_points_whose_sum_is_lost_in_rounding_are_no_place_to_go():
    edges = started("ssne")[1]
    own = objective(replace(edges, weights=edges.weights.astype(np.float64)), "ssne")
    y = 1e3 * torch.arange(2 * N, dtype=torch.float64).reshape(N, 2)
    energy, gradient, _ = own.evaluate(y, y[:1])
    assert energy > np.log(N * (N - 1))  # that of all points at one place
    assert np.isfinite(gradient.numpy()).all()
