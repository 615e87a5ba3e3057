"""The names of all that can be chosen, as code and command line write them.

Nothing is imported for them, so the command line can list them at once.
"""

from __future__ import annotations

from typing import Literal, get_args

Approximation = Literal[
    "landmarks", "mesh", "sampled_edges", "sampled_landmarks", "exact"
]
Update = Literal["momentum", "omd", "optimistic"]
ScheduleName = Literal["fast", "paper"]
Affinity = Literal["mixed", "uniform", "fuzzy", "entropic", "lle", "inner_products"]
AffinityChoice = Literal["auto", Affinity]
"""An affinity, or the method's own."""

APPROXIMATIONS: tuple[Approximation, ...] = get_args(Approximation)
UPDATES: tuple[Update, ...] = get_args(Update)
SCHEDULES: tuple[ScheduleName, ...] = get_args(ScheduleName)
AFFINITIES: tuple[Affinity, ...] = get_args(Affinity)

DEFAULT_AFFINITY: Affinity = "mixed"
"""Between uniform and fuzzy: see :mod:`affinities` and ``benchmarks/quality.py``."""
