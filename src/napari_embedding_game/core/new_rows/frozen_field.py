"""What pushes a new row on a finished map: a repulsion that no longer changes.

In the fit a point at x adds lambda R(S) to the energy, see :mod:`objective`.  One more
point changes S by about ``c sum_j k(|x - x_j|^2)``, over the landmarks or over the
points that are there, and the frozen field is that sum with

    c = lambda R'(S) m

where m is what S gains for each unit of the sum: 2 r = 2 S_yz / S_zz for landmarks
(Eq. 3), N / L for sampled ones (Eq. 9), and 2 for points, which stand at both ends of
their pairs.  The fitted points and landmarks stay where they are.

Of many points the sum is read from a grid (:mod:`mesh`) where one shows the kernel,
and else taken over some of them, drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.energy import fourier, mesh_loops, pair_loops
from napari_embedding_game.core.energy.mesh import AXES, Mesh
from napari_embedding_game.core.energy.methods import Approximation, Method
from napari_embedding_game.core.energy.objective import own_sum, without_own
from napari_embedding_game.core.energy.pair_functions import KERNELS, PairFunction

MOST_SOURCES = 2_000
"""Points whose sum is taken one by one; of more, without a grid, so many are drawn."""
MARGIN = 4.0
"""Of a grid beyond the points, on each side, in units of the map."""


@dataclass(frozen=True, eq=False)
class FrozenField:
    """A repulsive energy at each place of a map, in the method's unit.

    Attributes
    ----------
    kernel : PairFunction
    strength : float
        c.
    sources : (d, M) float32
        Places of what pushes; M is 0 where a grid has the sum.
    potential : (rows, layers, columns) float64
        The sum at the nodes of a grid; empty where there are sources.
    low, high : (d,) float64
        Ends of the map: no new row is placed beyond them.
    spacing : float
        Between the nodes, of which the first stands at ``low``.
    """

    kernel: PairFunction
    strength: float
    sources: NDArray[np.float32]
    potential: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    spacing: float

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All but the kernel, as the compiled loops take them."""
        return (
            self.strength,
            self.sources,
            self.potential,
            self.low,
            self.high,
            self.spacing,
        )


def frozen_field(
    method: Method,
    approximation: Approximation,
    repulsion: float,
    points: NDArray[np.float32],
    landmarks: NDArray[np.float32],
    random_state: int = 0,
) -> FrozenField:
    """Return the field of a finished map.

    Parameters
    ----------
    method : Method
        One with a kernel.
    approximation : str
        How its repulsion was found in the fit.
    repulsion : float
        The lambda of the energy.
    points : (N, d) array
        d is 2 or 3.
    landmarks : (L, d) array
    random_state : int
        Seed of the points that stand for all, where some do.
    """
    kernel = KERNELS[method.kernel]
    places = np.ascontiguousarray(points, np.float32)
    low, high = places.min(axis=0), places.max(axis=0)
    margin = MARGIN * (low < high)  # none across a line
    low, high = low - margin, high + margin
    potential, spacing = np.empty((0, 0, 0)), 1.0
    sources, total = np.empty((places.shape[1], 0), np.float32), 1.0
    if approximation == "landmarks":
        ratio, total = _bound(kernel, places, landmarks)
        gain, sources = 2 * ratio, landmarks.T
        total = without_own(total, own_sum(kernel, len(places)))
    elif approximation == "sampled_landmarks":
        gain, sources = len(places) / len(landmarks), landmarks.T
        if method.aggregate == "log":
            total = gain * _sum(kernel, places, landmarks)
    elif len(places) > MOST_SOURCES and "mesh" in method.approximations:
        gain = 2.0
        potential, spacing = _on_grid(kernel, places, low, high)
        if method.aggregate == "log":
            total = Mesh(kernel, 1)(places)[0]
    else:
        n = min(len(places), MOST_SOURCES)
        rng = np.random.default_rng(random_state)
        drawn = places[np.sort(rng.choice(len(places), n, replace=False))]
        gain, sources = 2 * len(places) / n, drawn.T
        if method.aggregate == "log":
            own = n * _sum(kernel, places[:1], places[:1])
            total = len(places) / n * (_sum(kernel, places, drawn) - own)
    slope = 1 / total if method.aggregate == "log" and total > 0 else 1.0
    return FrozenField(
        kernel,
        repulsion * gain * slope,
        np.ascontiguousarray(sources, np.float32),
        potential,
        low.astype(np.float64),
        high.astype(np.float64),
        spacing,
    )


def _sum(kernel: PairFunction, y: NDArray[np.float32], z: NDArray[np.float32]) -> float:
    """Return the sum of k over all pairs of y and z."""
    columns = np.ascontiguousarray(z.T)
    n_chunks = pair_loops.n_chunks(len(y))
    pull = np.zeros((n_chunks, *columns.shape), np.float32)
    sums = np.empty(n_chunks)
    pair_loops.repel(
        0,
        n_chunks,
        kernel,
        np.ascontiguousarray(y),
        columns,
        np.empty_like(y),
        pull,
        sums,
    )
    return float(sums.sum())


def _bound(
    kernel: PairFunction, points: NDArray[np.float32], landmarks: NDArray[np.float32]
) -> tuple[float, float]:
    """Return S_yz / S_zz and the bound S_yz^2 / S_zz (Eq. 3)."""
    s_yz = _sum(kernel, points, landmarks)
    s_zz = _sum(kernel, landmarks, landmarks)
    return s_yz / s_zz, s_yz**2 / s_zz


def _on_grid(
    kernel: PairFunction,
    points: NDArray[np.float32],
    low: NDArray[np.float32],
    high: NDArray[np.float32],
) -> tuple[NDArray[np.float64], float]:
    """Return the sum of k over the points at the nodes of a grid, and its spacing."""
    n, d = points.shape
    double = np.dtype(np.float64)
    grid = Mesh(kernel, 1).grid_for((high - low).astype(float), double)
    x = np.zeros((n, 3))
    x[:, AXES[:d]] = (points.astype(float) - low) / grid.spacing
    starts, order = np.empty(grid.sides[0] + 1, np.int64), np.empty(n, np.int64)
    mesh_loops.sort_by_row(x, starts, order)
    mass = np.zeros(grid.shape)
    n_bands = -(-grid.sides[0] // mesh_loops.BAND)
    for parity in (0, 1):
        n_of_kind = (n_bands - parity + 1) // 2
        mesh_loops.spread(0, n_of_kind, parity, x, order, starts, mass)
    potential = fourier.backward(fourier.forward(mass) * grid.transfer, grid.shape[2])
    inside = tuple(slice(side) for side in grid.sides)
    return np.ascontiguousarray(potential[inside]), grid.spacing
