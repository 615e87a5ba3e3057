"""The driver, with a dynamic whose steps can be foretold."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from napari_embedding_game.core.dynamics import driver
from napari_embedding_game.core.dynamics.driver import FITTING, play
from napari_embedding_game.core.dynamics.state import ANYWHERE, State
from napari_embedding_game.core.energy import valid_combinations
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.types import GameSettings

N_STEPS = 5


class Drift:
    """Every step moves all points by 1; the energy is minus the steps."""

    is_steered = True
    shows_every_step = False
    farthest = ANYWHERE
    way_back = "stand still"
    objective = None
    places = None
    fitting = GameSettings(n_landmarks=4)

    def __init__(self, layout, n_iter=0, width=1.0):
        self.y = torch.tensor(layout)
        self.n_iter, self.width, self.iteration = n_iter, width, 0

    def steps(self, settings):
        self.taken_up = settings
        yield self.state()
        for _ in range(N_STEPS):
            self.iteration += 1
            self.y += self.width
            yield self.state()

    def state(self):
        energy = float(-self.iteration)
        return State(self.iteration, self.n_iter, self.y, energy=energy)


@pytest.fixture
def drifting(make_problem, monkeypatch):
    problem = make_problem(40, 2, 1)
    monkeypatch.setattr(driver, "FRAME_SECONDS", 60.0)

    def begin(frame_iterations=1, diagnose=True, **traits):
        moves = {key: traits.pop(key) for key in ("n_iter", "width") if key in traits}
        drift = Drift(problem.y.numpy(), **moves)
        for name, value in traits.items():
            setattr(drift, name, value)
        monkeypatch.setattr(driver, "make_dynamic", lambda *_: drift)
        settings = GameSettings(method="pca", n_landmarks=4)
        layout = problem.y.numpy()
        options = {"frame_iterations": frame_iterations, "diagnose": diagnose}
        return drift, play(problem.edges, layout, settings, n_jobs=1, **options)

    return begin


def test_the_start_every_step_and_then_the_landmarks_are_seen(drifting):
    _, playing = drifting()
    seen = list(playing)
    assert [s.iteration for s in seen] == list(range(N_STEPS + FITTING + 1))
    assert [s.finished for s in seen] == [False] * (len(seen) - 1) + [True]
    steps = [(b.embedding - a.embedding).mean() for a, b in pairwise(seen)]
    assert steps == pytest.approx([1.0] * N_STEPS + [0.0] * FITTING, abs=1e-6)
    assert not np.array_equal(seen[-1].landmarks, seen[N_STEPS].landmarks)
    assert {s.energy for s in seen[N_STEPS:]} == {-float(N_STEPS)}


@pytest.mark.parametrize("n_iter", [0, N_STEPS])
def test_the_end_is_told_once_it_is_known(drifting, n_iter):
    _, playing = drifting(n_iter=n_iter)
    seen = [s.n_iter for s in playing]
    assert set(seen[: N_STEPS + 1]) == {n_iter + FITTING if n_iter else 0}
    assert set(seen[N_STEPS + 1 :]) == {N_STEPS + FITTING}


def test_a_frame_has_as_many_steps_as_are_asked_for(drifting):
    _, playing = drifting(frame_iterations=lambda done: 2 if done < 4 else 60)
    assert [s.iteration for s in playing] == [0, 2, 4, 5, 65, 105]


def test_a_dynamic_with_strides_is_seen_at_each(drifting):
    _, playing = drifting(frame_iterations=None, shows_every_step=True)
    assert [next(playing).iteration for _ in range(4)] == [0, 1, 2, 3]


def test_sent_settings_go_on_from_the_present_points(drifting):
    drift, playing = drifting()
    for _ in range(N_STEPS + 4):
        before = next(playing)
    assert before.iteration == N_STEPS + 3  # the landmarks are being fitted
    sent = GameSettings(method="pca", n_landmarks=7)
    after = playing.send(sent)
    assert drift.taken_up is sent
    assert after.iteration == before.iteration + 1
    assert after.landmarks.shape == (7, 2)
    np.testing.assert_allclose(after.embedding, before.embedding + 1, rtol=1e-6)
    assert after.n_iter == 0
    *_, last = playing
    assert last.iteration == before.iteration + N_STEPS + FITTING


def test_what_cannot_be_steered_goes_its_way(drifting):
    drift, playing = drifting(is_steered=False)
    settings = GameSettings(method="pca", n_landmarks=4)
    next(playing)
    assert playing.send(settings).iteration == 1
    assert drift.taken_up is not settings
    *_, last = playing
    assert last.iteration == N_STEPS + FITTING


def test_points_beyond_the_map_are_told_with_the_dynamics_own_advice(drifting):
    _, playing = drifting(farthest=100.0, width=60.0)
    next(playing)
    next(playing)
    with pytest.raises(InputError, match="run off the map: stand still"):
        next(playing)


def test_without_diagnosis_only_the_last_energy_is_told(drifting):
    _, playing = drifting(diagnose=False)
    *rest, last = playing
    assert all(math.isnan(s.energy) for s in rest)
    assert last.energy == -N_STEPS


@pytest.mark.parametrize("method", ["game", "umap_exact"])
def test_all_pairs_of_too_many_points_are_refused(make_problem, monkeypatch, method):
    problem = make_problem(60, 2, 3, "fuzzy")
    start = problem.y.numpy()
    settings = GameSettings(method=method, approximation="exact", max_iter=2)
    for _ in play(problem.edges, start, settings):
        pass
    monkeypatch.setattr(valid_combinations, "MOST_EXACT", 59)
    way = "landmarks" if method == "game" else "another method"
    with pytest.raises(InputError, match=rf"too long for 60 .*choose .*{way}"):
        next(play(problem.edges, start, settings))


@pytest.mark.parametrize(("most", "second"), [(0, 0.0), (50_000, -1.0)])
def test_the_energy_of_large_data_has_a_share_of_the_time(
    drifting, monkeypatch, most, second
):
    monkeypatch.setattr(driver, "ALWAYS_MEASURED", most)
    monkeypatch.setattr(driver, "SHARE_OF_TIME", 1e-12)
    _, playing = drifting()
    energies = [snapshot.energy for snapshot in playing]
    assert energies[:2] == [0.0, second]
    assert energies[-1] == -N_STEPS


class Full(Drift):
    """A dynamic on a GPU that runs out of memory after two steps."""

    def steps(self, settings):
        for state, _ in zip(super().steps(settings), range(3), strict=False):
            yield state
        raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize("steps_before", [0, 2])
def test_the_processor_goes_on_where_a_gpu_has_too_little_memory(
    make_problem, monkeypatch, steps_before
):
    make_dynamic = driver.make_dynamic

    def on_a_small_gpu(problem, settings):
        if problem.device.type == "cpu":
            return make_dynamic(problem, settings)
        if not steps_before:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return Full(problem.layout, n_iter=20)

    monkeypatch.setattr(driver, "resolve_device", lambda *_: torch.device("cuda"))
    monkeypatch.setattr(driver, "make_dynamic", on_a_small_gpu)
    problem = make_problem(40, 2, 4)
    layout = problem.y.numpy()
    settings = GameSettings(n_landmarks=40, max_iter=20)
    playing = play(
        problem.edges, layout, settings, n_jobs=1, frame_iterations=1, diagnose=False
    )
    seen = list(playing)
    assert [s.iteration for s in seen] == list(range(21))
    at = seen[steps_before]
    np.testing.assert_allclose(at.embedding, layout + steps_before, rtol=1e-5)
    assert seen[-1].finished
    assert not np.allclose(seen[-1].embedding, at.embedding)
    told = [s.warning == driver.GPU_IS_FULL for s in seen]
    assert told == [i > steps_before or not steps_before for i in range(21)]
