"""The large picture: pull landmarks' points apart as far as they are in the data.

The game's forces know only a point's neighbours: where two distant sets of points lie
on the map depends on the start.  Here all points of a landmark are moved by the same
force, so that distances between the means c_a of the landmarks' points become
proportional to the distances between their means C_a in the data.  The energy that is
added to the game's is

    mu / (2 R)  sum_ab  m_a m_b / N  (d_ab - t_ab)^2,    d_ab = |c_a - c_b|,
    t_ab = d + s (D_ab - D), from 0 to d + 3 r,          D_ab = |C_a - C_b|,

where landmark a has m_a points, and R is the width of the map.  The targets t_ab have
the mean d and the spread r of the map's distances; D is the mean distance in the data,
s the quotient of the spreads.  The targets are recomputed for each pull and have no
gradient.  The limit d + 3 r keeps a few points that are unlike all others from taking
up most of the map.  ``docs/tried.md`` has other targets.

The pull on each point is mu times a number that is about 1 where distances are
completely wrong, independent of the units of map and data.  Neighbourhoods stay, as all
points of a landmark are pulled alike.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy.objective import (
    find_nearest_landmarks,
    tensor_to_array,
)
from napari_embedding_game.core.graph.coordinates import Coordinates
from napari_embedding_game.core.graph.edge_loops import sort_by_group
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP, run_blocks

FARTHEST = 3.0
"""Largest target distance: so many spreads above the mean distance on the map."""
ASKED_EVERY, PULLED_EVERY = 20, 4
"""Iterations between two updates of the points' landmarks, and of the pull: both change
slowly."""
Groups = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Points grouped by landmark: where each landmark's points begin, and the points."""


class LargePicture:
    """The pull on the points of a game by their landmarks' distances in the data.

    ``memory_rows`` (N,): row in the game of each point of the data, or None for the
    same order.
    """

    def __init__(
        self, coordinates: Coordinates, memory_rows: NDArray[np.intp] | None
    ) -> None:
        self._source, self._memory_rows = coordinates, memory_rows
        self._n_pulled = 0
        """Number of iterations with a pull."""

    def add_pull(
        self, gradient: Tensor, points: Tensor, landmarks: Tensor, strength: float
    ) -> None:
        """Add ``strength`` times the pull to the points' ``gradient`` (N, d), in place.

        ``strength`` is mu above; ``points`` (N, d), ``landmarks`` (L, d).  The pull is
        computed anew in every fourth call, and the points' landmarks in every 20th.
        """
        if self._n_pulled % PULLED_EVERY == 0:
            positions = tensor_to_array(points)
            if self._n_pulled % ASKED_EVERY == 0:
                self._update_groups(positions, tensor_to_array(landmarks))
            means = compute_mean_rows_by_group(positions, self._groups)
            self._pull = compute_group_pull(means, self._sizes, self._data_distances)
        self._n_pulled += 1
        pull = strength * self._pull
        if gradient.device.type == "cpu":
            force = gradient.numpy()
            begins, order = self._groups
            run_blocks(
                _add_pull_to_groups, len(pull), force.size, begins, order, pull, force
            )
        else:
            self._add_pull_by_torch(gradient, pull)

    @cached_property
    def _coordinates(self) -> NDArray[np.float32]:
        """Coordinates of the data's rows in the order of the game's points, (N, p)."""
        rows, order = self._source.compute_reduced_rows(), self._memory_rows
        return rows if order is None else rows[np.argsort(order)]

    def _add_pull_by_torch(self, gradient: Tensor, pull: NDArray[np.float64]) -> None:
        """Add the ``pull`` (L, d) of each point's landmark to ``gradient`` in place."""
        of_points = torch.as_tensor(pull[self._group_of]).to(gradient.dtype)
        gradient += of_points.to(gradient.device)

    def _update_groups(
        self, positions: NDArray[np.floating], landmarks: NDArray[np.floating]
    ) -> None:
        """Group points by nearest landmark; compute the groups' distances in the data.

        Sets ``_group_of`` (N,), ``_groups``, ``_sizes`` (L,) and ``_data_distances``
        (L, L), the distances between the groups' mean coordinates.
        """
        self._group_of = find_nearest_landmarks(positions, landmarks)
        self._groups = sort_by_group(self._group_of, len(landmarks))
        self._sizes = np.diff(self._groups[0]).astype(np.float64)
        self._data_distances = compute_pairwise_distances(
            compute_mean_rows_by_group(self._coordinates, self._groups)
        )


