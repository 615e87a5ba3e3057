"""Points that something else than the game moves: PCA, by principal steps.

The steps are those of :mod:`pca_frames`.  Pressure is not defined on its maps, see
:attr:`methods.Method.has_pressure`, and it cannot be steered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.dynamics.optimizer import resolve_schedule
from napari_embedding_game.core.dynamics.pca_frames import LOW_RANK, principal_states
from napari_embedding_game.core.dynamics.state import ANYWHERE, Problem, State
from napari_embedding_game.core.energy.methods import (
    Method,
    check_numbers,
    strength_of,
)
from napari_embedding_game.core.energy.objective import Objective
from napari_embedding_game.core.energy.valid_combinations import choose
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.types import GameSettings


class External:
    """The principal steps on their way."""

    is_steered = False
    shows_every_step = True
    farthest = ANYWHERE
    way_back = "choose another start or method"
    places: NDArray[np.intp] | None = None

    def __init__(self, problem: Problem, method: Method) -> None:
        self._problem = problem
        self._method = method
        self.objective: Objective | None = None

    def steps(self, settings: GameSettings) -> Iterator[State]:
        """Check the settings, then let the points be laid out."""
        problem, method = self._problem, self._method
        check(method, settings)
        # The landmarks take the kernel of the game.
        self.fitting = replace(
            settings, method="game", approximation=None, strength=None
        )
        way = _WAYS[method.moved_by]
        return way(problem.edges, problem.layout, settings, problem.random_state)


def check(method: Method, settings: GameSettings) -> None:
    """Raise InputError unless the settings suit the method."""
    choose(settings.method, settings.approximation)
    check_numbers(settings)
    resolve_schedule(settings)
    if strength_of(settings) != method.strength:
        raise InputError(
            f"{method.title} cannot be steered: leave the repulsion at its own, "
            f"{method.strength:g}."
        )


Way = Callable[[Edges, NDArray[np.floating], GameSettings, int], Iterator[State]]
"""(edges, start, settings, random_state) -> the way of the points."""
_WAYS: dict[str, Way] = {
    "principal": principal_states,
    "low_rank_principal": partial(principal_states, low_rank=LOW_RANK),
}
"""What moves the points, by the name in :attr:`methods.Method.moved_by`."""
