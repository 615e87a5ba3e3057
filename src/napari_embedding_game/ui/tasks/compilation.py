"""Watch numba compile loops, which takes a minute once on a new computer."""

from __future__ import annotations

from contextlib import suppress

from numba.core import event as numba_event
from qtpy.QtCore import QObject, QTimer, Signal

from napari_embedding_game.session.run.compilers import KIND

PARTS = 150
"""Functions that are compiled for a first map at most.

With an empty cache 141 are compiled until the first frame.  A function that two
processes need is compiled and counted in both.
"""
QUIET_MS = 500
"""Milliseconds without a new function after which compilation has ended."""


class CompilationWatch(QObject):
    """Counts the functions that numba begins to compile, in all threads."""

    changed = Signal()
    """Emitted when the compilation of a function begins, and when all has ended."""
    _event_reported = Signal(bool)
    """Tells the window's thread that a function has begun (True) or ended (False)."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.n_begun = 0
        """Functions whose compilation has begun."""
        self.is_compiling = False
        self._n_open = 0
        self._quiet = QTimer(self, singleShot=True, interval=QUIET_MS)
        self._quiet.timeout.connect(self._on_compilation_ended)
        self._event_reported.connect(self._on_event_reported)
        self._listener = _Listener(self)
        numba_event.register(KIND, self._listener)

    def stop(self) -> None:
        """Stop watching numba's events."""
        with suppress(ValueError):  # already stopped
            numba_event.unregister(KIND, self._listener)

    def report_event(self, is_begun: bool) -> None:
        """Report from any thread that a function has begun to compile, or has ended.

        Does nothing after the window is closed.
        """
        with suppress(RuntimeError):  # the window is closed
            self._event_reported.emit(is_begun)

    def _on_event_reported(self, is_begun: bool) -> None:
        """Count a function that begins or ends, and emit ``changed`` where one begins.

        After the end of the last open function, compilation counts as ended if none
        begins within ``QUIET_MS`` milliseconds.
        """
        self._n_open += 1 if is_begun else -1
        self.n_begun += is_begun
        if is_begun:
            self.is_compiling = True
            self._quiet.stop()
            self.changed.emit()
        elif self._n_open <= 0:  # some may have begun before this listened
            self._n_open = 0
            self._quiet.start()

    def _on_compilation_ended(self) -> None:
        """Note that nothing is being compiled any more, and emit ``changed``."""
        self.is_compiling = False
        self.changed.emit()


class _Listener(numba_event.Listener):
    """Reports numba's events to a watch."""

    def __init__(self, watch: CompilationWatch) -> None:
        self._watch = watch

    def on_start(self, event: object) -> None:
        self._watch.report_event(True)

    def on_end(self, event: object) -> None:
        self._watch.report_event(False)
