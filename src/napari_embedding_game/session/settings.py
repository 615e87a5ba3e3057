"""The settings a person edits, and the frozen settings the engine receives."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from psygnal import SignalGroupDescriptor

from napari_embedding_game.core.types import (
    DEFAULT_AFFINITY,
    Affinity,
    GameSettings,
    Init,
    Method,
    ScheduleName,
    StartSettings,
)

STRENGTH_RANGE = (10.0, 10_000.0)
"""Smallest and largest lambda x N that the slider offers."""

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
    affinity: Affinity = DEFAULT_AFFINITY
    init: Init = "spectral"
    random_state: int = 0
    device: str = "auto"
    n_jobs: int | None = None

    method: Method = "game"
    strength: float = 300.0
    n_landmarks: int = 200
    learning_rate: float | None = None
    landmark_learning_rate: float | None = None
    momentum: float | None = None
    schedule: ScheduleName = "fast"
    max_iter: int | None = None

    def start(self) -> StartSettings:
        """Return what a new run is built from."""
        return StartSettings(**{name: getattr(self, name) for name in START_FIELDS})

    def game(self) -> GameSettings:
        """Return what may change while the game is played."""
        return GameSettings(**{name: getattr(self, name) for name in GAME_FIELDS})


def paper_lambda(strength: float, n_points: int) -> float:
    """Return the paper's lambda for a strength (lambda x N) and N points."""
    return strength / max(n_points, 1)
