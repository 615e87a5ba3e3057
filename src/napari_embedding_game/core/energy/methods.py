"""The methods of the four papers, each as a short declaration.

    E(y) = sum_edges w_ij f(|y_i - y_j|)  +  lambda R( sum_ij k(|y_i - y_j|) )

with an *attraction* f, a *kernel* k, and an *aggregate* R, the sum itself or its
logarithm, in which t-SNE is normalized: ``objective.Objective.energy``.  The formulas
of f and k are in :mod:`pair_functions`; how to add one's own: ``docs/methods.md``.
An *approximation* of the sum over all pairs is one class in :mod:`objective`;
:func:`settings.fill_approximation` chooses it by size, :mod:`mesh_repulsion` the width
of a grid.  A grid resolves kernels that are about 1 wide, not UMAP's, which is infinite
where two points meet, so that the landmarks' bound (Eq. 3) is empty as well.  A method
that is not a game yields :class:`~.state.Layouts`.  Methods that only a paper needs are
registered by ``papers/registrations.py``.
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
"""Between uniform and fuzzy: see :mod:`edges` and ``benchmarks/quality.py``."""
Make = Callable[[Any, Any], Any]
"""(state.Problem, settings) -> state.Layouts: begins to make the layouts of a map."""

OBJECTIVES: dict[str, Callable[..., Any]] = {}
"""By approximation: makes an :class:`objective.Objective` of its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method of the family.

    ``attraction``, ``kernel``: keys of the tables in :mod:`pair_functions`; "" where
    forces are no function of distances.  ``lambda_scale`` takes the edges and returns
    the lambda of a repulsion of 1; ``repulsion`` is the default in that unit.
    ``approximations``: the first is the default.  ``on_grid``: fields of the fast
    :class:`~.schedule.Schedule` where a grid pushes the points: forces without noise
    bear longer steps.  ``moved_by``: what makes the layouts instead of the game.
    ``takes_repulsion``: whether the repulsion can be chosen.
    ``max_points``: more are refused.  ``group``: its heading in a window's list.
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
    moved_by: Make | None = None
    takes_repulsion: bool = True
    max_points: int | None = None
    group: str = ""

    @property
    def has_pressure(self) -> bool:
        """Whether pressure, a slope of the energy, is defined on its maps."""
        return bool(self.kernel) and self.takes_repulsion


def per_point(edges: Edges) -> float:
    """Return 1 / N: the repulsion is lambda N, and means the same for every N."""
    return 1 / edges.n_points


def all_attraction(edges: Edges) -> float:
    """Return the total weight of the edges: 1 for s-SNE and t-SNE, N K for others."""
    return float(edges.weights.sum()) / 2


def negative_samples(edges: Edges) -> float:
    """Return the lambda of one random partner for every pull (paper 3)."""
    return float(edges.weights.sum()) / (4 * edges.n_points**2)


def _steps(n_iter: int, rate: float, landmarks: float, momentum: float) -> Any:
    rates = {"learning_rate": rate, "landmark_learning_rate": landmarks}
    return {"n_iter": n_iter, **rates, "momentum": momentum, "by_pull": True}


METHODS: dict[str, Method] = {
    "game": Method(
        title="Embedding game",  # paper 1, Eq. 1 and 3
        attraction="log1p",
        kernel="cauchy",
        lambda_scale=per_point,
        repulsion=300.0,
        on_grid=_steps(160, 2.0, 0.5, 0.95),
    ),
    "ee": Method(
        title="Elastic embedding (EE)",  # paper 4, Eq. 1
        attraction="quadratic",
        kernel="gaussian",
        lambda_scale=per_point,
        repulsion=300.0,
        affinity="entropic",
    ),
    "ssne": Method(
        title="s-SNE",  # paper 4, Eq. 2
        attraction="quadratic",
        kernel="gaussian",
        aggregate="log",
        lambda_scale=all_attraction,
        repulsion=1.0,
        affinity="entropic",
    ),
    "tsne": Method(
        title="t-SNE",  # paper 4, Eq. 3
        attraction="log1p",
        kernel="cauchy",
        aggregate="log",
        lambda_scale=all_attraction,
        repulsion=1.0,
        affinity="entropic",
        approximations=("mesh", *(a for a in APPROXIMATIONS if a != "mesh")),
        # Its maps are wide, and grow as long as the points move.
        on_grid=_steps(300, 4.0, 8.0, 0.97),
    ),
    "umap": Method(
        title="UMAP",  # paper 3, section 3.3.2
        attraction="umap",
        kernel="umap",
        lambda_scale=negative_samples,
        repulsion=5.0,
        affinity="fuzzy",
        approximations=("sampled_edges", "sampled_landmarks"),
    ),
}


def get_method(method: str) -> Method:
    """Return the declaration of a method; InputError where nobody has that name."""
    return METHODS[check_choice("method", method, METHODS)]
