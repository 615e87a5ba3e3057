"""Run Python's garbage collector in the window's thread, never full in a run."""

from __future__ import annotations

import gc
from typing import ClassVar
from weakref import WeakSet

from qtpy.QtCore import QObject, QTimer

INTERVAL_MS = 100
"""Between two looks at whether a collection is due."""
AFTER_CLOSE_MS = 100
"""Until what a closed dock was made of is garbage: Qt deletes it a little later."""


class GcGuard(QObject):
    """Collects garbage in the thread of the window, while it is open.

    Python collects in whichever thread happens to make the object that is one too
    many.  Where that is a worker, Qt's objects and the buffers of the canvas would be
    destroyed in the wrong thread, and the program dies at its next drawing.  So the
    automatic collection is off while a window has a dock, and a timer does the same,
    by Python's own thresholds.

    A full collection looks at every object of the process: napari, torch and
    scikit-learn bring so many that it holds the window for 0.1 s and more.  They can
    be put off, and what lives as long as the process can be left out of them.
    """

    _open: ClassVar[WeakSet[GcGuard]] = WeakSet()
    _is_ours: ClassVar[bool] = False
    """Whether Python's own collection was turned off here, and not yet on again."""
    _was_enabled: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._is_full_deferred = False
        self._timer = QTimer(self)
        self._timer.setInterval(INTERVAL_MS)
        self._timer.timeout.connect(self.collect)
        self._open.add(self)
        if not self._is_ours:
            GcGuard._was_enabled = gc.isenabled()
            GcGuard._is_ours = True
            gc.disable()
        self._timer.start()

    def close(self) -> None:
        """Collect what a closed dock leaves; after the last one, leave it to Python."""
        self._timer.stop()
        self._open.discard(self)
        QTimer.singleShot(AFTER_CLOSE_MS, GcGuard._end)

    @classmethod
    def _end(cls) -> None:
        cls.collect_all()
        if cls._is_ours and not cls._open:
            cls._is_ours = False
            if cls._was_enabled:
                gc.enable()

    def collect(self) -> None:
        """Collect what is due, as Python would."""
        young, middle, old = gc.get_threshold()
        n_new, n_young, n_middle = gc.get_count()
        if not (self._was_enabled and young) or n_new < young:
            return
        if n_young < middle:
            gc.collect(0)
        elif n_middle < old or self._is_full_deferred:
            gc.collect(1)
        else:
            gc.collect()

    @staticmethod
    def collect_all() -> None:
        """Collect at once all that is garbage; this takes 0.1 s and more."""
        gc.collect()

    def defer_full(self) -> None:
        """Have no full collection from now on."""
        self._is_full_deferred = True

    def allow_full(self) -> None:
        """Have full collections again when it is time."""
        self._is_full_deferred = False

    @staticmethod
    def freeze() -> None:
        """Look at nothing again that there is now, until ``unfreeze``.

        To be called after what is loaded once has been loaded, and not long after a
        full collection, since garbage would be kept as well.
        """
        gc.freeze()

    @staticmethod
    def unfreeze() -> None:
        """Look at everything again: there is something that ends, such as a dock."""
        gc.unfreeze()
