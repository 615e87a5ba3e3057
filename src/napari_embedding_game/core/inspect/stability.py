"""Stability: which points keep their neighbours on the map whatever the seed.

    kept_si = share of the k nearest of point i on the map on show
              that are among the WIDE k nearest of i on the map of seed s

The stability of a point is its mean over the seeds.  Neighbourhoods are compared, and
not places: maps of other seeds may be turned, mirrored, and have whole clusters
elsewhere, which says nothing about the points inside them.  After laying one map on the
other (Procrustes) all points of a cluster that changed sides would count as wandering,
and the one point that changed its cluster could not be told from them.  The wider
neighbourhood lets points change places among their like, as they do in every run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

N_NEIGHBORS = 15
WIDE = 5
HALF = 0.5


@dataclass(frozen=True, eq=False)
class Stability:
    """How many neighbours each point keeps on the maps of other seeds."""

    kept: NDArray[np.float32]
    """(n_seeds, N) share of the neighbours, 0 to 1."""

    @property
    def of_points(self) -> NDArray[np.float32]:
        """(N,) mean over the seeds: 1 keeps all its neighbours, 0 none."""
        mean: NDArray[np.float32] = self.kept.mean(axis=0)
        return mean

    @property
    def steady_share(self) -> float:
        """Share of the points that keep at least half of them with every seed."""
        return float((self.kept.min(axis=0) >= HALF).mean())

    def told(self, noun: str = "points") -> str:
        """Return a sentence on all points."""
        return (
            f"{self.steady_share:.0%} of the {noun} keep at least half of their "
            f"neighbours on each of {len(self.kept)} maps from other seeds. Do not "
            "rely on what surrounds the others."
        )


def neighbors_kept(
    first: NDArray[np.floating],
    second: NDArray[np.floating],
    n_neighbors: int = N_NEIGHBORS,
) -> NDArray[np.float32]:
    """Return the share of each point's neighbours that a second map keeps, (N,).

    Parameters
    ----------
    first, second : (N, d) and (N, e) float
        Row i of both is the same row of the data.
    n_neighbors : int
        k; of few points a quarter of the others at most.
    """
    n = len(first)
    k = max(1, min(n_neighbors, (n - 1) // 4))
    here, there = _nearest(first, k), _nearest(second, min(WIDE * k, n - 1))
    # Both as numbers that name point and neighbour, sorted: one search finds all.
    own = np.arange(n)[:, None] * n
    known = np.sort((own + there).ravel())
    wanted = own + here
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    kept: NDArray[np.float32] = (known[place] == wanted).mean(axis=1, dtype=np.float32)
    return kept


def _nearest(points: NDArray[np.floating], k: int) -> NDArray[np.int64]:
    """Return the k nearest others of each point, (N, k)."""
    y = np.ascontiguousarray(points, np.float64)
    found = np.asarray(cKDTree(y).query(y, k + 1)[1], np.int64)
    is_self = found == np.arange(len(y))[:, None]
    is_self[~is_self.any(axis=1), -1] = True  # among copies of it
    others: NDArray[np.int64] = found[~is_self].reshape(len(y), k)
    return others
