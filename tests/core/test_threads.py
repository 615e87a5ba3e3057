"""Work that is shared among threads: all of it, once, with the same bits."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from napari_embedding_game.core import threads
from napari_embedding_game.core.energy import mesh_loops, pair_loops, pressure
from napari_embedding_game.core.graph.edges import edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.start import start_layout
from napari_embedding_game.core.threads import (
    PARALLEL_WORK,
    resolve_n_jobs,
    run_blocks,
)


@pytest.fixture
def little_is_much(monkeypatch):
    """Share even a few rows among threads, of which there are enough."""
    monkeypatch.setattr(threads, "PARALLEL_WORK", 0)


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


def test_small_work_and_single_threads_stay_in_this_thread():
    calls = []
    run_blocks(lambda *block: calls.append(block), 10, PARALLEL_WORK - 1, 8)
    run_blocks(lambda *block: calls.append(block), 10, 10 * PARALLEL_WORK, 1)
    assert calls == [(0, 10), (0, 10)]


@pytest.mark.parametrize("n", [0, 1, 2, 7, 101])
def test_every_row_is_done_once(little_is_much, n):
    done = np.zeros(n, int)

    def add(begin, end, number):
        done[begin:end] += number

    run_blocks(add, n, 1, 3, 5)
    np.testing.assert_array_equal(done, 5)


def test_two_threads_work_at_once(little_is_much):
    both = threading.Barrier(2, timeout=60)
    run_blocks(lambda begin, end: both.wait(), 2, 1, 2)


def test_where_all_other_threads_are_held_up_this_one_does_all(little_is_much):
    is_held, free = threading.Event(), threading.Event()

    def hold():
        is_held.set()
        free.wait(60)

    pool = threads._pool()
    held = [pool.submit(hold) for _ in range(pool._max_workers)]
    is_held.wait(60)
    done_by = set()
    run_blocks(lambda *_: done_by.add(threading.current_thread()), 50, 1, 2)
    free.set()
    for each in held:
        each.result()
    assert done_by == {threading.current_thread()}


def test_an_error_in_any_thread_is_raised(little_is_much):
    both = threading.Barrier(2, timeout=60)

    def job(begin, end):
        both.wait()
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_blocks(job, 2, 1, 2)
    with pytest.raises(ZeroDivisionError):
        run_blocks(lambda begin, end: 1 / 0, 9, 1, 3)


def test_edges_and_start_are_the_same_for_any_number_of_threads(little_is_much):
    X = np.random.default_rng(0).normal(size=(203, 6)).astype(np.float32)
    X[40:60] = X[0]  # distances of 0
    found = knn_graph(X, 12, n_jobs=1)
    for affinity in ("mixed", "fuzzy", "entropic"):
        one, *others = (edges(found, affinity, X=X, n_jobs=n) for n in (1, 2, 7))
        for other in others:
            np.testing.assert_array_equal(one.weights, other.weights)
    one, *others = (start_layout(other, X, n_jobs=n) for n in (1, 2, 7))
    for other in others:
        np.testing.assert_array_equal(one, other)


def test_two_fits_in_threads_are_each_as_alone():
    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name("two_fits.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


@pytest.mark.parametrize("module", [pair_loops, pressure, mesh_loops])
def test_loops_may_not_change_digits(module):
    """Without these flags a compiler keeps the order of sums and each rounding."""
    loops = [loop for loop in vars(module).values() if hasattr(loop, "targetoptions")]
    assert loops
    for loop in loops:
        flags = loop.targetoptions.get("fastmath") or ()
        assert set(flags) <= {"nnan", "ninf", "nsz"}, loop
        assert not loop.targetoptions.get("parallel")
