"""Compiled loops between points and a grid: sort points, spread mass, interpolate.

A point y of ``points`` (N, d) lies on the grid at ``(y - low) / spacing``, with axes
rows, columns and layers.  The point's mass is spread on the four nearest nodes along
each axis by cubic B-splines.  Rows of nodes are divided into bands.  Bands of even
number never touch the same node, nor do bands of odd number: bands of one parity are
spread in parallel, and each node adds up mass in the order of the points.  ``layers``:
a tuple of the length 1 in the plane, ``WIDTH`` in space, whose type tells the compiler
how many layers of nodes a point has.
"""

import numpy as np

from napari_embedding_game.core.energy.compiled_pairs import pair_value
from napari_embedding_game.core.energy.pair_loops import CHUNK, OPTIONS
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.simd import (
    broadcast,
    load,
    pack_lanes,
    store,
    sum_lanes,
)
from napari_embedding_game.core.threads import LOOP

WIDTH = 4
"""Nodes along each axis on which a point is spread."""
BAND = 8
"""Rows in a band: at least ``WIDTH``."""
_BLOCK = 256
"""Points in a block: their self-interactions are computed before their forces."""
_LANES = 8
"""Points per vector: divides ``_BLOCK`` and ``CHUNK``, and changes no bit."""
_INLINED = {"forceinline": True, **OPTIONS}


@njit(**OPTIONS)
def apply_kernel(kernel, squared):
    """Replace squared distances by the kernel at these distances, in place."""
    for i in range(squared.shape[0]):
        squared[i] = pair_value(kernel, squared[i])


@njit(**_INLINED)
def _compute_spline_weights_and_slopes(t, one):
    """Return the cubic B-spline weights of four nodes, and their slopes in ``t``.

    ``t``, 0 to 1: offset of a point from the second node, a number or lanes; ``one``: 1
    in the type of ``t``.
    """
    kind = type(one)
    half, two, three = kind(0.5), kind(2), kind(3)
    four, six, steep, sixth = kind(4), kind(6), kind(1.5), kind(1 / 6)
    r = one - t
    weights = (
        r * r * r * sixth,
        (t * t * (three * t - six) + four) * sixth,
        (r * r * (three * r - six) + four) * sixth,
        t * t * t * sixth,
    )
    slopes = (
        r * r * -half,
        t * (steep * t - two),
        r * (two - steep * r),
        t * t * half,
    )
    return weights, slopes


@njit(**_INLINED)
def find_corner_and_splines(row_position, layer_position, column_position, n_layers):
    """Return a point's first node (row, layer, column), and its splines for each axis.

    Arguments are the point's position on the grid.  The splines of an axis are four
    weights and four slopes, one for each node; in the plane the layer's are weight 1
    and slope 0 of one node.
    """
    kind = type(row_position)
    zero, one = kind(0), kind(1)
    row, layer, column = (
        np.int32(row_position),
        np.int32(layer_position),
        np.int32(column_position),
    )
    deep = (one, zero, zero, zero), (zero, zero, zero, zero)
    if n_layers > 1:
        deep = _compute_spline_weights_and_slopes(layer_position - kind(layer), one)
    splines = (
        _compute_spline_weights_and_slopes(row_position - kind(row), one),
        deep,
        _compute_spline_weights_and_slopes(column_position - kind(column), one),
    )
    return (row, layer, column), splines


@njit(**_INLINED)
def _find_grid_position(points, i, low, spacing, layers):
    """Return the position of point i on the grid: row, layer, column, as floats.

    In the plane the layer is 0.
    """
    row, column = (points[i, 0] - low[0]) / spacing, (points[i, 1] - low[1]) / spacing
    if len(layers) == 1:
        return row, type(row)(0), column
    return row, (points[i, -1] - low[-1]) / spacing, column


