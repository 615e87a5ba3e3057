"""What the papers add to the lists: optimisers, methods, affinities and starts.

The package imports this module first of all, so that its entries are there wherever
somebody chooses; what they compute with is loaded when it is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from napari_embedding_game.core.energy.methods import (
    METHODS,
    OBJECTIVES,
    OPTIMIZERS,
    Method,
    Optimizer,
    per_point,
)
from napari_embedding_game.core.energy.pair_functions import ATTRACTIONS, KERNELS
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.choices import (
    ROW_AFFINITIES,
    STARTS,
    RowAffinity,
    Start,
)
from napari_embedding_game.papers.pair_functions import (
    NegativeCauchy,
    SquaredCauchy,
    UmapExactAttraction,
)

if TYPE_CHECKING:
    from napari_embedding_game.core.energy.methods import Approximation
    from napari_embedding_game.core.graph.edges import Edges
    from napari_embedding_game.core.settings import Settings


def _later(place: str) -> Callable[..., Any]:
    """Return a function of a module beside this one, imported when it is called."""
    module, name = place.split(".")

    def call(*values: Any, **named: Any) -> Any:
        return getattr(import_module(f".{module}", __package__), name)(*values, **named)

    return call


# --- Optimisers -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimizer(Optimizer):
    """Lowers the energy over all pairs of points, instead of playing with landmarks.

    Attributes
    ----------
    needs_pull : bool
        It follows the spectral direction, which edges that push do not have.
    needs_quadratic : bool
        It needs one minimum under a weak repulsion: a quadratic attraction.
    fewest_components : int
        Dimensions of the smallest maps that it makes.
    most_points : int
        Largest maps, where all pairs are gone through one by one.  With digits of
        MNIST a step takes 1 s then on one slow core, and factoring the Laplacian for
        the spectral direction 13 s, which cannot be stopped
        (``benchmarks/descents.py``, b9dd4b2).
    """

    needs_pull: bool = True
    needs_quadratic: bool = False
    fewest_components: int = 1
    most_points: int = 10_000

    def approximations(self, method: Method) -> tuple[Approximation, ...]:
        """Return all pairs."""
        return ("exact",)

    def objection(self, method: Method, affinity: str = "") -> str:
        """Return why it cannot lower the energy of a method on such edges, or ""."""
        if method.moved_by:
            return "its points are moved in a way of its own"
        if "exact" not in method.approximations:
            return "it is not defined for all pairs of points"
        if self.needs_quadratic and method.attraction != "quadratic":
            return "even under a weak repulsion it has many minima"
        if self.needs_pull and affinity == "lle":
            return "that needs edges that only pull, and some of lle push"
        return ""

    def check_size(self, settings: Settings, n_points: int, n_components: int) -> None:
        """Raise InputError for more points than ``most_points``, or too flat a map."""
        if n_points > self.most_points:
            raise InputError(
                f"The optimizer {settings.optimizer} goes through all pairs of points, "
                f"which takes too long for {n_points:,} of them: choose the "
                "optimizer game, the game's own steps, or embed at most "
                f"{self.most_points:,} rows."
            )
        if n_components < self.fewest_components:
            raise InputError(
                f"The optimizer {settings.optimizer} needs a map of 2 or 3 dimensions, "
                "as it shakes the points off a line: choose one of the others."
            )


_downhill = _later("full_batch.layouts")
OPTIMIZERS["spectral_direction"] = Minimizer(
    title="Spectral direction", layouts=_downhill
)
OPTIMIZERS["lbfgs"] = Minimizer(
    title="L-BFGS", layouts=_downhill, needs_pull=False, most_points=20_000
)
# It shakes the points, which have to stay on a line where the map is one.
OPTIMIZERS["homotopy"] = Minimizer(
    title="Homotopy", layouts=_downhill, needs_quadratic=True, fewest_components=2
)
OPTIMIZERS["pressured_points"] = Minimizer(title="Pressured points", layouts=_downhill)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Optimizer):
    """A game whose players take other steps."""

    def objection(self, method: Method, affinity: str = "") -> str:
        """Return why a method's points cannot take these steps, or ""."""
        return "its points are moved in a way of its own" if method.moved_by else ""


