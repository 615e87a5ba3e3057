"""Which points are pushed off the map, and how far (paper 4, section 3).

Give one point k a coordinate h of its own, across the map, with all others at
0, and let the energy fall as h rises from 0: where it stops is the pressure of
k.  With u = h^2, attraction f, kernel k and aggregate R of :mod:`objective`,

    dE/du = sum_edges at k  w f'(d_kj^2 + u)
            + lambda R'(S) m  sum_x v_x k'(d_kx^2 + u)

over all x that repel k, m being what S gains for a unit of that sum.  It is
negative at u = 0 for a pressured point; the pressure is its root.  A point held
in place by a near neighbour is not pressured, even where a lower energy lies
beyond.  For EE the root is paper 4's closed form, u = log(repulsion / attraction).

Under landmarks S = S_yz^2 / S_zz, so m = 2 S_yz / S_zz, which itself changes
with h, through point k alone: its share is of the order of one point in N, and
is left out (``tests/core/test_pressure.py`` measures what that costs).  A landmark
stands for r = S_yz / S_zz points, one of which is point k where the landmark is the
nearest to it.  That one rises with k and does not push it, so it is taken off: with as
many landmarks as points, each on its point, nothing but this push would be left of
small maps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy import game_kernels, pressure_root
from napari_embedding_game.core.energy.objective import Objective, RepulsionSources
from napari_embedding_game.core.energy.pair_functions import ATTRACTIONS, KERNELS, SHAPE
from napari_embedding_game.core.energy.pair_sums import FusedForces


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
    points = _rows(y)
    labels = np.empty(len(points), np.int32)
    heights = np.empty(len(points), np.float32)
    by = objective.repulsion_sources(y, z)
    if _is_default(objective, by):
        _default_pressure(objective, points, by, labels, heights)
    else:
        game_kernels.nearest_landmark(points, _columns(z), labels)
        _any_pressure(objective, points, by, heights)
    return labels, heights


def _is_default(objective: Objective, by: RepulsionSources) -> bool:
    """Whether the quicker loop serves: the game's forces, under landmarks."""
    fused = isinstance(objective.forces, FusedForces)
    under_landmarks = by.landmarks is not None and by.members is None
    return fused and under_landmarks and objective.aggregate == "sum"


def _default_pressure(
    objective: Objective,
    points: NDArray[np.floating],
    by: RepulsionSources,
    labels: NDArray[np.int32],
    heights: NDArray[np.float32],
) -> None:
    assert by.landmarks is not None
    strength = objective.repulsion * by.multiplicity
    edges = objective.forces.edges
    rows = (edges.indptr, edges.indices, edges.weights)
    game_kernels.landmark_pressure(
        *rows, points, _columns(by.landmarks), strength, by.own, labels, heights
    )


def _any_pressure(
    objective: Objective,
    points: NDArray[np.floating],
    by: RepulsionSources,
    heights: NDArray[np.float32],
) -> None:
    edges = objective.forces.edges
    rows = (*_profiles_of(objective), edges.indptr, edges.indices, edges.weights)
    law = _law(objective, by)
    if by.pairs is not None:
        far = (by.pairs.indptr, by.pairs.indices, by.pairs.weights)
        pressure_root.pairs_pressure(*rows, points, *far, *law, heights)
        return
    is_all = by.landmarks is None
    others = np.ascontiguousarray(points.T) if is_all else _columns(by.landmarks)
    weights = np.empty((0, 0), points.dtype) if by.weights is None else by.weights
    pressure_root.field_pressure(
        *rows, points, others, weights, is_all, by.own, *law, heights
    )
    if by.members is not None:
        heights[by.members] = _member_pressure(objective, points, by)


def _profiles_of(objective: Objective) -> tuple[tuple[int, int], NDArray[np.floating]]:
    forces = objective.forces
    numbers = ATTRACTIONS[forces.attraction].number, KERNELS[forces.kernel].number
    return numbers, np.array(SHAPE, forces.edges.weights.dtype)


def _law(objective: Objective, by: RepulsionSources) -> tuple[float, float]:
    """Return (strength, base): see :mod:`pressure_root`."""
    if objective.aggregate == "sum":
        return objective.repulsion * by.multiplicity, 0.0
    return objective.repulsion, by.total / by.multiplicity


def _rows(tensor: Tensor) -> NDArray[np.floating]:
    return np.ascontiguousarray(tensor.detach().cpu().numpy())


def _columns(tensor: Any) -> NDArray[np.floating]:
    return np.ascontiguousarray(_rows(tensor).T)


def _member_pressure(
    objective: Objective, points: NDArray[np.floating], by: RepulsionSources
) -> list[float]:
    """Return the pressure of points that are landmarks.

    Such a point meets every other point twice over where that one is a
    landmark too, and meets itself not at all: its distance to itself stays 0.
    """
    assert by.members is not None
    edges = objective.forces.edges
    profiles, law = _profiles_of(objective), _law(objective, by)
    times = np.ones(len(points), points.dtype)
    times[by.members] = 2
    heights = []
    for k in by.members:
        row = slice(edges.indptr[k], edges.indptr[k + 1])
        near = _squared(points[edges.indices[row]], points[k])
        far = _squared(points, points[k])
        weight = times[k]
        times[k] = 0
        heights.append(
            pressure_root.lift(*profiles, near, edges.weights[row], far, times, *law)
        )
        times[k] = weight
    return heights


def _squared(
    points: NDArray[np.floating], x: NDArray[np.floating]
) -> NDArray[np.floating]:
    return np.ascontiguousarray(((points - x) ** 2).sum(axis=1))
