"""The compiled loops between points and a grid: spread, and read back.

A point at x, in units of the grid, stands on the four nodes around it along each axis
by cubic B-splines.  Points are taken in the order of their rows of cells.  Rows are cut
into bands, at least as thick as a spline is wide: bands of even number never touch the
same node, nor do those of odd number, so each kind may be spread in parallel, and every
node gains its parts in one order whatever the number of threads.

Arrays: ``x`` (N, 3) points in units of the grid, at least 0; ``order`` (N,) points by
row; ``starts`` (rows + 1,) where each row of ``order`` begins; ``grid`` (rows, layers,
columns).  The grid of a plane has one layer, on which all points stand.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,assignment"
# mypy: disable-error-code="call-arg,var-annotated"

from __future__ import annotations

import numpy as np
from numba import njit

from napari_embedding_game.core.energy.compiled_pairs import pair_slope, pair_value
from napari_embedding_game.core.energy.pair_loops import OPTIONS

WIDTH = 4
"""Nodes that a point stands on along each axis."""
BAND = 8
"""Rows in a band: at least ``WIDTH``."""


@njit(**OPTIONS)
def kernel_values(kernel, squared, lifted):
    """Write the kernel in place of squared distances, or its slope at s + lifted."""
    for i in range(squared.shape[0]):
        if lifted is None:
            squared[i] = pair_value(kernel, squared[i])
        else:
            squared[i] = pair_slope(kernel, squared[i] + lifted)


@njit(**OPTIONS)
def bounds(y, low, high):
    """Write the least and the greatest coordinates of points (N, d)."""
    low[:] = y[0]
    high[:] = y[0]
    for i in range(y.shape[0]):
        for k in range(y.shape[1]):
            low[k] = min(low[k], y[i, k])
            high[k] = max(high[k], y[i, k])


@njit(**OPTIONS)
def sort_by_row(x, starts, order):
    """Write which points lie in each row of cells: a counting sort."""
    starts[:] = 0
    for i in range(x.shape[0]):
        starts[np.int64(x[i, 0]) + 1] += 1
    for row in range(starts.shape[0] - 1):
        starts[row + 1] += starts[row]
    free = starts.copy()
    for i in range(x.shape[0]):
        row = np.int64(x[i, 0])
        order[free[row]] = i
        free[row] += 1


@njit(**OPTIONS)
def _spline(t):
    """Return the weights of the four nodes for a point at t past the second's cell."""
    kind = type(t)
    six = kind(6)
    r = kind(1) - t
    return (
        r * r * r / six,
        (t * t * (kind(3) * t - six) + kind(4)) / six,
        (r * r * (kind(3) * r - six) + kind(4)) / six,
        t * t * t / six,
    )


@njit(**OPTIONS)
def _spline_slope(t):
    """Return the derivatives of :func:`_spline`."""
    kind = type(t)
    half = kind(0.5)
    r = kind(1) - t
    return (
        -half * r * r,
        t * (kind(1.5) * t - kind(2)),
        -r * (kind(1.5) * r - kind(2)),
        half * t * t,
    )


@njit(**OPTIONS)
def _on_layers(t, layers):
    """Return the weights of the layers, and how many: of one layer it is all there."""
    if layers > 1:
        return _spline(t), WIDTH
    zero = type(t)(0)
    return (type(t)(1), zero, zero, zero), 1


@njit(**OPTIONS)
def _on_layers_slope(t, layers):
    if layers > 1:
        return _spline_slope(t)
    zero = type(t)(0)
    return (zero, zero, zero, zero)


# --- Spread -------------------------------------------------------------------------


@njit(**OPTIONS)
def _spread(band, x, order, starts, grid):
    first = band * BAND
    last = min(first + BAND, starts.shape[0] - 1)
    for p in range(starts[first], starts[last]):
        i = order[p]
        row, layer, column = np.int64(x[i, 0]), np.int64(x[i, 1]), np.int64(x[i, 2])
        down = _spline(x[i, 0] - x.dtype.type(row))
        deep, n_deep = _on_layers(x[i, 1] - x.dtype.type(layer), grid.shape[1])
        across = _spline(x[i, 2] - x.dtype.type(column))
        for a in range(WIDTH):
            for c in range(n_deep):
                weight = down[a] * deep[c]
                for b in range(WIDTH):
                    grid[row + a, layer + c, column + b] += weight * across[b]


