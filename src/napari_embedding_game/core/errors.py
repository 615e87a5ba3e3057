"""Errors and the warning of the engine, and the words for a refused value."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from typing import Any


class InputError(ValueError):
    """Input or setting that cannot be used; the message says what and the way out.

    A window or a command line shows the message as it is, without a traceback.
    ``remedy``: fields of :class:`settings.Settings` that mend it, for a new run.
    """

    def __init__(self, message: str, remedy: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy or {}


class GivenDistancesError(InputError):
    """Distances between rows that are given cannot be used as they are asked for."""


class EmbeddingWarning(UserWarning):
    """A map was made, but represents the data badly; the message says why."""


_MAX_LETTERS = 60
"""Letters of a refused value that are shown."""


def check_integer(
    name: str, value: Any, least: int | None = None, most: int | None = None
) -> int:
    """Return a whole number from ``least`` to ``most`` as an int; 2.0 is none."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    is_low = is_whole and least is not None and value < least
    is_high = is_whole and most is not None and value > most
    if is_whole and not is_low and not is_high:
        return int(value)
    allowed = "a whole number"
    if least is not None:
        allowed += f" at least {least}" if most is None else f" from {least} to {most}"
    raise refused(name, allowed, value)


def number(
    name: str, value: Any, allowed: str, least: float, below: float = math.inf
) -> float:
    """Return a finite number from ``least`` up to below ``below`` as a float."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and least <= value < below:
        return float(value)
    raise refused(name, allowed, value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> Any:
    """Return a choice, if it is one."""
    if isinstance(value, str) and value in choices:
        return value
    *others, last = (f'"{choice}"' for choice in choices)
    allowed = f"{', '.join(others)} or {last}" if others else last
    raise refused(name, allowed, value)


def points_ran_off() -> InputError:
    """Return the error for points that left every position that a map can have."""
    return InputError(
        "The points have run off the map: lower the learning rates, or choose another "
        "start or method.",
        {"learning_rate": None, "landmark_learning_rate": None},
    )


def refused(name: str, allowed: str, value: Any) -> InputError:
    """Return the error of a value that is not what is allowed."""
    return InputError(f"{name} must be {allowed}, not {described(value)}.")


def described(value: Any) -> str:
    """Return a refused value in a few words: an array by its shape."""
    shape = getattr(value, "shape", None)
    if shape:
        return f"an array of {' x '.join(map(str, shape))} values"
    text = " ".join(repr(value).split())
    return text if len(text) <= _MAX_LETTERS else f"{text[:_MAX_LETTERS]}..."