OPTIMIZERS["optimistic"] = Steps(
    title="Optimistic steps", layouts=_later("steps.optimistic")
)
OPTIMIZERS["adaptive_rates"] = Steps(
    title="Rates that adapt", layouts=_later("steps.adaptive")
)


# --- Approximations ---------------------------------------------------------------

OBJECTIVES["sampled_landmarks"] = _later("sampled_landmarks.SampledLandmarks")


# --- Methods ----------------------------------------------------------------------

GROUP = "From the papers"


def _as_written(edges: Edges) -> float:
    """Return 1: attraction and repulsion are of the same kind, and as strong."""
    return 1.0


def _unscaled(edges: Edges) -> float:
    """Return what UMAP's weights were multiplied by, for the sum over all pairs."""
    return edges.scale / 2


def _squared_difference(edges: Edges) -> float:
    """Return the lambda that makes the energy sum (k_x - k_y)^2, up to a factor."""
    return edges.scale / 4


ATTRACTIONS["kernel"] = NegativeCauchy()
ATTRACTIONS["umap_exact"] = UmapExactAttraction()
KERNELS["squared_cauchy"] = SquaredCauchy()
METHODS["umap_exact"] = Method(
    title="UMAP, all pairs",
    attraction="umap_exact",
    kernel="umap",
    lambda_scale=_unscaled,
    repulsion=1.0,
    affinity="fuzzy",
    approximations=("exact",),
    source="paper 4, Eq. 4",
    group=GROUP,
)
METHODS["two_kernel_lle"] = Method(
    title="Two-kernel LLE",
    attraction="kernel",
    kernel="cauchy",
    lambda_scale=per_point,
    repulsion=1.0,
    affinity="lle",
    source="paper 3, Lemma 4",
    group=GROUP,
)
METHODS["two_kernel_pca"] = Method(
    title="Two-kernel PCA",
    attraction="kernel",
    kernel="squared_cauchy",
    lambda_scale=_squared_difference,
    repulsion=1.0,
    affinity="fuzzy",
    approximations=("exact", "landmarks", "sampled_edges", "sampled_landmarks"),
    source="paper 3, Eq. 6",
    group=GROUP,
)
# Its forces are inner products: no function of distances.
METHODS["pca"] = Method(
    title="PCA by attraction and repulsion",
    attraction="",
    kernel="",
    lambda_scale=_as_written,
    repulsion=1.0,
    affinity="inner_products",
    approximations=("exact",),
    source="paper 3, Eq. 4",
    group=GROUP,
    moved_by=_later("pca.layouts"),
)
METHODS["pca_low_rank"] = Method(
    title="PCA by attraction and repulsion, low rank",
    attraction="",
    kernel="",
    lambda_scale=_as_written,
    repulsion=1.0,
    affinity="inner_products",
    approximations=("exact",),
    source="paper 3, Lemma 3",
    group=GROUP,
    moved_by=_later("pca.low_rank_layouts"),
)


# --- Affinities -------------------------------------------------------------------

# Some of its edges push.
ROW_AFFINITIES["lle"] = RowAffinity(
    title="By reconstruction (LLE)",
    edges=_later("two_kernel.signed_edges"),
    new_weights=_later("two_kernel.new_weights"),
)
ROW_AFFINITIES["inner_products"] = RowAffinity(
    title="All rows, by inner products", edges=_later("pca.inner_products")
)


# --- Starts -----------------------------------------------------------------------

STARTS["gradient_pca"] = Start(
    "Principal components by a game", _later("linear.gradient_pca")
)
STARTS["random_projection"] = Start(
    "Random directions", _later("linear.random_projection")
)
STARTS["le"] = Start("Laplacian eigenmap (LE)", _later("eigenmaps.le"))
STARTS["ale"] = Start("Averaged eigenmap (ALE)", _later("eigenmaps.ale"))
STARTS["vrle"] = Start("Variable-radius eigenmap (VRLE)", _later("eigenmaps.vrle"))
STARTS["isomap"] = Start("Isomap", _later("unfolding.isomap"), most_rows=5_000)
STARTS["lle"] = Start(
    "Locally linear (LLE)",
    _later("unfolding.lle"),
    most_rows=5_000,
    takes_sparse=False,
)
