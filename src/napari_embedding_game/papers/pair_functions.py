"""Pair functions that only methods of the papers need; see the engine's module."""

from __future__ import annotations

from dataclasses import dataclass

from napari_embedding_game.core.energy.pair_functions import (
    Numbers,
    PairFunction,
    UmapFunction,
)


@dataclass(frozen=True)
class NegativeCauchy(PairFunction):
    """-1 / (1 + s): two-kernel LLE and PCA."""

    def value(self, s: Numbers) -> Numbers:
        return -1 / (1 + s)

    def slope(self, s: Numbers) -> Numbers:
        return (1 / (1 + s)) ** 2


@dataclass(frozen=True)
class UmapExactAttraction(UmapFunction):
    """log(a t^b): UMAP, repulsion weighted 1 - w."""

    def value(self, s: Numbers) -> Numbers:
        return self.power(s).log()

    def slope(self, s: Numbers) -> Numbers:
        return self.b / (s + self.nearest)


@dataclass(frozen=True)
class SquaredCauchy(PairFunction):
    """1 / (1 + s)^2: two-kernel PCA.  A product of two kernels is one (Schur)."""

    def value(self, s: Numbers) -> Numbers:
        return (1 / (1 + s)) ** 2

    def slope(self, s: Numbers) -> Numbers:
        return -2 * (1 / (1 + s)) ** 3
