"""Register methods, affinities and starts of the papers, and maps of files.

The package imports this module first, so that the entries exist wherever methods are
listed.  The code that an entry needs is imported when the entry is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from napari_embedding_game.core.energy.methods import (
    METHODS,
    OBJECTIVES,
    Method,
    inverse_point_count,
)
from napari_embedding_game.core.energy.pair_functions import ATTRACTIONS, KERNELS
from napari_embedding_game.core.graph.choices import (
    ROW_AFFINITIES,
    STARTS,
    RowBasedChoice,
)

from .pair_functions import NegativeCauchy, SquaredCauchy, UmapExactAttraction

MAX_MINIMISED = 10_000
"""Most points of a minimiser: for so many digits a step takes up to 1 s on a slow core,
and factoring the Laplacian 13 s, which cannot be stopped (b9dd4b2)."""


def _import_when_called(
    function: str, package: str | None = __package__
) -> Callable[..., Any]:
    """Return a function that imports "module.function" of ``package`` when called.

    It passes its arguments on to the imported function.
    """
    module, name = function.rsplit(".", 1)

    def call(*values: Any, **named: Any) -> Any:
        """Import the function, call it, and return its result."""
        return getattr(import_module(f".{module}", package), name)(*values, **named)

    return call


OBJECTIVES["sampled_landmarks"] = _import_when_called(
    "sampled_landmarks.SampledLandmarks"
)
ATTRACTIONS["kernel"] = NegativeCauchy()
ATTRACTIONS["umap_exact"] = UmapExactAttraction()
KERNELS["squared_cauchy"] = SquaredCauchy()

_GROUP = "From the papers"
_method = partial(Method, repulsion=1.0, group=_GROUP)
METHODS.update(
    # The energy is that of the game, so that the game can continue from this map.
    given=replace(
        METHODS["game"],
        title="Map of the file",  # what is in the file, or ``init``
        make_layouts=_import_when_called(
            "dynamics.existing_map.make_layouts", "napari_embedding_game.core"
        ),
        takes_repulsion=False,
    ),
    umap_exact=_method(
        title="UMAP, all pairs",  # paper 4, Eq. 4
        attraction="umap_exact",
        kernel="umap",
        # The factor of UMAP's weights, for the sum over all pairs.
        lambda_scale=lambda edges: edges.scale / 2,
        affinity="fuzzy",
        approximations=("exact",),
    ),
    two_kernel_lle=_method(
        title="Two-kernel LLE",  # paper 3, Lemma 4
        attraction="kernel",
        kernel="cauchy",
        lambda_scale=inverse_point_count,
        affinity="lle",
    ),
    two_kernel_pca=_method(
        title="Two-kernel PCA",  # paper 3, Eq. 6
        attraction="kernel",
        kernel="squared_cauchy",
        # With this factor the energy is sum (k_x - k_y)^2, up to a factor.
        lambda_scale=lambda edges: edges.scale / 4,
        affinity="fuzzy",
        approximations=("exact", "landmarks", "sampled_edges", "sampled_landmarks"),
    ),
    # The forces are inner products, not functions of distances.
    pca=_method(
        title="PCA by attraction and repulsion",  # paper 3, Eq. 4
        attraction="",
        kernel="",
        lambda_scale=lambda edges: 1.0,
        affinity="inner_products",
        approximations=("exact",),
        takes_repulsion=False,
        make_layouts=_import_when_called("pca.compute_layouts"),
    ),
)
# Paper 4: the energy over all pairs of points is minimised, without a game.
for _name, _title in (("ee", "EE"), ("ssne", "s-SNE")):
    for _minimizer in ("spectral_direction", "homotopy", "pressured_points"):
        METHODS[f"{_name}_{_minimizer}"] = replace(
            METHODS[_name],
            title=f"{_title} by {_minimizer.replace('_', ' ')}",
            approximations=("exact",),
            make_layouts=_import_when_called(f"without_landmarks.by_{_minimizer}"),
            max_points=MAX_MINIMISED,
            group=_GROUP,
        )

# Edges of LLE may have weights below 0, which repel.
ROW_AFFINITIES.update(
    lle=RowBasedChoice("LLE", _import_when_called("lle_edges.build_signed_edges")),
    inner_products=RowBasedChoice(
        "Inner products", _import_when_called("pca.make_row_edges")
    ),
)

STARTS.update(
    gradient_pca=RowBasedChoice(
        "PCA by a game", _import_when_called("linear.gradient_pca")
    ),
    random_projection=RowBasedChoice(
        "Random axes", _import_when_called("linear.random_projection")
    ),
    le=RowBasedChoice("Laplacian, LE", _import_when_called("eigenmaps.le")),
    ale=RowBasedChoice("Averaged LE", _import_when_called("eigenmaps.ale")),
    vrle=RowBasedChoice("Variable LE", _import_when_called("eigenmaps.vrle")),
)
