"""Runs that were paused, stepped, steered and played on, and done once more."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.run.record import RunRecord, Steering, make_record
from napari_embedding_game.session.run.replay import is_same_layout
from napari_embedding_game.session.run.run import UNPACED, GameRun
from worlds import replay

X = make_blobs(300, 6, centers=5, random_state=0)[0].astype(np.float32)
CHOSEN = Settings(
    n_neighbors=8, init="pca", affinity="mixed", n_landmarks=20, max_iter=120
)


def played(acts):
    """Play in this thread; ``acts`` tells what to do once an iteration is reached."""
    run = GameRun(lambda: X, CHOSEN, pace=UNPACED)
    acts, last = dict(acts), None
    for frame in run.iter_progress():
        if frame.snapshot is None:
            continue
        last = frame.snapshot
        due = [i for i in acts if i <= last.iteration]
        for iteration in due[:1]:  # a frame may come late; of two requests one counts
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
    again = replay(X, make_record(run, last))
    assert is_same_layout(again, last)
    assert again.n_iter == last.n_iter


@pytest.mark.parametrize(
    ("iterations", "n_iter"), [((5, 5), 10), ((7, 3), 10), ((10,), 10), ((-1,), 10)]
)
def test_a_record_that_cannot_be_true(iterations, n_iter):
    steered = tuple(Steering(iteration=i, settings=CHOSEN) for i in iterations)
    with pytest.raises(DataError, match="out of order"):
        replay(X, RunRecord(settings=CHOSEN, steered=steered, n_iter=n_iter))
