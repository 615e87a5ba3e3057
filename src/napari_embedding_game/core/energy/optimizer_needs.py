"""What can move the points of a method, each as a short declaration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerRules:
    """What an optimiser is, and what it needs.

    Attributes
    ----------
    is_minimizer : bool
        Whether it lowers the energy over all pairs, instead of playing against
        landmarks.
    on_grid : bool
        Whether a grid may add up the pairs for a minimiser.
    needs_pull : bool
        It follows the spectral direction, which edges that push do not have.
    needs_quadratic : bool
        It needs one minimum under a weak repulsion: a quadratic attraction.
    fewest_components : int
        Dimensions of the smallest maps that it makes.
    most_points : int or None
        Largest maps, where all pairs are gone through one by one.  With digits of
        MNIST a step takes 1 s then on one slow core, and factoring the Laplacian for
        the spectral direction 13 s, which cannot be stopped
        (``benchmarks/descents.py``, b9dd4b2).
    """

    is_minimizer: bool = True
    on_grid: bool = True
    needs_pull: bool = False
    needs_quadratic: bool = False
    fewest_components: int = 1
    most_points: int | None = None


RULES: dict[str, OptimizerRules] = {
    "game": OptimizerRules(is_minimizer=False),
    "spectral_direction": OptimizerRules(needs_pull=True, most_points=10_000),
    "lbfgs": OptimizerRules(most_points=20_000),
    # It shakes the points, which have to stay on a line where the map is one.
    "homotopy": OptimizerRules(
        needs_pull=True, needs_quadratic=True, fewest_components=2, most_points=10_000
    ),
    # Its heights make the map one dimension higher: too wide for a grid in space.
    "pressured_points": OptimizerRules(
        needs_pull=True, on_grid=False, most_points=10_000
    ),
}
"""By the names of :data:`names.OPTIMIZERS`."""
