"""Compute start layouts of the points.

``spectral`` is the paper's start: a Laplacian eigenmap by power iterations, for all
components of the graph at once, with the components arranged side by side and each
dimension scaled to unit variance.  For many points, groups of neighbours are placed
first (``_BETWEEN_GROUPS``).  Other starts are entries of :data:`choices.STARTS`.
Landmarks start on sampled points: ``game.Game._set_landmark_count``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from napari_embedding_game.core.graph.choices import STARTS
from napari_embedding_game.core.graph.edge_loops import build_group_graph
from napari_embedding_game.core.graph.edges import Edges, sum_absolute_weights
from napari_embedding_game.core.graph.memory_order import order_points_by_group
from napari_embedding_game.core.graph.principal_components import (
    START_POWERS,
    compute_principal_directions,
    pad_columns,
)
from napari_embedding_game.core.graph.rows import compute_mean_rows_of_groups
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import CHECKED, run_blocks

POWER_ITERATIONS = 100
"""Number of power iterations, as in the paper."""
_BETWEEN_GROUPS, _SMOOTHING = 30, 10
"""Iterations between groups, each worth about three between points, and then iterations
between points.  For 1,300,000 rows 100 and 10 kept 0.653 of the neighbours, 30 and 10
0.668 (means of 4 seeds; ``docs/tried.md`` has other numbers)."""
_MAX_AT_ONCE = 20_000
"""Number of points above which groups of neighbours are placed first."""
_ORTHONORMALIZE_EVERY = 5
"""Iterations do not change the span, so that orthonormalising less often costs half of
the time."""
_JITTER = 1e-3
"""Width of the noise that separates points with the same start."""
_NO_WIDTH = 1e-12
"""Width, relative to the largest value, below which a dimension is rounding error."""


def make_start_layout(
    edges: Edges,
    X: Any,
    n_components: int = 2,
    init: str = "spectral",
    random_state: int = 0,
    n_neighbors: int = 15,
) -> NDArray[np.float32]:
    """Return the start layout, (N, d) float32, each dimension of unit variance.

    ``init``: "spectral", "random" or a name of ``choices.STARTS``; ``X`` (N, D): rows,
    unused by "random"; ``n_neighbors``: for starts of ``choices.STARTS``.  Noise of
    1e-3 separates points with the same start.  The same seed gives the same layout.
    """
    rng = np.random.default_rng(random_state)
    shape = edges.n_points, n_components
    if init == "spectral":
        layout = _compute_spectral_layout(edges, X, n_components, rng)
    elif init == "random":
        layout = _sample_normal(rng, shape)
    else:
        few = min(n_neighbors, X.shape[0] - 1)
        computed = STARTS[init].compute(X, n_components, few, random_state)
        layout = computed.astype(np.float32).astype(np.float64)
    layout = _scale_to_unit_variance(layout)
    layout += _JITTER * _sample_normal(rng, shape)
    return _scale_to_unit_variance(layout).astype(np.float32)


def _sample_normal(
    rng: np.random.Generator, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Return approximately normal numbers of variance 1: sums of 12 uniform ones.

    Sums have the same bits on any system.
    """
    total = np.zeros(shape)
    for _ in range(12):
        total += rng.random(shape)
    return total - 6


def _scale_to_unit_variance(layout: NDArray[Any]) -> NDArray[np.float64]:
    """Return the layout (N, d) centred, each dimension of variance 1.

    A dimension that is constant, but for rounding, becomes 0.
    """
    least = _NO_WIDTH * np.abs(layout).max()
    layout = layout - layout.mean(axis=0)
    spread = layout.std(axis=0)
    scaled = np.zeros_like(layout)
    np.divide(layout, spread, out=scaled, where=spread > least)
    return scaled


