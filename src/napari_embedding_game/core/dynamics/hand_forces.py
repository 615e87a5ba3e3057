"""The forces of a person's hand on the points of a game.

They act after each step of the players, by the proximal step of their own energy: a
spring of stiffness k takes the middle c of its points the share k of the way to where
it is drawn.  So they are stable whatever the learning rates are, add nothing to the
gradients of the players, whose mean square sets the length of everybody's step, and
leave every point finite.  Between two such steps the points answer to the method alone:
neighbours follow what is drawn away, and strangers give way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy.torch_mesh import finest_type
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.snapshot import HandForces, LandmarkEdit, Spring

STIFFNESS = 0.1
"""Share of the way to its place that a spring takes its points in an iteration."""
FASTEST = 0.02
"""Longest way in an iteration, as a share of the map's radius, where there is time
enough: a class of digits that is dragged by a radius loses 0.003 of its neighbours'
recall, 0.025 where it may go four times as fast (``benchmarks/hand_forces.py``,
b9dd4b2).
"""
FARTHEST = 1e6
"""Largest coordinate that points can be brought to: that of a game's map."""


class AppliedForces:
    """Forces on the points ``y`` (N, d) of one game, in its own order.

    Parameters
    ----------
    forces : HandForces
        By rows of the data.
    y : (N, d) tensor
        The points now.
    places : (N,) int array
        Row of ``y`` of each point of the data.
    n_left : int
        Iterations that are played at least: in a third of them a spring arrives.

    Raises
    ------
    InputError
        A force names points that there are none of, or a place that is not on the map.
    """

    def __init__(
        self, forces: HandForces, y: Tensor, places: NDArray[np.intp], n_left: int
    ) -> None:
        self._device, self._dtype = y.device, y.dtype
        self._d = y.shape[1]
        self._places = places
        self._usual = FASTEST * radius(y)
        self._hurry = 3.0 / max(n_left, 3)
        self._springs = [self._spring(spring, y) for spring in forces.springs]
        self._holds = [
            (self._rows(hold.rows), self._positions(hold.places, len(hold.rows)))
            for hold in forces.holds
        ]
        self._landmarks = [
            (hold.number, self._positions([hold.place], 1)[0])
            for hold in forces.landmarks
        ]

    @torch.no_grad()
    def move(self, y: Tensor, velocity: Tensor | None) -> None:
        """Move the points for one iteration; held ones stay where they are held.

        Parameters
        ----------
        y : (N, d) tensor
            Changed in place.
        velocity : (N, d) tensor, optional
            That of held points becomes 0.
        """
        for rows, target, fastest in self._springs:
            way = target - _middle(y, rows)
            y[rows] += self._step(way, fastest)
        for rows, places in self._holds:
            y[rows] = places
            if velocity is not None:
                velocity[rows] = 0.0

    @torch.no_grad()
    def move_landmarks(self, z: Tensor, velocity: Tensor | None) -> None:
        """Bring held landmarks to their places; their velocity becomes 0.

        Parameters
        ----------
        z : (L, d) tensor
            Changed in place.
        velocity : (L, d) tensor, optional
        """
        for number, place in self._landmarks:
            if 0 <= number < len(z):
                z[number] = place
                if velocity is not None:
                    velocity[number] = 0.0

    # Inside

    def _step(self, way: Tensor, fastest: float) -> Tensor:
        """Return the share of a way that is gone in this iteration."""
        share = min(STIFFNESS, fastest / max(_length(way), 1e-30))
        return (share * way).to(self._dtype)

    def _fastest(self, length: float) -> float:
        """Return the longest way in an iteration, where so long a way is to be gone."""
        return max(self._usual, self._hurry * length)

    def _rows(self, rows: NDArray[np.integer]) -> Tensor:
        rows = np.asarray(rows)
        n = len(self._places)
        if not len(rows) or rows.min() < 0 or rows.max() >= n:
            raise InputError(
                f"A hand can move some of the {n:,} points of this map: choose points "
                "of it."
            )
        return torch.as_tensor(self._places[rows], device=self._device)

    def _spring(self, spring: Spring, y: Tensor) -> tuple[Tensor, Tensor, float]:
        rows = self._rows(spring.rows)
        target = _finest(self._positions([spring.place], 1)[0])
        return rows, target, self._fastest(_length(target - _middle(y, rows)))

    def _positions(self, places: Iterable[Iterable[float]], n: int) -> Tensor:
        """Return places in the dimensions that are played in: two of a line."""
        array = np.asarray(places, dtype=float)
        fits = array.ndim == 2 and len(array) == n and 1 <= array.shape[1] <= self._d
        if not fits or not (np.abs(array) <= FARTHEST).all():
            raise InputError(
                f"Points can be moved to places from -{FARTHEST:g} to {FARTHEST:g} in "
                "the dimensions of the map."
            )
        padded = np.zeros((n, self._d))
        padded[:, : array.shape[1]] = array
        return torch.as_tensor(padded, dtype=self._dtype, device=self._device)


def edited(z: Tensor, edit: LandmarkEdit) -> tuple[Tensor, NDArray[np.intp]]:
    """Return the landmarks (L', d) after an edit, and the numbers of those that stay.

    Raises
    ------
    InputError
        A new one is not on the map, or none would be left.
    """
    kept = np.setdiff1d(np.arange(len(z)), edit.removed)
    places = np.zeros((len(edit.added), z.shape[1]))
    for row, place in zip(places, edit.added, strict=True):
        row[: len(place)] = place[: z.shape[1]]
    if not (np.abs(places) <= FARTHEST).all() or not (len(kept) or len(places)):
        raise InputError(
            f"A landmark can be added at places from -{FARTHEST:g} to {FARTHEST:g}, "
            "and one has to be left."
        )
    stay = z[torch.as_tensor(kept, device=z.device)]
    return torch.cat([stay, torch.as_tensor(places).to(z)]), kept


def radius(y: Tensor) -> float:
    """Return the root mean square distance of points from their middle; at least 1e-6.

    A millionth keeps points of one place from dividing by 0.
    """
    points = _finest(y.detach())
    away = points - points.mean(dim=0)
    return max(1e-6, math.sqrt(float((away * away).sum()) / len(points)))


def _length(way: Tensor) -> float:
    return float(torch.linalg.vector_norm(way))


def _middle(y: Tensor, rows: Tensor) -> Tensor:
    """Return the mean of some points, (d,), as precisely as the device can."""
    return _finest(y[rows]).mean(dim=0)


def _finest(tensor: Tensor) -> Tensor:
    return tensor.to(finest_type(tensor.device))
