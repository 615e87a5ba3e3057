"""Stretch: which points lie far from their neighbours in the data.

    stretch_i = sqrt(exp(mean over neighbours j of i of log(1 + d_ij^2 / u^2)) - 1)

with d_ij the distance on the map and u the median of all d_ij.  Stretch is 1 where all
neighbours are at the median distance, whatever the scale.  The logarithm is that of the
game's attraction.  ``python benchmarks/doubtful_points.py`` shows how well stretch
finds misplaced points.
Those above :data:`snapshot.MISPLACED_STRETCH` are called misplaced.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.elementary import exp, log
from napari_embedding_game.core.energy.pair_loops import OPTIONS
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import run_blocks

_LOGARITHM = 8
"""Cost of a logarithm, in steps of simpler loops."""
_MAX_POINTS = 2_000
"""About the number of points that the median distance is computed from."""


def compute_stretch(
    neighbors: NDArray[np.integer], embedding: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Return the stretch of each point, (N,) float32, 0 and more.

    ``neighbors`` (N, k): the nearest rows of each row in the data, -1 for no row;
    ``embedding`` (N, d): positions on the map.  Stretch is 0 for a point without
    neighbours, and for all points where the median distance is 0.
    """
    y = np.ascontiguousarray(embedding, np.float32)
    return _compute_stretch_of_first_points(
        neighbors, y, compute_median_squared_distance(neighbors, y)
    )


def compute_stretch_of_new_rows(
    neighbors: NDArray[np.int32],
    positions: NDArray[np.float32],
    points: NDArray[np.float32],
    usual: float,
) -> NDArray[np.float32]:
    """Return the stretch of new rows that were placed on a map, (Q,) float32.

    ``neighbors`` (Q, k): the nearest fitted rows of each new row; ``positions`` (Q, d)
    and ``points`` (N, d): positions of new and of fitted rows; ``usual``:
    :func:`compute_median_squared_distance` of the fitted rows.
    """
    y = np.vstack([positions, points]).astype(np.float32, copy=False)
    shifted = (neighbors + len(positions)).astype(np.int32, copy=False)
    return _compute_stretch_of_first_points(shifted, np.ascontiguousarray(y), usual)


def compute_median_squared_distance(
    neighbors: NDArray[np.integer], y: NDArray[np.float32]
) -> float:
    """Return the median squared distance between neighbours on the map.

    ``neighbors`` (N, k), -1 for no row; ``y`` (N, d): positions.  About ``_MAX_POINTS``
    points at equal steps of their numbers are used.  It is 0 without neighbours.
    """
    step = max(1, len(y) // _MAX_POINTS)
    some = neighbors[::step]
    at, which = np.nonzero(some >= 0)
    vectors = y[at * step].astype(np.float64) - y[some[at, which]]
    return float(np.median(np.square(vectors).sum(axis=1))) if len(vectors) else 0.0


def _compute_stretch_of_first_points(
    neighbors: NDArray[np.integer], y: NDArray[np.float32], usual: float
) -> NDArray[np.float32]:
    """Return the stretch of the first Q points of ``y`` (Q + N, d), (Q,) float32.

    ``neighbors`` (Q, k): row numbers in ``y`` of each point's neighbours, -1 for no
    row; ``usual``: median squared distance u^2, for which 0 gives a stretch of 0.
    """
    stretched = np.zeros(len(neighbors), np.float32)
    if usual > 0.0:
        loop, work = _write_stretch, _LOGARITHM * neighbors.size
        run_blocks(loop, len(stretched), work, neighbors, y, usual, stretched)
    return stretched


@njit(**OPTIONS)
def _write_stretch(begin, end, neighbors, y, unit, out):
    """Write the stretch of points begin to end to ``out`` (Q,), 0 for no neighbours.

    It is sqrt(exp(mean log(1 + d^2 / u^2)) - 1) over the distances d of a point's
    neighbours on the map.  ``unit``: u^2, the squared unit of length, above 0; ``y``
    (Q + N, d): positions; ``neighbors`` (Q, k): row numbers in ``y``, -1 for no row.
    """
    for i in range(begin, end):
        total, n = np.float64(0.0), 0
        for k in range(neighbors.shape[1]):
            j = neighbors[i, k]
            if j >= 0:
                squared = np.float64(0.0)
                for c in range(y.shape[1]):
                    difference = np.float64(y[i, c]) - np.float64(y[j, c])
                    squared += difference * difference
                total += log(1.0 + squared / unit)
                n += 1
        out[i] = np.sqrt(exp(total / n) - 1.0) if n > 0 else np.float64(0.0)
