"""Start layouts of the points.

``spectral`` is the paper's start: a Laplacian eigenmap by power iterations, of every
component of the graph at once, set side by side, each dimension of unit variance.  Of
many points, groups of neighbours are placed first: ``_BETWEEN_GROUPS``.
Other starts are entries of :data:`choices.STARTS`.
Landmarks begin on points drawn at random: ``game.Game._set_landmarks``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from napari_embedding_game.core.graph.choices import STARTS
from napari_embedding_game.core.graph.edge_loops import group_graph
from napari_embedding_game.core.graph.edges import Edges, sum_rows
from napari_embedding_game.core.graph.memory_order import order_groups
from napari_embedding_game.core.graph.principal_components import (
    START_POWERS,
    directions,
    pad_columns,
)
from napari_embedding_game.core.graph.rows import mean_rows_of_groups
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import CHECKED, run_blocks

POWER_ITERATIONS = 100
"""As in the paper."""
_BETWEEN_GROUPS, _SMOOTHING = 30, 10
"""Iterations between groups, each of which goes as far as some three between points,
and between points from there on.  Of 1,300,000 rows 100 and 10 kept 0.653 of the
neighbours, these 0.668 (means of 4 seeds; ``docs/tried.md`` has other numbers)."""
_MAX_AT_ONCE = 20_000
"""Points above which groups of them are placed first."""
_ORTHONORMALIZE_EVERY = 5
"""Iterations in between change no span, and cost half of the time with it."""
_JITTER = 1e-3
"""Width of the noise that parts points which start on the same spot."""
_NO_WIDTH = 1e-12
"""Width, relative to the largest value, below which there is only rounding."""


def start_layout(
    edges: Edges,
    X: Any,
    n_components: int = 2,
    init: str = "spectral",
    random_state: int = 0,
    n_neighbors: int = 15,
) -> NDArray[np.float32]:
    """Return the start layout, (N, d) float32, every dimension of unit variance.

    "spectral", "random" or one of ``choices.STARTS``.  ``X`` (N, D): not of "random";
    ``n_neighbors``: by classical starts.  The same seed gives the same layout.
    """
    rng = np.random.default_rng(random_state)
    shape = edges.n_points, n_components
    if init == "spectral":
        layout = _spectral(edges, X, n_components, rng)
    elif init == "random":
        layout = _bells(rng, shape)
    else:
        few = min(n_neighbors, X.shape[0] - 1)
        computed = STARTS[init].compute(X, n_components, few, random_state)
        layout = computed.astype(np.float32).astype(np.float64)
    layout = _unit_variance(layout)
    layout += _JITTER * _bells(rng, shape)
    return _unit_variance(layout).astype(np.float32)


def _bells(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return about normal numbers, by sums alone: the same bits on any system."""
    total = np.zeros(shape)
    for _ in range(12):
        total += rng.random(shape)
    return total - 6


def _unit_variance(layout: NDArray[Any]) -> NDArray[np.float64]:
    least = _NO_WIDTH * np.abs(layout).max()
    layout = layout - layout.mean(axis=0)
    spread = layout.std(axis=0)
    scaled = np.zeros_like(layout)
    np.divide(layout, spread, out=scaled, where=spread > least)
    return scaled


