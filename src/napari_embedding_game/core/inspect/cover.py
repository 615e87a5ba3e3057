"""How well that which pushes the points of a finished map stands for all of them.

Landmarks repel the points in the place of the points themselves (Eq. 3): that is a game
of landmarks only where these lie among the points and are enough of them.  They raise a
lower bound of the sum over all pairs of points,

    S_yz^2 / S_zz  <=  sum over all i, j of k(y_i, y_j),

and are the better players the nearer they bring it to the sum itself.  A grid stands
for all pairs of points (:mod:`napari_embedding_game.core.energy.mesh`): the force on
some of them is added up one by one in float64, and compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from napari_embedding_game.core.energy import pair_loops
from napari_embedding_game.core.energy.mesh import Mesh
from napari_embedding_game.core.energy.methods import get_method, per_point
from napari_embedding_game.core.energy.objective import Landmarks, without_edges
from napari_embedding_game.core.energy.pair_functions import KERNELS, PairFunction
from napari_embedding_game.core.settings import Settings, is_pushed_by, repulsion_of
from napari_embedding_game.core.snapshot import Snapshot

OUTSIDE = 2.0
"""Distance to its nearest point from which a landmark pushes a fifth, at most, of what
it pushes a point beside it (the kernel 1 / (1 + u^2))."""
_MOST_PAIRS = 10_000_000
_FEWEST_ROWS, _MOST_ROWS = 8, 2_000


def outside_share(
    embedding: NDArray[np.floating], landmarks: NDArray[np.floating]
) -> float:
    """Return the share of the landmarks (L, d) that lie far from all points (N, d)."""
    if not len(landmarks):
        return 0.0
    return float((cKDTree(embedding).query(landmarks)[0] > OUTSIDE).mean())


def bound_share(
    embedding: NDArray[np.floating], landmarks: NDArray[np.floating], kernel: str
) -> float:
    """Return S_yz^2 / S_zz as a share of the sum over all pairs, about 0 to 1.

    Both sums are those of some points, evenly drawn, where there are many.

    Parameters
    ----------
    embedding : (N, d) float
    landmarks : (L, d) float
    kernel : str
        A key of ``pair_functions.KERNELS``.
    """
    y = _in_the_plane(embedding)
    n_rows = max(_FEWEST_ROWS, min(len(y), _MOST_ROWS, _MOST_PAIRS // len(y)))
    some = np.ascontiguousarray(y[:: max(1, len(y) // n_rows)])
    drawn = len(y) / len(some)
    return drawn * _bound(kernel, some, landmarks) / kernel_sum(kernel, some, y)


def _bound(kernel: str, y: NDArray[np.floating], z: NDArray[np.floating]) -> float:
    """Return S_yz^2 / S_zz as the game has it."""
    forces = without_edges(len(y), kernel=kernel, dtype=y.dtype)
    places = (torch.from_numpy(_in_the_plane(points)) for points in (y, z))
    return Landmarks(forces, 1.0).total(*places)


def _in_the_plane(places: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.ascontiguousarray(pair_loops.in_the_plane(places))


def kernel_sum(kernel: str, a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """Return the sum of a kernel over all pairs of points of (m, d) and of (n, d).

    ``a`` and ``b``: C-contiguous, of one type, d = 2 or 3.
    """
    columns = np.ascontiguousarray(b.T)
    chunks = pair_loops.n_chunks(len(a))
    # The loop of the game, which is there: it also writes gradients, of no use here.
    gradient, pull = np.empty_like(a), np.zeros((chunks, *columns.shape), a.dtype)
    sums = np.empty(chunks)
    pair_loops.repel(0, chunks, KERNELS[kernel], a, columns, gradient, pull, sums)
    return float(sums.sum())


MOST_ONE_BY_ONE = 5_000
"""Points up to which all pairs are summed without a grid."""


@dataclass(frozen=True, slots=True)
class RepulsionBound:
    """The repulsion among all points of a map, and what its landmarks make of it."""

    bound: float
    """S_yz^2 / S_zz."""
    total: float
    """The sum of the kernel over all pairs of points, each with itself too."""
    n_points: int
    repulsion: float
    """The paper's lambda; NaN where that depends on the edges."""

    @property
    def share(self) -> float:
        """Part of the sum that the bound reaches, 0 to 1."""
        return self.bound / self.total

    def true_energy(self, energy: float) -> float:
        """Return Eq. 1, over all pairs of different points, for the bound's energy.

        NaN where lambda is not known.
        """
        among = self.total - self.n_points  # the kernel is 1 at distance 0
        return energy + self.repulsion * (among - self.bound)


