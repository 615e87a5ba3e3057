"""Points that something else than the game moves: libraries, and PCA.

Two libraries lay points out, on our edges and from our start.  openTSNE is seen to
move and can be stopped at every few iterations.  umap-learn has no such hook: it is
seen when it is done, and stopping waits for that.  The principal steps are those of
:mod:`pca_frames`.

Pressure is not defined on maps of theirs, see :attr:`methods.Method.has_pressure`.
None of them can be steered.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.dynamics.optimizer import resolve_schedule
from napari_embedding_game.core.dynamics.pca_frames import LOW_RANK, principal_states
from napari_embedding_game.core.dynamics.state import (
    ANYWHERE,
    Problem,
    State,
    as_points,
)
from napari_embedding_game.core.energy.methods import (
    Method,
    check_numbers,
    is_installed,
    strength_of,
)
from napari_embedding_game.core.energy.objective import Objective, make_objective
from napari_embedding_game.core.energy.pair_functions import UMAP_A, UMAP_B
from napari_embedding_game.core.energy.pair_sums import make_forces
from napari_embedding_game.core.energy.valid_combinations import choose
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.types import GameSettings

_SHOWN_EVERY = 10
_EARLY, _LATE = 250, 500
_EXAGGERATION = 12
"""openTSNE's own numbers: iterations with exaggeration, and after it."""
_UMAP_SIDE = 10.0
_MANY_POINTS = 10_000
"""umap-learn's own: the span of its start, and where it halves its epochs."""


class External:
    """A library, or the principal steps, on its way."""

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
        check(method, settings, problem.layout.shape[1])
        self.fitting = settings
        if method.kernel:
            self.objective = _objective(problem, settings, method)
        else:  # the landmarks take the kernel of the game
            self.fitting = replace(
                settings, method="game", approximation=None, strength=None
            )
        way = _WAYS[method.moved_by]
        return way(problem.edges, problem.layout, settings, problem.random_state)


def check(method: Method, settings: GameSettings, n_components: int) -> None:
    """Raise InputError unless the method is there and the settings suit it."""
    if not is_installed(method):
        raise InputError(
            f"{method.title} is not installed: install it with "
            f'pip install "napari-embedding-game[peers]", or choose another method.'
        )
    choose(settings.method, settings.approximation)
    check_numbers(settings)
    resolve_schedule(settings)
    if n_components > method.most_components:
        raise InputError(
            f"{method.title} draws maps of at most {method.most_components} "
            f"dimensions: choose {method.most_components}."
        )
    if strength_of(settings) != method.strength:
        raise InputError(
            f"{method.title} cannot be steered: leave the repulsion at its own, "
            f"{method.strength:g}."
        )


def _objective(problem: Problem, settings: GameSettings, method: Method) -> Objective:
    edges = problem.edges
    cpu = torch.device("cpu")
    return make_objective(
        method.approximations[0],
        make_forces(edges, cpu, 1, method.attraction, method.kernel),
        method.lambda_scale(edges) * method.strength,
        min(settings.n_landmarks, len(problem.layout)),
        problem.random_state,
        method.aggregate,
    )


def _state(iteration: int, n_iter: int, layout: Any) -> State:
    return State(iteration, n_iter, as_points(np.array(layout, np.float32)))


def opentsne_states(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings,
    random_state: int,
) -> Iterator[State]:
    """Yield openTSNE's layout every few iterations."""
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PrecomputedAffinities

    affinities = PrecomputedAffinities(edges.matrix().astype(np.float64))
    start = layout / layout.std(axis=0)[0] * 1e-4
    embedding = TSNEEmbedding(start.astype(np.float64), affinities, n_jobs=1)
    embedding.random_state = random_state
    n_iter = _EARLY + _LATE
    for iteration in range(0, n_iter, _SHOWN_EVERY):
        early = iteration < _EARLY
        yield _state(iteration, n_iter, embedding)
        embedding.optimize(
            _SHOWN_EVERY,
            inplace=True,
            exaggeration=_EXAGGERATION if early else None,
            momentum=0.5 if early else 0.8,
        )
    yield _state(n_iter, n_iter, embedding)


def umap_learn_states(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings,
    random_state: int,
) -> Iterator[State]:
    """Yield the start and, when it is done, umap-learn's layout."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Tensorflow not installed", ImportWarning)
        from umap.umap_ import simplicial_set_embedding

    n_epochs = 200 if len(layout) > _MANY_POINTS else 500
    start = layout - layout.min(axis=0)
    start = (start * _UMAP_SIDE / start.max()).astype(np.float32)
    yield _state(0, n_epochs, start)
    found, _ = simplicial_set_embedding(
        None,
        (edges.matrix() / edges.scale).tocoo(),
        layout.shape[1],
        1.0,
        UMAP_A,
        UMAP_B,
        1.0,
        5,
        n_epochs,
        start,
        np.random.RandomState(random_state),
        "euclidean",
        {},
        False,
        {},
        False,
    )
    yield _state(n_epochs, n_epochs, found)


Way = Callable[[Edges, NDArray[np.floating], GameSettings, int], Iterator[State]]
"""(edges, start, settings, random_state) -> the way of the points."""
_WAYS: dict[str, Way] = {
    "opentsne": opentsne_states,
    "umap_learn": umap_learn_states,
    "principal": principal_states,
    "low_rank_principal": partial(principal_states, low_rank=LOW_RANK),
}
"""What moves the points, by the name in :attr:`methods.Method.moved_by`."""
