"""How much of the repulsion among all points a game's landmarks stand for (Eq. 3).

The landmarks raise a lower bound of the sum over all pairs of points,

    S_yz^2 / S_zz  <=  sum over all i, j of k(y_i, y_j),

and are the better players the nearer they bring it to the sum itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from napari_embedding_game.core.energy.methods import get_method, per_point
from napari_embedding_game.core.energy.objective import Landmarks, without_edges
from napari_embedding_game.core.inspect.landmark_cover import kernel_sum
from napari_embedding_game.core.settings import Settings, is_pushed_by, repulsion_of
from napari_embedding_game.core.snapshot import Snapshot

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
    forces = without_edges(n_points, kernel=method.kernel)
    y = torch.from_numpy(np.ascontiguousarray(snapshot.embedding))
    z = torch.from_numpy(np.ascontiguousarray(snapshot.landmarks))
    bound = Landmarks(forces).total(y, z)
    if n_points <= MOST_ONE_BY_ONE or "mesh" not in method.approximations:
        total = kernel_sum(method.kernel, y.numpy(), y.numpy())
    else:
        total = float(forces.mesh(y)[0]) + n_points
    is_known = method.lambda_scale is per_point
    repulsion = repulsion_of(settings) / n_points if is_known else math.nan
    return RepulsionBound(bound, total, n_points, repulsion)
