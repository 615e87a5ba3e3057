"""Run slow work in stages, to show its progress and to cancel it.

A slow function is a generator: it yields a :class:`Stage` between its steps and returns
its result. The caller shows the stages, and closes the generator to cancel;
:func:`finish` runs the generator to the end without showing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Stage:
    """The present step of slow work, in words for the user."""

    text: str
    """Text such as "Reading obsm['X_pca']"."""
    share: float | None = None
    """Share of this step that is done, 0 to 1; None if unknown."""


Stages: TypeAlias = Generator[Stage, None, T]
"""A generator that yields stages and returns a `T`."""


def finish(stages: Stages[T], report: Callable[[Stage], Any] = lambda stage: None) -> T:
    """Run a generator of stages to the end, reporting each stage; return its result."""
    while True:
        try:
            report(next(stages))
        except StopIteration as end:
            result: T = end.value
            return result
