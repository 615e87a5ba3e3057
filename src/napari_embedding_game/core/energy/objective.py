r"""The energies of the papers, with their gradients in the points and the landmarks.

    E(y) = sum_edges w f(|y_i - y_j|)  +  lambda R( S ),   S = sum_ij k(|y_i - y_j|)

R is the sum itself, or its logarithm, which normalizes t-SNE and s-SNE (slope 1 / S in
``Objective._compute_aggregate_slope``), as declared in :mod:`methods`.  Each class
below replaces S, which has N^2 terms, by an approximation:

=============  ==================================================  =====
LandmarkBound  max over z of  S_yz^2 / S_zz, a lower bound         Eq. 3
MeshSum        S itself, without the pairs i = j, on a grid
SampledEdges   (N-1)/L  sum over N L random pairs, i != j, of k    Eq. 8
AllPairs       S itself, without the pairs i = j
=============  ==================================================  =====

S_yz = sum_ia k(|y_i - z_a|), S_zz = sum_ab k(|z_a - z_b|).  Eq. 3 bounds S + N k(0);
inside a logarithm N k(0) is subtracted.  ``settings.resolve_method`` and
``fill_approximation_by_size`` choose the approximation; Eq. 9 is in
``papers/sampled_landmarks.py``.  The energy line of paper 1's Alg. 1 squares before it
sums, and lets points fall onto one spot; Eq. 3 is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.elementary import log
from napari_embedding_game.core.energy import methods, pair_loops
from napari_embedding_game.core.energy.forces import CompiledForces, Forces
from napari_embedding_game.core.energy.mesh_repulsion import (
    Potential,
    SplitPotential,
    is_summed_by_pairs,
)
from napari_embedding_game.core.energy.pair_functions import KERNELS
from napari_embedding_game.core.energy.torch_forces import Number, Pairs
from napari_embedding_game.core.threads import run_blocks

Points = NDArray[np.floating]

MIN_SEEN, SEEN_BY_EACH = 4_096, 16
"""Least size of the sample of points that moves landmarks which do not act on points,
and least number of sampled points per landmark."""
COME_BACK = 20
"""Steps between two relocations of landmarks that are nearest to no point."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """The attraction's gradient, and an approximation of S with its gradients."""

    attraction: Tensor
    """(N, d) gradient of the attraction."""
    total: Number
    """S, or its approximation."""
    repulsion: Tensor
    """(N, d) gradient of ``total`` in the points, divided by ``scale``."""
    scale: Number
    landmark_gradient: Tensor
    """(L, d) gradient of the landmarks' bound, which the landmarks ascend."""

    def energy_gradient(self, slope: Number) -> Tensor:
        """Return the energy's gradient (N, d) for the slope lambda R'(S).

        The result overwrites ``attraction``, so call this once.
        """
        return _add_scaled(self.attraction, self.repulsion, slope * self.scale)


@dataclass(frozen=True, slots=True, eq=False)
class PotentialSums:
    """Like :class:`Sums`, with S and its gradient read from a grid on demand."""

    attraction: Tensor
    """(N, d) gradient of the attraction."""
    potential: Potential | SplitPotential
    landmark_gradient: Tensor
    """(L, d) gradient of the landmarks' bound, which the landmarks ascend."""

    @property
    def total(self) -> float:
        """The sum S over all pairs."""
        return self.potential.total

    def energy_gradient(self, slope: Number) -> Tensor:
        """Return the energy's gradient (N, d) for the slope lambda R'(S).

        The result overwrites ``attraction``, so call this once.
        """
        self.potential.add_gradient(float(slope), self.attraction.numpy())
        return self.attraction


@dataclass(frozen=True, slots=True, eq=False)
class RepulsionField:
    """The repulsion energy of one point at x while others stay: c sum_a k(|x - x_a|^2).

    For the aggregate "log", c = strength / (base + growth of the sum); else base is 0
    and c = strength.
    """

    sources: Tensor
    """(M, d) positions x_a: of landmarks or of all points."""
    strength: float
    base: float
    self_share: float
    """Share of the point itself in its nearest source, 0 to 1."""
    weights: NDArray[np.floating] | None = None
    """(N, M) weight of each point and source; None is 1."""


