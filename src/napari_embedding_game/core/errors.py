"""Errors and the warning of the engine, and the checks that raise them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from typing import Any


class InputError(ValueError):
    """Unusable input or setting; the message names the problem and the way out.

    A window or a command line shows the message as it is, without a traceback.
    ``remedy``: fields of :class:`settings.Settings`, with the values that solve the
    problem in a new run.
    """

    def __init__(self, message: str, remedy: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy or {}


class PrecomputedDistancesError(InputError):
    """The settings or the data do not suit ``metric="precomputed"``."""


class EmbeddingWarning(UserWarning):
    """A map or positions of new rows represent the data badly; the message says why."""


_MAX_LETTERS = 60
"""Letters of a refused value that are shown."""


def check_integer(
    name: str, value: Any, least: int | None = None, most: int | None = None
) -> int:
    """Return ``value`` as an int if it is an integer from ``least`` to ``most``.

    A bound of None is not checked.  Floats such as 2.0 and bools are no integers.
    Raises InputError with ``name`` for all other values.
    """
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    is_low = is_integer and least is not None and value < least
    is_high = is_integer and most is not None and value > most
    if is_integer and not is_low and not is_high:
        return int(value)
    allowed = "a whole number"
    if least is not None:
        allowed += f" at least {least}" if most is None else f" from {least} to {most}"
    raise make_value_error(name, allowed, value)


def check_number(
    name: str, value: Any, allowed: str, least: float, below: float = math.inf
) -> float:
    """Return ``value`` as a float if it is finite and ``least <= value < below``.

    Bools are no numbers.  ``allowed``: the rule in words, for the message.  Raises
    InputError with ``name``.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and least <= value < below:
        return float(value)
    raise make_value_error(name, allowed, value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> Any:
    """Return ``value`` if it is one of ``choices``.

    Otherwise raise InputError, with ``name`` and the choices in its message.
    """
    if isinstance(value, str) and value in choices:
        return value
    *others, last = (f'"{choice}"' for choice in choices)
    allowed = f"{', '.join(others)} or {last}" if others else last
    raise make_value_error(name, allowed, value)


def make_runaway_error() -> InputError:
    """Return the InputError for points beyond every position that a map can have.

    Its remedy sets both learning rates back to default.
    """
    return InputError(
        "The points have run off the map: lower the learning rates, or choose another "
        "start or method.",
        {"learning_rate": None, "landmark_learning_rate": None},
    )


def make_value_error(name: str, allowed: str, value: Any) -> InputError:
    """Return the InputError that says what ``name`` must be and what ``value`` is.

    ``allowed``: the rule in words, such as "a whole number".
    """
    return InputError(f"{name} must be {allowed}, not {describe_value(value)}.")


def describe_value(value: Any) -> str:
    """Return a text for a refused value: an array's shape, or the repr on one line.

    The repr is cut after 60 letters.
    """
    shape = getattr(value, "shape", None)
    if shape:
        return f"an array of {' x '.join(map(str, shape))} values"
    text = " ".join(repr(value).split())
    return text if len(text) <= _MAX_LETTERS else f"{text[:_MAX_LETTERS]}..."
