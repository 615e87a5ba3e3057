"""How a player moves, and how fast over the length of a game."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from napari_embedding_game.core.dynamics import update_loops
from napari_embedding_game.core.energy import pair_loops
from napari_embedding_game.core.energy.valid_combinations import choose
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.names import SCHEDULES, UPDATES, ScheduleName, Update
from napari_embedding_game.core.threads import Loops
from napari_embedding_game.core.types import GameSettings

_MOST_RATE = 1e30
"""Far beyond use, but a number that single precision can hold."""
_COMPILED = (torch.float32, torch.float64)
_REMEMBERED = 0.9
"""Share of the average direction that goes into the next one."""


class PlayerRMS(torch.optim.Optimizer):
    """Steps along each player's gradient divided by its root mean square.

    One parameter group per player; the landmarks' has ``maximize=True``:

        v <- momentum v + (1 - momentum) g / rms(g)
        p <- p -+ lr v

    With momentum 0 (``update="omd"``, online mirror descent) this is the update of
    the paper's Alg. 1.  ``update="optimistic"`` puts 2 g_t - g_t-1 in the place of
    the direction g: it expects the next to differ from the last as the last did from
    the one before (paper 2's learners; ``benchmarks/learners.py``, b9dd4b2, measures
    them).

    A group's ``scale`` (N, 1), if it has one, divides each row of g before all this:
    a player whose rows differ much in stiffness then takes longer steps in the same
    time (diagonal preconditioning).

    A group that is ``followed`` keeps the average of its directions g / rms(g) over
    about the last ten steps; :meth:`length` is how long that is.

    The division makes learning rates of both players comparable: ``lr`` is the
    root mean square length of a step per coordinate, in units of the map.  A map of
    one dimension is played in the plane: its second column, of zeros, counts too, so
    that its steps are sqrt(2) times as long.

    Rows of floats in the processor's memory are moved in place by one compiled loop
    (:mod:`update_loops`), on the threads of ``loops``; whatever else, and what is
    followed, by torch.
    """

    # Without the wrappers torch puts around them: those load its compiler at the
    # first game, 800 modules and a second.
    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.1,
        momentum: float = 0.0,
        maximize: bool = False,
        update: Update = "momentum",
        loops: Loops | None = None,
    ) -> None:
        if lr < 0 or not 0 <= momentum < 1:
            raise ValueError(f"need lr >= 0 and 0 <= momentum < 1: {lr}, {momentum}")
        defaults: dict[str, Any] = {"lr": lr, "momentum": momentum}
        defaults |= {"maximize": maximize, "update": update}
        defaults |= {"scale": None, "followed": False}
        super().__init__(params, defaults)
        self._loops = loops or Loops(1)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every player once."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, group)
        return loss

    def _move(self, parameter: Tensor, group: dict[str, Any]) -> None:
        gradient = parameter.grad
        assert gradient is not None
        has_velocity = group["momentum"] and group["update"] != "omd"
        velocity = self._kept(parameter, "velocity") if has_velocity else None
        # The first of all directions has nothing to have changed from.
        is_first = "last" not in self.state[parameter]
        looks_back = group["update"] == "optimistic"
        last = self._kept(parameter, "last") if looks_back else None
        length = group["lr"] if group["maximize"] else -group["lr"]
        rates = float(length), 1.0 - group["momentum"], 0.0 if is_first else 1.0
        given = parameter, gradient, group["scale"], rates, velocity, last
        path = self._followed(parameter) if group["followed"] else None
        if path is None and _is_compiled(parameter, gradient):
            _move_compiled(*given, self._loops)
        else:
            _move_by_torch(*given, path)

    def _kept(self, parameter: Tensor, name: str) -> Tensor:
        """Return what the player keeps from step to step under a name; 0 at first."""
        state = self.state[parameter]
        if name not in state:
            state[name] = torch.zeros_like(parameter)
        kept: Tensor = state[name]
        return kept

    def _followed(self, parameter: Tensor) -> Tensor:
        """Return the average direction, which is about to have one more."""
        state = self.state[parameter]
        state["n_followed"] = state.get("n_followed", 0) + 1
        return self._kept(parameter, "path")

    def length(self, parameter: Tensor) -> float | None:
        """Return the root mean square of the average direction, 0 to 1.

        1 where all steps had the same one, near 0 where each takes back the last.
        None where nothing has been followed.
        """
        state = self.state.get(parameter, {})
        if "path" not in state:
            return None
        path: Tensor = state["path"]
        rms = float(torch.linalg.vector_norm(path)) / math.sqrt(path.numel())
        # It began at 0.
        return rms / (1 - math.pow(_REMEMBERED, state["n_followed"]))


Rates = tuple[float, float, float]
"""Signed length of a step; 1 - momentum; share of the last change that is expected."""


def _is_compiled(parameter: Tensor, gradient: Tensor) -> bool:
    """Return whether the loop can move these: rows of floats in the processor."""
    return (
        parameter.ndim == 2
        and parameter.device.type == "cpu"
        and parameter.dtype in _COMPILED
        and parameter.is_contiguous()
        and gradient.is_contiguous()
    )


def _move_compiled(
    parameter: Tensor,
    gradient: Tensor,
    scale: Tensor | None,
    rates: Rates,
    velocity: Tensor | None,
    last: Tensor | None,
    loops: Loops,
) -> None:
    points = parameter.detach().numpy()
    none = points[:0]
    divisor = none[:, :1] if scale is None else scale.numpy()
    loops.run(
        update_loops,
        "move",
        points.size,
        np.empty(pair_loops.n_chunks(len(points))),
        gradient.numpy(),
        np.ascontiguousarray(divisor, points.dtype),
        rates,
        none if velocity is None else velocity.numpy(),
        none if last is None else last.numpy(),
        points,
    )


def _move_by_torch(
    parameter: Tensor,
    gradient: Tensor,
    scale: Tensor | None,
    rates: Rates,
    velocity: Tensor | None,
    last: Tensor | None,
    path: Tensor | None,
) -> None:
    length, gain, share = rates
    if scale is not None:
        gradient = gradient / scale
    rms = torch.linalg.vector_norm(gradient) / math.sqrt(gradient.numel())
    direction = gradient / rms.clamp_min(torch.finfo(rms.dtype).tiny)
    if path is not None:
        path.lerp_(direction, 1 - _REMEMBERED)
    if last is not None:
        expected = direction + share * (direction - last)
        last.copy_(direction)
        direction = expected
    if velocity is not None:
        direction = velocity.lerp_(direction, gain)
    parameter.add_(direction, alpha=length)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Iterations, rates, and how they change over a game.

    ``rate`` and ``repulsion`` take the share of the game that is done, 0 to 1,
    and return the factor on both learning rates and on lambda.  ``by_pull``: whether
    each point's force is divided by how strongly it is attracted, see
    :func:`game.stiffness`.
    """

    n_iter: int
    learning_rate: float
    landmark_learning_rate: float
    momentum: float
    rate: Callable[[float], float]
    repulsion: Callable[[float], float]
    by_pull: bool = False


