"""What is added to the lists of the engine, by the papers and for maps of others.

The package imports this module first of all, so that its entries are there wherever
somebody chooses; what they compute with is loaded when it is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
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

from .pair_functions import NegativeCauchy, SquaredCauchy, UmapExactAttraction

if TYPE_CHECKING:
    from napari_embedding_game.core.energy.methods import Approximation
    from napari_embedding_game.core.settings import Settings

MOST_POINTS = 10_000
"""Largest maps of a minimiser, which goes through all pairs one by one.  With digits
of MNIST a step takes up to 1 s then on one slow core, and factoring the Laplacian 13 s,
which cannot be stopped (``benchmarks/descents.py``, b9dd4b2)."""


def _later(place: str) -> Callable[..., Any]:
    """Return a function of a module beside this one, imported when it is called."""
    module, name = place.split(".")

    def call(*values: Any, **named: Any) -> Any:
        return getattr(import_module(f".{module}", __package__), name)(*values, **named)

    return call


# --- Optimisers -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Optimizer):
    """A game whose players take other steps."""

    def objection(self, method: Method, affinity: str = "") -> str:
        """Return why a method's points cannot take these steps, or ""."""
        return "its points are moved in a way of its own" if method.moved_by else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimizer(Steps):
    """Lowers the energy over all pairs of points, instead of playing with landmarks.

    ``needs_pull``: it follows the spectral direction, which edges that push do not
    have; ``needs_quadratic``: it is made for the quadratic attraction of EE and s-SNE.
    """

    needs_pull: bool = True
    needs_quadratic: bool = False

    def approximations(self, method: Method) -> tuple[Approximation, ...]:
        """Return all pairs."""
        return ("exact",)

    def objection(self, method: Method, affinity: str = "") -> str:
        """Return why it cannot lower the energy of a method on such edges, or ""."""
        if method.moved_by or "exact" not in method.approximations:
            own = Steps.objection(self, method)
            return own or "it is not defined for all pairs of points"
        if self.needs_quadratic and method.attraction != "quadratic":
            return "that is made for the attraction of ee and ssne"
        if self.needs_pull and affinity == "lle":
            return "that needs edges that only pull, and some of lle push"
        return ""

    def check_size(self, settings: Settings, n_points: int, n_components: int) -> None:
        """Raise InputError for more points than ``MOST_POINTS``."""
        if n_points > MOST_POINTS:
            raise InputError(
                f"The optimizer {settings.optimizer} goes through all pairs of points, "
                f"which takes too long for {n_points:,} of them: choose the "
                "optimizer game, the game's own steps, or embed at most "
                f"{MOST_POINTS:,} rows."
            )


_minimizer = partial(Minimizer, layouts=_later("full_batch.layouts"))
OPTIMIZERS.update(
    spectral_direction=_minimizer(title="Spectral direction"),
    lbfgs=_minimizer(title="L-BFGS", needs_pull=False),
    homotopy=_minimizer(title="Homotopy", needs_quadratic=True),
    pressured_points=_minimizer(title="Pressured points", needs_quadratic=True),
    optimistic=Steps(title="Optimistic steps", layouts=_later("steps.optimistic")),
    adaptive_rates=Steps(title="Rates that adapt", layouts=_later("steps.adaptive")),
)

# --- Methods ----------------------------------------------------------------------

OBJECTIVES["sampled_landmarks"] = _later("sampled_landmarks.SampledLandmarks")
ATTRACTIONS["kernel"] = NegativeCauchy()
ATTRACTIONS["umap_exact"] = UmapExactAttraction()
KERNELS["squared_cauchy"] = SquaredCauchy()


def _given(problem: Any, settings: Any) -> Any:
    from napari_embedding_game.core.dynamics.given import layouts

    return layouts(problem, settings)


_method = partial(Method, repulsion=1.0, group="From the papers")
# Its forces are inner products: no function of distances.
_pca = partial(
    _method,
    attraction="",
    kernel="",
    lambda_scale=lambda edges: 1.0,
    affinity="inner_products",
    approximations=("exact",),
)
METHODS.update(
    # Its energy is the game's, which may go on from it.
    given=replace(
        METHODS["game"],
        title="Map of the file",
        moved_by=_given,
        source="what is in the file, or ``init``",
    ),
    umap_exact=_method(
        title="UMAP, all pairs",
        attraction="umap_exact",
        kernel="umap",
        # What UMAP's weights were multiplied by, for the sum over all pairs.
        lambda_scale=lambda edges: edges.scale / 2,
        affinity="fuzzy",
        approximations=("exact",),
        source="paper 4, Eq. 4",
    ),
    two_kernel_lle=_method(
        title="Two-kernel LLE",
        attraction="kernel",
        kernel="cauchy",
        lambda_scale=per_point,
        affinity="lle",
        source="paper 3, Lemma 4",
    ),
    two_kernel_pca=_method(
        title="Two-kernel PCA",
        attraction="kernel",
        kernel="squared_cauchy",
        # It makes the energy sum (k_x - k_y)^2, up to a factor.
        lambda_scale=lambda edges: edges.scale / 4,
        affinity="fuzzy",
        approximations=("exact", "landmarks", "sampled_edges", "sampled_landmarks"),
        source="paper 3, Eq. 6",
    ),
    pca=_pca(
        title="PCA by attraction and repulsion",
        source="paper 3, Eq. 4",
        moved_by=_later("pca.layouts"),
    ),
    pca_low_rank=_pca(
        title="PCA by attraction and repulsion, low rank",
        source="paper 3, Lemma 3",
        moved_by=_later("pca.low_rank_layouts"),
    ),
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

_FEW = 5_000
STARTS.update(
    gradient_pca=Start("Principal components by a game", _later("linear.gradient_pca")),
    random_projection=Start("Random directions", _later("linear.random_projection")),
    le=Start("Laplacian eigenmap (LE)", _later("eigenmaps.le")),
    ale=Start("Averaged eigenmap (ALE)", _later("eigenmaps.ale")),
    vrle=Start("Variable-radius eigenmap (VRLE)", _later("eigenmaps.vrle")),
    isomap=Start("Isomap", _later("unfolding.isomap"), _FEW),
    lle=Start("Locally linear (LLE)", _later("unfolding.lle"), _FEW, False),
)
