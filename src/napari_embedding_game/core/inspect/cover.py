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

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from napari_embedding_game.core.energy import pair_loops
from napari_embedding_game.core.energy.mesh import Mesh
from napari_embedding_game.core.energy.objective import without_edges
from napari_embedding_game.core.energy.pair_functions import KERNELS

OUTSIDE = 2.0
"""Distance to its nearest point from which a landmark pushes a fifth, at most, of what
it pushes a point beside it (the kernel 1 / (1 + u^2))."""
N_SAMPLED = 200
"""Points at which the forces of a grid are compared."""
_MOST_PAIRS = 10_000_000
_FEWEST_ROWS, _MOST_ROWS = 8, 2_000

Points = NDArray[np.floating]


def outside_share(embedding: Points, landmarks: Points) -> float:
    """Return the share of the landmarks (L, d) that lie far from all points (N, d)."""
    if not len(landmarks):
        return 0.0
    return float((cKDTree(embedding).query(landmarks)[0] > OUTSIDE).mean())


def bound_share(embedding: Points, landmarks: Points, kernel: str) -> float:
    """Return S_yz^2 / S_zz as a share of the sum over all pairs, about 0 to 1.

    Both sums are those of some points, evenly drawn, where there are many.

    Parameters
    ----------
    embedding : (N, d) float
    landmarks : (L, d) float
    kernel : str
        A key of ``pair_functions.KERNELS``.
    """
    y, z = _in_the_plane(embedding), _in_the_plane(landmarks)
    n_rows = max(_FEWEST_ROWS, min(len(y), _MOST_ROWS, _MOST_PAIRS // len(y)))
    some = np.ascontiguousarray(y[:: max(1, len(y) // n_rows)])
    forces = without_edges(len(some), kernel=kernel, dtype=some.dtype)
    drawn, held, every = map(torch.from_numpy, (some, z, y))
    s_yz, s_zz = (forces.repel(each, held)[0] for each in (drawn, held))
    bound = float(s_yz**2 / s_zz)
    return len(y) / len(some) * bound / float(forces.repel(drawn, every)[0])


def grid_error(
    embedding: Points, kernel: str, n_sampled: int = N_SAMPLED, random_state: int = 0
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
    by_grid = Mesh(KERNELS[kernel], 1)(y)[1][rows]
    # Each pair of points counts twice.
    every = torch.from_numpy(y.astype(float))
    forces = without_edges(len(rows), kernel=kernel, dtype=float)
    exact = 2 * forces.repel(every[rows], every)[1].numpy()
    size = float(np.linalg.norm(exact))
    return float(np.linalg.norm(by_grid - exact)) / size if size > 0 else math.nan


def _in_the_plane(places: Points) -> Points:
    return np.ascontiguousarray(pair_loops.in_the_plane(places))
