"""Functions of the squared distance s of a pair, of which every method is made.

An *attraction* f is the cost of an edge of length sqrt(s), a *kernel* k what it costs
two points to be as near as that.  A formula is written once, in operators, whole powers
and the methods ``exp``, ``log`` and ``log1p``: torch evaluates it of tensors, a
compiled loop of :mod:`simd`.  For one of your own see ``docs/methods.md``.  Every
kernel must be completely monotone in s, as the landmarks' bound (Eq. 3) asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

UMAP_A, UMAP_B = 1.5769434603113077, 0.8950608779109733
"""umap-learn's ``find_ab_params(spread=1.0, min_dist=0.1)``, its defaults: these two
are no settings."""
NEAREST = 1e-3
"""Squared distance that keeps UMAP's forces finite, as in umap-learn."""

Numbers = Any
"""A torch tensor, or :class:`simd.Lanes` while a loop is compiled."""


@dataclass(frozen=True)
class PairFunction(ABC):
    """A function of squared distances; all fields of a subclass are floats."""

    @abstractmethod
    def value(self, s: Numbers) -> Numbers:
        """Return the function at squared distances ``s``, in the shape of ``s``."""

    @abstractmethod
    def slope(self, s: Numbers) -> Numbers:
        """Return the derivative in s at ``s``, in the shape of ``s``."""


@dataclass(frozen=True)
class Log1p(PairFunction):
    """log(1 + s): embedding game, t-SNE."""

    def value(self, s: Numbers) -> Numbers:
        return s.log1p()

    def slope(self, s: Numbers) -> Numbers:
        return 1 / (1 + s)


@dataclass(frozen=True)
class Quadratic(PairFunction):
    """s: EE, s-SNE."""

    def value(self, s: Numbers) -> Numbers:
        return s

    def slope(self, s: Numbers) -> Numbers:
        return s**0


@dataclass(frozen=True)
class UmapFunction(PairFunction):
    """With t = s + nearest, which keeps forces from their pole at s = 0."""

    a: float = UMAP_A
    b: float = UMAP_B
    nearest: float = NEAREST

    def power(self, s: Numbers) -> Numbers:
        """Return a t^b."""
        return self.a * (self.b * (s + self.nearest).log()).exp()


@dataclass(frozen=True)
class UmapAttraction(UmapFunction):
    """log(1 + a t^b): UMAP, repulsion from all points."""

    def value(self, s: Numbers) -> Numbers:
        return self.power(s).log1p()

    def slope(self, s: Numbers) -> Numbers:
        p = self.power(s)
        return self.b * p / ((s + self.nearest) * (1 + p))


@dataclass(frozen=True)
class Cauchy(PairFunction):
    """1 / (1 + s): embedding game, t-SNE."""

    def value(self, s: Numbers) -> Numbers:
        return 1 / (1 + s)

    def slope(self, s: Numbers) -> Numbers:
        return -((1 / (1 + s)) ** 2)


@dataclass(frozen=True)
class Gaussian(PairFunction):
    """exp(-s): EE, s-SNE."""

    def value(self, s: Numbers) -> Numbers:
        return (-s).exp()

    def slope(self, s: Numbers) -> Numbers:
        return -(-s).exp()


@dataclass(frozen=True)
class UmapRepulsion(UmapFunction):
    """log(1 + 1 / (a t^b)): UMAP."""

    def value(self, s: Numbers) -> Numbers:
        return (1 / self.power(s)).log1p()

    def slope(self, s: Numbers) -> Numbers:
        return -self.b / ((s + self.nearest) * (1 + self.power(s)))


ATTRACTIONS: dict[str, PairFunction] = {
    "log1p": Log1p(),
    "quadratic": Quadratic(),
    "umap": UmapAttraction(),
}
KERNELS: dict[str, PairFunction] = {
    "cauchy": Cauchy(),
    "gaussian": Gaussian(),
    "umap": UmapRepulsion(),
}
