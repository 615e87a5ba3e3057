"""What a dynamic is: what it is given, and what it yields.

A dynamic moves the points, one step after another.  It knows nothing of time,
snapshots, warnings or clusters: :mod:`driver` has these for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy.objective import Objective
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.types import GameSettings, WarmStart

ANYWHERE = float(np.finfo(np.float32).max)
"""Largest coordinate of a dynamic that sets no limit to the map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What stays the same while a dynamic moves the points."""

    edges: Edges
    layout: NDArray[np.floating]
    """(N, d) start positions."""
    random_state: int = 0
    """Seed of everything drawn at random."""
    device: torch.device
    n_jobs: int | None = None
    """Threads for large data; see :mod:`threads`."""
    warm_start: WarmStart | None = None
    """What ``layout`` is of, where it is a map to go on from."""


@dataclass(frozen=True, slots=True)
class State:
    """Where a dynamic stands.

    The tensors are the dynamic's own and change with its next step: who keeps them
    copies them.
    """

    iteration: int
    """Iterations since the dynamic was made."""
    n_iter: int
    """Iterations at its end, as far as known now; 0 while nobody knows."""
    y: Tensor
    """(N, d) points; (N, 2) where d is 1.  In the order of ``Dynamic.places``."""
    z: Tensor | None = None
    """(L, d) landmarks, if the dynamic moves any."""
    energy: float | None = None
    """None where it has to be worked out from ``Dynamic.objective``."""
    warning: str = ""
    """Why the picture cannot be trusted, or ""."""


class Dynamic(Protocol):
    """A way to move the points.

    Attributes
    ----------
    is_steered : bool
        Whether it takes up settings on the way; otherwise they are not used.
    shows_every_step : bool
        Whether each state is to be seen, however little time it took.
    farthest : float
        Largest coordinate that is on the map.
    way_back : str
        What to do about points beyond it.
    """

    is_steered: bool
    shows_every_step: bool
    farthest: float
    way_back: str

    @property
    def objective(self) -> Objective | None:
        """What the points lower, with the whole repulsion.

        None where each state carries its energy.
        """

    @property
    def places(self) -> NDArray[np.intp] | None:
        """Row of ``State.y`` of each point, (N,); None in the order of the data."""

    @property
    def fitting(self) -> GameSettings | None:
        """Settings by which landmarks are fitted to the finished map.

        None where the dynamic moves landmarks itself.
        """

    def steps(self, settings: GameSettings) -> Iterator[State]:
        """Take up settings; yield where the points stand now, then each step.

        Called again, it goes on from the present points, and the former iterator is
        not used any more.

        Raises
        ------
        InputError
            The dynamic cannot take up these settings.
        """


def in_the_plane(positions: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return a line as a line in the plane: the loops know 2 and 3 dimensions.

    Nothing pushes a point off it.
    """
    if positions.shape[1] > 1:
        return positions
    return np.column_stack([positions, np.zeros_like(positions)])


def as_points(positions: NDArray[np.floating]) -> Tensor:
    """Return (N, d) positions as the points of a :class:`State`."""
    return torch.from_numpy(in_the_plane(positions))
