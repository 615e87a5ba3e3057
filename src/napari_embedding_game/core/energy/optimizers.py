"""What can move a method's points: the game's own steps, and what registers here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from napari_embedding_game.core.energy.methods import Method
    from napari_embedding_game.core.names import Approximation
    from napari_embedding_game.core.types import GameSettings

Make = Callable[[Any, "GameSettings"], Any]
"""(state.Problem, settings) -> state.Layouts: begins to make the layouts of a map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """What moves the points, and what it takes; by default all, as the game does.

    Attributes
    ----------
    title : str
        As a window names it.
    layouts : callable, optional
        What moves the points in place of the game's own steps.
    """

    title: str
    layouts: Make | None = None

    def approximations(self, method: Method) -> tuple[Approximation, ...]:
        """Return how the repulsion of a method can be found; its own comes first."""
        return method.approximations

    def objection(self, method: Method, affinity: str = "") -> str:
        """Return why it cannot move a method's points on such edges, or ""."""
        return ""

    def check_size(
        self, settings: GameSettings, n_points: int, n_components: int
    ) -> None:
        """Raise InputError for a map that is too large or too flat for it."""


OPTIMIZERS: dict[str, Optimizer] = {"game": Optimizer(title="The game's own")}