@njit(**LOOP)
def write_chunk_extents(begin, end, points, lowest, highest):
    """Write the least and largest coordinates of chunks begin to end of points.

    ``lowest`` and ``highest`` (chunks, d) are NaN where a coordinate is not finite.
    """
    for c in range(begin, end):
        for axis in range(points.shape[1]):
            low = high = points[c * CHUNK, axis]
            off = low - low
            for i in range(c * CHUNK, min((c + 1) * CHUNK, len(points))):
                x = points[i, axis]
                low, high, off = min(low, x), max(high, x), off + (x - x)
            lowest[c, axis], highest[c, axis] = low + off, high + off


@njit(**OPTIONS)
def count_points_in_bands(begin, end, points, low, spacing, layers, counts):
    """Write the number of points in each band, for chunks begin to end of points.

    ``counts`` (chunks, bands) is overwritten.
    """
    for c in range(begin, end):
        counts[c] = 0
        for i in range(c * CHUNK, min((c + 1) * CHUNK, len(points))):
            row, _, _ = _find_grid_position(points, i, low, spacing, layers)
            counts[c, np.int64(row) // BAND] += 1


@njit(**OPTIONS)
def order_points_by_band(begin, end, points, low, spacing, layers, positions, order):
    """Write the indices of points, sorted by band, to ``order`` (N,).

    ``begin`` and ``end`` count chunks of points.  ``positions`` (chunks, bands):
    position in ``order`` of the first point of a chunk in a band, which is advanced in
    place.
    """
    for c in range(begin, end):
        for i in range(c * CHUNK, min((c + 1) * CHUNK, len(points))):
            row, _, _ = _find_grid_position(points, i, low, spacing, layers)
            band = np.int64(row) // BAND
            order[positions[c, band]] = i
            positions[c, band] += 1


@njit(**OPTIONS)
def add_point_masses_to_grid(
    begin, end, points, low, spacing, layers, order, starts, parity, grid
):
    """Add the mass of points in bands of one ``parity`` to the nodes of ``grid``.

    ``order`` (N,): indices of points sorted by band; ``starts`` (bands + 1,): where
    each band begins in ``order``; ``begin`` and ``end`` count the bands of the parity,
    0 for even and 1 for odd bands.  Each point has mass 1.
    """
    for band_pair in range(begin, end):
        band = parity + 2 * band_pair
        for p in range(starts[band], starts[band + 1]):
            x0, x1, x2 = _find_grid_position(points, order[p], low, spacing, layers)
            corner, splines = find_corner_and_splines(x0, x1, x2, len(layers))
            (row, layer, column), ((down, _), (deep, _), (across, _)) = corner, splines
            lanes = pack_lanes(*across)
            for a in range(WIDTH):
                for c in range(len(layers)):
                    at = row + a, layer + c, np.int64(column)
                    nodes = load(grid, at, lanes)
                    store(nodes + (down[a] * deep[c]) * lanes, grid, at)


@njit(**OPTIONS)
def clear_grid_rows(begin, end, grid):
    """Set the rows ``begin`` to ``end`` of nodes to 0."""
    for row in range(begin, end):
        grid[row] = 0


@njit(**OPTIONS)
def write_row_dot_products(begin, end, grid, potential, sums):
    """Write the sum of mass times potential over each row of nodes to ``sums``.

    ``grid``: the mass, ``potential`` (rows, layers, columns); ``sums`` (rows,) float64.
    """
    for row in range(begin, end):
        total = 0.0
        for layer in range(potential.shape[1]):
            for column in range(potential.shape[2]):
                mass = np.float64(grid[row, layer, column])
                total += mass * potential[row, layer, column]
        sums[row] = total


@njit(**_INLINED)
def interpolate_potential(corner_and_splines, potential, n_deep):
    """Return the potential at a point, and its slopes along rows, layers and columns.

    Slopes are per unit of the grid.  ``corner_and_splines``: see
    :func:`find_corner_and_splines`; ``potential`` (rows, layers, columns): at the
    nodes; ``n_deep``: 1 or ``WIDTH`` layers.
    """
    (row, layer, column), splines = corner_and_splines
    (down, steep_down), (deep, steep_deep), (across, steep_across) = splines
    zeros = broadcast(potential.dtype.type(0), 4)
    by_column, row_slopes, layer_slopes = zeros, zeros, zeros
    for a in range(WIDTH):
        for c in range(n_deep):
            nodes = load(potential, (row + a, layer + c, np.int64(column)), zeros)
            by_column = by_column + (down[a] * deep[c]) * nodes
            row_slopes = row_slopes + (steep_down[a] * deep[c]) * nodes
            layer_slopes = layer_slopes + (down[a] * steep_deep[c]) * nodes
    weights, steep = pack_lanes(*across), pack_lanes(*steep_across)
    value, g0 = sum_lanes(by_column * weights), sum_lanes(row_slopes * weights)
    return value, g0, sum_lanes(layer_slopes * weights), sum_lanes(by_column * steep)


@njit(**_INLINED)
def _sum_shifted_products(a, b):
    """Return the four sums over j of a_j b_(j + m), for m = 0 to 3.

    ``a`` and ``b`` have four numbers, or lanes, each.
    """
    return (
        a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3],
        a[0] * b[1] + a[1] * b[2] + a[2] * b[3],
        a[0] * b[2] + a[1] * b[3],
        a[0] * b[3],
    )


