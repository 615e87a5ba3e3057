r"""The energies of the papers, with their gradients in the points and the landmarks.

    E(y) = sum_edges w f(|y_i - y_j|)  +  lambda R( S ),   S = sum_ij k(|y_i - y_j|)

R is the sum itself, or its logarithm, which normalizes t-SNE and s-SNE (slope 1 / S in
``Objective._slope``), as declared in :mod:`methods`.  Each class below replaces S,
which has N^2 terms, by an approximation:

============  ==================================================  =====
Landmarks     max over z of  S_yz^2 / S_zz, a lower bound         Eq. 3
MeshSum       S itself, without the pairs i = j, on a grid
SampledEdges  (N-1)/L  sum over N L random pairs, i != j, of k    Eq. 8
AllPairs      S itself, without the pairs i = j
============  ==================================================  =====

S_yz = sum_ia k(|y_i - z_a|), S_zz = sum_ab k(|z_a - z_b|).  Eq. 3 bounds S + N k(0), of
which the second is taken off inside a logarithm.  Which of them is chosen, also by
size: ``settings.resolve_method`` and ``fill_approximation``; Eq. 9 is in
``papers/sampled_landmarks.py``.  The energy line of paper 1's Alg. 1 squares before it
sums, and lets points fall onto one spot; Eq. 3 is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.elementary import log
from napari_embedding_game.core.energy import methods, pair_loops
from napari_embedding_game.core.energy.forces import CompiledForces, Forces
from napari_embedding_game.core.energy.mesh_repulsion import (
    Potential,
    Potentials,
    is_summed_by_pairs,
)
from napari_embedding_game.core.energy.pair_functions import KERNELS
from napari_embedding_game.core.energy.torch_forces import Number, Pairs
from napari_embedding_game.core.threads import run_blocks

Points = NDArray[np.floating]

MIN_SEEN, SEEN_BY_EACH = 4_096, 16
"""Points that landmarks without a say look at in a step, and those for each of them."""
COME_BACK = 20
"""Steps after which landmarks that have no say and hold no point come back."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """One evaluation of the attraction and of the approximation of S."""

    attraction: Tensor
    """(N, d) gradient of the attraction."""
    total: Number
    """S, or its approximation."""
    repulsion: Tensor
    """(N, d) gradient of ``total`` in the points, divided by ``scale``."""
    scale: Number
    landmark_gradient: Tensor
    """(L, d): where the landmarks climb."""

    def gradient(self, slope: Number) -> Tensor:
        """Return the energy's gradient (N, d) for a slope of R; this is used up."""
        return _add(self.attraction, self.repulsion, slope * self.scale)


@dataclass(frozen=True, slots=True, eq=False)
class PotentialSums:
    """What :class:`Sums` is, with S and its gradient read from a grid on demand."""

    attraction: Tensor
    """(N, d) gradient of the attraction."""
    potential: Potential | Potentials
    landmark_gradient: Tensor
    """(L, d): where the landmarks climb."""

    @property
    def total(self) -> float:
        """S."""
        return self.potential.total

    def gradient(self, slope: Number) -> Tensor:
        """Return the energy's gradient (N, d) for a slope of R; this is used up."""
        self.potential.add_gradient(float(slope), self.attraction.numpy())
        return self.attraction


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """What pushes one point at x while all others stay: c sum_a k(|x - x_a|^2).

    Under a logarithm c = strength / (base + growth of the sum); else base is 0.
    """

    sources: Tensor
    """(M, d): the x_a, landmarks or all points."""
    strength: float
    base: float
    self_share: float
    """Share of the point in the push of its nearest source."""
    weights: NDArray[np.floating] | None = None
    """(N, M) of each point and source; 1 if None."""


