"""A limit to how often something costly is done."""

from __future__ import annotations

import time
from collections.abc import Callable


class Seldom:
    """Says when something may be done again.

    Parameters
    ----------
    seconds : float
        From one time to the next, at least.
    clock : callable, optional
        Returns the present time in seconds.
    """

    def __init__(
        self, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = float("-inf")

    def comes(self) -> bool:
        """Return whether it is time; if so, the next time is later."""
        now = self._clock()
        is_time = now >= self._next
        if is_time:
            self._next = now + self._seconds
        return is_time
