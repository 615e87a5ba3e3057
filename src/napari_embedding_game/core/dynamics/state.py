"""What moves the points, one step after another: what it is given, and what it yields.

That is the game, or whatever makes layouts.  Neither knows of time, snapshots, warnings
or clusters: :mod:`play` has these for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy.objective import Objective
from napari_embedding_game.core.graph.coordinates import Coordinates
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.snapshot import WarmStart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """What stays the same while the points are moved."""

    edges: Edges
    layout: NDArray[np.floating]
    """(N, d) start positions, d = 2 or 3: a line lies in the plane, see :mod:`play`."""
    n_components: int = 2
    """Dimensions of the map: 1, 2 or 3."""
    random_state: int = 0
    """Seed of everything drawn at random, by a generator each: landmarks in
    ``game.Game``, pairs and points in :mod:`objective`."""
    device: torch.device
    warm_start: WarmStart | None = None
    """What ``layout`` is of, where it is a map to go on from."""
    iteration: int = 0
    """Iterations that were done before."""
    memory_rows: NDArray[np.intp] | None = None
    """(N,) row of each point of the data, where they lie in another order."""
    coordinates: Coordinates | None = None
    """Of each point, in the order of the data; None where nobody knows."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Positions after one step.

    The tensors belong to the code that moves them and change with its next step: copy
    them to keep them.
    """

    iteration: int
    """Iterations since the start."""
    n_iter: int
    """Iterations at its end, as far as known now; 0 while nobody knows."""
    y: Tensor
    """(N, d) points."""
    z: Tensor | None = None
    """(L, d) landmarks, if any are moved."""
    energy: float | Callable[[], float] | None = None
    """None where it is computed from the objective."""
    warning: str = ""
    """Why the picture cannot be trusted, or ""."""


@dataclass(frozen=True, slots=True, eq=False)
class Layouts:
    """Layouts made by other means than the game: shown, and not steered.

    :mod:`play` fits landmarks to the finished map.
    """

    states: Iterator[State]
    """The start, then each step; without landmarks."""
    objective: Objective | None = None
    """What the points lower; None where each state carries its energy."""

    def energy(self, state: State) -> float:
        """Return the energy of a state."""
        if state.energy is not None:
            return state.energy() if callable(state.energy) else state.energy
        assert self.objective is not None
        return self.objective.energy(state.y, state.y[:1])
