"""Compare maps of the same rows: alignment, movement, kept neighbours.

The second map is shifted, rotated and reflected by orthogonal Procrustes analysis
(Schönemann 1966), and scaled to the size of the first.  Maps of other seeds are
compared by neighbours, because clusters may lie elsewhere on them.
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
"""Most points whose neighbours are compared; of more points so many are sampled."""


@dataclass(frozen=True, eq=False)
class MapComparison:
    """A second map (N, d) compared with a first map."""

    aligned: NDArray[np.float32]
    """(N, d) positions of the second map, aligned with the first map."""
    movement: NDArray[np.float32]
    """(N,) distance between the two positions of a point, in radii of the first map."""
    neighbors_kept: float
    """Mean share of a point's 15 nearest points on the first map that are among its 15
    nearest on the second; of fewer than 61 points, of the nearest quarter."""


def compare_maps(
    first: NDArray[np.floating], second: NDArray[np.floating]
) -> MapComparison:
    """Align the second map (N, e) with the first (N, d), and measure differences.

    Row i of both maps is the same row of the data.  A second map of more dimensions is
    projected to those of the first; with fewer, further coordinates are filled in.
    Kept neighbours are measured for at most ``MAX_JUDGED`` points, drawn at random with
    a fixed seed; a single point keeps all.
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
    aligned = (scaled @ rotation + middle)[:, :d].astype(np.float32)
    near = first.astype(np.float32)
    radius = size / math.sqrt(n) if size > 0 else 1.0
    movement = np.linalg.norm(aligned - near, axis=1) / radius
    rows = np.random.default_rng(0).choice(n, min(n, MAX_JUDGED), replace=False)
    kept = 1.0
    if n > 1:
        kept = float(measure_kept_neighbors(near, second, rows=rows, wide=1).mean())
    return MapComparison(aligned, movement.astype(np.float32), kept)


def measure_kept_neighbors(
    first: NDArray[np.floating],
    second: NDArray[np.floating],
    n_neighbors: int = N_NEIGHBORS,
    *,
    rows: NDArray[np.integer] | None = None,
    wide: int = WIDE,
) -> NDArray[np.float32]:
    """Return the share of each point's k neighbours that a second map keeps, (n,).

    A neighbour on the first map (N, d) is kept where it is among the ``wide`` times k
    nearest on the second map (N, e), as similar points may change places.  k is
    ``n_neighbors``, but smaller for few points, so that wide times k is at most a
    quarter of the others and chance keeps a quarter at most.  ``rows`` (n,): numbers of
    the points to compare, all by default.
    """
    n = len(first)
    rows = np.arange(n) if rows is None else rows
    most = max(1, (n - 1) // 4)
    k = max(1, min(n_neighbors, most // wide))
    # A number stands for a pair of point and neighbour.
    here, there = (
        np.arange(len(rows))[:, None] * n + find_nearest_on_map(points, rows, count)
        for points, count in ((first, k), (second, min(wide * k, most)))
    )
    pairs = np.sort(there, axis=None)  # one search in order is 50 times numpy's isin
    index = np.minimum(np.searchsorted(pairs, here), pairs.size - 1)
    kept: NDArray[np.float32] = (pairs[index] == here).mean(axis=1, dtype=np.float32)
    return kept


def find_nearest_on_map(
    points: NDArray[np.floating], rows: NDArray[np.integer], k: int
) -> NDArray[np.intp]:
    """Return the k nearest other points of some points, (n, k), nearest first.

    ``points`` (N, d): positions, of which N is above k; ``rows`` (n,): numbers of the
    points whose neighbours are searched.
    """
    y = np.ascontiguousarray(points, np.float64)
    indices: NDArray[np.intp] = cKDTree(y).query(y[rows], k + 1)[1]
    is_self = indices == rows[:, None]
    is_self[~is_self.any(axis=1), -1] = True  # copies displaced the point itself
    others: NDArray[np.intp] = indices[~is_self].reshape(len(rows), k)
    return others
