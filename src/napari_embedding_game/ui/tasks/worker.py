"""Run jobs in threads that send results and exceptions back to the window.

superqt's generator worker swallows a RuntimeError, the class that torch raises for
nearly everything: neither an error nor an end is signalled.  Here each exception is.

``Controller._run_jobs`` plays runs by it; ``GameRun`` pauses and stops them.
"""

from __future__ import annotations

import atexit
import gc
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from qtpy.QtCore import QObject, QThread, QTimer, Signal

from napari_embedding_game.session.session import error_text
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.tasks.errors import log_error

FRAME_SECONDS = 0.04
"""Minimum time between two frames that are shown in the window (25 a second)."""
REST_FACTOR, MAX_REST = 2.0, 2.0
"""After a frame no frame is shown for this factor times the shorter of the last two
painting times, at most ``MAX_REST`` seconds: painting in software takes the cores that
the game needs."""
DRAWN_MS = 10
"""Milliseconds after a change after which Qt has painted; Qt begins within 5 ms."""
CLOSE_SECONDS = 1.0
"""Seconds that closing waits for a worker."""
EXIT_SECONDS = 30.0
"""Seconds that the process waits at its end for a job that cannot be interrupted."""

GC_MS, FULL_AFTER = 100, 1_000
"""Milliseconds between two checks for garbage while threads run, and collections of
young objects until a full one, which blocks the window for 0.1 s and more."""

_alive: set[Worker] = set()
"""Threads that still run: a QThread must not be destroyed before its end."""
_collecting: list[QTimer] = []
"""Holds the timer that collects garbage instead of Python while threads run."""


def _move_collection_to_window() -> None:
    """Collect garbage by a timer of the window's thread until all threads have ended.

    Python collects in the thread that makes the object that exceeds the threshold.
    Objects of Qt that are destroyed in a worker would end the program.  Does nothing
    where the timer runs already, or garbage collection is disabled.
    """
    if _collecting or not gc.isenabled():
        return
    gc.disable()
    timer = QTimer()
    timer.timeout.connect(_collect_garbage)
    timer.start(GC_MS)
    _collecting.append(timer)


def _collect_garbage() -> None:
    """Collect garbage if there are as many new objects as Python would collect.

    Every ``FULL_AFTER`` collections all objects are collected, otherwise young ones.
    """
    new, _, old = gc.get_count()
    if new >= gc.get_threshold()[0]:
        gc.collect(2 if old >= FULL_AFTER else 1)


def _restore_python_collection() -> None:
    """Have Python collect garbage again, once no thread runs any more."""
    if _collecting and not _alive:
        _collecting.pop().stop()
        gc.enable()


