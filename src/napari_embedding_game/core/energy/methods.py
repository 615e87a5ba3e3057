"""The methods of the four papers, each as a short declaration.

All of them minimise

    E(y) = sum_edges w_ij f(|y_i - y_j|)  +  lambda R( sum_ij k(|y_i - y_j|) )

with an *attraction* f along weighted edges, a *kernel* k between all pairs, and
an *aggregate* R: the sum itself, or its logarithm.  An *approximation* says how
the sum over all pairs is found; see :mod:`objective`.  A grid (:mod:`mesh`) shows the
kernels that are about 1 wide, not those of UMAP and of two-kernel PCA.

A method of one's own is a declaration and a line:

    GAUSSIAN_GAME = Method(
        title="Gaussian game",
        attraction="log1p",
        kernel="gaussian",
        lambda_scale=per_point,
        strength=300,
        source="an example",
    )
    METHODS["gaussian_game"] = GAUSSIAN_GAME

The logarithm grows with its sum, so the landmarks' bound (Eq. 3) holds inside
it: EE, s-SNE, t-SNE and the two-kernel methods can be played as games with
landmarks too.  UMAP cannot: its repulsion grows without end where two points
meet, so that S_zz, the landmarks' own, is infinite and the bound is 0.  (Made
finite there, as the compiled loops make it, it is positive semi-definite:
log(1 + 1 / (a s^b)) = integral over 0 < t < 1 of 1 / (a s^b + t) is completely
monotone in s for b <= 1.  Its bound then depends on how it was made finite.)

A method may be moved by something else than the game, which only has to make layouts
(:class:`~.state.Layouts`).  Such a method cannot be steered, and landmarks are fitted
to its finished map.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Literal

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.names import (
    APPROXIMATIONS,
    DEFAULT_AFFINITY,
    Approximation,
)
from napari_embedding_game.core.types import GameSettings, StartSettings

if TYPE_CHECKING:
    from napari_embedding_game.core.energy.optimizers import Make
    from napari_embedding_game.core.graph.affinities import Edges

Aggregate = Literal["sum", "log"]


@dataclass(frozen=True, slots=True)
class GridSteps:
    """The fast schedule's numbers where a grid pushes the points.

    Its forces have no noise of landmarks or samples in them, and bear longer steps,
    each point's divided by how strongly it is attracted.
    """

    n_iter: int
    learning_rate: float
    landmark_learning_rate: float
    momentum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method of the family.

    Attributes
    ----------
    title : str
        As a window names it.
    attraction, kernel : str
        Keys of ``pair_functions.ATTRACTIONS`` and ``pair_functions.KERNELS``; "" for a
        method whose forces are no function of distances.
    lambda_scale : callable
        Takes the edges and returns the lambda that a strength of 1 stands for.
    strength : float
        Its default strength, in that unit.
    source : str
        Where the formula stands.
    aggregate : {"sum", "log"}
    affinity : str
        The edges it is meant for.
    approximations : tuple
        Those it is offered with; the first is its own.
    on_grid : GridSteps, optional
        Numbers of the fast schedule on a grid, where they are not the schedule's.
    moved_by : callable, optional
        What makes the layouts in place of the game.
    group : str
        What a window lists it under; "" is the product's own.
    """

    title: str
    attraction: str
    kernel: str
    lambda_scale: Callable[[Edges], float]
    strength: float
    source: str
    aggregate: Aggregate = "sum"
    affinity: str = DEFAULT_AFFINITY
    approximations: tuple[Approximation, ...] = APPROXIMATIONS
    on_grid: GridSteps | None = None
    moved_by: Make | None = None
    group: str = ""

    @property
    def has_pressure(self) -> bool:
        """Whether pressure says anything of its maps.

        It is a point's slope of the energy that the map was made by.
        """
        return bool(self.kernel)


# --- What a strength of 1 means ---------------------------------------------------


def per_point(edges: Edges) -> float:
    """Return 1 / N: the strength is lambda N, and means the same for every N."""
    return 1 / edges.n_points