class Objective:
    """An energy of points y and landmarks z, with its gradients.

    Landmarks of this base class do not act on the points.  They still ascend Eq. 3's
    bound of the game, so that they cover the map and define clusters.  Each step uses a
    sample of the points, another sample each time.  Every :data:`COME_BACK` steps
    landmarks that are nearest to no sampled point move onto points chosen at random.

    ``repulsion`` is the lambda of the energy, and may change from step to step.
    """

    self_pair_sum = 0.0
    """Sum of k over the pairs i = j, which a logarithm leaves out of S."""

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
    def kernel_at_zero(self) -> float:
        """The kernel at distance 0, as of a point with itself."""
        return float(self.forces.k.value(torch.zeros(())))

    def approximate_repulsion(self, points: Tensor) -> tuple[Number, Tensor, Number]:
        """Return an approximation of S, a gradient (N, d), and the gradient's factor.

        The gradient of the approximation is the factor times the returned gradient.
        """
        raise NotImplementedError

    def compute_sums(self, points: Tensor, landmarks: Tensor) -> Sums | PotentialSums:
        """Return the approximation of S with its gradients, and the attraction's.

        ``landmarks`` serve their own gradient alone, as they do not act on the points.
        """
        landmark_gradient = self.landmark_gradient(points, landmarks)
        attraction = self.forces.attraction_gradient(points)
        return Sums(attraction, *self.approximate_repulsion(points), landmark_gradient)

    def landmark_gradient(self, points: Tensor, landmarks: Tensor) -> Tensor:
        """Return the gradient of the game's bound (Eq. 3) in the landmarks, (L, d).

        The bound is of this step's sample of the points, and has the kernel of the game
        whatever the method is.
        """
        s_yz, _, pull = self.forces.kernel_sum_and_gradients(
            self._sample_points(points), landmarks, KERNELS["cauchy"]
        )
        s_zz, *pushes = self.forces.kernel_sum_and_gradients(
            landmarks, landmarks, KERNELS["cauchy"]
        )
        return _compute_bound_gradient(s_yz / s_zz, pull, *pushes)

    def update_landmarks(self, points: Tensor, landmarks: Tensor) -> Tensor | None:
        """Relocate ``landmarks`` (L, d) in place after a step, if that is due.

        Landmarks that are nearest to no sampled point are moved onto points every
        :data:`COME_BACK` steps.  Return their indices, or None in other steps.
        """
        self._turn += 1
        if self._turn % COME_BACK:
            return None
        return self._relocate_lost_landmarks(self._sample_points(points), landmarks)

    def repulsion_field(self, points: Tensor, landmarks: Tensor) -> RepulsionField:
        """Return the repulsion energy of one point as a field of all points.

        ``landmarks`` enter the sums alone, not the field's sources.
        """
        # S counts each pair twice.
        return self._make_field(points, 2.0, points, landmarks, share=1.0)

    def _relocate_lost_landmarks(self, seen: Tensor, landmarks: Tensor) -> Tensor:
        """Move landmarks that are nearest to no point of ``seen`` onto random points.

        The points are of ``seen`` (m, d), each used once, so that at most m landmarks
        move.  Return the indices of the moved landmarks; ``landmarks`` (L, d) change in
        place.
        """
        nearest = find_nearest_landmarks(
            tensor_to_array(seen), tensor_to_array(landmarks)
        )
        n_held = np.bincount(nearest, minlength=len(landmarks))
        lost = np.flatnonzero(n_held == 0)[: len(seen)]
        sampled = self._rng.choice(len(seen), len(lost), replace=False)
        lost_rows, sampled_rows = (
            torch.as_tensor(rows, device=landmarks.device) for rows in (lost, sampled)
        )
        landmarks[lost_rows] = seen[sampled_rows]
        return lost_rows

    def _sample_points(self, points: Tensor) -> Tensor:
        """Return every n-th point, (n_seen, d), from another point on in each step."""
        part = points.detach()[self._turn % self._n_parts :: self._n_parts]
        return part[: self._n_seen].contiguous()

    def energy(
        self,
        points: Tensor,
        landmarks: Tensor,
        sums: Sums | PotentialSums | None = None,
    ) -> float:
        """Return the energy; ``sums``: of ``compute_sums(y, z)``, if known.

        Under a logarithm the pairs i = j are subtracted from S, of which at least half
        stays; the energy is infinite where S is 0.
        """
        total = float((sums or self.compute_sums(points, landmarks)).total)
        aggregate = total
        if self.aggregate == "log":
            # Of points far apart the difference is lost in rounding: half the sum
            # keeps the logarithm finite.
            among = (
                max(total - self.self_pair_sum, total / 2)
                if self.self_pair_sum
                else total
            )
            aggregate = float(log(among)) if among > 0 else math.inf
        return self.forces.attraction_energy(points) + self.repulsion * aggregate

    def gradients(
        self,
        points: Tensor,
        landmarks: Tensor,
        sums: Sums | PotentialSums | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the energy's gradients (N, d) in y and (L, d) in z.

        ``sums``: of ``compute_sums(y, z)``, if known; they are overwritten.
        """
        sums = sums or self.compute_sums(points, landmarks)
        slope = self.repulsion * self._compute_aggregate_slope(sums)
        return sums.energy_gradient(slope), slope * sums.landmark_gradient

    def energy_and_gradients(
        self, points: Tensor, landmarks: Tensor
    ) -> tuple[float, Tensor, Tensor]:
        """Return the energy, its gradient (N, d) in y and its gradient (L, d) in z."""
        sums = self.compute_sums(points, landmarks)
        return self.energy(points, landmarks, sums), *self.gradients(
            points, landmarks, sums
        )

    def _compute_aggregate_slope(self, sums: Sums | PotentialSums) -> Number:
        """Return the aggregate's slope R'(S): 1, or under a logarithm 1 / S.

        The pairs i = j are subtracted from S if they are less than half; the slope is 0
        where S is 0.
        """
        if self.aggregate == "sum":
            return 1.0
        total = sums.total
        if isinstance(total, Tensor):
            among = torch.where(
                total > 2 * self.self_pair_sum, total - self.self_pair_sum, total
            )
            return torch.where(total > 0, 1 / among, 0.0)
        return 1 / self._subtract_self_pairs(total) if total > 0 else 0.0

    def _subtract_self_pairs(self, total: float) -> float:
        """Return ``total`` without the pairs i = j, if these are less than half."""
        return total - self.self_pair_sum if total > 2 * self.self_pair_sum else total

    def _make_field(
        self,
        sources: Tensor,
        gain: float,
        points: Tensor,
        landmarks: Tensor,
        share: float,
    ) -> RepulsionField:
        """Return the repulsion field of ``sources`` under this energy's aggregate.

        ``gain``: derivative of S by the sum over the sources; ``share``: see
        ``RepulsionField.self_share``.  Under a logarithm S is computed from ``points``
        and ``landmarks``.
        """
        if self.aggregate == "sum":
            return RepulsionField(sources, self.repulsion * gain, 0.0, share)
        total = float(self.compute_sums(points, landmarks).total)
        return RepulsionField(
            sources, self.repulsion, self._subtract_self_pairs(total) / gain, share
        )


class LandmarkBound(Objective):
    """The bound of Eq. 3: landmarks ascend the bound, points descend the energy."""

    @cached_property
    def self_pair_sum(self) -> float:  # type: ignore[override]
        return self.forces.edges.n_points * self.kernel_at_zero

    def compute_sums(self, points: Tensor, landmarks: Tensor) -> Sums:
        """Return the bound r^2 S_zz with its gradients, for r = S_yz / S_zz."""
        s_yz, repulsion, pull = self.forces.kernel_sum_and_gradients(points, landmarks)
        s_zz, *pushes = self.forces.kernel_sum_and_gradients(landmarks, landmarks)
        r = s_yz / s_zz
        attraction = self.forces.attraction_gradient(points)
        landmark_gradient = _compute_bound_gradient(r, pull, *pushes)
        return Sums(attraction, r**2 * s_zz, repulsion, 2 * r, landmark_gradient)

    def update_landmarks(self, points: Tensor, landmarks: Tensor) -> None:
        """Return None without a change: these landmarks move by their own gradient."""

    def repulsion_field(self, points: Tensor, landmarks: Tensor) -> RepulsionField:
        """Return the repulsion energy of one point as a field of the landmarks."""
        r = float(self.compute_sums(points, landmarks).scale) / 2
        # A landmark stands for r points, and the nearest one also for the point itself.
        return self._make_field(landmarks, 2 * r, points, landmarks, min(1.0, 1 / r))


class AllPairs(Objective):
    """The sum itself, over all pairs of different points: N^2 terms."""

    weights: NDArray[np.floating] | None = None
    """(N, N) symmetric weights of the pairs, as EE may have; None is 1."""

    def approximate_repulsion(self, points: Tensor) -> tuple[Number, Tensor, Number]:
        return *self.forces.repulsion_of_all_pairs(points, self.weights), 1.0

    def repulsion_field(self, points: Tensor, landmarks: Tensor) -> RepulsionField:
        return replace(super().repulsion_field(points, landmarks), weights=self.weights)


class MeshSum(Objective):
    """The sum itself, over all pairs of different points, by a grid."""

    def compute_sums(self, points: Tensor, landmarks: Tensor) -> Sums | PotentialSums:
        """Return the repulsive sum S and the gradients of points and landmarks.

        S is a potential on a grid, or a number in :class:`Sums`.  :class:`Sums` are
        returned off the CPU, where they come from a grid, too, and for few points in a
        wide space, where all pairs are summed: see :func:`is_summed_by_pairs`.
        ``landmarks`` serve their own gradient alone.
        """
        if not isinstance(self.forces, CompiledForces):
            return super().compute_sums(points, landmarks)
        positions = points.detach().numpy()
        attraction = self.forces.attraction_gradient(points)
        landmark_gradient = self.landmark_gradient(points, landmarks)
        if is_summed_by_pairs(positions):
            total, repulsion = self.forces.repulsion_of_all_pairs(points)
            return Sums(attraction, total, repulsion, 1.0, landmark_gradient)
        potential = self.forces.mesh.compute_potential(positions)
        return PotentialSums(attraction, potential, landmark_gradient)

    def approximate_repulsion(self, points: Tensor) -> tuple[Number, Tensor, Number]:
        return *self.forces.repulsion_on_grid(points), 1.0


class SampledEdges(Objective):
    """The estimate of Eq. 8: L random partners of every point, sampled once."""

    @cached_property
    def pairs(self) -> Pairs:
        """The sampled pairs: an order of the points, and shifts within the order.

        There are ``n_landmarks`` shifts, at most N - 1; the pairs follow from the seed.
        """
        n, device = self.forces.edges.n_points, self.forces.device
        rng = np.random.default_rng(self.random_state)
        order, n_partners = rng.permutation(n), min(self.n_landmarks, n - 1)
        shifts = 1 + rng.choice(n - 1, n_partners, replace=False)
        return torch.from_numpy(order).to(device), torch.from_numpy(shifts).to(device)

    def approximate_repulsion(self, points: Tensor) -> tuple[Number, Tensor, Number]:
        """Return the estimate of S, the gradient of the sampled sum, and its factor."""
        total, gradient = self.forces.repulsion_of_sampled_pairs(points, self.pairs)
        # The number of pairs of two different points, over that of sampled pairs.
        weight = (len(points) - 1) / max(len(self.pairs[1]), 1)
        return weight * total, gradient, weight


def make_objective(
    approximation: methods.Approximation,
    forces: Forces,
    repulsion: float,
    n_landmarks: int = 1,
    random_state: int = 0,
    aggregate: methods.Aggregate = "sum",
) -> Objective:
    """Return the energy whose sum over all pairs is replaced by an ``approximation``.

    The other arguments are those of :class:`Objective`.
    """
    objective_class = methods.OBJECTIVES[approximation]
    objective: Objective = objective_class(
        forces, repulsion, n_landmarks, random_state, aggregate
    )
    return objective


methods.OBJECTIVES.update(
    landmarks=LandmarkBound, mesh=MeshSum, sampled_edges=SampledEdges, exact=AllPairs
)


def find_nearest_landmarks(points: Points, landmarks: Points) -> NDArray[np.int32]:
    """Return the index of each point's nearest landmark (Eq. 7), (N,) int32.

    ``points`` (N, d) and ``landmarks`` (L, d) are of one type.  Of landmarks at the
    same distance the first is taken.
    """
    labels, work = np.empty(len(points), np.int32), len(points) * len(landmarks)
    run_blocks(
        pair_loops.write_nearest_landmarks,
        len(points),
        work,
        np.ascontiguousarray(points),
        np.ascontiguousarray(landmarks.T),
        labels,
    )
    return labels


def tensor_to_array(tensor: Tensor) -> Points:
    """Return a tensor as an array, copied if it is on a device."""
    return np.asarray(tensor.detach().cpu().numpy())


def _compute_bound_gradient(
    r: Number, pull: Tensor, push: Tensor, back: Tensor
) -> Tensor:
    """Return the gradient of Eq. 3's bound in the landmarks, (L, d).

    dS/dz_a = 2 r  dS_yz/dz_a - r^2  dS_zz/dz_a,   r = S_yz / S_zz.  ``pull``: dS_yz/dz;
    ``push`` and ``back``: the gradients of S_zz at both ends of its pairs.
    """
    return _add_scaled(2 * r * pull, push + back, -(r**2))


def _add_scaled(to: Tensor, other: Tensor, factor: Number) -> Tensor:
    """Add ``factor`` times ``other`` to ``to`` in place, and return ``to``.

    ``add_(alpha=)`` is not used: torch rounds it once or twice, by the processor.
    """
    return to.add_(other * factor)
