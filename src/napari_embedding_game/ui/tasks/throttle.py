"""Limits to how often something costly is done: superqt's, ready to be used."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtCore import QObject
from superqt.utils import QSignalDebouncer, QSignalThrottler

from napari_embedding_game.session.session import Session

LEADING = QSignalThrottler.EmissionPolicy.Leading
TRAILING = QSignalThrottler.EmissionPolicy.Trailing
SOON_MS, RUNNING_MS = 30, 1_000
"""Edits that follow each other faster than this are shown together; and between two
looks at a running game, of which each has the whole window drawn anew."""


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

    The last call of ``throttle()`` is always followed by the job.

    Parameters
    ----------
    at_once : bool
        Whether to call the job at the first ``throttle()``, and not at the end of
        that time.
    """
    throttler = QSignalThrottler(LEADING if at_once else TRAILING, parent)
    throttler.setTimeout(milliseconds)
    throttler.triggered.connect(job)
    return throttler


def followed(
    session: Session, job: Callable[[], object], parent: QObject
) -> Callable[[], None]:
    """Return what has a job done soon, and of a running game now and then."""
    turn = throttled(SOON_MS, job, parent)

    def follow() -> None:
        turn.setTimeout(RUNNING_MS if session.state == "running" else SOON_MS)
        turn.throttle()

    return follow
