"""The schedule of a game: number of iterations, learning rates, and their decay.

Instead of early exaggeration the repulsion grows from nearly 0 until half-way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from napari_embedding_game.core.elementary import cos, exp
from napari_embedding_game.core.settings import ScheduleName, Settings, resolve_method


@dataclass(frozen=True, slots=True)
class Schedule:
    """Number of iterations, learning rates, and their factors over a game.

    ``rate_factor`` and ``repulsion_factor`` take the share of iterations done, 0 to 1,
    and return a factor of both learning rates, and of lambda.
    ``divides_by_stiffness``: whether the points' gradient is divided by
    ``game.compute_point_stiffness``.
    """

    n_iter: int
    learning_rate: float
    landmark_learning_rate: float
    momentum: float
    rate_factor: Callable[[float], float]
    repulsion_factor: Callable[[float], float]
    divides_by_stiffness: bool = False


_LOG_OF_LEAST = -5.809142990314028
"""Logarithm of 0.003, the first repulsion factor."""


def _cosine_decay(done: float) -> float:
    """Return the learning rates' factor: a half cosine from 1 down to 0.01."""
    return float(0.01 + 0.99 * 0.5 * (1 + cos(math.pi * min(done, 1.0))))


def _growing_repulsion(done: float) -> float:
    """Return the repulsion's factor: from 0.003 exponentially up to 1 at half-way."""
    # Under weak repulsion points find their neighbours before they are spread:
    # `benchmarks/schedules.py`, b9dd4b2, compares this with other starts.
    return float(exp(_LOG_OF_LEAST * (1 - 2 * done))) if done < 0.5 else 1.0


_NAMED: dict[ScheduleName, Schedule] = {
    "fast": Schedule(500, 0.3, 0.5, 0.9, _cosine_decay, _growing_repulsion),
    "paper": Schedule(
        6000, 0.03, 0.3, 0.0, lambda done: 1.0 if done < 0.5 else 0.1, lambda done: 1.0
    ),
}


def resolve_schedule(settings: Settings) -> Schedule:
    """Return the schedule of these settings.

    The method's grid schedule replaces the fast one where the repulsion is by a grid.
    Numbers of the settings that are not None replace the schedule's.
    """
    schedule = _NAMED[settings.schedule]
    spec, approximation = resolve_method(settings.method, settings.approximation)
    if spec.on_grid and approximation == "mesh" and settings.schedule == "fast":
        schedule = replace(schedule, **spec.on_grid)
    names = ("learning_rate", "landmark_learning_rate", "momentum")
    chosen = {name: getattr(settings, name) for name in names}
    chosen["n_iter"] = settings.max_iter
    return replace(schedule, **{k: v for k, v in chosen.items() if v is not None})