class Worker(QThread):
    """Runs a job in a separate thread; if the job is a generator, delivers its frames.

    ``frame`` carries the newest yielded value, at most as often as can be shown; then
    ``returned`` carries the result or ``failed`` the exception.  All are emitted in the
    thread that made the worker (the window's).  After :meth:`abandon` none of them is
    emitted, and a generator is closed at its next yield.
    """

    frame = Signal(object)
    returned = Signal(object)
    failed = Signal(object)
    ended = Signal()
    """Emitted when the thread has ended, abandoned or not."""
    _outcome = Signal(object, object)
    _arrived = Signal()

    def __init__(self, job: Callable[[], Any], log_text: str = "") -> None:
        """Make a worker of a job; log an error with ``log_text``, or not for ""."""
        super().__init__()
        self._job, self._log_text = job, log_text
        self._abandoned = False
        self._lock = threading.Lock()
        self._newest: Any = None
        self._next_show = self._busy = 0.0
        self._showing = False
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._emit_newest_frame)
        self._arrived.connect(self._schedule_frame)
        self._outcome.connect(self._deliver_outcome)
        self.finished.connect(self._on_thread_finished)

    def run(self) -> None:
        """Run the job and send its result or exception; Qt calls this in the thread.

        The exception is also logged if the worker has a text for the log.
        """
        try:
            result = self._job()
            if isinstance(result, Generator):
                result = self._run_generator(result)
        except BaseException as error:  # the window must receive each exception
            if self._log_text:
                log_error(self._log_text, error)
            self._outcome.emit(None, error)
        else:
            self._outcome.emit(result, None)

    def start_thread(self) -> None:
        """Start the thread and move garbage collection to the window's thread."""
        _move_collection_to_window()
        _alive.add(self)
        self.start()

    def abandon(self, wait_seconds: float = 0.0) -> bool:
        """Stop delivering anything, and wait for the thread at most ``wait_seconds``.

        Returns whether the thread has ended.
        """
        self._abandoned = True
        return self.wait(int(1000 * wait_seconds))

    # Inside

    def _run_generator(self, frames: Generator[Any, None, Any]) -> Any:
        """Hand over each frame, close the generator and return its result.

        Returns None, without further frames, once the worker is abandoned.
        """
        try:
            while not self._abandoned:
                self._hand_over_frame(next(frames))
        except StopIteration as end:
            return end.value
        finally:
            frames.close()
        return None

    def _hand_over_frame(self, frame: Any) -> None:
        """Store a frame instead of a waiting one, and tell the window's thread.

        Called in the worker's thread.
        """
        with self._lock:
            waiting = self._newest is not None
            self._newest = frame
        if not waiting:
            self._arrived.emit()

    def _schedule_frame(self) -> None:
        """Schedule the newest frame for when the window has rested.

        While a frame is being shown, the next one is scheduled by the end of its
        measurement.
        """
        if self._showing:
            return  # ``_measure_frame_time`` schedules it
        delay = max(0.0, self._next_show - time.monotonic())
        self._timer.start(int(1000 * delay))

    def _emit_newest_frame(self) -> None:
        """Emit the newest frame, and measure how long the window takes to show it.

        Does nothing where no frame waits, or the worker is abandoned.
        """
        with self._lock:
            frame, self._newest = self._newest, None
        if frame is None or self._abandoned:
            return
        start = time.monotonic()
        self._showing = True
        self.frame.emit(frame)
        # Painting follows in the event loop; the measurement runs after it.
        QTimer.singleShot(DRAWN_MS, lambda: self._measure_frame_time(start))

    def _measure_frame_time(self, start: float) -> None:
        """Set when the next frame may be shown, and schedule a waiting frame.

        ``start``: time.monotonic() at the emission of the present frame.  The rest
        follows from the shorter of the times of the last two frames.
        """
        busy = time.monotonic() - start
        # A single slow frame, such as the first, needs no rest.
        rest = min(REST_FACTOR * min(busy, self._busy), MAX_REST)
        self._busy, self._next_show = busy, start + max(FRAME_SECONDS, busy + rest)
        self._showing = False
        if self._newest is not None:
            self._schedule_frame()

    def _deliver_outcome(self, result: object, error: BaseException | None) -> None:
        """Emit the last frame, then the result or the error, unless abandoned."""
        self._emit_newest_frame()
        if self._abandoned:
            return
        if error is None:
            self.returned.emit(result)
        else:
            self.failed.emit(error)

    def _on_thread_finished(self) -> None:
        """Forget the thread, and emit ``ended``.

        After the last thread has ended, Python collects garbage again.
        """
        self.wait()
        self._timer.stop()  # else it crashes: deleted in its own slot
        _alive.discard(self)
        _restore_python_collection()
        self.ended.emit()


