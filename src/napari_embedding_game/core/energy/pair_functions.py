"""The attractions and kernels that a method can be put together from.

Formulas are in :mod:`pair_function_kernels`, which holds the compiled ones; here each
has its name, its number there, and itself once more in torch operations, for
graphics cards.  Adding one is a branch there and a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from napari_embedding_game.core.energy import pair_function_kernels

UMAP_A, UMAP_B = 1.5769434603113077, 0.8950608779109733
"""umap-learn's ``find_ab_params(spread=1.0, min_dist=0.1)``, its defaults."""
NEAREST = 1e-3
"""Squared distance that keeps UMAP's forces finite, as in umap-learn."""
SHAPE = (UMAP_A, UMAP_B, NEAREST)

Elementwise = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Attraction:
    """What an edge costs: f of the squared distance, and df/ds."""

    number: int
    value: Elementwise
    slope: Elementwise


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a pair costs that stands near: k of the squared distance, and dk/ds.

    All are positive semi-definite: every matrix k(|x_i - x_j|^2) is, for they are
    completely monotone in s.
    """

    number: int
    value: Elementwise
    slope: Elementwise


def _cauchy(s: Tensor) -> Tensor:
    return 1 / (1 + s)


def _umap(s: Tensor) -> Tensor:
    return UMAP_A * (s + NEAREST) ** UMAP_B


ATTRACTIONS = {
    "log1p": Attraction(pair_function_kernels.LOG1P, torch.log1p, _cauchy),
    "quadratic": Attraction(
        pair_function_kernels.QUADRATIC, lambda s: s, torch.ones_like
    ),
    "kernel": Attraction(
        pair_function_kernels.KERNEL, lambda s: -_cauchy(s), lambda s: _cauchy(s) ** 2
    ),
    "umap": Attraction(
        pair_function_kernels.UMAP,
        lambda s: torch.log1p(_umap(s)),
        lambda s: UMAP_B * _umap(s) / ((s + NEAREST) * (1 + _umap(s))),
    ),
    "umap_exact": Attraction(
        pair_function_kernels.UMAP_EXACT,
        lambda s: torch.log(_umap(s)),
        lambda s: UMAP_B / (s + NEAREST),
    ),
}

KERNELS = {
    "cauchy": Kernel(
        pair_function_kernels.CAUCHY, _cauchy, lambda s: -(_cauchy(s) ** 2)
    ),
    "gaussian": Kernel(
        pair_function_kernels.GAUSSIAN,
        lambda s: torch.exp(-s),
        lambda s: -torch.exp(-s),
    ),
    # A product of two such kernels is one again (Schur).
    "squared_cauchy": Kernel(
        pair_function_kernels.SQUARED_CAUCHY,
        lambda s: _cauchy(s) ** 2,
        lambda s: -2 * _cauchy(s) ** 3,
    ),
    "umap": Kernel(
        pair_function_kernels.UMAP_REPULSION,
        lambda s: torch.log1p(1 / _umap(s)),
        lambda s: -UMAP_B / ((s + NEAREST) * (1 + _umap(s))),
    ),
}
