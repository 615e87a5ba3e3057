"""The names of all that can be chosen, as code and command line write them.

Nothing is imported for them, so the command line can list them at once.
"""

from __future__ import annotations

from typing import Literal, get_args

Approximation = Literal[
    "landmarks", "mesh", "sampled_edges", "sampled_landmarks", "exact"
]
ScheduleName = Literal["fast", "paper"]

APPROXIMATIONS: tuple[Approximation, ...] = get_args(Approximation)
SCHEDULES: tuple[ScheduleName, ...] = get_args(ScheduleName)
AFFINITIES = ("mixed", "uniform", "fuzzy", "entropic")
"""Those that need the neighbours alone."""

DEFAULT_AFFINITY = "mixed"
"""Between uniform and fuzzy: see :mod:`affinities` and ``benchmarks/quality.py``."""
