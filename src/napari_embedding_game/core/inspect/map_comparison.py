"""Two maps of the same rows: one laid on the other, and how far each point moves.

The second map is shifted, rotated and reflected so that the sum of squared distances
to the first is least (orthogonal Procrustes analysis, Schönemann 1966, by
``scipy.linalg``), and gets the first one's size, the root mean square of the distances
to the middle: what is left is what the maps truly differ in.  The size of least squares
would be the smaller the less the maps agree: another map would look like a small one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import cKDTree

N_NEIGHBORS = 15
MOST_JUDGED = 5_000
"""Points whose neighbours on both maps are compared; of more, some drawn at random."""


@dataclass(frozen=True, eq=False)
class MapComparison:
    """What a second map is like beside a first one."""

    first: NDArray[np.float32]
    """(N, d) the first map, as it is."""
    second: NDArray[np.float32]
    """(N, d) the second one, laid on the first."""
    moved: NDArray[np.float32]
    """(N,) distance between the two places of a point, in radii of the first map."""
    kept: float
    """Share of a point's 15 nearest on the first map that are so on the second."""

    def between(self, share: float) -> NDArray[np.float32]:
        """Return the places on the way from the first (0) to the second (1), (N, d)."""
        if share <= 0:
            return self.first
        way = self.second - self.first
        return (self.first + min(share, 1.0) * way).astype(np.float32)


def compare_maps(
    first: NDArray[np.floating], second: NDArray[np.floating], random_state: int = 0
) -> MapComparison:
    """Lay the second map on the first, and measure what differs.

    Parameters
    ----------
    first, second : (N, d) and (N, e) array
        Row i of both is the same row of the data.  Of maps of different dimensions
        the second is taken into those of the first: its missing axes are 0, or its
        last ones are left out after it was laid on the first.
    random_state : int
        Draws the points whose neighbours are compared.
    """
    a, b = _wide(first, second), _wide(second, first)
    a_middle, b_middle = a.mean(axis=0), b.mean(axis=0)
    a, b = a - a_middle, b - b_middle
    rotation, _ = orthogonal_procrustes(b, a)
    squared = float((b**2).sum())
    scale = math.sqrt(float((a**2).sum()) / squared) if squared > 0 else 1.0
    laid = (scale * b @ rotation + a_middle)[:, : first.shape[1]].astype(np.float32)
    kept_first = np.ascontiguousarray(first, dtype=np.float32)
    radius = float(np.sqrt((a**2).sum(axis=1).mean()))
    away = np.linalg.norm(laid - kept_first, axis=1)
    moved = (away / radius if radius > 0 else away).astype(np.float32)
    return MapComparison(
        kept_first, laid, moved, _kept(kept_first, second, random_state)
    )


def laid_on(
    first: NDArray[np.floating],
    second: NDArray[np.floating],
    *others: NDArray[np.floating],
) -> tuple[NDArray[np.float32], ...]:
    """Return a second map, shifted, rotated and reflected to lie as the first one.

    Its size stays, so that it is the same map: only its place on the canvas differs.

    Parameters
    ----------
    first, second : (N, d) array
        Row i of both is the same row of the data.
    *others : (m, d) array
        What goes with the second map, such as its landmarks.
    """
    a, b = first.astype(np.float64), second.astype(np.float64)
    a_middle, b_middle = a.mean(axis=0), b.mean(axis=0)
    rotation, _ = orthogonal_procrustes(b - b_middle, a - a_middle)
    return tuple(
        ((part - b_middle) @ rotation + a_middle).astype(np.float32)
        for part in (second, *others)
    )


def _wide(points: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[Any]:
    """Return the points in float64, with axes of zeros up to those of the other."""
    lacking = max(0, other.shape[1] - points.shape[1])
    return np.pad(points.astype(np.float64), ((0, 0), (0, lacking)))


def _kept(
    first: NDArray[np.floating], second: NDArray[np.floating], random_state: int
) -> float:
    n = len(first)
    k = min(N_NEIGHBORS, n - 1)
    if k < 1:
        return 1.0
    rng = np.random.default_rng(random_state)
    rows = rng.choice(n, min(n, MOST_JUDGED), replace=False)
    here, there = (_nearest(points, rows, k) for points in (first, second))
    hits = (here[:, :, None] == there[:, None, :]).any(axis=2)
    return float(hits.mean())


def _nearest(
    points: NDArray[Any], rows: NDArray[np.integer], k: int
) -> NDArray[np.intp]:
    """Return the k nearest other points of these rows, (n, k)."""
    found: NDArray[np.intp] = cKDTree(points).query(points[rows], k + 1)[1]
    is_self = found == rows[:, None]
    is_self[~is_self.any(axis=1), -1] = True  # among copies of it
    others: NDArray[np.intp] = found[~is_self].reshape(len(rows), k)
    return others
