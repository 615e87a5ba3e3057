"""Limits to how often something costly is done: superqt's, ready to be used."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtCore import QObject
from superqt.utils import QSignalDebouncer, QSignalThrottler

LEADING = QSignalThrottler.EmissionPolicy.Leading
TRAILING = QSignalThrottler.EmissionPolicy.Trailing


def debounced(
    milliseconds: int, job: Callable[[], object], parent: QObject | None = None
) -> QSignalDebouncer:
    """Return what calls a job once ``throttle()`` has not been called for so long."""
    debouncer = QSignalDebouncer(TRAILING, parent)
    debouncer.setTimeout(milliseconds)
    debouncer.triggered.connect(job)
    return debouncer


def throttled(
    milliseconds: int,
    job: Callable[[], object],
    parent: QObject | None = None,
    *,
    at_once: bool = False,
) -> QSignalThrottler:
    """Return what calls a job at most once in so long, after ``throttle()``.

    The last call of ``throttle()`` is always followed by the job.  ``at_once``: whether
    the first is, too, and not the end of that time.
    """
    throttler = QSignalThrottler(LEADING if at_once else TRAILING, parent)
    throttler.setTimeout(milliseconds)
    throttler.triggered.connect(job)
    return throttler