def all_attraction(edges: Edges) -> float:
    """Return the total weight of the edges.

    The weights of s-SNE and t-SNE sum to 1, those of :class:`Edges` to 2 N K:
    with this lambda the energy is theirs, times N K.
    """
    return float(edges.weights.sum()) / 2


def negative_samples(edges: Edges) -> float:
    """Return the lambda of one random repelling partner for every pull (paper 3).

    umap-learn draws 5 partners each time that it pulls along an edge.
    """
    return float(edges.weights.sum()) / (4 * edges.n_points**2)


# --- The methods --------------------------------------------------------------------

METHODS: dict[str, Method] = {
    "game": Method(
        title="Embedding game",
        attraction="log1p",
        kernel="cauchy",
        lambda_scale=per_point,
        strength=300.0,
        on_grid=GridSteps(160, 2.0, 0.5, 0.95),
        source="paper 1, Eq. 1 and 3",
    ),
    "ee": Method(
        title="Elastic embedding (EE)",
        attraction="quadratic",
        kernel="gaussian",
        lambda_scale=per_point,
        strength=300.0,
        affinity="entropic",
        source="paper 4, Eq. 1",
    ),
    "ssne": Method(
        title="s-SNE",
        attraction="quadratic",
        kernel="gaussian",
        aggregate="log",
        lambda_scale=all_attraction,
        strength=1.0,
        affinity="entropic",
        source="paper 4, Eq. 2",
    ),
    "tsne": Method(
        title="t-SNE",
        attraction="log1p",
        kernel="cauchy",
        aggregate="log",
        lambda_scale=all_attraction,
        strength=1.0,
        affinity="entropic",
        approximations=(
            "mesh",
            "landmarks",
            "sampled_edges",
            "sampled_landmarks",
            "exact",
        ),
        # Its maps are wide, and grow as long as the points move.
        on_grid=GridSteps(300, 4.0, 8.0, 0.97),
        source="paper 4, Eq. 3",
    ),
    "umap": Method(
        title="UMAP",
        attraction="umap",
        kernel="umap",
        lambda_scale=negative_samples,
        strength=5.0,
        affinity="fuzzy",
        approximations=("sampled_edges", "sampled_landmarks"),
        source="paper 3, section 3.3.2",
    ),
}


def get_method(method: str) -> Method:
    """Return the declaration of a method.

    Raises
    ------
    InputError
        Nobody has that name.
    """
    if method not in METHODS:
        raise InputError(f"The method must be one of {tuple(METHODS)}, not {method!r}.")
    return METHODS[method]


def strength_of(settings: GameSettings) -> float:
    """Return the strength that the settings or else their method asks for."""
    default = get_method(settings.method).strength
    return default if settings.strength is None else settings.strength


def check_numbers(settings: GameSettings) -> None:
    """Raise InputError unless repulsion and number of landmarks are in their range."""
    strength = strength_of(settings)
    if not (math.isfinite(strength) and strength > 0):
        raise InputError(
            f"The repulsion (lambda x N) must be a number above 0, not {strength}."
        )
    spec = get_method(settings.method)
    if spec.moved_by and strength != spec.strength:
        raise InputError(
            f"{spec.title} cannot be steered: leave the repulsion at its own, "
            f"{spec.strength:g}."
        )
    n_landmarks = settings.n_landmarks
    if not (isinstance(n_landmarks, Integral) and n_landmarks >= 1):
        raise InputError(
            "The number of landmarks must be a whole number, at least 1, "
            f"not {n_landmarks}."
        )


def n_searched(affinity: str, n_neighbors: int, perplexity: float, n_rows: int) -> int:
    """Return how many neighbours to search for: the entropic take 3 perplexities.

    Raises
    ------
    InputError
        The perplexity is not a number of at least 1.
    """
    if affinity != "entropic":
        return n_neighbors
    if not (math.isfinite(perplexity) and perplexity >= 1):
        raise InputError(f"The perplexity must be at least 1, not {perplexity}.")
    return max(1, min(round(3 * perplexity), n_rows - 1))


def resolve(start: StartSettings, method: str) -> StartSettings:
    """Return ``start`` with the method's own edges where it leaves them open."""
    if start.affinity != "auto":
        return start
    return replace(start, affinity=get_method(method).affinity)