def _cosine_to_a_hundredth(done: float) -> float:
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))


def _growing_to_half(done: float) -> float:
    # Weak repulsion first lets the points sort themselves before they are spread:
    # `benchmarks/schedules.py`, b9dd4b2, compares this with other ways to begin.
    return math.pow(0.003, max(0.0, 1 - 2 * done))


def _tenth_after_half(done: float) -> float:
    return 1.0 if done < 0.5 else 0.1


def _constant(done: float) -> float:
    return 1.0


_NAMED: dict[ScheduleName, Schedule] = {
    "fast": Schedule(500, 0.3, 0.5, 0.9, _cosine_to_a_hundredth, _growing_to_half),
    "paper": Schedule(6000, 0.03, 0.3, 0.0, _tenth_after_half, _constant),
}


def resolve_schedule(settings: GameSettings) -> Schedule:
    """Return the schedule that ``settings`` names, with its own numbers replaced.

    Raises
    ------
    InputError
        A number is out of its range, or the schedule has another name.
    """
    if settings.schedule not in _NAMED:
        raise InputError(
            f"The schedule must be one of {SCHEDULES}, not {settings.schedule!r}."
        )
    schedule = _NAMED[settings.schedule]
    for update in (settings.update, settings.landmark_update):
        if update not in UPDATES:
            raise InputError(f"The update must be one of {UPDATES}, not {update!r}.")
    if settings.schedule == "fast":
        schedule = _suited(schedule, settings)
    chosen: dict[str, Any] = {
        "n_iter": settings.max_iter,
        "learning_rate": settings.learning_rate,
        "landmark_learning_rate": settings.landmark_learning_rate,
        "momentum": settings.momentum,
    }
    schedule = replace(schedule, **{k: v for k, v in chosen.items() if v is not None})
    _check(schedule)
    return schedule


def _suited(schedule: Schedule, settings: GameSettings) -> Schedule:
    """Return the schedule with the numbers that suit method and approximation."""
    spec, found_by = choose(settings.method, settings.approximation, settings.optimizer)
    steps = spec.on_grid
    if found_by != "mesh" or steps is None:
        return schedule
    return replace(
        schedule,
        n_iter=steps.n_iter,
        learning_rate=steps.learning_rate,
        landmark_learning_rate=steps.landmark_learning_rate,
        momentum=steps.momentum,
        by_pull=True,
    )


def _check(schedule: Schedule) -> None:
    if not (isinstance(schedule.n_iter, (int, np.integer)) and schedule.n_iter >= 1):
        raise InputError(
            "The number of iterations must be a whole number, at least 1, "
            f"not {schedule.n_iter}."
        )
    for name in ("learning_rate", "landmark_learning_rate"):
        rate = getattr(schedule, name)
        if not 0 <= rate <= _MOST_RATE:
            raise InputError(
                f"The {name.replace('_', ' ')} must be from 0 to {_MOST_RATE:g}, "
                f"not {rate}."
            )
    if not 0 <= schedule.momentum < 1:
        raise InputError(
            f"The momentum must be from 0 up to below 1, not {schedule.momentum}."
        )
