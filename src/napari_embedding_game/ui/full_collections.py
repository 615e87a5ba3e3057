"""Python's full collections of garbage, kept out of a run."""

from __future__ import annotations

import gc

NEVER = 1 << 30
"""Collections of the middle generation before a full one."""


class FullCollections:
    """Puts them off.

    A full collection looks at every object of the process: napari, torch and
    scikit-learn bring so many that it holds the window for 0.1 s and more.  The
    quick collections of young objects go on.
    """

    def __init__(self) -> None:
        self._former: int | None = None

    def put_off(self) -> None:
        """Have none from now on."""
        young, middle, old = gc.get_threshold()
        if self._former is None and old != NEVER:
            self._former = old
            gc.set_threshold(young, middle, NEVER)

    def allow(self) -> None:
        """Have them again as before, when Python finds it is time."""
        young, middle, old = gc.get_threshold()
        if self._former is not None and old == NEVER:
            gc.set_threshold(young, middle, self._former)
        self._former = None
