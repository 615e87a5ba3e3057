"""Forces by which a person drags and pins points of a running game.

:meth:`live_run.Run.hold` receives the forces as springs and holds of
``snapshot.HandForces``; ``session/hand.py`` makes them from the window's mouse.
They act after each step of the players, in ``game.Game._play_iterations``, by the
proximal step of an energy: a spring moves the mean of its points a share of the way to
its target.  So they are stable at any learning rate, and do not change the players'
gradients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.dynamics.optimizer import Player
from napari_embedding_game.core.energy.pair_loops import pad_to_plane
from napari_embedding_game.core.energy.torch_forces import choose_most_precise_dtype
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.snapshot import HandForces

STIFFNESS = 0.1
"""Share of the distance to its target that a spring moves its points per iteration."""
FASTEST = 0.02
"""Longest move per iteration, in radii of the map, unless time is too short."""
MAX_DISTANCE = 1e6
"""Largest coordinate of a game's map: forces vanish at larger distances."""


class AppliedForces:
    """The springs and holds on the ``points`` (N, d) of one game.

    ``n_components``: dimensions of the map; ``points`` have two for a line.
    ``memory_rows`` (N,): row of ``points`` of each row of the data, or None for the
    same order.  ``iterations_left``: least number of iterations that follow; a spring
    reaches its target in a third of them.  Raises InputError for points or positions
    that the map does not have.
    """

    def __init__(
        self,
        forces: HandForces,
        points: Tensor,
        n_components: int,
        memory_rows: NDArray[np.intp] | None,
        iterations_left: int,
    ) -> None:
        def to_positions(coordinates: Any, n: int) -> Tensor:
            return _to_position_tensor(coordinates, (n, n_components), points)

        usual, hurry = (
            FASTEST * compute_rms_radius(points),
            3.0 / max(iterations_left, 3),
        )
        self._springs = []
        for spring in forces.springs:
            rows = _to_memory_rows(spring.rows, points, memory_rows)
            target = _to_most_precise(to_positions([spring.place], 1)[0])
            distance = float(
                torch.linalg.vector_norm(target - _compute_mean_position(points, rows))
            )
            self._springs.append((rows, target, max(usual, hurry * distance)))
        self._holds = [
            (
                _to_memory_rows(h.rows, points, memory_rows),
                to_positions(h.places, len(h.rows)),
            )
            for h in forces.holds
        ]
        held = forces.landmarks
        self._landmarks = [(h.number, to_positions([h.place], 1)[0]) for h in held]

    def move_players(self, points: Player, landmarks: Player) -> None:
        """Move points and landmarks in place by one step of all springs and holds.

        A spring shifts its points alike and leaves their velocity.  Held points and
        landmarks are set to their positions, with velocity 0; a landmark that no longer
        exists is ignored.
        """
        for rows, target, fastest in self._springs:
            offset = target - _compute_mean_position(points.positions, rows)
            length = float(torch.linalg.vector_norm(offset))
            share = min(STIFFNESS, fastest / max(length, 1e-30))
            points.positions[rows] += (share * offset).to(points.positions.dtype)
        for rows, positions in self._holds:
            _fix_positions(points, rows, positions)
        for number, position in self._landmarks:
            if 0 <= number < len(landmarks.positions):
                _fix_positions(landmarks, number, position)


def _fix_positions(player: Player, rows: Tensor | int, positions: Tensor) -> None:
    """Set the positions of ``rows`` of a player in place, and their velocity to 0."""
    player.positions[rows] = positions
    if player.velocity is not None:
        player.velocity[rows] = 0.0


def compute_rms_radius(points: Tensor) -> float:
    """Return the root mean square distance of points from their mean, at least 1e-6."""
    positions = _to_most_precise(points.detach())
    centred = positions - positions.mean(dim=0)
    return max(1e-6, math.sqrt(float((centred * centred).sum()) / len(positions)))


def _to_memory_rows(
    rows: NDArray[np.integer], points: Tensor, memory_rows: NDArray[np.intp] | None
) -> Tensor:
    """Return the indices in ``points`` of these ``rows`` of the data, int64, (m,).

    ``memory_rows`` (N,): index in ``points`` of each row; None for the same order.
    Raises InputError for rows that are empty, no integers, or not in the map.
    """
    rows = np.asarray(rows)
    are_numbers = rows.ndim == 1 and rows.dtype.kind in "iu"  # no mask of bools
    n = len(points)
    if not (are_numbers and len(rows)) or not 0 <= rows.min() <= rows.max() < n:
        raise InputError(
            f"A hand can move some of the {n:,} points of this map: choose points of "
            "it, by their numbers."
        )
    rows = rows if memory_rows is None else memory_rows[rows]
    return torch.as_tensor(rows.astype(np.int64), device=points.device)


def _to_position_tensor(positions: Any, shape: tuple[int, int], like: Tensor) -> Tensor:
    """Return positions as a tensor of the type and device of ``like``.

    ``shape`` (n, d): the shape that the positions must have; for d = 1 the result is
    (n, 2), with zeros.  Raises InputError for another shape, NaN, or coordinates beyond
    :data:`MAX_DISTANCE`.
    """
    array = np.asarray(positions, dtype=float)
    if array.shape != shape or not (np.abs(array) <= MAX_DISTANCE).all():
        raise InputError(
            f"Points and landmarks can be moved to places from -{MAX_DISTANCE:g} to "
            f"{MAX_DISTANCE:g} in the dimensions of the map."
        )
    return torch.as_tensor(pad_to_plane(array)).to(like)


def _compute_mean_position(points: Tensor, rows: Tensor) -> Tensor:
    """Return the mean of rows of ``points``, (d,), in the most precise type."""
    return _to_most_precise(points[rows]).mean(dim=0)


def _to_most_precise(tensor: Tensor) -> Tensor:
    return tensor.to(choose_most_precise_dtype(tensor.device))
