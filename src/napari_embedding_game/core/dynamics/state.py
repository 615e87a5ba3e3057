"""The input and output of code that moves points: a problem, and a state per step.

The game, and methods that make layouts, take a :class:`Problem` and yield states.
:mod:`play` adds time, snapshots, warnings and clusters to both.
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
    """The data of a run that do not change while points move."""

    edges: Edges
    layout: NDArray[np.floating]
    """(N, d) start positions, d = 2 or 3: a line is padded to a plane."""
    n_components: int = 2
    """Dimensions of the map: 1, 2 or 3."""
    random_state: int = 0
    """Seed of the random generators: landmarks in ``game.Game``, pairs and points in
    :mod:`objective`."""
    device: torch.device
    warm_start: WarmStart | None = None
    """The map that ``layout`` belongs to, if the run continues from a map."""
    iteration: int = 0
    """Iterations that were done before."""
    memory_rows: NDArray[np.intp] | None = None
    """(N,) row of ``layout`` of each row of the data; None for the same order."""
    coordinates: Coordinates | None = None
    """Coordinates of the rows in the order of the data; None where unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Positions after one step.

    The next step changes the tensors in place: copy tensors to keep them.
    """

    iteration: int
    """Iterations since the start."""
    n_iter: int
    """Iterations at the end; 0 while their number is unknown."""
    y: Tensor
    """(N, d) points."""
    z: Tensor | None = None
    """(L, d) landmarks; None while points move without landmarks."""
    energy: float | Callable[[], float] | None = None
    """The energy, or a function that returns it; None: the objective computes it."""
    warning: str = ""
    """A sentence on why the map cannot be trusted, or ""."""


@dataclass(frozen=True, slots=True, eq=False)
class Layouts:
    """States of a method other than the game, which cannot be steered.

    :mod:`play` fits landmarks to the finished map.
    """

    states: Iterator[State]
    """States of the start and of each step, without landmarks."""
    objective: Objective | None = None
    """The minimised energy; None where each state has its energy."""

    def energy(self, state: State) -> float:
        """Return the state's energy; where it is None, compute it from the objective.

        A function in its place is called.
        """
        if state.energy is not None:
            return state.energy() if callable(state.energy) else state.energy
        assert self.objective is not None
        return self.objective.energy(state.y, state.y[:1])
