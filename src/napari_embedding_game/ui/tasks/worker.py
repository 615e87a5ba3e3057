"""Background work: threads that send results and exceptions back to the window.

superqt's generator worker swallows a RuntimeError (the class that torch raises for
nearly everything): neither an error nor an end arrives.  Here every exception arrives.
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
"""Shortest time between two frames handed to the window (25 a second)."""
REST, MAX_REST = 2.0, 2.0
"""After a frame the window rests so many times as long as the quicker of the last two
took, at most these seconds: drawing in software takes the cores that the game needs."""
DRAWN_MS = 10
"""Qt draws within the 5 ms after a change: whoever comes later comes after that."""
CLOSE_SECONDS = 1.0
"""How long closing waits for a worker."""
EXIT_SECONDS = 30.0
"""How long the process waits at its end for a job that cannot be interrupted."""

GC_MS, FULL_AFTER = 100, 1_000
"""Between two looks at garbage while threads run, and collections of young objects
until one of all, which holds the window for 0.1 s and more."""

_alive: set[Worker] = set()
"""Threads that still run: a QThread must not be destroyed before its end."""
_collecting: list[QTimer] = []
"""Collects garbage instead of Python, while threads run."""


def _move_collection_to_window() -> None:
    """Collect garbage in the window's thread alone, as long as there are others.

    Python collects in whichever thread makes the object that is one too many: Qt's
    objects, destroyed in a worker, end the program.
    """
    if _collecting or not gc.isenabled():
        return
    gc.disable()
    timer = QTimer()
    timer.timeout.connect(_collect_garbage)
    timer.start(GC_MS)
    _collecting.append(timer)


def _collect_garbage() -> None:
    new, _, old = gc.get_count()
    if new >= gc.get_threshold()[0]:
        gc.collect(2 if old >= FULL_AFTER else 1)


def _restore_python_collection() -> None:
    if _collecting and not _alive:
        _collecting.pop().stop()
        gc.enable()


class Worker(QThread):
    """One job in a separate thread; of a generator, all that it yields.

    ``frame`` brings the newest that was yielded, never more than can be shown, then
    either ``returned`` the result or ``failed`` the exception, in the thread that made
    the worker (the window's).  After ``abandon`` nothing comes, and a generator ends
    at its next yield and is closed.
    """

    frame = Signal(object)
    returned = Signal(object)
    failed = Signal(object)
    ended = Signal()
    """The thread has come to its end, abandoned or not."""
    _outcome = Signal(object, object)
    _arrived = Signal()

    def __init__(self, job: Callable[[], Any], logs: str = "") -> None:
        """``logs``: what the log says of a job that failed, if anything."""
        super().__init__()
        self._job, self._logs = job, logs
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
        """Do the job; called by Qt in the new thread."""
        try:
            result = self._job()
            if isinstance(result, Generator):
                result = self._run_generator(result)
        except BaseException as error:  # the window must hear of every one
            if self._logs:
                log_error(self._logs, error)
            self._outcome.emit(None, error)
        else:
            self._outcome.emit(result, None)

    def start_thread(self) -> None:
        """Start the thread."""
        _move_collection_to_window()
        _alive.add(self)
        self.start()

    def abandon(self, wait_seconds: float = 0.0) -> bool:
        """Deliver nothing any more; return whether the thread ended in time."""
        self._abandoned = True
        return self.wait(int(1000 * wait_seconds))

    # Inside

    def _run_generator(self, frames: Generator[Any, None, Any]) -> Any:
        try:
            while not self._abandoned:
                self._hand_over_frame(next(frames))
        except StopIteration as end:
            return end.value
        finally:
            frames.close()
        return None

    def _hand_over_frame(self, frame: Any) -> None:
        with self._lock:
            waiting = self._newest is not None
            self._newest = frame
        if not waiting:
            self._arrived.emit()

    def _schedule_frame(self) -> None:
        if self._showing:
            return  # ``_measure_frame_time`` comes back to it
        delay = max(0.0, self._next_show - time.monotonic())
        self._timer.start(int(1000 * delay))

    def _emit_newest_frame(self) -> None:
        with self._lock:
            frame, self._newest = self._newest, None
        if frame is None or self._abandoned:
            return
        start = time.monotonic()
        self._showing = True
        self.frame.emit(frame)
        # Drawing follows in the event loop; this runs when it is done.
        QTimer.singleShot(DRAWN_MS, lambda: self._measure_frame_time(start))

    def _measure_frame_time(self, start: float) -> None:
        busy = time.monotonic() - start
        # One that alone took long, as the first, for which all is made, needs no rest.
        rest = min(REST * min(busy, self._busy), MAX_REST)
        self._busy, self._next_show = busy, start + max(FRAME_SECONDS, busy + rest)
        self._showing = False
        if self._newest is not None:
            self._schedule_frame()

    def _deliver_outcome(self, result: object, error: BaseException | None) -> None:
        self._emit_newest_frame()
        if self._abandoned:
            return
        if error is None:
            self.returned.emit(result)
        else:
            self.failed.emit(error)

    def _on_thread_finished(self) -> None:
        self.wait()
        self._timer.stop()  # garbage from here on: deleted in its own slot, it crashes
        _alive.discard(self)
        _restore_python_collection()
        self.ended.emit()


class JobRunner(QObject):
    """Runs jobs of one kind in a thread: the newest replaces the former.

    ``owner``: nothing more is done once its dock is released. ``on_result`` receives
    what a job returned, ``on_error`` its exception, ``on_progress`` what it yields.
    ``finishes``: whether a job that has begun is
    finished, and its result taken, once another is asked for. ``at_once``: whether a
    job begins although the former one is still being broken off; otherwise it waits,
    and there is one thread at most.
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
        """Whether a request is pending."""
        Connections(self).add_cleanup(self.stop)

    def submit(self, job: Callable[[], Any]) -> None:
        """Have a job done, or a generator function run; its result is taken."""
        self.is_busy = True
        if self._worker is not None and not self._finishes:
            self._worker.abandon()
        if self._worker is None or self._at_once:
            self._start_worker(job)
        else:
            self._next = job

    def stop(self, wait_seconds: float = 0.0) -> None:
        """Drop pending requests; wait this long for the end of the thread."""
        self.is_busy, self._next = False, None
        if self._worker is not None:
            self._worker.abandon(wait_seconds)

    def _start_worker(self, job: Callable[[], Any]) -> None:
        self._worker = worker = Worker(job)
        if self._on_progress is not None:
            worker.frame.connect(self._on_progress)
        worker.returned.connect(self._on_job_returned)
        worker.failed.connect(self._on_job_failed)
        worker.ended.connect(lambda: self._on_worker_ended(worker))
        worker.start_thread()

    def _on_job_returned(self, result: Any) -> None:
        self.is_busy = self._next is not None
        self._on_result(result)

    def _on_job_failed(self, error: BaseException) -> None:
        self.is_busy = self._next is not None
        self._on_error(error)

    def _on_worker_ended(self, worker: Worker) -> None:
        if worker is self._worker:
            self._worker, job, self._next = None, self._next, None
            if job is not None:
                self._start_worker(job)


class PaneJobRunner(JobRunner):
    """Jobs of a pane, which shows that it works, how far it is, and errors.

    ``owner``, ``on_result``, ``finishes``: as of :class:`JobRunner`. ``busy_text``:
    shown during the work, such as "Comparing …". ``show`` receives it, with the share
    that is done where a job yields it. ``on_error`` receives an error as a sentence, by
    default ``show`` does, as a warning.
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
        """Have a job done, and show the text."""
        super().submit(job)
        self._show_text(self._busy_text)


def count_running_workers() -> int:
    """Return how many threads have not ended yet."""
    return sum(worker.isRunning() for worker in _alive)


@atexit.register
def _wait_for_workers() -> None:
    for worker in tuple(_alive):
        worker.wait(int(1000 * EXIT_SECONDS))
