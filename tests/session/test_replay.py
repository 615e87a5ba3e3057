"""Runs that were paused, stepped, steered and played on, and done once more."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.run.record import RunRecord, Steering, record
from napari_embedding_game.session.run.replay import replay, same
from napari_embedding_game.session.run.run import UNPACED, Run

X = make_blobs(300, 6, centers=5, random_state=0)[0].astype(np.float32)
CHOSEN = Settings(
    n_neighbors=8, init="pca", affinity="mixed", n_landmarks=20, max_iter=120
)


def played(acts):
    """Play in this thread; ``acts`` tells what to do once an iteration is reached."""
    run = Run(X, CHOSEN, pace=UNPACED)
    acts, last = dict(acts), None
    for frame in run.frames():
        if frame.snapshot is None:
            continue
        last = frame.snapshot
        due = [i for i in acts if i <= last.iteration]
        for iteration in due:
            acts.pop(iteration)(run)
        if last.finished and not due:
            run.stop()
    return run, last


def steer(**changes):
    return lambda run: run.steer(replace(CHOSEN, **changes))


@pytest.mark.parametrize(
    "acts",
    [
        {},
        {20: steer(repulsion=900.0)},
        {10: steer(n_landmarks=7), 50: steer(n_landmarks=30, learning_rate=0.1)},
        {
            0: steer(approximation="sampled_landmarks"),
            60: steer(approximation="sampled_edges"),
        },
        {120: steer(repulsion=50.0)},
        {30: steer(max_iter=40), 35: steer(schedule="paper", max_iter=60)},
    ],
)
def test_steered_and_played_on(acts):
    run, last = played(acts)
    assert len(run.played.steered) == len(acts)
    again = replay(X, record(run, last))
    assert same(again, last)
    assert again.n_iter == last.n_iter


@pytest.mark.parametrize("until", [0, 15, 130])
@pytest.mark.parametrize("method", ["pca", "pca_low_rank"])
def test_pca_stopped_on_the_way_and_while_landmarks_settle(method, until):
    settings = Settings(
        n_neighbors=8,
        init="pca",
        affinity="inner_products",
        method=method,
        max_iter=30,
    )
    run = Run(X, settings, pace=UNPACED)
    for frame in run.frames():
        if frame.snapshot is not None:
            last = frame.snapshot
            if last.iteration >= until or last.finished:
                run.stop()
    assert last.iteration == until
    assert last.finished == (until == 130)
    assert same(replay(X, record(run, last)), last)


@pytest.mark.usefixtures("torch")
def test_paused_stepped_and_stopped_in_the_middle():
    run = Run(X, CHOSEN, pace=UNPACED)
    shown, is_held = [], threading.Event()

    def iterate():
        for frame in run.frames():
            if frame.snapshot is not None:
                shown.append(frame.snapshot)
                if len(shown) == 2:
                    run.pause()
                is_held.set()

    thread = threading.Thread(target=iterate)
    thread.start()
    for n_shown in (2, 3, 4, 5):
        end = time.monotonic() + 60
        while len(shown) < n_shown:
            assert time.monotonic() < end
            is_held.wait(0.01)
        if n_shown == 3:
            run.steer(replace(CHOSEN, repulsion=800.0))
        if n_shown < 5:
            run.step()
    run.stop()
    thread.join(60)
    last = shown[-1]
    assert not last.finished
    assert [iteration for iteration, _ in run.played.steered] == [shown[2].iteration]
    assert same(replay(X, record(run, last)), last)


@pytest.mark.parametrize(
    ("iterations", "n_iter"), [((5, 5), 10), ((7, 3), 10), ((10,), 10), ((-1,), 10)]
)
def test_a_record_that_cannot_be_true(iterations, n_iter):
    steered = tuple(Steering(iteration=i, settings=CHOSEN) for i in iterations)
    with pytest.raises(DataError, match="out of order"):
        replay(X, RunRecord(settings=CHOSEN, steered=steered, n_iter=n_iter))
