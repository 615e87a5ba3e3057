"""The methods of the four papers, declared by their attraction, kernel and aggregate.

    E(y) = sum_edges w_ij f(|y_i - y_j|)  +  lambda R( sum_ij k(|y_i - y_j|) )

with an *attraction* f, a *kernel* k, and an *aggregate* R: the sum itself, or its
logarithm, which normalizes t-SNE (``objective.Objective.energy``).  The formulas of f
and k are in :mod:`pair_functions`; ``docs/methods.md`` says how to add a method.  An
*approximation* of the sum over all pairs is a class in :mod:`objective`;
:func:`settings.fill_approximation_by_size` chooses the approximation by size,
:mod:`mesh_repulsion` the spacing of a grid.  A grid resolves kernels that are about 1
wide.  UMAP's kernel is infinite where two points meet: no grid resolves it, and the
landmarks' bound (Eq. 3) is empty.  A method that is not a game yields
:class:`~.state.Layouts`.  ``papers/registrations.py`` registers methods that only a
paper needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from napari_embedding_game.core.errors import check_choice

if TYPE_CHECKING:
    from napari_embedding_game.core.graph.edges import Edges

Aggregate = Literal["sum", "log"]
Approximation = Literal[
    "landmarks", "mesh", "sampled_edges", "sampled_landmarks", "exact"
]
APPROXIMATIONS: tuple[Approximation, ...] = get_args(Approximation)
DEFAULT_AFFINITY = "mixed"
"""The mean of uniform and fuzzy: see :mod:`edges` and ``benchmarks/quality.py``."""
LayoutMaker = Callable[[Any, Any], Any]
"""Function (state.Problem, Settings) -> state.Layouts of a method that is no game."""

OBJECTIVES: dict[str, Callable[..., Any]] = {}
"""Subclass of :class:`objective.Objective` for each approximation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """The declaration of a method.

    ``attraction``, ``kernel``: keys of the tables in :mod:`pair_functions`; "" where
    forces are no function of distances.  ``lambda_scale`` takes the edges and returns
    the lambda of a repulsion of 1; ``repulsion`` is the default in that unit.
    ``approximations``: those allowed; the first is the default.  ``on_grid``: fields of
    the fast :class:`~.schedule.Schedule` for repulsion by a grid, whose forces have no
    noise and allow longer steps.  ``make_layouts``: function that moves the points
    instead of the game, or None.  ``takes_repulsion``: whether the repulsion can be
    chosen.  ``max_points``: most points, or None.  ``group``: heading in the window's
    list.
    """

    title: str
    attraction: str
    kernel: str
    lambda_scale: Callable[[Edges], float]
    repulsion: float
    aggregate: Aggregate = "sum"
    affinity: str = DEFAULT_AFFINITY
    approximations: tuple[Approximation, ...] = APPROXIMATIONS
    on_grid: Mapping[str, Any] | None = None
    make_layouts: LayoutMaker | None = None
    takes_repulsion: bool = True
    max_points: int | None = None
    group: str = ""

    @property
    def has_pressure(self) -> bool:
        """Whether pressure, a slope of the energy, is defined on the method's maps."""
        return bool(self.kernel) and self.takes_repulsion


def inverse_point_count(edges: Edges) -> float:
    """Return 1 / N, the lambda of a repulsion of 1 whose unit does not depend on N."""
    return 1 / edges.n_points


def total_attraction_weight(edges: Edges) -> float:
    """Return the sum of the edges' weights, each undirected edge once.

    It is the lambda of t-SNE and s-SNE, whose weights sum to 1 in the papers.
    """
    return float(edges.weights.sum()) / 2


def negative_sampling_lambda(edges: Edges) -> float:
    """Return the lambda of one negative sample for each attraction step (paper 3)."""
    return float(edges.weights.sum()) / (4 * edges.n_points**2)


def _grid_schedule(n_iter: int, rate: float, landmarks: float, momentum: float) -> Any:
    """Return fields of a schedule, with ``divides_by_stiffness``, for ``on_grid``.

    ``rate`` and ``landmarks`` are the learning rates of points and of landmarks.
    """
    rates = {"learning_rate": rate, "landmark_learning_rate": landmarks}
    return {
        "n_iter": n_iter,
        **rates,
        "momentum": momentum,
        "divides_by_stiffness": True,
    }


METHODS: dict[str, Method] = {
    "game": Method(
        title="Embedding game",  # paper 1, Eq. 1 and 3
        attraction="log1p",
        kernel="cauchy",
        lambda_scale=inverse_point_count,
        repulsion=300.0,
        on_grid=_grid_schedule(160, 2.0, 0.5, 0.95),
    ),
    "ee": Method(
        title="Elastic embedding (EE)",  # paper 4, Eq. 1
        attraction="quadratic",
        kernel="gaussian",
        lambda_scale=inverse_point_count,
        repulsion=300.0,
        affinity="entropic",
    ),
    "ssne": Method(
        title="s-SNE",  # paper 4, Eq. 2
        attraction="quadratic",
        kernel="gaussian",
        aggregate="log",
        lambda_scale=total_attraction_weight,
        repulsion=1.0,
        affinity="entropic",
    ),
    "tsne": Method(
        title="t-SNE",  # paper 4, Eq. 3
        attraction="log1p",
        kernel="cauchy",
        aggregate="log",
        lambda_scale=total_attraction_weight,
        repulsion=1.0,
        affinity="entropic",
        approximations=("mesh", *(a for a in APPROXIMATIONS if a != "mesh")),
        # Its maps are wide, and grow as long as the points move.
        on_grid=_grid_schedule(300, 4.0, 8.0, 0.97),
    ),
    "umap": Method(
        title="UMAP",  # paper 3, section 3.3.2
        attraction="umap",
        kernel="umap",
        lambda_scale=negative_sampling_lambda,
        repulsion=5.0,
        affinity="fuzzy",
        approximations=("sampled_edges", "sampled_landmarks"),
    ),
}


def get_method(method: str) -> Method:
    """Return the declaration of a method; raise InputError for an unknown name."""
    return METHODS[check_choice("method", method, METHODS)]