class JobRunner(QObject):
    """Runs jobs of one kind in a thread; a new job replaces the former job.

    Parameters
    ----------
    owner : QObject, optional
        Jobs are stopped when the dock of the owner is closed.
    on_result, on_error, on_progress : callable
        Receive the result of a job, its exception, and what it yields.
    finishes : bool
        Whether a running job is finished, and its result delivered, after another job
        is submitted; otherwise the running job is abandoned.
    at_once : bool
        Whether a job begins while the abandoned job still runs; otherwise the job waits
        until that thread has ended.
    """

    def __init__(
        self,
        owner: QObject | None,
        on_result: Callable[[Any], None],
        on_error: Callable[[BaseException], None],
        on_progress: Callable[[Any], None] | None = None,
        *,
        finishes: bool = False,
        at_once: bool = False,
    ) -> None:
        super().__init__(owner)
        self._on_result, self._on_error = on_result, on_error
        self._on_progress = on_progress
        self._finishes, self._at_once = finishes, at_once
        self._worker: Worker | None = None
        self._next: Callable[[], Any] | None = None
        self.is_busy = False
        """Whether a job runs or waits."""
        Connections(self).add_cleanup(self.stop)

    def submit(self, job: Callable[[], Any]) -> None:
        """Run a function or generator function, instead of or after the running job.

        A job that still waits is replaced.
        """
        self.is_busy = True
        if self._worker is not None and not self._finishes:
            self._worker.abandon()
        if self._worker is None or self._at_once:
            self._start_worker(job)
        else:
            self._next = job

    def stop(self, wait_seconds: float = 0.0) -> None:
        """Abandon the running job and drop a waiting job.

        Waits for the running job's thread at most ``wait_seconds``.
        """
        self.is_busy, self._next = False, None
        if self._worker is not None:
            self._worker.abandon(wait_seconds)

    def _start_worker(self, job: Callable[[], Any]) -> None:
        """Run a job in a new thread, and connect its signals with this runner."""
        self._worker = worker = Worker(job)
        if self._on_progress is not None:
            worker.frame.connect(self._on_progress)
        worker.returned.connect(self._on_job_returned)
        worker.failed.connect(self._on_job_failed)
        worker.ended.connect(lambda: self._on_worker_ended(worker))
        worker.start_thread()

    def _on_job_returned(self, result: Any) -> None:
        """Deliver a result; this stays busy only if another job waits."""
        self.is_busy = self._next is not None
        self._on_result(result)

    def _on_job_failed(self, error: BaseException) -> None:
        """Deliver an exception; this stays busy only if another job waits."""
        self.is_busy = self._next is not None
        self._on_error(error)

    def _on_worker_ended(self, worker: Worker) -> None:
        """Start the waiting job, if any, once the newest thread has ended."""
        if worker is self._worker:
            self._worker, job, self._next = None, self._next, None
            if job is not None:
                self._start_worker(job)


class PaneJobRunner(JobRunner):
    """Runs jobs of a pane and shows a text while they run, their progress and errors.

    Parameters
    ----------
    owner, on_result, finishes
        As for :class:`JobRunner`.
    busy_text : str
        Text while a job runs, such as "Comparing …".
    show : callable
        Receives ``busy_text``, with the finished share where a job yields shares.
    on_error : callable, optional
        Receives the message of an error; by default ``show`` with role "warning".
    """

    def __init__(
        self,
        owner: QObject,
        busy_text: str,
        on_result: Callable[[Any], None],
        show: Callable[..., None],
        on_error: Callable[[str], None] | None = None,
        *,
        finishes: bool = False,
    ) -> None:
        self._busy_text, self._show_text = busy_text, show
        on_error = on_error or partial(show, role="warning")
        super().__init__(
            owner,
            on_result,
            lambda error: on_error(error_text(error)),
            lambda share: show(f"{busy_text} {share:.0%}"),
            finishes=finishes,
        )

    def submit(self, job: Callable[[], Any]) -> None:
        """Run a job as :class:`JobRunner` does, and show the busy text."""
        super().submit(job)
        self._show_text(self._busy_text)


def count_running_workers() -> int:
    """Return the number of threads that still run."""
    return sum(worker.isRunning() for worker in _alive)


@atexit.register
def _wait_for_workers() -> None:
    """Wait at the end of the process for all threads, each at most ``EXIT_SECONDS``."""
    for worker in tuple(_alive):
        worker.wait(int(1000 * EXIT_SECONDS))
