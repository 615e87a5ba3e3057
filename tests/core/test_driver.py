"""The driver, with layouts that can be foretold."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from napari_embedding_game.core import settings as choices
from napari_embedding_game.core.dynamics import play as play_module
from napari_embedding_game.core.dynamics.play import FITTING, play
from napari_embedding_game.core.dynamics.state import Layouts, State
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import Settings

N_STEPS = 5


def drift(layout, n_iter=0, width=1.0):
    """Every step moves all points by ``width``; the energy is minus the steps."""
    y = torch.tensor(layout)
    yield State(0, n_iter, y, energy=0.0)
    for iteration in range(1, N_STEPS + 1):
        y += width
        yield State(iteration, n_iter, y, energy=float(-iteration))


@pytest.fixture
def drifting(make_problem, monkeypatch):
    problem = make_problem(40, 2, 1)
    monkeypatch.setattr(play_module, "FRAME_SECONDS", 60.0)

    def begin(frame_iterations=1, diagnose=True, **moves):
        layout = problem.y.numpy()
        states = drift(layout, **moves)
        layouts = Layouts(states)
        monkeypatch.setattr(play_module, "make_mover", lambda *_: layouts)
        settings = Settings(method="pca", n_landmarks=4)
        options = {"frame_iterations": frame_iterations, "diagnose": diagnose}
        return play(problem.edges, layout, settings, **options)

    return begin


def test_the_start_every_step_and_then_the_landmarks_are_seen(drifting):
    playing = drifting()
    seen = list(playing)
    assert [s.iteration for s in seen] == list(range(N_STEPS + FITTING + 1))
    assert [s.finished for s in seen] == [False] * (len(seen) - 1) + [True]
    steps = [(b.embedding - a.embedding).mean() for a, b in pairwise(seen)]
    assert steps == pytest.approx([1.0] * N_STEPS + [0.0] * FITTING, abs=1e-6)
    assert not np.array_equal(seen[-1].landmarks, seen[N_STEPS].landmarks)
    assert {s.energy for s in seen[N_STEPS:]} == {-float(N_STEPS)}


@pytest.mark.parametrize("n_iter", [0, N_STEPS])
def test_the_end_is_told_once_it_is_known(drifting, n_iter):
    playing = drifting(n_iter=n_iter)
    seen = [s.n_iter for s in playing]
    assert set(seen[: N_STEPS + 1]) == {n_iter + FITTING if n_iter else 0}
    assert set(seen[N_STEPS + 1 :]) == {N_STEPS + FITTING}


@pytest.mark.parametrize("method", ["game", "umap_exact"])
def test_all_pairs_of_too_many_points_are_refused(make_problem, monkeypatch, method):
    problem = make_problem(60, 2, 3, "fuzzy")
    start = problem.y.numpy()
    settings = Settings(method=method, approximation="exact", max_iter=2)
    for _ in play(problem.edges, start, settings):
        pass
    monkeypatch.setattr(choices, "MAX_EXACT", 59)
    way = "landmarks" if method == "game" else "another method"
    with pytest.raises(InputError, match=rf"too long for 60 .*choose .*{way}"):
        next(play(problem.edges, start, settings))


def test_a_gpu_with_too_little_memory_is_told_with_the_way_out(drifting, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    playing = drifting()
    monkeypatch.setattr(play_module, "make_mover", full)
    with pytest.raises(InputError, match="choose the device cpu") as told:
        next(playing)
    assert told.value.remedy == {"device": "cpu"}
