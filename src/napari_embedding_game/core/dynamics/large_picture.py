"""The large picture: landmarks carry how far apart the data are.

Beyond a point's neighbours the game knows nothing of the data: where two groups lie on
its map is left to the start.  Here all points of a landmark are moved as one, so that
the middles c_a of the landmarks' points lie as far apart, beside one another, as their
means C_a in the data do.  What is lowered besides the game's energy is

    mu / (2 R)  sum_ab  m_a m_b / N  (d_ab - t_ab)^2,    d_ab = |c_a - c_b|,
    t_ab = d + s (D_ab - D), from 0 to d + 3 r,          D_ab = |C_a - C_b|,

with the m_a points of a landmark and the width of the map R.  The targets t_ab have the
mean d and the spread r of the map's own distances; D is the mean distance in the data,
s the quotient of the spreads.  They are of this moment, and have no gradient.  Few
cells that are like no others, which would take most of the map for themselves, are
drawn far away, but no farther than d + 3 r.  ``docs/tried.md`` has other targets.

The pull on each point is mu times a number that is about 1 where the picture is wrong
altogether, whatever the units of map and data.  Neighbourhoods stay, as all points of a
landmark feel the same.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy.objective import as_array, find_nearest_landmarks
from napari_embedding_game.core.graph.coordinates import Coordinates
from napari_embedding_game.core.graph.edge_loops import sort_by_group
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP, run_blocks

FARTHEST = 3.0
"""Spreads above the mean distance on the map, beyond which no group is pulled."""
ASKED_EVERY, PULLED_EVERY = 20, 4
"""Iterations after which points are asked for their landmarks anew, and for which a
pull is held: both change slowly."""
Groups = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Compressed rows: where each group of points begins, and its points."""


class LargePicture:
    """What the distances between landmarks in the data pull at the points of a game.

    ``memory_rows`` (N,): row of each point of the data among the points, if they lie in
    another order.
    """

    def __init__(
        self, coordinates: Coordinates, memory_rows: NDArray[np.intp] | None
    ) -> None:
        self._source, self._memory_rows = coordinates, memory_rows
        self._n_pulled = 0
        """Iterations with a pull."""

    def add_pull(self, gradient: Tensor, y: Tensor, z: Tensor, strength: float) -> None:
        """Add the pull times ``strength``, the mu above, to the points' gradient.

        ``y`` (N, d) points, ``z`` (L, d) landmarks; ``gradient`` (N, d) is descended.
        """
        if self._n_pulled % PULLED_EVERY == 0:
            positions = as_array(y)
            if self._n_pulled % ASKED_EVERY == 0:
                self._find_groups(positions, as_array(z))
            middles = mean_rows(positions, self._groups)
            self._pull = pull_between(middles, self._sizes, self._in_data)
        self._n_pulled += 1
        pull = strength * self._pull
        if gradient.device.type == "cpu":
            force = gradient.numpy()
            work = len(pull), force.size
            run_blocks(_add_to_groups, *work, *self._groups, pull, force)
        else:
            self._add_by_torch(gradient, pull)

    @cached_property
    def _coordinates(self) -> NDArray[np.float32]:
        """The rows of the data in the order of the points, (N, p)."""
        rows, order = self._source.compute_reduced_rows(), self._memory_rows
        return rows if order is None else rows[np.argsort(order)]

    def _add_by_torch(self, gradient: Tensor, pull: NDArray[np.float64]) -> None:
        of_points = torch.as_tensor(pull[self._group_of]).to(gradient.dtype)
        gradient += of_points.to(gradient.device)

    def _find_groups(
        self, positions: NDArray[np.floating], landmarks: NDArray[np.floating]
    ) -> None:
        """Ask points for their landmarks, and the data for the distances of these."""
        self._group_of = find_nearest_landmarks(positions, landmarks)
        self._groups = sort_by_group(self._group_of, len(landmarks))
        self._sizes = np.diff(self._groups[0]).astype(np.float64)
        self._in_data = distances_between(mean_rows(self._coordinates, self._groups))


