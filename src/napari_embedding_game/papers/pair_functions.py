"""Pair functions that only methods of the papers need; see ``core/energy``."""

from __future__ import annotations

from dataclasses import dataclass

from napari_embedding_game.core.energy.pair_functions import (
    Numbers,
    PairFunction,
    UmapFunction,
)


@dataclass(frozen=True)
class NegativeCauchy(PairFunction):
    """The attraction -1 / (1 + s) of two-kernel LLE and two-kernel PCA."""

    def value(self, s: Numbers) -> Numbers:
        return -1 / (1 + s)

    def slope(self, s: Numbers) -> Numbers:
        return (1 / (1 + s)) ** 2


@dataclass(frozen=True)
class UmapExactAttraction(UmapFunction):
    """UMAP's attraction log(a t^b) where the repulsion is weighted by 1 - w."""

    def value(self, s: Numbers) -> Numbers:
        return self.scaled_power(s).log()

    def slope(self, s: Numbers) -> Numbers:
        return self.b / (s + self.nearest)


@dataclass(frozen=True)
class SquaredCauchy(PairFunction):
    """The kernel 1 / (1 + s)^2 of two-kernel PCA, a product of two kernels (Schur)."""

    def value(self, s: Numbers) -> Numbers:
        return (1 / (1 + s)) ** 2

    def slope(self, s: Numbers) -> Numbers:
        return -2 * (1 / (1 + s)) ** 3
