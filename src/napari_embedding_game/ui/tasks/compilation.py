"""Tells when numba compiles loops, which takes a minute on a new computer, once."""

from __future__ import annotations

from contextlib import suppress

from numba.core import event as numba_event
from qtpy.QtCore import QObject, QTimer, Signal

from napari_embedding_game.session.run.compilers import KIND

PARTS = 150
"""Functions that are compiled for a first map, at most: 141 with an empty cache, until
its first frame.  What two processes both need is compiled, and counted, in each."""
QUIET_MS = 500
"""Without a new function after which compiling is over: there are many in a row."""


class CompilationWatch(QObject):
    """Counts the functions that numba begins to compile, in whatever thread."""

    changed = Signal()
    """Another function is being compiled, or none any more."""
    _event_reported = Signal(bool)
    """Brings to the thread of the window that one has begun, or has ended."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.n_begun = 0
        self.is_compiling = False
        self._n_open = 0
        self._quiet = QTimer(self, singleShot=True, interval=QUIET_MS)
        self._quiet.timeout.connect(self._on_compilation_ended)
        self._event_reported.connect(self._on_event_reported)
        self._listener = _Listener(self)
        numba_event.register(KIND, self._listener)

    def stop(self) -> None:
        """Hear of nothing any more."""
        with suppress(ValueError):  # it has been stopped before
            numba_event.unregister(KIND, self._listener)

    def report_event(self, is_begun: bool) -> None:
        """Note from any thread that a function is begun, or ended."""
        with suppress(RuntimeError):  # the window is gone: nobody asks
            self._event_reported.emit(is_begun)

    def _on_event_reported(self, is_begun: bool) -> None:
        self._n_open += 1 if is_begun else -1
        self.n_begun += is_begun
        if is_begun:
            self.is_compiling = True
            self._quiet.stop()
            self.changed.emit()
        elif self._n_open <= 0:  # one may have been begun before this listened
            self._n_open = 0
            self._quiet.start()

    def _on_compilation_ended(self) -> None:
        self.is_compiling = False
        self.changed.emit()


class _Listener(numba_event.Listener):
    """Hands numba's events on."""

    def __init__(self, watch: CompilationWatch) -> None:
        self._watch = watch

    def on_start(self, event: object) -> None:
        self._watch.report_event(True)

    def on_end(self, event: object) -> None:
        self._watch.report_event(False)