def mean_rows(rows: NDArray[np.floating], groups: Groups) -> NDArray[np.float64]:
    """Return the mean of the rows (N, p) of each group, (L, p); 0 of no rows."""
    means = np.zeros((len(groups[0]) - 1, rows.shape[1]))
    run_blocks(_fill_means, len(means), rows.size, *groups, rows, means)
    return means


def distances_between(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances (L, L) between positions (L, p)."""
    distances = np.empty((len(positions), len(positions)))
    work = len(positions), distances.size * positions.shape[1]
    run_blocks(_fill_distances, *work, positions, distances)
    return distances


def pull_between(
    middles: NDArray[np.float64],
    sizes: NDArray[np.float64],
    in_data: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the gradient, for mu = 1, in each point of each group, (L, d).

    ``middles`` (L, d) and ``sizes`` (L,) of the groups, their distances (L, L)
    ``in_data``.  0 where one group, or all at one place, are no picture.
    """
    pull = np.zeros_like(middles)
    _fill_pull(middles, sizes, in_data, np.empty_like(in_data), pull)
    return pull


@njit(**LOOP)
def _fill_pull(middles, sizes, in_data, on_map, pull):
    """Fill ``pull`` (L, d), and ``on_map`` with the distances of pairs b < a."""
    n_pairs, far, far_squares, apart, apart_squares = 0.0, 0.0, 0.0, 0.0, 0.0
    for a in range(len(sizes)):
        for b in range(a):
            squared = 0.0
            for axis in range(middles.shape[1]):
                offset = middles[a, axis] - middles[b, axis]
                squared += offset * offset
            on_map[a, b] = math.sqrt(squared)
            pairs = sizes[a] * sizes[b]
            n_pairs += pairs
            far += pairs * in_data[a, b]
            far_squares += pairs * in_data[a, b] * in_data[a, b]
            apart += pairs * on_map[a, b]
            apart_squares += pairs * squared
    if apart_squares == 0:
        return
    spread_in_data = far_squares / n_pairs - (far / n_pairs) ** 2
    if spread_in_data <= 0:
        return
    mean = apart / n_pairs
    spread = max(0.0, apart_squares / n_pairs - mean * mean)
    scale = math.sqrt(spread / spread_in_data)
    nearest = mean - scale * far / n_pairs
    farthest = mean + FARTHEST * math.sqrt(spread)
    unit = 1 / math.sqrt(2 * apart_squares)
    for a in range(len(sizes)):
        for b in range(a):
            if on_map[a, b] > 0:
                wanted = min(max(0.0, nearest + scale * in_data[a, b]), farthest)
                share = unit * (1 - wanted / on_map[a, b])
                for axis in range(middles.shape[1]):
                    force = share * (middles[a, axis] - middles[b, axis])
                    pull[a, axis] += sizes[b] * force
                    pull[b, axis] -= sizes[a] * force


@njit(**LOOP)
def _fill_means(begin, end, begins, order, rows, means):
    for group in range(begin, end):
        for at in range(begins[group], begins[group + 1]):
            for column in range(rows.shape[1]):
                means[group, column] += rows[order[at], column]
        size = max(1, begins[group + 1] - begins[group])
        for column in range(rows.shape[1]):
            means[group, column] /= size


@njit(**LOOP)
def _fill_distances(begin, end, positions, distances):
    for a in range(begin, end):
        distances[a, a] = 0.0
        for b in range(a):
            squared = 0.0
            for column in range(positions.shape[1]):
                difference = positions[a, column] - positions[b, column]
                squared += difference * difference
            distances[a, b] = distances[b, a] = math.sqrt(squared)


@njit(**LOOP)
def _add_to_groups(begin, end, begins, order, pull, gradient):
    for group in range(begin, end):
        for at in range(begins[group], begins[group + 1]):
            for axis in range(pull.shape[1]):
                gradient[order[at], axis] += pull[group, axis]
