r"""The energies of the papers, differentiable in the points and the landmarks.

Every method of :mod:`methods` minimises

    E(y) = sum_edges w f(|y_i - y_j|)  +  lambda R( S ),   S = sum_ij k(|y_i - y_j|)

where R is the sum itself or its logarithm (paper 1, Eq. 1, and paper 4, Eq. 1-4).
S has N^2 terms.  Each class below puts something else in its place:

================  ==================================================  =====
Landmarks         max over z of  S_yz^2 / S_zz, a lower bound         Eq. 3
MeshSum           S itself, without the pairs i = j, on a grid
SampledEdges      (N-1)/L  sum over N L random pairs, i != j, of k    Eq. 8
SampledLandmarks  N/L  sum_i sum_(j in L points) k                    Eq. 9
AllPairs          S itself, without the pairs i = j
================  ==================================================  =====

where S_yz = sum_ia k(|y_i - z_a|) and S_zz = sum_ab k(|z_a - z_b|).  Eq. 3 bounds the
sum with the pairs i = j, S + N k(0).  That is a constant, but not inside a logarithm,
where N k(0) is taken off: with a landmark on each point S is left.  The energy line of
paper 1's Alg. 1 squares before it sums and lets the points fall onto one spot; Eq. 3,
which sums before it squares, is right.

Calling an objective gives a torch scalar whose ``backward()`` fills both
gradients; :meth:`Objective.set_gradients` fills them at once, for who needs no graph.
Its *number* takes a logarithm per edge that the gradients do not
need, so it is NaN unless asked for with ``value=True``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from napari_embedding_game.core.elementary import log
from napari_embedding_game.core.energy.methods import (
    APPROXIMATIONS,
    Aggregate,
    Approximation,
)
from napari_embedding_game.core.energy.pair_functions import KERNELS, PairFunction
from napari_embedding_game.core.energy.pair_sums import (
    Forces,
    LandmarkForces,
    Number,
    make_forces,
)
from napari_embedding_game.core.energy.sampled_pairs import SampledPairs
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.affinities import Edges

FEWEST_SEEN, SEEN_BY_EACH = 4_096, 16
"""Points that landmarks beside a grid look at in a step, and those for each of them."""
CPU = torch.device("cpu")
COME_BACK = 20
"""Steps after which landmarks that have no say and hold no point come back."""
MOST_ONE_BY_ONE = 5_000
"""Points beside a grid whose pressure is still found from all pairs one by one."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """One evaluation of the attraction and of what stands for S."""

    attraction: Tensor
    """(N, d) gradient of the attraction."""
    total: Number
    """S, or what stands for it."""
    repulsion: Tensor
    """(N, d) gradient of ``total`` in the points, divided by ``scale``."""
    scale: Number
    landmark_gradient: Tensor
    """(L, d): where the landmarks climb."""


@dataclass(frozen=True, slots=True, eq=False)
class RepulsionSources:
    """What pushes a point k, as a sum of v_x k(|y_k - x|) over x.

    Attributes
    ----------
    multiplicity : float
        What S, or what stands for it, gains for each unit of that sum.
    total : float
        S, or what stands for it.
    landmarks : (L, d) Tensor or None
        Positions x that push every point.
    pairs : SampledPairs or None
        Or: pushes between random pairs of points.
    members : (L,) int array or None
        Points that are landmarks themselves, and so are pushed by all points too.
    weights : (N, N) array or None
        Where all points push one another: weights of the pairs, if not 1.
    on_grid : bool
        Where all points push one another: whether a grid says how hard.
    own : float
        Share of the push of a point's nearest landmark that stands for the point
        itself, 0 to 1.
    """

    multiplicity: float
    total: float
    landmarks: Tensor | None = None
    pairs: SampledPairs | None = None
    members: NDArray[np.intp] | None = None
    weights: NDArray[np.floating] | None = None
    on_grid: bool = False
    own: float = 0.0


class Repulsion:
    """What stands for the sum over all pairs, given points y and landmarks z.

    Where landmarks have no say in it they play on, raising Eq. 3's bound of the
    game, so that they still tile the map and the clusters stay.
    """

    def __init__(self, forces: Forces) -> None:
        self.forces = forces
        self._tiling = _tiling(forces)

    def sums(self, y: Tensor, z: Tensor) -> Sums:
        """Return the sum with its gradients, and the attraction's."""
        raise NotImplementedError

    def total(self, y: Tensor, z: Tensor) -> float:
        """Return the sum alone."""
        return float(self.sums(y, z).total)

    def follow(self, y: Tensor, z: Tensor) -> None:
        """Move the landmarks that are not free to move themselves.

        Called once after each step.
        """

    def hold(self, y: Tensor) -> bool:
        """Let the sum be one smooth function near these points.

        Returns
        -------
        bool
            Whether it is another one than before.
        """
        return False

    def holds(self, y: Tensor) -> bool:
        """Return whether the sum can be told where these points are."""
        return True

    def repulsion_sources(self, y: Tensor, z: Tensor) -> RepulsionSources:
        """Say what pushes the points, for :mod:`pressure`."""
        raise NotImplementedError

    def _tile(self, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the attraction, and where landmarks climb that have no say."""
        forces = self._tiling.landmark_forces(y, z)
        is_own = self._tiling is self.forces
        attraction = forces.attraction if is_own else self.forces.attract(y)
        return attraction, _climb(forces)


class Landmarks(Repulsion):
    """Eq. 3: the landmarks raise the bound, the points lower the energy.

    dS/dy_i = 2 r  dS_yz/dy_i
    dS/dz_a = 2 r  dS_yz/dz_a - r^2  dS_zz/dz_a,   r = S_yz / S_zz
    """

    def sums(self, y: Tensor, z: Tensor) -> Sums:
        forces = self.forces.landmark_forces(y, z)
        r = forces.ratio
        total = r**2 * forces.s_zz
        return Sums(forces.attraction, total, forces.repulsion, 2 * r, _climb(forces))

    def repulsion_sources(self, y: Tensor, z: Tensor) -> RepulsionSources:
        forces = self.forces.landmark_forces(y, z)
        r = float(forces.ratio)
        total = r**2 * float(forces.s_zz)
        # A landmark stands for r points, and the nearest one also for the point itself.
        own_share = min(1.0, 1 / r)
        return RepulsionSources(2 * r, total, landmarks=z, own=own_share)


class WithoutLandmarks(Repulsion):
    """A sum in which landmarks have no say: they only tile the map.

    Those that no point is nearest to come back now and then, onto points at random.
    """

    def __init__(self, forces: Forces, random_state: int) -> None:
        super().__init__(forces)
        self._rng = np.random.default_rng(random_state)
        self._turn = 0

    def follow(self, y: Tensor, z: Tensor) -> None:
        self._turn += 1
        if self._turn % COME_BACK == 0:
            every = max(1, len(y) // max(FEWEST_SEEN, SEEN_BY_EACH * len(z)))
            bring_back(y.detach()[::every], z, self._rng)


class SampledEdges(WithoutLandmarks):
    """Eq. 8: L random partners for every point, drawn once."""

    def __init__(self, forces: Forces, n_samples: int, random_state: int) -> None:
        super().__init__(forces, random_state)
        n = forces.edges.n_points
        self._pairs = SampledPairs.draw(n, n_samples, random_state)
        # As many pairs of two different points as there are, for those drawn.
        self._weight = (n - 1) / max(len(self._pairs.shifts), 1)

    def sums(self, y: Tensor, z: Tensor) -> Sums:
        attraction, landmark_gradient = self._tile(y, z)
        total, repulsion = self.forces.pair_repulsion(y, self._pairs)
        weight = self._weight
        return Sums(attraction, weight * total, repulsion, weight, landmark_gradient)

    def repulsion_sources(self, y: Tensor, z: Tensor) -> RepulsionSources:
        total, _ = self.forces.pair_repulsion(y, self._pairs)
        total = self._weight * float(total)
        return RepulsionSources(self._weight, total, pairs=self._pairs)


class SampledLandmarks(Repulsion):
    """Eq. 9: L points, drawn once, are the landmarks and stay points."""

    def __init__(self, forces: Forces, n_samples: int, random_state: int) -> None:
        super().__init__(forces)
        n = forces.edges.n_points
        rng = np.random.default_rng(random_state)
        self._members = np.sort(rng.choice(n, size=min(n_samples, n), replace=False))
        self._weight = n / len(self._members)
        self._rows = torch.as_tensor(self._members, device=forces.device)

    def sums(self, y: Tensor, z: Tensor) -> Sums:
        forces = self.forces.landmark_forces(y, y.detach()[self._rows])
        forces.repulsion.index_add_(0, self._rows, forces.pull)
        weight = self._weight
        total = weight * forces.s_yz
        still = torch.zeros_like(z)
        return Sums(forces.attraction, total, forces.repulsion, weight, still)

    def follow(self, y: Tensor, z: Tensor) -> None:
        with torch.no_grad():
            z.copy_(y[self._rows])

    def repulsion_sources(self, y: Tensor, z: Tensor) -> RepulsionSources:
        members = y.detach()[self._rows]
        total = self._weight * float(self.forces.landmark_forces(y, members).s_yz)
        return RepulsionSources(self._weight, total, members, members=self._members)


class MeshSum(Repulsion):
    """The sum itself, over all pairs of different points, by a grid.

    Landmarks, which only tile the map, look at a part of the points in each step, a
    different one in turn.  Those that no point of it is nearest to come back now and
    then, onto points drawn at random.

    Parameters
    ----------
    forces : Forces
    most_one_by_one : int
        Points up to which pressure is found without a grid.
    n_landmarks : int
    random_state : int
    """

    def __init__(
        self,
        forces: Forces,
        most_one_by_one: int = MOST_ONE_BY_ONE,
        n_landmarks: int = 1,
        random_state: int = 0,
    ) -> None:
        self.forces = forces
        n = forces.edges.n_points
        self._n_parts = max(1, n // max(FEWEST_SEEN, SEEN_BY_EACH * n_landmarks))
        self._n_seen = n // self._n_parts
        self._tiling = _beside(forces, self._n_seen)
        self._rng = np.random.default_rng(random_state)
        self._turn = 0
        self._most_one_by_one = most_one_by_one

    def sums(self, y: Tensor, z: Tensor) -> Sums:
        climb = _climb(self._tiling.landmark_forces(self._seen(y), z))
        total, repulsion = self.forces.mesh(y)
        return Sums(self.forces.attract(y), total, repulsion, 1.0, climb)

    def total(self, y: Tensor, z: Tensor) -> float:
        return float(self.forces.mesh(y)[0])

    def hold(self, y: Tensor) -> bool:
        return self.forces.grid.hold(y.detach().numpy())

    def holds(self, y: Tensor) -> bool:
        return self.forces.grid.holds(y.detach().numpy())

    def follow(self, y: Tensor, z: Tensor) -> None:
        self._turn += 1
        if self._turn % COME_BACK == 0:
            bring_back(self._seen(y), z, self._rng)

    def _seen(self, y: Tensor) -> Tensor:
        """Return the points that landmarks look at in this step."""
        part = y.detach()[self._turn % self._n_parts :: self._n_parts]
        return part[: self._n_seen].contiguous()

    def repulsion_sources(self, y: Tensor, z: Tensor) -> RepulsionSources:
        total = float(self.forces.mesh(y)[0])
        return RepulsionSources(2.0, total, on_grid=len(y) > self._most_one_by_one)


class AllPairs(WithoutLandmarks):
    """The sum itself, over all pairs of different points: N^2 terms.

    ``weights``: (N, N), symmetric, of each pair, as EE may have; 1 if None.
    """

    def __init__(
        self,
        forces: Forces,
        weights: NDArray[np.floating] | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(forces, random_state)
        self.weights = weights

    def sums(self, y: Tensor, z: Tensor) -> Sums:
        attraction, landmark_gradient = self._tile(y, z)
        total, repulsion = self.forces.all_pairs(y, self.weights)
        return Sums(attraction, total, repulsion, 1.0, landmark_gradient)

    def repulsion_sources(self, y: Tensor, z: Tensor) -> RepulsionSources:
        total = float(self.forces.all_pairs(y, self.weights)[0])
        return RepulsionSources(2.0, total, weights=self.weights)


class Objective:
    """An energy of points y (N, d) and landmarks z (L, d).

    Attributes
    ----------
    pairs : Repulsion
        What stands for S; its ``forces`` know the edges and the profiles.
    repulsion : float
        The paper's lambda.  May be changed between evaluations.
    aggregate : {"sum", "log"}
        R, which is taken of S.
    own : float
        What ``pairs`` counts of points with themselves and the logarithm does not, or
        half of all that is counted, if that is less.
    """

    def __init__(
        self,
        pairs: Repulsion,
        repulsion: float,
        aggregate: Aggregate = "sum",
        own: float = 0.0,
    ) -> None:
        self.pairs = pairs
        self.forces = pairs.forces
        self.repulsion = repulsion
        self.aggregate = aggregate
        self.own = own

    def __call__(self, y: Tensor, z: Tensor, *, value: bool = False) -> Tensor:
        return _Energy.apply(y, z, self, value)  # type: ignore[no-any-return,no-untyped-call]

    def evaluate(
        self, y: Tensor, z: Tensor, value: bool
    ) -> tuple[float, Tensor, Tensor]:
        """Return the energy (NaN unless ``value``) and its gradients in y and z."""
        sums = self.pairs.sums(y, z)
        energy = self._energy(y, float(sums.total)) if value else math.nan
        return energy, *self._gradients(sums)

    def set_gradients(self, y: Tensor, z: Tensor, sums: Sums | None = None) -> None:
        """Write the gradients into ``y.grad`` and ``z.grad``, in place of others.

        What ``self(y, z).backward()`` does where they were None before.

        Parameters
        ----------
        y, z : Tensor
        sums : Sums, optional
            ``pairs.sums(y, z)``, if it is there already; used up.
        """
        y.grad, z.grad = self._gradients(sums or self.pairs.sums(y, z))

    def energy(self, y: Tensor, z: Tensor, sums: Sums | None = None) -> float:
        """Return the energy alone; ``sums``: ``pairs.sums(y, z)``, if it is there."""
        total = self.pairs.total(y, z) if sums is None else float(sums.total)
        return self._energy(y, total)

    def _gradients(self, sums: Sums) -> tuple[Tensor, Tensor]:
        """Return the gradients in y and z; the sums are written over."""
        slope = self.repulsion * self._slope(sums.total)
        y_gradient = _add(sums.attraction, sums.repulsion, slope * sums.scale)
        return y_gradient, slope * sums.landmark_gradient

    def follow(self, y: Tensor, z: Tensor) -> None:
        """Move the landmarks that are not free to move themselves."""
        self.pairs.follow(y, z)

    def hold(self, y: Tensor) -> bool:
        """Let the energy be one smooth function near ``y``; see :class:`Repulsion`."""
        return self.pairs.hold(y)

    def holds(self, y: Tensor) -> bool:
        """Return whether the energy can be told where these points are."""
        return self.pairs.holds(y)

    def repulsion_sources(self, y: Tensor, z: Tensor) -> RepulsionSources:
        """Say what pushes the points, for :mod:`pressure`."""
        return self.pairs.repulsion_sources(y, z)

    def _slope(self, total: Number) -> Number:
        if self.aggregate == "sum":
            return 1.0
        if isinstance(total, Tensor):
            among = torch.where(total > 2 * self.own, total - self.own, total)
            return torch.where(total > 0, 1 / among, 0.0)
        return 1 / without_own(total, self.own) if total > 0 else 0.0

    def _energy(self, y: Tensor, total: float) -> float:
        aggregate = total
        if self.aggregate == "log":
            # Points so far apart that their sum is lost in rounding: not to go there.
            among = max(total - self.own, total / 2) if self.own else total
            aggregate = float(log(among)) if among > 0 else math.inf
        return self.forces.attraction_energy(y) + self.repulsion * aggregate


def make_objective(
    approximation: Approximation,
    forces: Forces,
    repulsion: float,
    n_landmarks: int,
    random_state: int = 0,
    aggregate: Aggregate = "sum",
) -> Objective:
    """Return the energy with the repulsion found as ``approximation`` says.

    Raises
    ------
    InputError
        ``approximation`` is not one of ``names.APPROXIMATIONS``.
    """
    pairs = _make_pairs(approximation, forces, n_landmarks, random_state)
    own = 0.0
    if approximation == "landmarks" and aggregate == "log":
        own = own_sum(KERNELS[forces.kernel], forces.edges.n_points)
    return Objective(pairs, repulsion, aggregate, own)


def own_sum(kernel: PairFunction, n_points: int) -> float:
    """Return N k(0): what Eq. 3's bound counts of points with themselves."""
    return n_points * float(kernel.value(torch.zeros(())))


def without_own(total: float, own: float) -> float:
    """Return what a logarithm is taken of, but for a factor: ``total`` less ``own``.

    Where points lie so far apart that the bound is loose, nothing is taken off.
    """
    return total - own if total > 2 * own else total


def _make_pairs(
    approximation: Approximation, forces: Forces, n_landmarks: int, random_state: int
) -> Repulsion:
    if approximation == "landmarks":
        return Landmarks(forces)
    if approximation == "sampled_edges":
        return SampledEdges(forces, n_landmarks, random_state)
    if approximation == "sampled_landmarks":
        return SampledLandmarks(forces, n_landmarks, random_state)
    if approximation == "mesh":
        return MeshSum(forces, n_landmarks=n_landmarks, random_state=random_state)
    if approximation == "exact":
        return AllPairs(forces, random_state=random_state)
    raise InputError(
        f"The approximation must be one of {APPROXIMATIONS}, not {approximation!r}."
    )


def bring_back(seen: Tensor, z: Tensor, rng: np.random.Generator) -> None:
    """Put landmarks that are nearest to none of some points onto points among them.

    Parameters
    ----------
    seen : (n, d) Tensor
    z : (L, d) Tensor
        Changed in place.
    rng : Generator
        Draws the points.
    """
    with torch.no_grad():
        nearest = torch.cdist(seen, z).argmin(dim=1)
        n_held = torch.bincount(nearest, minlength=len(z)).cpu().numpy()
        lost = np.flatnonzero(n_held == 0)[: len(seen)]
        places = rng.choice(len(seen), len(lost), replace=False)
        z[torch.as_tensor(lost, device=z.device)] = seen[
            torch.as_tensor(places, device=z.device)
        ]


def _climb(forces: LandmarkForces) -> Tensor:
    """Return the gradient of Eq. 3's bound in the landmarks, (L, d)."""
    r = forces.ratio
    return _add(2 * r * forces.pull, forces.push, -(r**2))


def _add(to: Tensor, other: Tensor, factor: Number) -> Tensor:
    """Add ``factor`` times another tensor in place; one on a device stays there.

    Not by ``add_(alpha=)``, which torch rounds once or twice as the processor can.
    """
    return to.add_(other * factor)


def _tiling(forces: Forces) -> Forces:
    """Return what landmarks look at that have no say: the kernel of the game."""
    if (forces.attraction, forces.kernel) == ("log1p", "cauchy"):
        return forces
    return _beside(forces, forces.edges.n_points)


def _beside(forces: Forces, n: int) -> Forces:
    """Return the kernel of the game for ``n`` points, where other forces are found."""
    dtype = forces.edges.weights.dtype
    return without_edges(n, forces.device, forces.n_jobs, dtype=dtype)


def without_edges(
    n: int,
    device: torch.device = CPU,
    n_jobs: int | None = None,
    kernel: str = "cauchy",
    dtype: DTypeLike = np.float32,
) -> Forces:
    """Return a kernel, the game's by default, for ``n`` points that nothing attracts.

    ``dtype`` is that of the points.
    """
    empty = np.zeros(0, dtype)
    no_edges = Edges(np.zeros(n + 1, np.uint32), np.zeros(0, np.uint32), empty)
    return make_forces(no_edges, device, n_jobs, kernel=kernel)
