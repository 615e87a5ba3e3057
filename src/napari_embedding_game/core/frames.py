"""How often whatever plays is seen, and how much of its time that may take."""

from __future__ import annotations

import time
from collections.abc import Callable

FRAME_SECONDS = 0.04
"""Longest stretch of iterations between two snapshots."""
DIAGNOSIS_SHARE = 0.2
"""Share of the time that labels and pressure may take while the game runs."""


class Diagnosis:
    """Work that is done now and then, for a small share of the time."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, work: Callable[[], None], must: bool = False) -> None:
        """Do the work, unless its share of the time is used up; ``must`` does it."""
        begin = time.perf_counter()
        if begin >= self._next or must:
            work()
            now = time.perf_counter()
            self._next = now + (now - begin) / DIAGNOSIS_SHARE
