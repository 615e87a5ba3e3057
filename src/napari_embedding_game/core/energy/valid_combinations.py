"""What goes with what: the approximations, optimisers and edges of each method."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from napari_embedding_game.core.energy.methods import METHODS, Method, get_method
from napari_embedding_game.core.energy.optimizers import OPTIMIZERS
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.row_affinities import (
    ROW_AFFINITIES,
    affinity_names,
)
from napari_embedding_game.core.names import (
    APPROXIMATIONS,
    Approximation,
)
from napari_embedding_game.core.types import GameSettings

if TYPE_CHECKING:
    from napari_embedding_game.core.energy.optimizers import Make

NO_BOUND = {"umap": "UMAP's repulsion is infinite where two points meet"}
"""Kernels for which landmarks (Eq. 3) bound nothing, and why."""
MOST_EXACT = 50_000
"""Points up to which the game's own steps go through all pairs.

So many take 0.2 to 1.5 s a step on one core, by the kernel
(``python benchmarks/pair_loops.py``).
"""
MANY_POINTS = 50_000
"""Points from which a flat map of the game is played on a grid, unless told otherwise.

So many crowd between the landmarks: on maps of 70,000 and 150,000 points a landmark has
0.67 and 0.27 of the points around it that lie around a point; on a grid 0.98 and 0.90,
at a lower energy in 0.7 of the time (``docs/methods.md``).
"""
NO_CHANGE = (
    "The game cannot take turns with what moves the points by itself: begin a new run "
    "to use another method or optimizer."
)

NO_HAND = (
    "Only a game takes up what a hand does to its points: choose a method that is "
    "played as a game, and the optimizer game."
)


def check_hand(settings: GameSettings) -> None:
    """Raise InputError where nothing takes up what a hand does to the points."""
    if not is_played(settings):
        raise InputError(NO_HAND)


def choose(
    method: str, approximation: Approximation | None, optimizer: str = "game"
) -> tuple[Method, Approximation]:
    """Return a method and how its repulsion is found; None is the method's own.

    An optimiser other than the game's own steps needs all pairs: under it, None is
    "exact", and most take a "mesh" too.

    Raises
    ------
    InputError
        There is no such method, approximation or optimiser, or they do not go
        together.
    """
    spec = get_method(method)
    check_optimizer(spec, optimizer)
    offered = approximations(method, optimizer)
    if approximation is None:
        return spec, offered[0]
    if optimizer != "game":
        if approximation not in offered:
            raise InputError(
                f"{spec.title} under the optimizer {optimizer} needs all pairs of "
                f"points, and does not take {approximation}: choose the approximation "
                f"{_or(offered)}, or the optimizer game."
            )
        return spec, approximation
    if approximation not in APPROXIMATIONS:
        raise InputError(
            f"The approximation must be one of {APPROXIMATIONS}, not {approximation!r}."
        )
    if approximation == "landmarks" and spec.kernel in NO_BOUND:
        raise InputError(
            f"{spec.title} cannot be played with landmarks, as they would bound "
            f"nothing: {NO_BOUND[spec.kernel]}. Choose {_or(spec.approximations)}."
        )
    if approximation not in spec.approximations:
        others = "".join(f", or the method {x}" for x in _with(spec, approximation))
        raise InputError(
            f"{spec.title} is not defined for {approximation}: "
            f"choose {_or(spec.approximations)}{others}."
        )
    return spec, approximation


def approximations(method: str, optimizer: str = "game") -> tuple[Approximation, ...]:
    """Return how the repulsion of a method can be found under an optimiser."""
    return OPTIMIZERS[optimizer].approximations(get_method(method))


def _with(spec: Method, approximation: Approximation) -> list[str]:
    """Return the methods of the same repulsion that have the approximation."""
    return [
        name
        for name, other in METHODS.items()
        if (other.kernel, other.moved_by) == (spec.kernel, None)
        and approximation in other.approximations
    ]


def approximation_of(settings: GameSettings) -> Approximation:
    """Return how the settings, or else their method, find the repulsion."""
    return choose(settings.method, settings.approximation, settings.optimizer)[1]


def settled(settings: GameSettings, n_points: int, n_components: int) -> GameSettings:
    """Return settings in which the approximation suits the number of points.

    One that is chosen stays.  For the game of ``MANY_POINTS`` or more in the plane it
    is "mesh" otherwise; in space grids are coarse, and there the landmarks stay.
    """
    is_left = settings.approximation is None and settings.optimizer == "game"
    is_many = n_points >= MANY_POINTS and n_components == 2
    if settings.method == "game" and is_left and is_many:
        return replace(settings, approximation="mesh")
    return settings


def maker(settings: GameSettings) -> Make | None:
    """Return what makes the layouts; None where points and landmarks play.

    Raises
    ------
    InputError
        The method does not take the optimiser.
    """
    method = get_method(settings.method)
    check_optimizer(method, settings.optimizer)
    return method.moved_by or OPTIMIZERS[settings.optimizer].layouts


def is_played(settings: GameSettings) -> bool:
    """Return whether points and landmarks play, rather than the points be moved."""
    return maker(settings) is None


def is_pushed_by(settings: GameSettings, approximation: Approximation) -> bool:
    """Return whether the game's own steps find the repulsion in this way.

    False of settings that do not go together, as those of a window may not yet.
    """
    try:
        return is_played(settings) and approximation_of(settings) == approximation
    except InputError:
        return False


def optimizers(method: str, affinity: str = "auto") -> tuple[str, ...]:
    """Return what can move the points of a method on such edges, the game first."""
    spec = get_method(method)
    return _takers(spec, spec.affinity if affinity == "auto" else affinity)


def _takers(spec: Method, affinity: str = "") -> tuple[str, ...]:
    return tuple(
        name for name, each in OPTIMIZERS.items() if not each.objection(spec, affinity)
    )


def check_optimizer(spec: Method, optimizer: str, affinity: str = "") -> None:
    """Raise InputError unless the optimiser exists and can move the points.

    Whether it can do so on the edges is asked where an affinity is given.
    """
    if optimizer not in OPTIMIZERS:
        raise InputError(
            f"The optimizer must be one of {tuple(OPTIMIZERS)}, not {optimizer!r}."
        )
    objection = OPTIMIZERS[optimizer].objection(spec, affinity)
    if objection:
        raise InputError(
            f"{spec.title} does not take the optimizer {optimizer}: {objection}. "
            f"Choose {_or(_takers(spec, affinity))}."
        )


def check_size(settings: GameSettings, n_points: int, n_components: int) -> None:
    """Raise InputError for a map too large or too flat for what optimises it."""
    OPTIMIZERS[settings.optimizer].check_size(settings, n_points, n_components)
    if not fits_exactly(settings, n_points):
        method = get_method(settings.method)
        others = tuple(x for x in method.approximations if x != "exact")
        way = f"the approximation {_or(others)}" if others else "another method"
        raise InputError(
            "The approximation exact goes through all pairs of points, which takes "
            f"too long for {n_points:,} of them: choose {way}, or embed at most "
            f"{MOST_EXACT:,} rows."
        )


def fits_exactly(settings: GameSettings, n_points: int) -> bool:
    """Return False if the sum is over all pairs of too many points to wait for."""
    is_exact = is_played(settings) and approximation_of(settings) == "exact"
    return not is_exact or n_points <= MOST_EXACT


def _or(names: tuple[str, ...]) -> str:
    return " or ".join(names)


def affinities(method: str) -> tuple[str, ...]:
    """Return the edges that a method can be played on."""
    own = get_method(method).affinity
    apart = [name for name, each in ROW_AFFINITIES.items() if not each.new_weights]
    if own in apart:
        return (own,)
    return tuple(name for name in affinity_names() if name not in apart)


def check_affinity(method: str, affinity: str, optimizer: str = "game") -> None:
    """Raise :class:`InputError` for edges that the method cannot be played on.

    Or that the optimiser cannot follow.  The affinity is the one that is played, not
    "auto".
    """
    offered = affinities(method)
    if affinity in affinity_names() and affinity not in offered:
        raise InputError(
            f"{get_method(method).title} cannot be played with the affinity "
            f"{affinity!r}: choose auto or {_or(offered)}."
        )
    check_optimizer(get_method(method), optimizer, affinity)


def check_goes_on(settings: GameSettings) -> None:
    """Raise InputError where the method cannot go on from a map."""
    method = get_method(settings.method)
    if method.moved_by:
        raise InputError(
            f"{method.title} always begins anew and cannot continue from a map: "
            "press Restart, or choose another method."
        )
