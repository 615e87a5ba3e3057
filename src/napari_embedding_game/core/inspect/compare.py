"""Comparison of maps of the same rows: alignment, movement, neighbours kept.

The second map is shifted, rotated and reflected by orthogonal Procrustes analysis
(Schönemann 1966), and scaled to the size of the first.  Maps of other seeds are
compared by neighbourhoods, as whole clusters may lie elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import cKDTree

N_NEIGHBORS, WIDE = 15, 5
MAX_JUDGED = 5_000
"""Points whose neighbours on both maps are compared; of more, some drawn at random."""


@dataclass(frozen=True, eq=False)
class MapComparison:
    """A second map (N, d) compared with a first one."""

    second: NDArray[np.float32]
    """(N, d) the second one, laid on the first."""
    moved: NDArray[np.float32]
    """(N,) distance between the two positions of a point, in radii of the first map."""
    kept: float
    """Share of a point's 15 nearest on the first map that are so on the second, or of
    the nearest quarter of fewer than 61 points."""


def compare_maps(
    first: NDArray[np.floating], second: NDArray[np.floating]
) -> MapComparison:
    """Lay the second map on the first, and measure what differs.

    Row i of both is the same row of the data.  Of maps of other dimensions the second
    is taken into those of the first.
    """
    n, d = first.shape
    wide = max(d, second.shape[1])
    a, b = (
        np.pad(each.astype(float), ((0, 0), (0, wide - each.shape[1])))
        for each in (first, second)
    )
    size, other = (math.sqrt(((e - e.mean(axis=0)) ** 2).sum()) for e in (a, b))
    scaled, middle = b * (size / other if other > 0 else 1.0), a.mean(axis=0)
    scaled -= scaled.mean(axis=0)
    rotation, _ = orthogonal_procrustes(scaled, a - middle)
    laid = (scaled @ rotation + middle)[:, :d].astype(np.float32)
    near = first.astype(np.float32)
    radius = size / math.sqrt(n) if size > 0 else 1.0
    moved = np.linalg.norm(laid - near, axis=1) / radius
    rows = np.random.default_rng(0).choice(n, min(n, MAX_JUDGED), replace=False)
    kept = neighbors_kept(near, second, rows=rows, wide=1).mean() if n > 1 else 1.0
    return MapComparison(laid, moved.astype(np.float32), float(kept))


def neighbors_kept(
    first: NDArray[np.floating],
    second: NDArray[np.floating],
    n_neighbors: int = N_NEIGHBORS,
    *,
    rows: NDArray[np.integer] | None = None,
    wide: int = WIDE,
) -> NDArray[np.float32]:
    """Return the share of each point's k neighbours that a second map keeps, (n,).

    Those on the first map that are among ``wide`` times k on the second: similar points
    may change places.  Of few points k is smaller, so that chance keeps a quarter at
    most.  ``rows``: the points to compare, all by default.
    """
    n = len(first)
    rows = np.arange(n) if rows is None else rows
    most = max(1, (n - 1) // 4)
    k = max(1, min(n_neighbors, most // wide))
    # Numbers that name point and neighbour.
    here, there = (
        np.arange(len(rows))[:, None] * n + nearest_on_map(points, rows, count)
        for points, count in ((first, k), (second, min(wide * k, most)))
    )
    pairs = np.sort(there, axis=None)  # one search in order is 50 times numpy's isin
    index = np.minimum(np.searchsorted(pairs, here), pairs.size - 1)
    kept: NDArray[np.float32] = (pairs[index] == here).mean(axis=1, dtype=np.float32)
    return kept


def nearest_on_map(
    points: NDArray[np.floating], rows: NDArray[np.integer], k: int
) -> NDArray[np.intp]:
    """Return the k nearest other points of these rows, (n, k)."""
    y = np.ascontiguousarray(points, np.float64)
    indices: NDArray[np.intp] = cKDTree(y).query(y[rows], k + 1)[1]
    is_self = indices == rows[:, None]
    is_self[~is_self.any(axis=1), -1] = True  # among copies of it
    others: NDArray[np.intp] = indices[~is_self].reshape(len(rows), k)
    return others
