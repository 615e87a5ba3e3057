"""The threads: everything they do reaches the window, exceptions first of all."""

import threading
import time

import pytest
from qtpy.QtCore import QObject, QThread, QTimer

from napari_embedding_game.ui.connections import disconnect_all
from napari_embedding_game.ui.tasks.worker import (
    FRAME_SECONDS,
    JobRunner,
    Worker,
    count_running_workers,
)


def raising(error):
    def job():
        raise error

    return job


@pytest.mark.parametrize(
    "error",
    [RuntimeError("torch"), MemoryError(), SystemExit(1), StopIteration()],
    ids=lambda e: type(e).__name__,
)
def test_every_exception_arrives_in_the_window_thread(qtbot, error):
    worker = Worker(raising(error))
    arrived = []
    worker.failed.connect(lambda e: arrived.append((e, QThread.currentThread())))
    worker.start_thread()
    qtbot.waitUntil(lambda: bool(arrived) and not count_running_workers())
    assert arrived == [(error, worker.thread())]


def test_frames_are_skipped_but_never_the_last(qtbot):
    worker = Worker(lambda: (time.sleep(1e-4) or i for i in range(1, 1001)))
    seen = []
    worker.frame.connect(seen.append)
    began = time.monotonic()
    with qtbot.waitSignal(worker.ended):
        worker.start_thread()
    # Nobody holds it now: collected while its timer fires, it would end the program.
    assert not any(timer.isActive() for timer in worker.findChildren(QTimer))
    assert seen[-1] == 1000
    assert len(seen) <= 2 + (time.monotonic() - began) / FRAME_SECONDS
    assert seen == sorted(seen)


def test_every_frame_is_shown_that_is_waited_for(qtbot):
    shown, seen = threading.Semaphore(0), []

    def job():
        for number in range(4):
            yield number
            if not shown.acquire(timeout=20):  # else a failure would last for ever
                return

    worker = Worker(job)
    worker.frame.connect(lambda number: (seen.append(number), shown.release()))
    with qtbot.waitSignal(worker.ended):
        worker.start_thread()
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize("finishes", [False, True])
def test_of_jobs_that_are_asked_for_the_newest_is_taken(qtbot, finishes):
    gate, taken, owner = threading.Event(), [], QObject()
    jobs = JobRunner(owner, taken.append, taken.append, finishes=finishes)

    def first():
        gate.wait()
        return "first"

    jobs.submit(first)
    jobs.submit(lambda: "second")  # waits: there is one thread at most
    jobs.submit(lambda: "third")
    assert count_running_workers() == 1
    assert jobs.is_busy
    gate.set()
    qtbot.waitUntil(lambda: taken[-1:] == ["third"] and not jobs.is_busy)
    assert taken == (["first", "third"] if finishes else ["third"])


def test_nothing_comes_once_it_is_stopped_or_its_dock_released(qtbot):
    gate, taken, dock = threading.Event(), [], QObject()
    jobs = JobRunner(QObject(dock), taken.append, taken.append)
    timer = QTimer(dock)
    timer.start()
    jobs.submit(gate.wait)
    jobs.stop()
    jobs.submit(gate.wait)
    disconnect_all(dock)
    assert not jobs.is_busy
    assert not timer.isActive()
    gate.set()
    qtbot.waitUntil(lambda: count_running_workers() == 0)
    assert taken == []
