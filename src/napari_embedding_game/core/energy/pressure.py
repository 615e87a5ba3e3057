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

On a grid the push is known at some heights, and between them by interpolation.
Under landmarks S = S_yz^2 / S_zz, so m = 2 S_yz / S_zz, which itself changes
with h, through point k alone: its share is of the order of one point in N, and
is left out (``tests/core/test_pressure.py`` measures what that costs).  A landmark
stands for r = S_yz / S_zz points, one of which is point k where the landmark is the
nearest to it.  That one rises with k and does not push it, so it is taken off: with as
many landmarks as points, each on its point, nothing but this push would be left of
small maps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy import pair_loops, pressure_solver
from napari_embedding_game.core.energy.objective import (
    Objective,
    RepulsionSources,
    without_own,
)
from napari_embedding_game.core.energy.pair_functions import (
    ATTRACTIONS,
    KERNELS,
    PairFunction,
)
from napari_embedding_game.core.threads import run_blocks

SQUARED_HEIGHTS = np.concatenate([[0.0], 0.05 * 2.2 ** np.arange(13)])
"""u, up to 25 units off the map, at which a grid says how hard points are pushed."""


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
    by = objective.repulsion_sources(y, z)
    points = _rows(y)
    labels = np.empty(len(points), np.int32)
    heights = np.empty(len(points), np.float32)
    _write_heights(objective, points, by, labels, heights)
    if by.landmarks is not z:
        labels = nearest_landmark(y, z, objective.forces.n_jobs)
    return labels, heights


def nearest_landmark(y: Tensor, z: Tensor, n_jobs: int | None) -> NDArray[np.int32]:
    """Return the index of each point's nearest landmark (Eq. 7), (N,)."""
    points, columns = _rows(y), _columns(z)
    labels = np.empty(len(points), np.int32)
    work = len(points) * columns.shape[1]
    run_blocks(
        pair_loops.nearest_landmark, len(points), work, n_jobs, points, columns, labels
    )
    return labels


def _write_heights(
    objective: Objective,
    points: NDArray[np.floating],
    by: RepulsionSources,
    labels: NDArray[np.int32],
    heights: NDArray[np.float32],
) -> None:
    f, k = _functions_of(objective)
    law = _law(objective, by)
    edges = objective.forces.edges.arrays

    def run(loop: Callable[..., None], work: int, *arguments: Any) -> None:
        run_blocks(loop, len(points), work, objective.forces.n_jobs, *arguments)

    if by.pairs is not None:
        pairs = by.pairs.order, by.pairs.places, by.pairs.shifts
        work = 2 * len(points) * len(by.pairs.shifts)
        run(
            pressure_solver.under_partners,
            work,
            f,
            edges,
            k,
            points,
            pairs,
            law,
            heights,
        )
        return
    if by.on_grid:
        # A point's own height hardly changes the sum of so many.
        strength = law[0] / (law[1] or 1.0)
        table = objective.forces.grid.slopes_across(points, SQUARED_HEIGHTS)
        work = len(edges[1]) * len(SQUARED_HEIGHTS)
        heights_of = SQUARED_HEIGHTS, table, strength, heights
        run(pressure_solver.under_table, work, f, edges, points, *heights_of)
        return
    is_all = by.landmarks is None
    others = np.ascontiguousarray(points.T) if is_all else _columns(by.landmarks)
    weights = np.empty((0, 0), points.dtype) if by.weights is None else by.weights
    work = len(points) * others.shape[1]
    run(
        pressure_solver.under_field, work, f, edges, k, points, others, weights, is_all,
        by.own, law, labels, heights,
    )  # fmt: skip
    if by.members is not None:
        heights[by.members] = _member_pressure(objective, points, by)


def _functions_of(objective: Objective) -> tuple[PairFunction, PairFunction]:
    forces = objective.forces
    return ATTRACTIONS[forces.attraction], KERNELS[forces.kernel]


def _law(objective: Objective, by: RepulsionSources) -> tuple[float, float]:
    """Return (strength, base): see :mod:`pressure_solver`."""
    if objective.aggregate == "sum":
        return float(objective.repulsion * by.multiplicity), 0.0
    among = without_own(by.total, objective.own)
    return float(objective.repulsion), among / by.multiplicity


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
    (f, k), law = _functions_of(objective), _law(objective, by)
    times = np.ones(len(points), points.dtype)
    times[by.members] = 2
    heights = []
    for i in by.members:
        row = slice(edges.indptr[i], edges.indptr[i + 1])
        near = _squared(points[edges.indices[row]], points[i])
        far = _squared(points, points[i])
        weight = times[i]
        times[i] = 0
        pull = f, near, edges.weights[row]
        heights.append(pressure_solver.lifted_height(*pull, k, far, times, *law))
        times[i] = weight
    return heights


def _squared(
    points: NDArray[np.floating], x: NDArray[np.floating]
) -> NDArray[np.floating]:
    return np.ascontiguousarray(((points - x) ** 2).sum(axis=1))
