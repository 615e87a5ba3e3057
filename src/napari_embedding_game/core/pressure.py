"""Which points are stuck in a bad place, and how badly (paper 4, section 3).

Give one point k a coordinate h of its own, across the map, with all others at
0, and let the energy fall as h rises from 0: where it stops is the pressure of
k.  With u = h^2 and a repulsion of ``strength * sum_x q``,

    dE/du = sum_edges at k  w / (1 + d_kj^2 + u)
            - strength  sum_x 1 / (1 + d_kx^2 + u)^2

which is negative at u = 0 for a pressured point; the pressure is its root.  A
point held in place by a near neighbour is not pressured, even where a lower
energy lies beyond.

For the game the strength is 2 lambda S_yz / S_zz.  S_yz itself changes with h,
through point k alone: its share is of the order of one point in N, and is left
out (``tests/core/test_pressure.py`` measures what that costs).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core import _kernels
from napari_embedding_game.core.objective import Objective, Repellers


def pressure(
    objective: Objective, y: Tensor, z: Tensor
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return every point's nearest landmark (Eq. 7) and its pressure.

    Returns
    -------
    labels : (N,) int32
        Index of the nearest landmark.
    pressure : (N,) float32
        In units of the map, 0 for points that are not pressured.
    """
    by = objective.repellers(y, z)
    edges = objective.forces.edges
    points = _rows(y)
    landmarks = np.ascontiguousarray(_rows(z).T)
    labels = np.empty(len(points), np.int32)
    heights = np.empty(len(points), np.float32)
    own = (edges.indptr, edges.indices, edges.weights, points)
    if by.pairs is not None:
        far = (by.pairs.indptr, by.pairs.indices, by.pairs.weights)
        _kernels.pair_pressure(*own, *far, by.strength, heights)
        _kernels.nearest_landmark(points, landmarks, labels)
    else:
        _kernels.landmark_pressure(*own, landmarks, by.strength, labels, heights)
    if by.members is not None:
        heights[by.members] = _member_pressure(objective, points, by)
    return labels, heights


def _rows(tensor: Tensor) -> NDArray[np.floating]:
    return np.ascontiguousarray(tensor.detach().cpu().numpy())


def _member_pressure(
    objective: Objective, points: NDArray[np.floating], by: Repellers
) -> list[float]:
    """Return the pressure of points that are landmarks.

    Such a point meets every other point twice over where that one is a
    landmark too, and meets itself not at all: its distance to itself stays 0.
    """
    assert by.members is not None
    edges = objective.forces.edges
    strengths = np.full(len(points), by.strength, points.dtype)
    strengths[by.members] *= 2
    heights = []
    for k in by.members:
        row = slice(edges.indptr[k], edges.indptr[k + 1])
        near = _squared(points[edges.indices[row]], points[k])
        far = _squared(points, points[k])
        weight = strengths[k]
        strengths[k] = 0
        heights.append(_kernels.lift(near, edges.weights[row], far, strengths))
        strengths[k] = weight
    return heights


def _squared(
    points: NDArray[np.floating], x: NDArray[np.floating]
) -> NDArray[np.floating]:
    return np.ascontiguousarray(((points - x) ** 2).sum(axis=1))