@njit(**OPTIONS)
def spread(begin, end, parity, x, order, starts, grid):
    """Add the points of every second band, from ``parity`` on, to the nodes."""
    for half in range(begin, end):
        _spread(parity + 2 * half, x, order, starts, grid)


# --- Read back ----------------------------------------------------------------------


@njit(**OPTIONS)
def _overlap(one, other):
    """Return the sums of products of four weights with those 0 to 3 nodes further."""
    return (
        one[0] * other[0] + one[1] * other[1] + one[2] * other[2] + one[3] * other[3],
        one[0] * other[1] + one[1] * other[2] + one[2] * other[3],
        one[0] * other[2] + one[1] * other[3],
        one[0] * other[3],
    )


@njit(**OPTIONS)
def _product(down, deep, across, near):
    total = near.dtype.type(0)
    for a in range(near.shape[0]):
        for c in range(near.shape[1]):
            row = near.dtype.type(0)
            for b in range(near.shape[2]):
                row += across[b] * near[a, c, b]
            total += down[a] * deep[c] * row
    return total


@njit(**OPTIONS)
def _both_ways(weights, steep):
    """Return half the derivative of ``_overlap(weights, weights)``, either way."""
    ahead, back = _overlap(weights, steep), _overlap(steep, weights)
    half = type(ahead[0])(0.5)
    return (
        ahead[0],
        half * (ahead[1] + back[1]),
        half * (ahead[2] + back[2]),
        half * (ahead[3] + back[3]),
    )


@njit(**OPTIONS)
def _field(point, corner, potential):
    """Return the potential and its slopes along three axes; see :func:`_read`."""
    (down, steep_down), (deep, steep_deep), (across, steep_across) = point
    row, layer, column = corner
    zero = potential.dtype.type(0)
    n_deep = WIDTH if potential.shape[1] > 1 else 1
    value, g0, g1, g2 = zero, zero, zero, zero
    for a in range(WIDTH):
        flat, upward, along = zero, zero, zero
        for c in range(n_deep):
            here, steep = zero, zero
            for b in range(WIDTH):
                field = potential[row + a, layer + c, column + b]
                here += across[b] * field
                steep += steep_across[b] * field
            flat += deep[c] * here
            upward += steep_deep[c] * here
            along += deep[c] * steep
        value += down[a] * flat
        g0 += steep_down[a] * flat
        g1 += down[a] * upward
        g2 += down[a] * along
    return value, g0, g1, g2


@njit(**OPTIONS)
def _plane_field(point, corner, potential):
    """Like :func:`_field` with one layer: the same operations on what is not 0."""
    (down, steep_down), _, (across, steep_across) = point
    row, _, column = corner
    zero = potential.dtype.type(0)
    value, g0, g2 = zero, zero, zero
    for a in range(WIDTH):
        here, steep = zero, zero
        for b in range(WIDTH):
            field = potential[row + a, 0, column + b]
            here += across[b] * field
            steep += steep_across[b] * field
        value += down[a] * here
        g0 += steep_down[a] * here
        g2 += down[a] * steep
    return value, g0, zero, g2


@njit(**OPTIONS)
def _own_field(point, near):
    """Return what a point adds to its own potential, and the slopes of that.

    By how far apart two of its nodes are.
    """
    (down, steep_down), (deep, steep_deep), (across, steep_across) = point
    rows, depths, columns = (
        _overlap(down, down),
        _overlap(deep, deep),
        _overlap(across, across),
    )
    of_rows, of_columns = _both_ways(down, steep_down), _both_ways(across, steep_across)
    of_depths = _both_ways(deep, steep_deep)
    zero = near.dtype.type(0)
    value, g0, g1, g2 = zero, zero, zero, zero
    for a in range(WIDTH):
        for c in range(near.shape[1]):
            row, steep = zero, zero
            for b in range(WIDTH):
                row += columns[b] * near[a, c, b]
                steep += of_columns[b] * near[a, c, b]
            value += rows[a] * depths[c] * row
            g0 += of_rows[a] * depths[c] * row
            g1 += rows[a] * of_depths[c] * row
            g2 += rows[a] * depths[c] * steep
    return value, g0, g1, g2