def compute_mean_rows_by_group(
    rows: NDArray[np.floating], groups: Groups
) -> NDArray[np.float64]:
    """Return the mean row of each group, (L, p) float64; 0 for an empty group.

    ``rows`` (N, p); ``groups``: where each group begins, and the row numbers by group.
    """
    means = np.zeros((len(groups[0]) - 1, rows.shape[1]))
    begins, order = groups
    run_blocks(_write_group_means, len(means), rows.size, begins, order, rows, means)
    return means


def compute_pairwise_distances(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Euclidean distances (L, L) between positions (L, p)."""
    distances = np.empty((len(positions), len(positions)))
    work = distances.size * positions.shape[1]
    run_blocks(_write_distances, len(positions), work, positions, distances)
    return distances


def compute_group_pull(
    means: NDArray[np.float64],
    sizes: NDArray[np.float64],
    data_distances: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the gradient of the large picture per point of each group, (L, d).

    ``means`` (L, d) and ``sizes`` (L,): mean position and number of points of each
    group on the map; ``data_distances`` (L, L): between the groups in the data.  The
    factor mu is 1.  The result is 0 for one group, equal means or equal data distances.
    """
    pull = np.zeros_like(means)
    _write_group_pull(means, sizes, data_distances, np.empty_like(data_distances), pull)
    return pull


@njit(**LOOP)
def _write_group_pull(means, sizes, data_distances, map_distances, pull):
    """Write the gradient of :func:`compute_group_pull` to ``pull``, (L, d) zeros.

    The distances of the means of groups b < a are written to ``map_distances`` (L, L).
    ``pull`` stays 0 where all means or all data distances are the same.
    """
    n_pairs, data_sum, data_squares, map_sum, map_squares = 0.0, 0.0, 0.0, 0.0, 0.0
    for a in range(len(sizes)):
        for b in range(a):
            squared = 0.0
            for axis in range(means.shape[1]):
                offset = means[a, axis] - means[b, axis]
                squared += offset * offset
            map_distances[a, b] = math.sqrt(squared)
            pairs = sizes[a] * sizes[b]
            n_pairs += pairs
            data_sum += pairs * data_distances[a, b]
            data_squares += pairs * data_distances[a, b] * data_distances[a, b]
            map_sum += pairs * map_distances[a, b]
            map_squares += pairs * squared
    if map_squares == 0:
        return
    spread_in_data = data_squares / n_pairs - (data_sum / n_pairs) ** 2
    if spread_in_data <= 0:
        return
    mean_distance = map_sum / n_pairs
    spread = max(0.0, map_squares / n_pairs - mean_distance * mean_distance)
    scale = math.sqrt(spread / spread_in_data)
    nearest = mean_distance - scale * data_sum / n_pairs
    farthest = mean_distance + FARTHEST * math.sqrt(spread)
    unit = 1 / math.sqrt(2 * map_squares)
    for a in range(len(sizes)):
        for b in range(a):
            if map_distances[a, b] > 0:
                wanted = min(max(0.0, nearest + scale * data_distances[a, b]), farthest)
                share = unit * (1 - wanted / map_distances[a, b])
                for axis in range(means.shape[1]):
                    force = share * (means[a, axis] - means[b, axis])
                    pull[a, axis] += sizes[b] * force
                    pull[b, axis] -= sizes[a] * force


@njit(**LOOP)
def _write_group_means(begin, end, begins, order, rows, means):
    """Write the mean rows of groups begin to end to ``means`` (L, p), zeros before.

    The rows of group g are ``order[begins[g] : begins[g + 1]]``; an empty group keeps
    0.
    """
    for group in range(begin, end):
        for at in range(begins[group], begins[group + 1]):
            for column in range(rows.shape[1]):
                means[group, column] += rows[order[at], column]
        size = max(1, begins[group + 1] - begins[group])
        for column in range(rows.shape[1]):
            means[group, column] /= size


@njit(**LOOP)
def _write_distances(begin, end, positions, distances):
    """Write the distances of positions begin to end to all earlier ones.

    ``positions`` (L, p); ``distances`` (L, L) becomes symmetric, with a diagonal of 0.
    """
    for a in range(begin, end):
        distances[a, a] = 0.0
        for b in range(a):
            squared = 0.0
            for column in range(positions.shape[1]):
                difference = positions[a, column] - positions[b, column]
                squared += difference * difference
            distances[a, b] = distances[b, a] = math.sqrt(squared)


@njit(**LOOP)
def _add_pull_to_groups(begin, end, begins, order, pull, gradient):
    """Add the pull of groups begin to end to their points' rows of ``gradient`` (N, d).

    ``pull`` (L, d); the points of group g are ``order[begins[g] : begins[g + 1]]``.
    """
    for group in range(begin, end):
        for at in range(begins[group], begins[group + 1]):
            for axis in range(pull.shape[1]):
                gradient[order[at], axis] += pull[group, axis]
