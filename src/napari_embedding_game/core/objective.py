r"""The energies of the papers, differentiable in the points and the landmarks.

With attraction f(u) = log(1 + u^2) over the neighbour edges and the kernel
q(u) = 1 / (1 + u^2), the map minimises (paper 1, Eq. 1)

    E(y) = sum_edges f(|y_i - y_j|) + lambda sum_ij q(|y_i - y_j|)

whose second sum has N^2 terms.  Each class below puts another approximation in
its place:

================  =========================================  ==============
LandmarkGame      max over z of  lambda S_yz^2 / S_zz         Eq. 3
SampledEdges      lambda N/L  sum over N L random pairs of q  Eq. 8
SampledLandmarks  lambda N/L  sum_i sum_(j in L points) q     Eq. 9
================  =========================================  ==============

where S_yz = sum_ia q(|y_i - z_a|) and S_zz = sum_ab q(|z_a - z_b|).  The energy
line of the paper's Alg. 1 squares before it sums and lets the points fall onto
one spot; Eq. 3, which sums before it squares, is right.

Calling an objective gives a torch scalar whose ``backward()`` fills both
gradients.  Its *number* takes a logarithm per edge that the gradients do not
need, so it is NaN unless asked for with ``value=True``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core import _kernels
from napari_embedding_game.core.affinities import Edges
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.forces import Forces
from napari_embedding_game.core.types import METHODS, Method


class _Energy(torch.autograd.Function):
    """Gradients that an objective worked out together with its value."""

    @staticmethod
    def forward(
        ctx: Any, y: Tensor, z: Tensor, objective: Objective, value: bool
    ) -> Tensor:
        energy, ctx.y_gradient, ctx.z_gradient = objective.evaluate(y, z, value)
        return y.new_tensor(energy)

    @staticmethod
    def backward(ctx: Any, *scale: Tensor) -> tuple[Tensor, Tensor, None, None]:
        return scale[0] * ctx.y_gradient, scale[0] * ctx.z_gradient, None, None


@dataclass(frozen=True, slots=True)
class Repellers:
    """What pushes a point k, as a sum of strength * q(|y_k - x|) over x.

    Attributes
    ----------
    strength : float
        Factor of every term.
    landmarks : (L, d) Tensor or None
        Positions x that push every point.
    pairs : Edges or None
        Or: pushes between pairs of points, weighted.
    members : (L,) int array or None
        Points that are landmarks themselves, and so are pushed by all points too.
    """

    strength: float
    landmarks: Tensor | None = None
    pairs: Edges | None = None
    members: NDArray[np.intp] | None = None


class Objective:
    """An energy of points y (N, d) and landmarks z (L, d).

    Attributes
    ----------
    repulsion : float
        The paper's lambda.  May be changed between evaluations.
    """

    method: ClassVar[Method]

    def __init__(self, forces: Forces, repulsion: float) -> None:
        self.forces = forces
        self.repulsion = repulsion

    def __call__(self, y: Tensor, z: Tensor, *, value: bool = False) -> Tensor:
        return _Energy.apply(y, z, self, value)  # type: ignore[no-any-return,no-untyped-call]

    def evaluate(
        self, y: Tensor, z: Tensor, value: bool
    ) -> tuple[float, Tensor, Tensor]:
        """Return the energy (NaN unless ``value``) and its gradients in y and z."""
        raise NotImplementedError

    def follow(self, y: Tensor, z: Tensor) -> None:
        """Move the landmarks that are not free to move themselves."""

    def repellers(self, y: Tensor, z: Tensor) -> Repellers:
        """Say what pushes the points, for :mod:`pressure`."""
        raise NotImplementedError

    def _attraction(self, y: Tensor, value: bool) -> float:
        return self.forces.attraction_energy(y) if value else math.nan


class LandmarkGame(Objective):
    """Eq. 3: the landmarks raise the bound, the points lower the energy.

    dE/dy_i = attraction + 2 lambda r  dS_yz/dy_i
    dE/dz_a = 2 lambda r  dS_yz/dz_a - lambda r^2  dS_zz/dz_a,   r = S_yz / S_zz
    """

    method = "game"

    def evaluate(
        self, y: Tensor, z: Tensor, value: bool
    ) -> tuple[float, Tensor, Tensor]:
        found = self.forces.landmark_forces(y, z)
        r = found.ratio
        energy = self._attraction(y, value) + self.repulsion * r**2 * found.s_zz
        scale = 2 * self.repulsion * r
        y_gradient = found.attraction.add_(found.repulsion, alpha=scale)
        z_gradient = (scale * found.pull).sub_(found.push, alpha=self.repulsion * r**2)
        return energy, y_gradient, z_gradient

    def repellers(self, y: Tensor, z: Tensor) -> Repellers:
        r = self.forces.landmark_forces(y, z).ratio
        return Repellers(2 * self.repulsion * r, landmarks=z)


class SampledEdges(Objective):
    """Eq. 8: L random partners for every point, drawn once.

    The landmarks have no say here.  They play on, raising Eq. 3's bound, so
    that they still tile the map and the clusters stay.
    """

    method = "sampled_edges"

    def __init__(
        self, forces: Forces, repulsion: float, n_samples: int, random_state: int
    ) -> None:
        super().__init__(forces, repulsion)
        n = forces.edges.n_points
        self._weight = n / n_samples
        rng = np.random.default_rng(random_state)
        partners = rng.integers(0, n, size=(n, n_samples), dtype=np.uint32)
        self._pairs = Edges(
            *_kernels.symmetric_pairs(partners, forces.edges.weights.dtype.type(1))
        )

    def evaluate(
        self, y: Tensor, z: Tensor, value: bool
    ) -> tuple[float, Tensor, Tensor]:
        found = self.forces.landmark_forces(y, z)
        total, repulsion = self.forces.pair_repulsion(y, self._pairs)
        strength = self.repulsion * self._weight
        energy = self._attraction(y, value) + strength * total
        y_gradient = found.attraction.add_(repulsion, alpha=strength)
        r = found.ratio
        return energy, y_gradient, (2 * r * found.pull).sub_(found.push, alpha=r**2)

    def repellers(self, y: Tensor, z: Tensor) -> Repellers:
        return Repellers(self.repulsion * self._weight, pairs=self._pairs)


class SampledLandmarks(Objective):
    """Eq. 9: L points, drawn once, are the landmarks and stay points."""

    method = "sampled_landmarks"

    def __init__(
        self, forces: Forces, repulsion: float, n_samples: int, random_state: int
    ) -> None:
        super().__init__(forces, repulsion)
        n = forces.edges.n_points
        rng = np.random.default_rng(random_state)
        self._members = np.sort(rng.choice(n, size=min(n_samples, n), replace=False))
        self._weight = n / len(self._members)

    def evaluate(
        self, y: Tensor, z: Tensor, value: bool
    ) -> tuple[float, Tensor, Tensor]:
        members = torch.as_tensor(self._members, device=y.device)
        found = self.forces.landmark_forces(y, y.detach()[members])
        strength = self.repulsion * self._weight
        energy = self._attraction(y, value) + strength * found.s_yz
        y_gradient = found.attraction.add_(found.repulsion, alpha=strength)
        y_gradient.index_add_(0, members, strength * found.pull)
        return energy, y_gradient, torch.zeros_like(z)

    def follow(self, y: Tensor, z: Tensor) -> None:
        with torch.no_grad():
            z.copy_(y[torch.as_tensor(self._members, device=y.device)])

    def repellers(self, y: Tensor, z: Tensor) -> Repellers:
        members = torch.as_tensor(self._members, device=y.device)
        strength = self.repulsion * self._weight
        return Repellers(strength, landmarks=y[members], members=self._members)


def make_objective(
    method: Method,
    forces: Forces,
    repulsion: float,
    n_landmarks: int,
    random_state: int = 0,
) -> Objective:
    """Return the objective of ``method``.

    Raises
    ------
    InputError
        ``method`` is not one of ``types.METHODS``.
    """
    if method == "game":
        return LandmarkGame(forces, repulsion)
    if method == "sampled_edges":
        return SampledEdges(forces, repulsion, n_landmarks, random_state)
    if method == "sampled_landmarks":
        return SampledLandmarks(forces, repulsion, n_landmarks, random_state)
    raise InputError(f"The method must be one of {METHODS}, not {method!r}.")
