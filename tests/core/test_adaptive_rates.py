import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from napari_embedding_game.core.dynamics import driver as driver_module
from napari_embedding_game.core.dynamics.adaptive_rates import REACH, AdaptiveRates
from napari_embedding_game.core.dynamics.driver import play
from napari_embedding_game.core.dynamics.optimizer import PlayerRMS, resolve_schedule
from napari_embedding_game.core.graph.affinities import edges
from napari_embedding_game.core.graph.initialization import start_layout
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.metrics import true_energy
from napari_embedding_game.core.types import GameSettings

ADAPTIVE = GameSettings(adaptive_rates=True, n_landmarks=40)


@pytest.fixture(autouse=True)
def patient_frames(monkeypatch):
    """Only ``frame_iterations`` ends a frame, however busy the machine is."""
    monkeypatch.setattr(driver_module, "FRAME_SECONDS", 60.0)


@pytest.fixture(scope="module")
def blobs():
    """Edges and start layout of five groups of 60 rows."""
    X, _ = make_blobs(300, 10, centers=5, random_state=1)
    found = edges(knn_graph(X, n_jobs=1), "fuzzy")
    return found, start_layout(found, X)


@pytest.fixture(scope="module")
def usual(blobs):
    """The energy of the map of fixed rates, those of the schedule."""
    return energy_of(blobs, last_of(blobs, replace(ADAPTIVE, adaptive_rates=False)))


def energy_of(blobs, snapshot):
    return true_energy(blobs[0], snapshot.embedding, 1.0)


def last_of(blobs, settings, **options):
    options = {"n_jobs": 1, "diagnose": False, **options}
    return next(s for s in play(*blobs, settings, **options) if s.finished)


def rates_of(points, landmarks):
    settings = GameSettings(learning_rate=points, landmark_learning_rate=landmarks)
    return AdaptiveRates(resolve_schedule(settings))


# --- Whatever rates are given, the map is good


@pytest.mark.parametrize(
    "given", [(1e-4, 1e-4), (1e-4, 30.0), (30.0, 1e-4), (30.0, 30.0)]
)
def test_rates_far_off_find_back_to_a_good_map(blobs, usual, given):
    y, z = given
    far = replace(ADAPTIVE, learning_rate=y, landmark_learning_rate=z)
    lost, back = last_of(blobs, replace(far, adaptive_rates=False)), last_of(blobs, far)
    assert lost.warning
    assert not back.warning
    assert energy_of(blobs, back) < 1.02 * usual < energy_of(blobs, lost)


def test_without_steps_nothing_moves(blobs):
    still = replace(ADAPTIVE, learning_rate=0.0, max_iter=20)
    np.testing.assert_array_equal(last_of(blobs, still).embedding, blobs[1])


# --- The same bits


@pytest.mark.parametrize("update", ["momentum", "omd"])
def test_neither_threads_nor_frames_change_a_bit(blobs, monkeypatch, update):
    monkeypatch.setattr("napari_embedding_game.core.threads.PARALLEL_WORK", 0)
    settings = replace(ADAPTIVE, max_iter=40, update=update)
    one = last_of(blobs, settings, frame_iterations=1, diagnose=True)
    two = last_of(blobs, settings, n_jobs=2)
    np.testing.assert_array_equal(one.embedding, two.embedding)
    np.testing.assert_array_equal(one.landmarks, two.landmarks)


# --- The rule


def test_a_rate_grows_where_steps_go_on_and_shrinks_where_they_go_back():
    rates = rates_of(0.01, 0.01)
    rates.adapt([1.0, 0.0], 0.0)
    points, landmarks = rates.rates
    assert points / 0.01 == pytest.approx(math.exp(0.2 * 0.9))
    assert landmarks / 0.01 == pytest.approx(math.exp(-0.2 * 0.1))


def test_no_rate_passes_the_reach_of_the_kernel_and_0_stays_0():
    rates = rates_of(30.0, 0.0)
    assert rates.rates == [REACH, 0.0]
    for _ in range(50):
        rates.adapt([1.0, 1.0], 0.1)
    assert rates.rates == [REACH, 0.0]


def test_where_the_schedule_goes_back_so_do_the_rates():
    rates = rates_of(0.3, 0.5)
    rates.adapt([0.5, 0.05], 0.5)
    at_half = list(rates.rates)
    for done in np.linspace(0.6, 1, 50):
        rates.adapt([0.0, 0.0], done)
    assert max(rates.rates) < 0.3 * min(at_half)
    rates.adapt([0.1, 0.1], 0.5)  # as wanted there
    assert rates.rates == pytest.approx(at_half)


def test_a_rate_at_rest_can_come_back():
    rates = rates_of(0.3, 0.5)
    for _ in range(5_000):
        rates.adapt([0.0, 0.0], 0.1)
    for _ in range(100):
        rates.adapt([1.0, 1.0], 0.2)
    assert rates.rates == [REACH, REACH]


@pytest.mark.parametrize(
    ("signs", "least", "most"),
    [([1] * 40, 0.999, 1.001), ([1, -1] * 20, 0.0, 0.06)],
)
def test_the_average_direction_tells_straight_steps_from_steps_back(signs, least, most):
    p = torch.zeros(4, requires_grad=True)
    optimizer = PlayerRMS([p])
    optimizer.param_groups[0]["followed"] = True
    assert optimizer.length(p) is None
    for sign in signs:
        p.grad = 7.0 * sign * torch.tensor([1.0, -2.0, 0.5, 3.0])
        optimizer.step()
    assert least <= optimizer.length(p) <= most
