"""The forces of a person's hand on the points of a game: drag and pin.

They are given to :meth:`live_run.Run.hold`, by ``session/hand.py`` of the window's
mouse, as the springs and holds of ``snapshot.HandForces``.
They act after each step of the players, in ``game.Game._played``, by the proximal step
of an energy: a spring moves the mean of its points a share of the way to its target.
So they are stable at any learning rate, and do not change the players' gradients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.dynamics.optimizer import Player
from napari_embedding_game.core.energy.pair_loops import padded_to_plane
from napari_embedding_game.core.energy.torch_forces import finest_type
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.snapshot import HandForces

STIFFNESS = 0.1
"""Share of the way to its target that a spring moves its points in an iteration."""
FASTEST = 0.02
"""Longest way in an iteration, in radii of the map, where there is time enough."""
MAX_DISTANCE = 1e6
"""Largest coordinate of a game's map: beyond it points feel nothing."""


class AppliedForces:
    """Forces on the points ``y`` (N, d) of one game.

    ``n_components``: of the map, whose line ``y`` may hold as a plane.
    ``memory_rows``: row of ``y`` of each point, if they lie in another order.
    ``n_left``: iterations that are played at least; a spring arrives in a third of
    them. Raises InputError for points or positions that are not of the map.
    """

    def __init__(
        self,
        forces: HandForces,
        y: Tensor,
        n_components: int,
        memory_rows: NDArray[np.intp] | None,
        n_left: int,
    ) -> None:
        def positions(coordinates: Any, n: int) -> Tensor:
            return _positions(coordinates, (n, n_components), y)

        usual, hurry = FASTEST * radius(y), 3.0 / max(n_left, 3)
        self._springs = []
        for spring in forces.springs:
            rows = _rows(spring.rows, y, memory_rows)
            target = _finest(positions([spring.place], 1)[0])
            distance = float(torch.linalg.vector_norm(target - _middle(y, rows)))
            self._springs.append((rows, target, max(usual, hurry * distance)))
        self._holds = [
            (_rows(h.rows, y, memory_rows), positions(h.places, len(h.rows)))
            for h in forces.holds
        ]
        held = forces.landmarks
        self._landmarks = [(h.number, positions([h.place], 1)[0]) for h in held]

    def move(self, y: Player, z: Player) -> None:
        """Move points and landmarks in place; held ones lose their velocity."""
        for rows, target, fastest in self._springs:
            offset = target - _middle(y.positions, rows)
            length = float(torch.linalg.vector_norm(offset))
            share = min(STIFFNESS, fastest / max(length, 1e-30))
            y.positions[rows] += (share * offset).to(y.positions.dtype)
        for rows, positions in self._holds:
            _hold(y, rows, positions)
        for number, position in self._landmarks:
            if 0 <= number < len(z.positions):
                _hold(z, number, position)


def _hold(player: Player, rows: Tensor | int, positions: Tensor) -> None:
    player.positions[rows] = positions
    if player.velocity is not None:
        player.velocity[rows] = 0.0


def radius(y: Tensor) -> float:
    """Return the root mean square distance of points from their middle, over 1e-6."""
    points = _finest(y.detach())
    centred = points - points.mean(dim=0)
    return max(1e-6, math.sqrt(float((centred * centred).sum()) / len(points)))


def _rows(
    rows: NDArray[np.integer], y: Tensor, memory_rows: NDArray[np.intp] | None
) -> Tensor:
    rows = np.asarray(rows)
    are_numbers = rows.ndim == 1 and rows.dtype.kind in "iu"  # a mask is none
    if not (are_numbers and len(rows)) or not 0 <= rows.min() <= rows.max() < len(y):
        raise InputError(
            f"A hand can move some of the {len(y):,} points of this map: choose points "
            "of it, by their numbers."
        )
    rows = rows if memory_rows is None else memory_rows[rows]
    return torch.as_tensor(rows.astype(np.int64), device=y.device)


def _positions(positions: Any, shape: tuple[int, int], like: Tensor) -> Tensor:
    """Return positions as rows of ``like``; on a line with a second coordinate."""
    array = np.asarray(positions, dtype=float)
    if array.shape != shape or not (np.abs(array) <= MAX_DISTANCE).all():
        raise InputError(
            f"Points and landmarks can be moved to places from -{MAX_DISTANCE:g} to "
            f"{MAX_DISTANCE:g} in the dimensions of the map."
        )
    return torch.as_tensor(padded_to_plane(array)).to(like)


def _middle(y: Tensor, rows: Tensor) -> Tensor:
    """Return the mean of some points, (d,), as precisely as the device can."""
    return _finest(y[rows]).mean(dim=0)


def _finest(tensor: Tensor) -> Tensor:
    return tensor.to(finest_type(tensor.device))
