"""What can move the points of a method, each as a short declaration."""

from __future__ import annotations

from dataclasses import dataclass

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.names import OPTIMIZERS, OptimizerName


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerRules:
    """What an optimiser is, and what it needs.

    Attributes
    ----------
    is_minimizer : bool
        Whether it lowers the energy over all pairs, instead of playing against
        landmarks.
    needs_pull : bool
        It follows the spectral direction, which edges that push do not have.
    needs_quadratic : bool
        It needs one minimum under a weak repulsion: a quadratic attraction.
    fewest_components : int
        Dimensions of the smallest maps that it makes.
    most_points : int or None
        Largest maps.  With digits of MNIST a step over all pairs takes 1 s on one slow
        core, and factoring the Laplacian for the spectral direction 13 s, which cannot
        be stopped (``python benchmarks/descents.py``).
    """

    is_minimizer: bool = True
    needs_pull: bool = False
    needs_quadratic: bool = False
    fewest_components: int = 1
    most_points: int | None = None


RULES: dict[OptimizerName, OptimizerRules] = {
    "game": OptimizerRules(is_minimizer=False),
    "spectral_direction": OptimizerRules(needs_pull=True, most_points=10_000),
    "lbfgs": OptimizerRules(most_points=20_000),
    # It shakes the points, which have to stay on a line where the map is one.
    "homotopy": OptimizerRules(
        needs_pull=True, needs_quadratic=True, fewest_components=2, most_points=10_000
    ),
    "pressured_points": OptimizerRules(needs_pull=True, most_points=10_000),
}


def rules_of(optimizer: str) -> OptimizerRules:
    """Return the declaration of an optimiser.

    Raises
    ------
    InputError
        There is none of that name.
    """
    for name, rules in RULES.items():
        if name == optimizer:
            return rules
    raise InputError(f"The optimizer must be one of {OPTIMIZERS}, not {optimizer!r}.")


def check_size(optimizer: OptimizerName, n_points: int, n_components: int) -> None:
    """Raise InputError for a map that is too large or too flat for the optimiser."""
    rules = rules_of(optimizer)
    if rules.most_points is not None and n_points > rules.most_points:
        raise InputError(
            f"The optimizer {optimizer} goes through all pairs of points, which "
            f"takes too long for {n_points:,} of them: choose the optimizer "
            f"game, the game's own steps, or embed at most {rules.most_points:,} rows."
        )
    if n_components < rules.fewest_components:
        raise InputError(
            f"The optimizer {optimizer} needs a map of 2 or 3 dimensions, as it "
            "shakes the points off a line: choose one of the others."
        )