def _compute_spectral_layout(
    edges: Edges, X: Any, n_components: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the Laplacian eigenmap by iterating (y + D^-1 W y) / 2, (N, n_components).

    1. Weights below 0 become 0.
    2. At most 20,000 points are iterated at once; all components of the graph in the
       same loop.
    3. Of more points groups of neighbours are iterated first.  Points start on their
       group and are smoothed in an order in which groups lie together in memory.
    4. If there are several components, they are arranged side by side.
    """
    if len(edges.weights) and edges.weights.min() < 0:
        edges = replace(edges, weights=np.maximum(edges.weights, 0))
    if edges.n_points <= _MAX_AT_ONCE:
        matrix = edges.to_csr_matrix()
        n_connected, component = connected_components(matrix, directed=False)
        start = _sample_uniform(rng, (edges.n_points, n_components))
        layout = _run_power_iterations(POWER_ITERATIONS, start, edges.arrays, component)
    else:
        group, n_groups = _group_neighbors(*edges.arrays)
        between = _sum_edges_between_groups(edges, group, n_groups)
        # A group is connected, so that components of groups are those of points.
        matrix = between.to_csr_matrix()
        n_connected, component_of = connected_components(matrix, directed=False)
        start = _sample_uniform(rng, (n_groups, n_components))
        arrays = between.arrays
        placed = _run_power_iterations(_BETWEEN_GROUPS, start, arrays, component_of)
        order = order_points_by_group(placed, group)
        ordered, component = edges.reorder_points(order), component_of[group]
        layout = placed[group]
        layout[order] = _run_power_iterations(
            _SMOOTHING, layout[order], ordered.arrays, component[order]
        )
        del ordered  # as large as the edges
    found = layout.astype(np.float64)
    if n_connected > 1:
        found = arrange_components(found, component, n_connected, X, n_components)
    return found


def _sample_uniform(
    rng: np.random.Generator, shape: tuple[int, int]
) -> NDArray[np.float32]:
    """Return numbers sampled uniformly between -1/2 and 1/2."""
    return (rng.random(shape) - 0.5).astype(np.float32)


def _run_power_iterations(
    n_iterations: int,
    layout: NDArray[np.float32],
    graph: Any,
    component: NDArray[np.int32],
) -> NDArray[np.float32]:
    """Return the layout (N, d) after power iterations; ``layout`` is overwritten.

    ``graph``: indptr, indices and weights; ``component`` (N,): connected component of
    each point.  Columns are orthonormalised within each component in every fifth
    iteration.
    """
    degree, moved = sum_absolute_weights(graph[0], graph[2]), np.empty_like(layout)
    work = len(graph[1]) * layout.shape[1]
    for iteration in range(1, n_iterations + 1):
        run_blocks(_smooth_points, len(component), work, *graph, degree, layout, moved)
        layout, moved = moved, layout
        if iteration % _ORTHONORMALIZE_EVERY == 0:
            _orthonormalize(layout, degree, component)
    return layout


def _orthonormalize(
    layout: NDArray[np.float32],
    degree: NDArray[np.float64],
    component: NDArray[np.int32],
) -> None:
    """Orthonormalise the columns of ``layout`` (N, d) in place, in every component.

    Columns become orthogonal to a constant and to earlier columns, weighted by
    ``degree`` (N,), and of variance 1, or 0 where nothing is left of them.
    """

    def product(a: Any, b: Any) -> NDArray[np.float64]:
        return np.asarray(np.bincount(component, degree * a * b), np.float64)

    size = product(1, 1)
    for k in range(layout.shape[1]):
        column = layout[:, k].astype(np.float64)
        column -= (product(column, 1) / np.maximum(size, 1e-300))[component]
        for earlier in range(k):
            other = layout[:, earlier].astype(np.float64)
            share = product(column, other) / np.maximum(product(other, other), 1e-300)
            column -= share[component] * other
        scale = np.sqrt(product(column, column) / np.maximum(size, 1e-300))
        layout[:, k] = column / np.where(scale > 1e-12, scale, np.inf)[component]


@njit(**CHECKED)
def _smooth_points(begin, end, indptr, indices, weights, degree, layout, moved):
    """Write points begin to end, moved half of the way to their neighbours' mean.

    ``layout`` (N, d) is read, ``moved`` (N, d) is written.  ``degree`` (N,): sum of
    each point's weights; a point without edges is moved half of the way to 0.
    """
    half, zero = np.float32(0.5), np.float32(0)
    for i in range(begin, end):
        share = np.float32(0.5 / degree[i]) if degree[i] > 0 else zero
        for c in range(layout.shape[1]):
            total = zero
            for at in range(indptr[i], indptr[i + 1]):
                total += np.float32(weights[at]) * layout[indices[at], c]
            moved[i, c] = half * layout[i, c] + share * total


@njit(**CHECKED)
def _group_neighbors(indptr, indices, weights):
    """Group each point with neighbours; return the groups (N,) and their number.

    A point forms a group with all its neighbours if neither it nor they have a group
    yet; each remaining point joins the group of the neighbour with the heaviest edge
    (Vanek, Mandel and Brezina, 1996).
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


def _sum_edges_between_groups(
    edges: Edges, group: NDArray[np.int32], n_groups: int
) -> Edges:
    """Return the edges between groups; edges inside a group are its edge to itself."""
    indptr, indices, weights = build_group_graph(*edges.arrays, group, n_groups)
    rows = indptr.view(np.uint32), indices.view(np.uint32), weights.astype(np.float32)
    return Edges(*rows)


def arrange_components(
    layout: NDArray[np.float64],
    component: NDArray[Any],
    n_connected: int,
    X: Any,
    n_components: int,
) -> NDArray[np.float64]:
    """Return the layout (N, d) with the connected components moved apart.

    Each component gets an area in proportion to its number of points.  Components are
    placed by the principal components of their mean rows of ``X`` (N, D), so that
    similar components start next to each other.  ``component`` (N,): the connected
    component of each point, of ``n_connected``; ``n_components``: d.
    """
    size = np.bincount(component, minlength=n_connected)
    centred = compute_mean_rows_of_groups(X, component, n_connected)
    largest = np.abs(centred).max()
    centred -= np.average(centred, axis=0, weights=size)
    width = np.abs(centred).max()
    centred /= width if width > _NO_WIDTH * largest else np.inf
    weighted = (centred * np.sqrt(size / size.max())[:, None]).astype(np.float32)
    count = min(n_components, *centred.shape)
    axes = compute_principal_directions(weighted, count, 0, START_POWERS)
    along = np.stack([(centred * axis).sum(axis=1) for axis in axes], axis=1)
    positions = pad_columns(along, n_components)
    width = np.sqrt(np.average(positions**2, weights=size, axis=0).max())
    positions *= 2.0 / max(width, np.finfo(float).tiny)
    radius = np.sqrt(size / size.sum())
    scale = np.bincount(component, (layout**2).sum(axis=1), n_connected) / size
    scale = np.sqrt(scale)
    scale = np.where(scale > 1e-12, scale, 1.0)
    placed: NDArray[np.float64] = (
        positions[component] + layout * (radius / scale)[component, None]
    )
    return placed