def _spectral(
    edges: Edges, X: Any, n_components: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Iterate (y + D^-1 W y) / 2, in every component at once.

    The largest eigenvalues are then those of the smoothest columns.  Many points are
    placed on their groups first, and smoothed in an order in which groups lie together.
    """
    if len(edges.weights) and edges.weights.min() < 0:
        edges = replace(edges, weights=np.maximum(edges.weights, 0))
    if edges.n_points <= _MAX_AT_ONCE:
        n_parts, part = connected_components(edges.matrix(), directed=False)
        start = _even(rng, (edges.n_points, n_components))
        layout = _iterated(POWER_ITERATIONS, start, edges.arrays, part)
    else:
        group, n_groups = _groups(*edges.arrays)
        between = _group_edges(edges, group, n_groups)
        # Each group is connected.
        n_parts, part_of = connected_components(between.matrix(), directed=False)
        start = _even(rng, (n_groups, n_components))
        placed = _iterated(_BETWEEN_GROUPS, start, between.arrays, part_of)
        order = order_groups(placed, group)
        ordered, part, layout = edges.in_order(order), part_of[group], placed[group]
        smoothed = _iterated(_SMOOTHING, layout[order], ordered.arrays, part[order])
        layout[order] = smoothed
        del ordered  # as large as the edges
    found = layout.astype(np.float64)
    if n_parts > 1:
        found = side_by_side(found, part, n_parts, X, n_components)
    return found


def _even(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return evenly drawn numbers between -1/2 and 1/2."""
    return (rng.random(shape) - 0.5).astype(np.float32)


def _iterated(
    n_iterations: int, layout: NDArray[np.float32], graph: Any, part: NDArray[np.int32]
) -> NDArray[np.float32]:
    degree, moved = sum_rows(graph[0], graph[2]), np.empty_like(layout)
    work = len(graph[1]) * layout.shape[1]
    for iteration in range(1, n_iterations + 1):
        run_blocks(_smooth, len(part), work, *graph, degree, layout, moved)
        layout, moved = moved, layout
        if iteration % _ORTHONORMALIZE_EVERY == 0:
            _orthonormalize(layout, degree, part)
    return layout


def _orthonormalize(
    layout: NDArray[np.float32], degree: NDArray[np.float64], part: NDArray[np.int32]
) -> None:
    """Part each column from a constant and from those before it, in every component."""

    def product(a: Any, b: Any) -> NDArray[np.float64]:
        return np.asarray(np.bincount(part, degree * a * b), np.float64)

    size = product(1, 1)
    for k in range(layout.shape[1]):
        column = layout[:, k].astype(np.float64)
        column -= (product(column, 1) / np.maximum(size, 1e-300))[part]
        for earlier in range(k):
            other = layout[:, earlier].astype(np.float64)
            share = product(column, other) / np.maximum(product(other, other), 1e-300)
            column -= share[part] * other
        scale = np.sqrt(product(column, column) / np.maximum(size, 1e-300))
        layout[:, k] = column / np.where(scale > 1e-12, scale, np.inf)[part]


@njit(**CHECKED)
def _smooth(begin, end, indptr, indices, weights, degree, layout, moved):
    """Move some points (N, d) half of the way to the mean of their neighbours."""
    half, zero = np.float32(0.5), np.float32(0)
    for i in range(begin, end):
        share = np.float32(0.5 / degree[i]) if degree[i] > 0 else zero
        for c in range(layout.shape[1]):
            total = zero
            for at in range(indptr[i], indptr[i + 1]):
                total += np.float32(weights[at]) * layout[indices[at], c]
            moved[i, c] = half * layout[i, c] + share * total


@njit(**CHECKED)
def _groups(indptr, indices, weights):
    """Return a group of neighbours for each point (N,), and how many there are.

    A point whose neighbours have no group yet forms one with them all; the others join
    that of the neighbour with the heaviest edge (Vanek, Mandel and Brezina, 1996).
    """
    n, n_groups = len(indptr) - 1, 0
    group = np.full(n, -1, np.int32)
    for i in range(n):
        is_free = group[i] < 0
        for at in range(indptr[i], indptr[i + 1]):
            is_free = is_free and group[indices[at]] < 0
        if is_free:
            group[i] = n_groups
            for at in range(indptr[i], indptr[i + 1]):
                group[indices[at]] = n_groups
            n_groups += 1
    joined = group.copy()
    for i in range(n):
        most = -1.0
        for at in range(indptr[i], indptr[i + 1]):
            j = indices[at]
            if group[i] < 0 and group[j] >= 0 and weights[at] > most:
                most, joined[i] = weights[at], group[j]
    return joined, n_groups


def _group_edges(edges: Edges, group: NDArray[np.int32], n_groups: int) -> Edges:
    """Return the edges between groups, those inside of one among them."""
    indptr, indices, weights = group_graph(*edges.arrays, group, n_groups)
    rows = indptr.view(np.uint32), indices.view(np.uint32), weights.astype(np.float32)
    return Edges(*rows)


def side_by_side(
    layout: NDArray[np.float64],
    part: NDArray[Any],
    n_parts: int,
    X: Any,
    n_components: int,
) -> NDArray[np.float64]:
    """Arrange the components, each on an area in proportion to its points.

    Their positions are the principal components of their mean inputs, so that similar
    components start next to each other.
    """
    size = np.bincount(part, minlength=n_parts)
    centred = mean_rows_of_groups(X, part, n_parts)
    largest = np.abs(centred).max()
    centred -= np.average(centred, axis=0, weights=size)
    width = np.abs(centred).max()
    centred /= width if width > _NO_WIDTH * largest else np.inf
    weighted = (centred * np.sqrt(size / size.max())[:, None]).astype(np.float32)
    count = min(n_components, *centred.shape)
    axes = directions(weighted, count, 0, START_POWERS)
    along = np.stack([(centred * axis).sum(axis=1) for axis in axes], axis=1)
    positions = pad_columns(along, n_components)
    width = np.sqrt(np.average(positions**2, weights=size, axis=0).max())
    positions *= 2.0 / max(width, np.finfo(float).tiny)
    radius = np.sqrt(size / size.sum())
    scale = np.sqrt(np.bincount(part, (layout**2).sum(axis=1), n_parts) / size)
    scale = np.where(scale > 1e-12, scale, 1.0)
    placed: NDArray[np.float64] = (
        positions[part] + layout * (radius / scale)[part, None]
    )
    return placed