def repulsion_bound(snapshot: Snapshot, settings: Settings) -> RepulsionBound | None:
    """Return how near the landmarks of a map bring the bound to the sum.

    Parameters
    ----------
    snapshot : Snapshot
    settings : Settings
        With which it was played.

    Returns
    -------
    RepulsionBound
        None where landmarks have no say in the repulsion.
    """
    method = get_method(settings.method)
    is_bounded = is_pushed_by(settings, "landmarks")
    if not is_bounded or method.aggregate != "sum" or not len(snapshot.landmarks):
        return None
    n_points = len(snapshot.embedding)
    y = _in_the_plane(snapshot.embedding)
    bound = _bound(method.kernel, y, snapshot.landmarks)
    if n_points <= MOST_ONE_BY_ONE or "mesh" not in method.approximations:
        total = kernel_sum(method.kernel, y, y)
    else:
        total = Mesh(KERNELS[method.kernel], None)(y)[0] + n_points
    is_known = method.lambda_scale is per_point
    repulsion = repulsion_of(settings) / n_points if is_known else math.nan
    return RepulsionBound(bound, total, n_points, repulsion)


N_SAMPLED = 200
_AT_ONCE = 4_000_000


def grid_error(
    embedding: NDArray[np.floating],
    kernel: str,
    n_sampled: int = N_SAMPLED,
    random_state: int = 0,
) -> float:
    """Return the error of the forces by a grid, relative to those by all pairs.

    Parameters
    ----------
    embedding : (N, d) float
        d is 1, 2 or 3.
    kernel : str
        A key of ``pair_functions.KERNELS`` that a grid can show.
    n_sampled : int
        Points, drawn at random, at which forces are compared.
    random_state : int
        Draws them.

    Returns
    -------
    float
        Root mean square of the differences, divided by that of the forces: 0 is exact.
        NaN where all pairs push nothing, as for a single point.
    """
    y = _in_the_plane(embedding)
    rng = np.random.default_rng(random_state)
    rows = rng.choice(len(y), min(n_sampled, len(y)), replace=False)
    pair_function = KERNELS[kernel]
    _, by_grid = Mesh(pair_function, 1)(y)
    exact = _one_by_one(pair_function, y, rows)
    size = float(np.sqrt((exact**2).sum(axis=1).mean()))
    off = float(np.sqrt(((by_grid[rows] - exact) ** 2).sum(axis=1).mean()))
    return off / size if size > 0 else math.nan


def grid_error_of(snapshot: Snapshot, settings: Settings) -> float:
    """Return :func:`grid_error` of a map; NaN where no grid has pushed its points.

    Parameters
    ----------
    snapshot : Snapshot
    settings : Settings
        With which it was played.
    """
    method = get_method(settings.method)
    if not is_pushed_by(settings, "mesh"):
        return math.nan
    return grid_error(snapshot.embedding, method.kernel)


def _one_by_one(
    kernel: PairFunction, y: NDArray[np.floating], rows: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the gradient of the sum of k over all pairs i != j at some points."""
    points = torch.as_tensor(y, dtype=torch.float64)
    at_once = max(1, _AT_ONCE // len(y))
    blocks = []
    for some in np.array_split(rows, -(-len(rows) // at_once)):
        apart = points[torch.as_tensor(some)][:, None] - points[None]
        slopes = kernel.slope((apart**2).sum(dim=2))
        # Each pair counts twice, and the slope is that of the squared distance.
        blocks.append(4 * torch.einsum("ij,ijd->id", slopes, apart))
    found: NDArray[np.float64] = torch.cat(blocks).numpy()
    return found
