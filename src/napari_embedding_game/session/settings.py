"""The settings a person edits, and the frozen settings the engine receives."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from psygnal import SignalGroupDescriptor

from napari_embedding_game.core.energy.methods import (
    get_method,
    per_point,
    resolve,
    strength_of,
)
from napari_embedding_game.core.energy.valid_combinations import (
    affinities,
    approximations,
    choose,
    optimizers,
)
from napari_embedding_game.core.names import (
    Approximation,
    ScheduleName,
)
from napari_embedding_game.core.types import GameSettings, StartSettings

WEAKEST, STRONGEST = 1 / 30, 100 / 3
"""Repulsion that the slider offers, to the method's own: for the game 10 to 10,000."""

START_FIELDS = frozenset(field.name for field in fields(StartSettings))
GAME_FIELDS = frozenset(field.name for field in fields(GameSettings))


@dataclass
class Settings:
    """All settings in one place; ``events`` tells who changed what.

    Every field carries the name and the default of :class:`StartSettings` or
    :class:`GameSettings`; a test holds the two together.
    """

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()

    n_components: int = 2
    n_neighbors: int = 15
    metric: str = "euclidean"
    affinity: str = "auto"
    perplexity: float = 30.0
    init: str = "spectral"
    random_state: int = 0
    device: str = "auto"
    n_jobs: int | None = None

    method: str = "game"
    approximation: Approximation | None = None
    strength: float | None = None
    n_landmarks: int = 200
    learning_rate: float | None = None
    landmark_learning_rate: float | None = None
    momentum: float | None = None
    schedule: ScheduleName = "fast"
    max_iter: int | None = None
    optimizer: str = "game"

    def start(self) -> StartSettings:
        """Return what a new run is built from, with the edges of the method."""
        return resolve(self.chosen_start(), self.method)

    def chosen_start(self) -> StartSettings:
        """Return the same as it was chosen, with what is left to the method."""
        return StartSettings(**{name: getattr(self, name) for name in START_FIELDS})

    def game(self) -> GameSettings:
        """Return what may change while the game is played."""
        return GameSettings(**{name: getattr(self, name) for name in GAME_FIELDS})

    def choose_method(self, method: str) -> None:
        """Take a method with its own repulsion, and its own way to find it.

        Edges that it cannot be played on are left to it as well.
        """
        offered = choose(method, None)[0].approximations
        is_possible = self.affinity in ("auto", *affinities(method))
        self._leave_optimizer(method, self.affinity if is_possible else "auto")
        if self.approximation not in (None, *offered):
            self.approximation = None
        if not is_possible:
            self.affinity = "auto"
        self.strength = None
        self.method = method

    def choose_affinity(self, affinity: str) -> None:
        """Take edges; an optimiser that cannot follow them is left for the game's own.

        Some push, and some minimisers need edges that only pull.
        """
        self._leave_optimizer(self.method, affinity)
        self.affinity = affinity

    def _leave_optimizer(self, method: str, affinity: str) -> None:
        if self.optimizer not in optimizers(method, affinity):
            self.optimizer = "game"

    def choose_optimizer(self, optimizer: str) -> None:
        """Take an optimiser; a minimiser takes all pairs, or a grid that is chosen."""
        self.optimizer = optimizer
        is_kept = self.approximation == "mesh" and "mesh" in approximations(
            self.method, optimizer
        )
        if optimizer != "game" and not is_kept:
            self.approximation = None


def strength_range(method: str) -> tuple[float, float]:
    """Return the weakest and the strongest repulsion that are offered."""
    default = get_method(method).strength
    return default * WEAKEST, default * STRONGEST


def paper_lambda(game: GameSettings, n_points: int) -> float:
    """Return the paper's lambda for N points; where there is none, the factor."""
    return strength_of(game) / (max(n_points, 1) if has_lambda(game.method) else 1)


def has_lambda(method: str) -> bool:
    """Return whether the method's repulsion is a lambda, and not a factor."""
    return get_method(method).lambda_scale is per_point
