"""Worker threads that return results and exceptions to the window.

superqt's generator worker swallows a RuntimeError (the class that torch
raises for nearly everything): neither an error nor an end arrives, and the
worker never ends.  Here every exception arrives as a signal.
"""

from __future__ import annotations

import atexit
import math
import threading
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any

from qtpy.QtCore import QThread, QTimer, Signal

FRAME_SECONDS = 0.04
"""Shortest time between two frames handed to the window (25 a second)."""
REST = 1.0
"""After a frame the window rests so many times as long as it was busy.

Drawing in software takes the cores that the game needs.
"""
LONGEST_REST = 2.0
"""But not longer than these seconds."""
SMOOTH_SECONDS, LATER_REST, STILL_SMOOTH = 3.0, 3.0, 0.1
"""A game that takes longer than these seconds is left more of the cores: then the
window rests so many times as long, but for that shows no fewer than 10 frames a second.
"""
DRAWN_MS = 10
"""Qt draws within the 5 ms after a change: whoever comes later comes after that."""
CLOSE_SECONDS = 1.0
"""How long closing waits for a worker."""
EXIT_SECONDS = 30.0
"""How long the process waits at its end for a job that cannot be interrupted."""

_alive: set[Worker] = set()
"""Threads that still run: a QThread must not be destroyed before its end."""


def rest_after(busy: float, *, is_long: bool) -> float:
    """Return how long the window rests after it was busy with a frame, in seconds."""
    rest = REST * busy
    if is_long:
        rest = max(rest, min(LATER_REST * busy, STILL_SMOOTH - busy))
    return min(rest, LONGEST_REST)


class Worker(QThread):
    """One job in a thread of its own.

    Either ``returned`` brings the result or ``failed`` the exception, in the
    thread that made the worker (the window's); neither after ``abandon``.
    """

    returned = Signal(object)
    failed = Signal(object)
    _outcome = Signal(object, object)

    def __init__(self, job: Callable[[], Any]) -> None:
        super().__init__()
        self._job = job
        self._abandoned = False
        self.error: BaseException | None = None
        """Why the job broke off, also after ``abandon``."""
        self._outcome.connect(self._deliver)
        self.finished.connect(self._forget)

    def run(self) -> None:
        """Do the job; called by Qt in the new thread."""
        try:
            result = self._job()
        except BaseException as error:  # the window must hear of every one
            self.error = error
            self._outcome.emit(None, error)
        else:
            self._outcome.emit(result, None)

    def begin(self) -> None:
        """Start the thread."""
        _alive.add(self)
        self.start()

    def abandon(self, wait_seconds: float = 0.0) -> bool:
        """Deliver nothing any more; return whether the thread ended in time."""
        self._abandoned = True
        return self.wait(int(1000 * wait_seconds))

    def close(self) -> None:
        """Deliver nothing any more, and wait for the end, but not for long."""
        self.abandon(CLOSE_SECONDS)

    def _deliver(self, result: object, error: BaseException | None) -> None:
        if self._abandoned:
            return
        if error is None:
            self.returned.emit(result)
        else:
            self.failed.emit(error)

    def _forget(self) -> None:
        self.wait()
        _alive.discard(self)


class FrameWorker(Worker):
    """Iterates frames; ``frame`` brings the newest, never more than can be shown.

    Frames that the window is too slow for are skipped.  The last one before
    the end always arrives, and before ``returned`` or ``failed``.
    """

    frame = Signal(object)
    _arrived = Signal()

    def __init__(self, frames: Callable[[], Iterable[Any]]) -> None:
        super().__init__(self._iterate)
        self._frames = frames
        self._lock = threading.Lock()
        self._newest: Any = None
        self._next_show = 0.0
        self._first_shown = math.inf
        self._showing = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._show)
        self._arrived.connect(self._schedule)

    def _iterate(self) -> None:
        for frame in self._frames():
            self._hand_over(frame)

    def _hand_over(self, frame: Any) -> None:
        with self._lock:
            waiting = self._newest is not None
            self._newest = frame
        if not waiting:
            self._arrived.emit()

    def _schedule(self) -> None:
        if self._showing:
            return  # ``_measure`` comes back to it
        delay = max(0.0, self._next_show - time.monotonic())
        self._timer.start(int(1000 * delay))

    def _show(self) -> None:
        with self._lock:
            frame, self._newest = self._newest, None
        if frame is None or self._abandoned:
            return
        begun = time.monotonic()
        self._showing = True
        self.frame.emit(frame)
        # Drawing follows in the event loop; this runs when it is done.
        QTimer.singleShot(DRAWN_MS, lambda: self._measure(begun))

    def _measure(self, begun: float) -> None:
        busy = time.monotonic() - begun
        # The first frame takes long as all is made for it: the second comes at once.
        self._first_shown = min(self._first_shown, begun)
        is_long = begun - self._first_shown > SMOOTH_SECONDS
        rest = rest_after(busy, is_long=is_long) if self._next_show else 0.0
        self._next_show = begun + max(FRAME_SECONDS, busy + rest)
        self._showing = False
        if self._newest is not None:
            self._schedule()

    def _deliver(self, result: object, error: BaseException | None) -> None:
        self._show()
        super()._deliver(result, error)


class StageWorker(FrameWorker):
    """Does work in stages; ``frame`` brings the newest, ``returned`` what was made.

    After ``abandon`` it ends at the next stage and closes the work, which closes
    its files.
    """

    _frames: Callable[[], Generator[Any, None, Any]]

    def _iterate(self) -> Any:
        stages = self._frames()
        try:
            while not self._abandoned:
                self._hand_over(next(stages))
        except StopIteration as end:
            return end.value
        finally:
            stages.close()
        return None


def running_workers() -> int:
    """Return how many threads have not ended yet."""
    return sum(worker.isRunning() for worker in _alive)


@atexit.register
def _wait_at_exit() -> None:
    for worker in tuple(_alive):
        worker.wait(int(1000 * EXIT_SECONDS))
