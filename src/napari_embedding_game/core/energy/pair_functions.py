"""Attractions and kernels: functions of the squared distance s of a pair of points.

An *attraction* f is the energy of an edge of length sqrt(s), a *kernel* k the repulsion
energy of two points at that distance.  A formula is written once, in operators, integer
powers and the methods ``exp``, ``log`` and ``log1p``: torch evaluates it for tensors,
compiled loops (:mod:`pair_loops`) for lanes of :mod:`simd`.  ``docs/methods.md`` says
how to add a function.  Every kernel must be completely monotone in s, as the landmarks'
bound (Eq. 3) requires.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

UMAP_A, UMAP_B = 1.5769434603113077, 0.8950608779109733
"""umap-learn's ``find_ab_params(spread=1.0, min_dist=0.1)``: its defaults, which are no
settings here."""
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
    """A function of t = s + nearest, which avoids the pole of the forces at s = 0."""

    a: float = UMAP_A
    b: float = UMAP_B
    nearest: float = NEAREST

    def scaled_power(self, s: Numbers) -> Numbers:
        """Return a t^b."""
        return self.a * (self.b * (s + self.nearest).log()).exp()


@dataclass(frozen=True)
class UmapAttraction(UmapFunction):
    """log(1 + a t^b): UMAP, repulsion from all points."""

    def value(self, s: Numbers) -> Numbers:
        return self.scaled_power(s).log1p()

    def slope(self, s: Numbers) -> Numbers:
        p = self.scaled_power(s)
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
        return (1 / self.scaled_power(s)).log1p()

    def slope(self, s: Numbers) -> Numbers:
        return -self.b / ((s + self.nearest) * (1 + self.scaled_power(s)))


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
