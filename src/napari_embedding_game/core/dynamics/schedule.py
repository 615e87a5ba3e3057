"""How fast the players move, and how strongly they repel, over the length of a game.

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
    """Iterations, rates, and factors on rates and lambda by the share of a game done.

    ``by_pull``: whether forces are divided by attraction: ``game.sum_stiffness``.
    """

    n_iter: int
    learning_rate: float
    landmark_learning_rate: float
    momentum: float
    rate: Callable[[float], float]
    repulsion: Callable[[float], float]
    by_pull: bool = False


_LOG_OF_LEAST = -5.809142990314028
"""Of 0.003, what the repulsion begins with."""


def _cosine_to_a_hundredth(done: float) -> float:
    return float(0.01 + 0.99 * 0.5 * (1 + cos(math.pi * min(done, 1.0))))


def _growing_to_half(done: float) -> float:
    # Weak repulsion first lets the points sort themselves before they are spread:
    # `benchmarks/schedules.py`, b9dd4b2, compares this with other ways to begin.
    return float(exp(_LOG_OF_LEAST * (1 - 2 * done))) if done < 0.5 else 1.0


_NAMED: dict[ScheduleName, Schedule] = {
    "fast": Schedule(500, 0.3, 0.5, 0.9, _cosine_to_a_hundredth, _growing_to_half),
    "paper": Schedule(
        6000, 0.03, 0.3, 0.0, lambda done: 1.0 if done < 0.5 else 0.1, lambda done: 1.0
    ),
}


def resolve_schedule(settings: Settings) -> Schedule:
    """Return the schedule named in ``settings``, with the numbers that these set."""
    schedule = _NAMED[settings.schedule]
    spec, approximation = resolve_method(settings.method, settings.approximation)
    if spec.on_grid and approximation == "mesh" and settings.schedule == "fast":
        schedule = replace(schedule, **spec.on_grid)
    names = ("learning_rate", "landmark_learning_rate", "momentum")
    chosen = {name: getattr(settings, name) for name in names}
    chosen["n_iter"] = settings.max_iter
    return replace(schedule, **{k: v for k, v in chosen.items() if v is not None})