@njit(**_INLINED)
def _compute_spline_overlaps(t, one):
    """Return the autocorrelation of spline weights, and half its derivative in ``t``.

    Each has four numbers, for nodes 0 to 3 apart.  ``t``, ``one``: as in
    :func:`_compute_spline_weights_and_slopes`.
    """
    weights, steep = _compute_spline_weights_and_slopes(t, one)
    ahead, back = (
        _sum_shifted_products(weights, steep),
        _sum_shifted_products(steep, weights),
    )
    half = type(one)(0.5)
    slopes = (
        ahead[0],
        (ahead[1] + back[1]) * half,
        (ahead[2] + back[2]) * half,
        (ahead[3] + back[3]) * half,
    )
    return _sum_shifted_products(weights, weights), slopes


@njit(**_INLINED)
def _sum_near_row(weights, near, a, c):
    """Return the sum of ``near[a, c]``, (4,), weighted by four ``weights``.

    Weights may be lanes.
    """
    return (
        weights[0] * near[a, c, 0]
        + weights[1] * near[a, c, 1]
        + weights[2] * near[a, c, 2]
        + weights[3] * near[a, c, 3]
    )


@njit(**_INLINED)
def _compute_self_potential_and_slopes(offsets, at, near, layers, zeros):
    """Return the potential of points at themselves, and half its slopes, as lanes.

    The sum is over pairs of nodes of one point, by how far apart the nodes are; the
    slopes are along rows, layers and columns.  ``offsets`` (3, points): see
    :func:`_write_node_offsets`; ``near``: see :class:`mesh_repulsion.Grid`; ``zeros``:
    lanes of zeros, one for each point from index ``at`` on.
    """
    one = near.dtype.type(1)
    rows, of_rows = _compute_spline_overlaps(load(offsets, (0, at), zeros), one)
    columns, of_columns = _compute_spline_overlaps(load(offsets, (2, at), zeros), one)
    value, g0, g1, g2 = zeros, zeros, zeros, zeros
    for a in range(WIDTH):
        potential, layer_slope, column_slope = zeros, zeros, zeros
        if len(layers) == 1:
            potential = _sum_near_row(columns, near, a, 0)
            column_slope = _sum_near_row(of_columns, near, a, 0)
        else:
            depths, of_depths = _compute_spline_overlaps(
                load(offsets, (1, at), zeros), one
            )
            for c in range(WIDTH):
                row = _sum_near_row(columns, near, a, c)
                potential = potential + depths[c] * row
                layer_slope = layer_slope + of_depths[c] * row
                column_slope = column_slope + depths[c] * _sum_near_row(
                    of_columns, near, a, c
                )
        value, g0 = value + rows[a] * potential, g0 + of_rows[a] * potential
        g1, g2 = g1 + rows[a] * layer_slope, g2 + rows[a] * column_slope
    return value, g0, g1, g2