class Objective:
    """An energy of points y and landmarks z, with its gradients.

    Here landmarks have no say: they play on, raising Eq. 3's bound of the game, so that
    they still tile the map and the clusters stay.  In each step they look at a part of
    the points, another one in turn.  Those that no point of it is nearest to come back
    now and then, onto points drawn at random.

    ``repulsion`` is the lambda of the energy, and may change from step to step.
    """

    self_sum = 0.0
    """What a logarithm leaves out of the sum: the pairs i = j."""

    def __init__(
        self,
        forces: Forces,
        repulsion: float,
        n_landmarks: int = 1,
        random_state: int = 0,
        aggregate: methods.Aggregate = "sum",
    ) -> None:
        self.forces, self.repulsion, self.aggregate = forces, repulsion, aggregate
        self.n_landmarks, self.random_state = n_landmarks, random_state
        n = forces.edges.n_points
        self._n_parts = max(1, n // max(MIN_SEEN, SEEN_BY_EACH * n_landmarks))
        self._n_seen = n // self._n_parts
        self._rng = np.random.default_rng(random_state)
        self._turn = 0

    @cached_property
    def at_zero(self) -> float:
        """The kernel at distance 0, which a point has with itself."""
        return float(self.forces.k.value(torch.zeros(())))

    def repel(self, y: Tensor) -> tuple[Number, Tensor, Number]:
        """Return the approximation of S, its (N, d) gradient, and a factor of that."""
        raise NotImplementedError

    def sums(self, y: Tensor, z: Tensor) -> Sums | PotentialSums:
        """Return the sum with its gradients, and the attraction's."""
        climb = self.climb(y, z)
        return Sums(self.forces.attract(y), *self.repel(y), climb)

    def climb(self, y: Tensor, z: Tensor) -> Tensor:
        """Return where the landmarks climb beside a sum without them, (L, d)."""
        s_yz, _, pull = self.forces.repel(self._sample(y), z, KERNELS["cauchy"])
        s_zz, *pushes = self.forces.repel(z, z, KERNELS["cauchy"])
        return _climb(s_yz / s_zz, pull, *pushes)

    def follow(self, y: Tensor, z: Tensor) -> Tensor | None:
        """Change the landmarks (L, d) in place after a step.

        Return the numbers of those that were put elsewhere, if any were: they rest.
        """
        self._turn += 1
        if self._turn % COME_BACK:
            return None
        return self._return_lost_landmarks(self._sample(y), z)

    def field(self, y: Tensor, z: Tensor) -> Field:
        """Return what pushes a point; here all points, one by one."""
        # A pair counts in both of its rows.
        return self._field(y, 2.0, y, z, share=1.0)

    def _return_lost_landmarks(self, seen: Tensor, z: Tensor) -> Tensor:
        """Put landmarks that none of the points is nearest to onto some of the points.

        Return the numbers of these landmarks.
        """
        nearest = find_nearest_landmarks(as_array(seen), as_array(z))
        n_held = np.bincount(nearest, minlength=len(z))
        lost = np.flatnonzero(n_held == 0)[: len(seen)]
        points = self._rng.choice(len(seen), len(lost), replace=False)
        to, drawn = (torch.as_tensor(rows, device=z.device) for rows in (lost, points))
        z[to] = seen[drawn]
        return to

    def _sample(self, y: Tensor) -> Tensor:
        """Return the sample of the points that moves the landmarks in this step."""
        part = y.detach()[self._turn % self._n_parts :: self._n_parts]
        return part[: self._n_seen].contiguous()

    def energy(
        self, y: Tensor, z: Tensor, sums: Sums | PotentialSums | None = None
    ) -> float:
        """Return the energy; ``sums``: ``self.sums(y, z)``, if it is there."""
        total = float((sums or self.sums(y, z)).total)
        aggregate = total
        if self.aggregate == "log":
            # Points so far apart that their sum is lost in rounding: not to go there.
            among = max(total - self.self_sum, total / 2) if self.self_sum else total
            aggregate = float(log(among)) if among > 0 else math.inf
        return self.forces.attraction_energy(y) + self.repulsion * aggregate

    def gradients(
        self, y: Tensor, z: Tensor, sums: Sums | PotentialSums | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the gradients in y and z; ``sums`` are used up."""
        sums = sums or self.sums(y, z)
        slope = self.repulsion * self._slope(sums)
        return sums.gradient(slope), slope * sums.landmark_gradient

    def evaluate(self, y: Tensor, z: Tensor) -> tuple[float, Tensor, Tensor]:
        """Return the energy and its gradients in y and z."""
        sums = self.sums(y, z)
        return self.energy(y, z, sums), *self.gradients(y, z, sums)

    def _slope(self, sums: Sums | PotentialSums) -> Number:
        """Return R'(S)."""
        if self.aggregate == "sum":
            return 1.0
        total = sums.total
        if isinstance(total, Tensor):
            among = torch.where(total > 2 * self.self_sum, total - self.self_sum, total)
            return torch.where(total > 0, 1 / among, 0.0)
        return 1 / self._without_self(total) if total > 0 else 0.0

    def _without_self(self, total: float) -> float:
        """Return the sum less the pairs i = j, but where the bound is loose."""
        return total - self.self_sum if total > 2 * self.self_sum else total

    def _field(
        self, sources: Tensor, gain: float, y: Tensor, z: Tensor, share: float
    ) -> Field:
        """Return the field of sources; ``gain``: slope of S by the sum over them."""
        if self.aggregate == "sum":
            return Field(sources, self.repulsion * gain, 0.0, share)
        total = float(self.sums(y, z).total)
        return Field(sources, self.repulsion, self._without_self(total) / gain, share)


class Landmarks(Objective):
    """Eq. 3: the landmarks raise the bound, the points lower the energy."""

    @cached_property
    def self_sum(self) -> float:  # type: ignore[override]
        return self.forces.edges.n_points * self.at_zero

    def sums(self, y: Tensor, z: Tensor) -> Sums:
        s_yz, repulsion, pull = self.forces.repel(y, z)
        s_zz, *pushes = self.forces.repel(z, z)
        r = s_yz / s_zz
        climb = _climb(r, pull, *pushes)
        return Sums(self.forces.attract(y), r**2 * s_zz, repulsion, 2 * r, climb)

    def follow(self, y: Tensor, z: Tensor) -> None:
        """Leave the landmarks: they move themselves; return None."""

    def field(self, y: Tensor, z: Tensor) -> Field:
        r = float(self.sums(y, z).scale) / 2
        # A landmark stands for r points, and the nearest one also for the point itself.
        return self._field(z, 2 * r, y, z, min(1.0, 1 / r))


class AllPairs(Objective):
    """The sum itself, over all pairs of different points: N^2 terms."""

    weights: NDArray[np.floating] | None = None
    """(N, N), symmetric, of each pair, as EE may have; 1 if None."""

    def repel(self, y: Tensor) -> tuple[Number, Tensor, Number]:
        return *self.forces.all_pairs(y, self.weights), 1.0

    def field(self, y: Tensor, z: Tensor) -> Field:
        return replace(super().field(y, z), weights=self.weights)


class MeshSum(Objective):
    """The sum itself, over all pairs of different points, by a grid."""

    def sums(self, y: Tensor, z: Tensor) -> Sums | PotentialSums:
        if not isinstance(self.forces, CompiledForces):
            return super().sums(y, z)
        points = y.detach().numpy()
        attraction, climb = self.forces.attract(y), self.climb(y, z)
        if is_summed_by_pairs(points):
            return Sums(attraction, *self.forces.all_pairs(y), 1.0, climb)
        potential = self.forces.grid.find_potential(points)
        return PotentialSums(attraction, potential, climb)

    def repel(self, y: Tensor) -> tuple[Number, Tensor, Number]:
        return *self.forces.mesh(y), 1.0


class SampledEdges(Objective):
    """Eq. 8: L random partners for every point, drawn once."""

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs that were drawn."""
        n, device = self.forces.edges.n_points, self.forces.device
        rng = np.random.default_rng(self.random_state)
        order, n_partners = rng.permutation(n), min(self.n_landmarks, n - 1)
        shifts = 1 + rng.choice(n - 1, n_partners, replace=False)
        return torch.from_numpy(order).to(device), torch.from_numpy(shifts).to(device)

    def repel(self, y: Tensor) -> tuple[Number, Tensor, Number]:
        total, gradient = self.forces.pair_repulsion(y, self.pairs)
        # As many pairs of two different points as there are, for those drawn.
        weight = (len(y) - 1) / max(len(self.pairs[1]), 1)
        return weight * total, gradient, weight


def make_objective(
    approximation: methods.Approximation, *args: Any, **kwargs: Any
) -> Objective:
    """Return the energy with the repulsion by that ``approximation``.

    The other arguments are those of :class:`Objective`.
    """
    objective: Objective = methods.OBJECTIVES[approximation](*args, **kwargs)
    return objective


methods.OBJECTIVES.update(
    landmarks=Landmarks, mesh=MeshSum, sampled_edges=SampledEdges, exact=AllPairs
)


def find_nearest_landmarks(points: Points, landmarks: Points) -> NDArray[np.int32]:
    """Return the index of each point's nearest landmark (Eq. 7), (N,) int32."""
    labels, work = np.empty(len(points), np.int32), len(points) * len(landmarks)
    given = np.ascontiguousarray(points), np.ascontiguousarray(landmarks.T), labels
    run_blocks(pair_loops.write_nearest_landmarks, len(points), work, *given)
    return labels


def as_array(tensor: Tensor) -> Points:
    """Return the numbers of a tensor in the processor's memory."""
    return np.asarray(tensor.detach().cpu().numpy())


def _climb(r: Number, pull: Tensor, push: Tensor, back: Tensor) -> Tensor:
    """Return the gradient of Eq. 3's bound in the landmarks, (L, d).

    dS/dz_a = 2 r  dS_yz/dz_a - r^2  dS_zz/dz_a,   r = S_yz / S_zz
    """
    return _add(2 * r * pull, push + back, -(r**2))


def _add(to: Tensor, other: Tensor, factor: Number) -> Tensor:
    """Add ``factor`` times another tensor in place; one on a device stays there.

    Not by ``add_(alpha=)``, which torch rounds once or twice as the processor can.
    """
    return to.add_(other * factor)
