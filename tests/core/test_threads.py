import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numba
import pytest
import torch

from napari_embedding_game.core import threads
from napari_embedding_game.core.energy import pair_loops, pressure_solver
from napari_embedding_game.core.threads import (
    PARALLEL_WORK,
    ThreadChoice,
    numba_threads,
    one_torch_thread,
    resolve_n_jobs,
)


class Clock:
    """A clock that only work moves."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(threads, "time", clock)
    return clock


def work(choice, clock, seconds, times):
    """Which way each of ``times`` pieces of work went: 1 or 2 threads."""
    ways = []
    for _ in range(times):
        with choice.threads_for(PARALLEL_WORK) as n_threads:
            clock.now += seconds[n_threads]
        ways.append(n_threads)
    return ways


def test_small_work_and_single_threads_are_serial(clock):
    for choice, size in [
        (ThreadChoice(8), PARALLEL_WORK - 1),
        (ThreadChoice(1), 10 * PARALLEL_WORK),
    ]:
        with choice.threads_for(size) as n_threads:
            assert n_threads == 1


@pytest.mark.parametrize("faster", [1, 2])
def test_the_faster_way_wins_and_the_slower_is_tried_ever_more_rarely(clock, faster):
    seconds = {1: 2.0, 2: 2.0, faster: 1.0}
    ways = work(ThreadChoice(2), clock, seconds, 2000)
    trials = [i for i, way in enumerate(ways) if way != faster]
    assert set(ways) == {1, 2}
    assert len(trials) < 40
    gaps = [later - earlier for earlier, later in pairwise(trials)]
    assert gaps[-1] > 200


def test_when_the_other_way_becomes_faster_it_is_found(clock):
    choice = ThreadChoice(2)
    work(choice, clock, {1: 2.0, 2: 1.0}, 500)
    held = {1: 2.0, 2: 50.0}  # the window has taken the second core
    ways = work(choice, clock, held, 300)
    assert ways.count(2) < 20
    free_again = work(choice, clock, {1: 2.0, 2: 1.0}, 3000)
    assert free_again[-200:].count(2) > 190


@pytest.mark.parametrize("slow", [1, 2])
def test_a_first_time_that_compiles_tells_nothing(clock, slow):
    choice, seconds = ThreadChoice(2), {1: 2.0, 2: 1.0}
    ways = []
    for _ in range(500):
        with choice.threads_for(PARALLEL_WORK) as n_threads:
            is_first = n_threads not in ways
            clock.now += 30.0 if is_first and n_threads == slow else seconds[n_threads]
        ways.append(n_threads)
    assert ways.count(2) > 450


def test_an_error_in_the_work_is_not_swallowed(clock):
    with pytest.raises(ZeroDivisionError), ThreadChoice(2).threads_for(PARALLEL_WORK):
        1 / 0  # noqa: B018


@pytest.mark.parametrize(
    ("cores", "n_jobs", "n_threads"),
    [
        (1, None, 1),
        (2, None, 2),
        (3, None, 2),
        (8, None, 7),
        (8, -1, 8),
        (8, -2, 7),
        (2, -5, 1),
        (8, 3, 3),
        (8, 0, 1),
    ],
)
def test_thread_counts(monkeypatch, cores, n_jobs, n_threads):
    monkeypatch.setattr(threads, "n_cores", lambda: cores)
    assert resolve_n_jobs(n_jobs) == n_threads


def test_cores_are_those_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 5, 6}, raising=False)
    assert threads.n_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert threads.n_cores() == 6


def test_thread_counts_of_the_libraries_come_back():
    before = numba.get_num_threads(), torch.get_num_threads()
    with numba_threads(1), one_torch_thread():
        assert (numba.get_num_threads(), torch.get_num_threads()) == (1, 1)
    assert (numba.get_num_threads(), torch.get_num_threads()) == before


def test_more_threads_than_numba_has_are_not_asked_for():
    with numba_threads(10_000):
        assert numba.get_num_threads() == numba.config.NUMBA_NUM_THREADS


def test_two_fits_in_threads_are_each_as_alone():
    """numba's default layer ends a process that is in two parallel loops at once."""
    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name("two_fits.py")],
        env=os.environ
        | {"NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


@pytest.mark.parametrize("module", [pair_loops, pressure_solver])
def test_loops_that_take_turns_may_not_change_digits(module):
    """Without these flags a compiler keeps the order of sums and each rounding."""
    loops = [loop for loop in vars(module).values() if hasattr(loop, "targetoptions")]
    assert any(loop.targetoptions.get("parallel") for loop in loops)
    for loop in loops:
        flags = loop.targetoptions.get("fastmath") or ()
        assert set(flags) <= {"nnan", "ninf", "nsz"}, loop


def test_who_finds_a_parallel_loop_taken_goes_alone(clock):
    choice = ThreadChoice(2)
    with threads.PARALLEL:
        assert set(work(choice, clock, {1: 1.0, 2: 1.0}, 20)) == {1}
    assert 2 in work(choice, clock, {1: 2.0, 2: 1.0}, 20)
    assert not threads.PARALLEL.locked()


@pytest.mark.parametrize("late", [1, 2])
def test_the_first_call_of_each_way_which_may_compile_is_not_counted(clock, late):
    choice = ThreadChoice(2)
    seconds = {1: 2.0, 2: 2.0, late: 1.0}
    work(choice, clock, seconds | {late: 500.0}, 1 if late == 1 else 3)
    assert clock.now > 400
    assert work(choice, clock, seconds, 500).count(late) > 450