@njit(**OPTIONS)
def _own_plane_field(point, near):
    """Like :func:`_own_field` with one layer."""
    (down, steep_down), _, (across, steep_across) = point
    rows, columns = _overlap(down, down), _overlap(across, across)
    of_rows, of_columns = _both_ways(down, steep_down), _both_ways(across, steep_across)
    zero = near.dtype.type(0)
    value, g0, g2 = zero, zero, zero
    for a in range(WIDTH):
        row, steep = zero, zero
        for b in range(WIDTH):
            row += columns[b] * near[a, 0, b]
            steep += of_columns[b] * near[a, 0, b]
        value += rows[a] * row
        g0 += of_rows[a] * row
        g2 += rows[a] * steep
    return value, g0, zero, g2


@njit(**OPTIONS)
def _read(band, x, order, starts, potential, near, gradient, sums):
    first = band * BAND
    last = min(first + BAND, starts.shape[0] - 1)
    layers = potential.shape[1]
    in_plane = layers == 1
    total = 0.0
    for p in range(starts[first], starts[last]):
        i = order[p]
        corner = np.int64(x[i, 0]), np.int64(x[i, 1]), np.int64(x[i, 2])
        t0, t2 = x[i, 0] - x.dtype.type(corner[0]), x[i, 2] - x.dtype.type(corner[2])
        t1 = x[i, 1] - x.dtype.type(corner[1])
        point = (
            (_spline(t0), _spline_slope(t0)),
            (_on_layers(t1, layers)[0], _on_layers_slope(t1, layers)),
            (_spline(t2), _spline_slope(t2)),
        )
        if in_plane:
            value, g0, g1, g2 = _plane_field(point, corner, potential)
            own = _own_plane_field(point, near)
        else:
            value, g0, g1, g2 = _field(point, corner, potential)
            own = _own_field(point, near)
        total += value - own[0]
        # The point is at both ends of each pair.
        g0, g1, g2 = g0 - own[1], g1 - own[2], g2 - own[3]
        gradient[i, 0] = g0 + g0
        gradient[i, 1] = g1 + g1
        gradient[i, 2] = g2 + g2
    sums[band] = total


@njit(**OPTIONS)
def read(begin, end, x, order, starts, potential, near, gradient, sums):
    """Write the sum over all pairs i != j, and its (N, 3) gradient in ``x``.

    ``potential``: the kernel summed over all points, at the nodes.  ``near`` (4, 1 or
    4, 4): the kernel between nodes 0 to 3 nodes apart along each axis, doubled for each
    axis along which that is not 0: what a point adds to its own potential is found from
    it and taken off.  ``sums``: one number for each band.
    """
    for band in range(begin, end):
        _read(band, x, order, starts, potential, near, gradient, sums)


@njit(**OPTIONS)
def _read_values(band, x, order, starts, potential, near, values):
    first = band * BAND
    last = min(first + BAND, starts.shape[0] - 1)
    for p in range(starts[first], starts[last]):
        i = order[p]
        row, layer, column = np.int64(x[i, 0]), np.int64(x[i, 1]), np.int64(x[i, 2])
        down = _spline(x[i, 0] - x.dtype.type(row))
        deep, n_deep = _on_layers(x[i, 1] - x.dtype.type(layer), potential.shape[1])
        across = _spline(x[i, 2] - x.dtype.type(column))
        value = x.dtype.type(0)
        for a in range(WIDTH):
            for c in range(n_deep):
                weight = down[a] * deep[c]
                for b in range(WIDTH):
                    field = potential[row + a, layer + c, column + b]
                    value += weight * across[b] * field
        rows, columns = _overlap(down, down), _overlap(across, across)
        value -= _product(rows, _overlap(deep, deep), columns, near)
        values[i] = value


@njit(**OPTIONS)
def read_values(begin, end, x, order, starts, potential, near, values):
    """Write the potential at each point (N,) that all other points make."""
    for band in range(begin, end):
        _read_values(band, x, order, starts, potential, near, values)