@njit(**_INLINED)
def _write_node_offsets(first, last, points, low, spacing, layers, offsets):
    """Write the offsets, 0 to 1, of points first to last from their second nodes.

    ``offsets`` (3, points): along rows, layers (0 in the plane) and columns; point
    ``first`` is its column 0.
    """
    kind = offsets.dtype.type
    for i in range(first, last):
        x0, x1, x2 = _find_grid_position(points, i, low, spacing, layers)
        offsets[0, i - first] = x0 - kind(np.int32(x0))
        offsets[1, i - first] = x1 - kind(np.int32(x1))
        offsets[2, i - first] = x2 - kind(np.int32(x2))


@njit(**OPTIONS)
def write_self_potentials(begin, end, points, low, spacing, layers, near, sums):
    """Write the sum of the points' potentials at themselves, for each chunk of points.

    ``near``: see :class:`mesh_repulsion.Grid`; ``sums`` (chunks,) float64.
    """
    zeros = broadcast(near.dtype.type(0), _LANES)
    offsets = np.zeros((3, CHUNK), near.dtype)
    values = np.empty(CHUNK, near.dtype)
    for c in range(begin, end):
        first, last, total = c * CHUNK, min((c + 1) * CHUNK, len(points)), 0.0
        _write_node_offsets(first, last, points, low, spacing, layers, offsets)
        for at in range(0, last - first, _LANES):
            store(
                _compute_self_potential_and_slopes(offsets, at, near, layers, zeros)[0],
                values,
                (at,),
            )
        for at in range(last - first):
            total += np.float64(values[at])
        sums[c] = total


@njit(**OPTIONS)
def add_potential_gradient(
    begin, end, points, low, spacing, layers, potential, near, rates, gradient
):
    """Add ``rates`` times the gradient of the sum over pairs i != j to ``gradient``.

    ``gradient`` (N, d): rows ``begin`` to ``end`` are changed in place; ``potential``:
    the kernel summed over all points, at the nodes; ``rates`` (d,): factor along each
    axis, per unit of the grid.  The self-interaction is computed from ``near``, see
    :class:`mesh_repulsion.Grid`, and subtracted.
    """
    zeros, kind = broadcast(near.dtype.type(0), _LANES), gradient.dtype.type
    offsets, own = np.zeros((3, _BLOCK), near.dtype), np.empty((3, _BLOCK), near.dtype)
    for first in range(begin, end, _BLOCK):
        last = min(first + _BLOCK, end)
        _write_node_offsets(first, last, points, low, spacing, layers, offsets)
        for at in range(0, last - first, _LANES):
            _, g0, g1, g2 = _compute_self_potential_and_slopes(
                offsets, at, near, layers, zeros
            )
            store(g0, own, (0, at))
            store(g1, own, (1, at))
            store(g2, own, (2, at))
        for i in range(first, last):
            x0, x1, x2 = _find_grid_position(points, i, low, spacing, layers)
            corner_and_splines = find_corner_and_splines(x0, x1, x2, len(layers))
            _, g0, g1, g2 = interpolate_potential(
                corner_and_splines, potential, len(layers)
            )
            gradient[i, 0] += kind(rates[0] * (g0 - own[0, i - first]))
            gradient[i, 1] += kind(rates[1] * (g2 - own[2, i - first]))
            if len(layers) > 1:
                gradient[i, 2] += kind(rates[2] * (g1 - own[1, i - first]))
