"""Run control, with the frames iterated in a thread as the window does."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from napari_embedding_game.core import pipeline, threads
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import Settings, fill_affinity
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.session.run import run as run_module
from napari_embedding_game.session.run.run import (
    NEIGHBORS,
    PLACING,
    PLAYING,
    UNPACED,
    WAITING,
    GameRun,
)

X = np.zeros((40, 5), np.float32)


class Driven:
    """A run that is iterated in a thread."""

    def __init__(self, engine, pace=UNPACED, settings=None):
        self.run = GameRun(lambda: X, settings or Settings(), engine=engine, pace=pace)
        self.frames = []
        self.thread = threading.Thread(target=self._iterate, daemon=True)
        self.thread.start()

    def _iterate(self):
        for frame in self.run.iter_progress():
            self.frames.append(frame)

    @property
    def iteration(self):
        shown = [f.snapshot.iteration for f in self.frames if f.snapshot]
        return shown[-1] if shown else -1

    def wait(self, condition):
        end = time.monotonic() + 60  # numba may compile first
        while not condition():
            assert time.monotonic() < end, "waited for a minute"
            time.sleep(0.002)

    def wait_for(self, iteration):
        self.wait(lambda: self.iteration == iteration)

    def stays_at(self, iteration):
        time.sleep(0.05)
        return self.iteration == iteration

    def end(self):
        self.run.stop()
        self.thread.join(60)
        return not self.thread.is_alive()


@pytest.fixture
def drive(engine):
    driven = []

    def start(**keywords):
        driven.append(Driven(engine, **keywords))
        return driven[-1]

    yield start
    for one in driven:
        engine.gate.set()
        assert one.end()


def test_stages_in_their_order_and_idle_at_the_end_until_it_is_steered(drive):
    one = drive()
    one.wait_for(50)
    stages = list(dict.fromkeys(f.stage for f in one.frames))
    assert stages == [NEIGHBORS, PLACING, PLAYING]
    assert one.frames[-1].snapshot.finished
    assert one.stays_at(50)
    assert one.thread.is_alive()
    shown = [f.snapshot.iteration for f in one.frames if f.snapshot]
    assert shown == [0, 10, 20, 30, 40, 50]
    one.run.steer(Settings(repulsion=900.0))
    one.wait(lambda: one.iteration > 50)


def test_what_cannot_be_played_is_told_before_the_search(monkeypatch):
    monkeypatch.setattr(pipeline, "find_neighbors", lambda *_: pytest.fail("searched"))
    many = np.random.default_rng(0).normal(size=(10_001, 2)).astype(np.float32)
    settings = fill_affinity(Settings(method="ee_spectral_direction"))
    run = GameRun(lambda: many, settings)
    with pytest.raises(InputError, match="embed at most 10,000 rows"):
        list(run.iter_progress())


def test_a_run_waits_for_the_search_of_one_that_was_stopped(drive, engine):
    engine.gate.clear()
    former = drive()
    former.wait(lambda: COMPUTING.locked())
    former.run.stop()
    later = drive()
    later.wait(lambda: later.frames)
    assert later.frames[0].stage == WAITING
    engine.gate.set()
    later.wait_for(50)
    assert later.frames[1].stage == NEIGHBORS
    assert former.end()
    assert [frame.stage for frame in former.frames] == [NEIGHBORS]


def test_a_search_is_broken_off_between_two_blocks():
    done = []

    def neighbors(*_):
        def loop(*block):
            done.append(block)
            run.stop()

        with threads.limit_threads(1):
            threads.run_blocks(loop, 100, threads.SEARCH_WORK)

    run = GameRun(
        lambda: X, Settings(), engine=SimpleNamespace(find_neighbors=neighbors)
    )
    assert [frame.stage for frame in run.iter_progress()] == [NEIGHBORS]
    assert (len(done), COMPUTING.locked()) == (1, False)


def test_what_was_compiled_in_the_first_iteration_takes_no_time_later(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(run_module.time, "monotonic", lambda: now[0])
    clock, told = run_module.Clock(0.0), []
    for iteration in range(6):
        now[0] += 60 if iteration == 1 else 0.5
        frame = SimpleNamespace(iteration=iteration, n_iter=101)
        told.append(clock.estimate_seconds_left(frame))
        clock.compute_seconds_ahead(frame)
    assert told == [None, None, 49.5, 49.0, 48.5, 48.0]
