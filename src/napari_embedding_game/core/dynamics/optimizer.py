"""How a player moves."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from napari_embedding_game.core.dynamics import update_loops
from napari_embedding_game.core.energy import pair_loops
from napari_embedding_game.core.threads import run_blocks

_COMPILED = (torch.float32, torch.float64)


class PlayerRMS(torch.optim.Optimizer):
    """Steps along each player's gradient divided by its root mean square.

    One parameter group per player; the landmarks' has ``maximize=True``:

        v <- momentum v + (1 - momentum) g / rms(g)
        p <- p -+ lr v

    With momentum 0 this is the update of the paper's Alg. 1.

    A group's ``scale`` (N, 1), if it has one, divides each row of g before all this:
    a player whose rows differ much in stiffness then takes longer steps in the same
    time (diagonal preconditioning).

    The division makes learning rates of both players comparable: ``lr`` is the
    root mean square length of a step per coordinate, in units of the map.

    Rows of floats in the processor's memory are moved in place by one compiled loop
    (:mod:`update_loops`), on ``n_jobs`` threads; whatever else by torch.
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
        n_jobs: int | None = 1,
    ) -> None:
        if lr < 0 or not 0 <= momentum < 1:
            raise ValueError(f"need lr >= 0 and 0 <= momentum < 1: {lr}, {momentum}")
        defaults: dict[str, Any] = {"lr": lr, "momentum": momentum}
        defaults |= {"maximize": maximize, "scale": None}
        super().__init__(params, defaults)
        self._n_jobs = n_jobs

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
        if not _is_compiled(parameter, gradient):
            self._take(parameter, group, direction(gradient, group["scale"]))
            return
        points, none = (
            parameter.detach().numpy(),
            np.empty((0, 1), gradient.numpy().dtype),
        )
        scale, velocity = group["scale"], self._velocity(parameter, group)
        force = (
            gradient.numpy(),
            none if scale is None else np.ascontiguousarray(scale, points.dtype),
        )
        sums = np.empty(pair_loops.n_chunks(len(points)))
        work = len(sums), points.size, self._n_jobs
        run_blocks(update_loops.add_squares, *work, *force, sums)
        run_blocks(
            update_loops.move,
            *work,
            *force,
            update_loops.root_mean_square(sums, gradient.numpy()),
            (_length(group), 1.0 - group["momentum"]),
            points[:0] if velocity is None else velocity.numpy(),
            points,
        )

    def _take(self, parameter: Tensor, group: dict[str, Any], step: Tensor) -> None:
        """Take a step in a direction, with momentum."""
        velocity = self._velocity(parameter, group)
        if velocity is not None:
            velocity += (1.0 - group["momentum"]) * (step - velocity)
            step = velocity
        parameter += _length(group) * step

    def _velocity(self, parameter: Tensor, group: dict[str, Any]) -> Tensor | None:
        return self._kept(parameter, "velocity") if group["momentum"] else None

    def _kept(self, parameter: Tensor, name: str) -> Tensor:
        """Return what the player keeps from step to step under a name; 0 at first."""
        state = self.state[parameter]
        if name not in state:
            state[name] = torch.zeros_like(parameter)
        kept: Tensor = state[name]
        return kept


def _length(group: dict[str, Any]) -> float:
    """Return the signed length of a step."""
    return float(group["lr"] if group["maximize"] else -group["lr"])


def _is_compiled(parameter: Tensor, gradient: Tensor) -> bool:
    """Return whether the loop can move these: rows of floats in the processor."""
    return (
        parameter.ndim == 2
        and parameter.device.type == "cpu"
        and parameter.dtype in _COMPILED
        and parameter.is_contiguous()
        and gradient.is_contiguous()
    )


def direction(gradient: Tensor, scale: Tensor | None = None) -> Tensor:
    """Return a gradient, whose rows ``scale`` divides, by its root mean square."""
    if scale is not None:
        gradient = gradient / scale
    rms = torch.linalg.vector_norm(gradient) / math.sqrt(gradient.numel())
    divided: Tensor = gradient / rms.clamp_min(torch.finfo(rms.dtype).tiny)
    return divided
