"""Iterate over the stages of slow work, to show progress and to cancel.

A function that takes long is a generator: it yields a :class:`Stage` between its
steps and returns what it made.  Whoever drives it shows the stages, and closes the
generator to cancel; :func:`finish` drives it to the end without showing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Stage:
    """What is done now, in words for the user."""

    text: str
    """Such as "Reading obsm['X_pca']"."""
    share: float | None = None
    """Share of this text's work that is done, 0 to 1; None if not known."""


Stages: TypeAlias = Generator[Stage, None, T]
"""A generator that yields stages and returns a `T`."""


def finish(stages: Stages[T], report: Callable[[Stage], Any] = lambda stage: None) -> T:
    """Do all of the work and return what it made; each stage is given to `tell`."""
    while True:
        try:
            report(next(stages))
        except StopIteration as end:
            result: T = end.value
            return result
