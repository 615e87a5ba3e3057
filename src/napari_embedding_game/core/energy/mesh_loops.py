"""The compiled loops between points and a grid: spread, and read back.

A point at ``x`` (N, 3), in units of the grid, is spread on the four nodes around it
along each axis by cubic B-splines.  ``order`` (N,): points by row; ``starts``: where
each row of it begins.  Rows are cut into bands, of which those of even number never
touch the same node, nor those of odd: each kind may be spread in parallel, and every
node gains its parts in one order.  ``layers``: a tuple as long as a point has nodes
across the plane, 1 or ``WIDTH``, which its type tells the compiler.
"""

import numpy as np

from napari_embedding_game.core.energy.compiled_pairs import pair_value
from napari_embedding_game.core.energy.pair_loops import OPTIONS
from napari_embedding_game.core.loop_cache import njit

WIDTH = 4
"""Nodes along each axis on which a point is spread."""
BAND = 8
"""Rows in a band: at least ``WIDTH``."""


@njit(**OPTIONS)
def kernel_values(kernel, squared):
    """Write the kernel in place of squared distances."""
    for i in range(squared.shape[0]):
        squared[i] = pair_value(kernel, squared[i])


@njit(**OPTIONS)
def _spline(t, n_nodes):
    """Return weights of four nodes at t past the second's cell, and their slopes."""
    kind = type(t)
    zero, half, one, two, three = kind(0), kind(0.5), kind(1), kind(2), kind(3)
    if n_nodes == 1:
        return (one, zero, zero, zero), (zero, zero, zero, zero)
    four, six, steep = kind(4), kind(6), kind(1.5)
    r = one - t
    weights = (
        r * r * r / six,
        (t * t * (three * t - six) + four) / six,
        (r * r * (three * r - six) + four) / six,
        t * t * t / six,
    )
    slopes = (
        -half * r * r,
        t * (steep * t - two),
        -r * (steep * r - two),
        half * t * t,
    )
    return weights, slopes


@njit(**OPTIONS)
def splines_at(x0, x1, x2, n_layers):
    """Return the first node of a point, and its splines along the three axes."""
    kind = type(x0)
    row, layer, column = np.int64(x0), np.int64(x1), np.int64(x2)
    splines = (
        _spline(x0 - kind(row), WIDTH),
        _spline(x1 - kind(layer), n_layers),
        _spline(x2 - kind(column), WIDTH),
    )
    return (row, layer, column), splines


@njit(**OPTIONS)
def _points_of(band, starts):
    """Return where the points of a band begin and end."""
    return starts[band * BAND], starts[min(band * BAND + BAND, starts.shape[0] - 1)]


@njit(**OPTIONS)
def spread(begin, end, x, order, starts, layers, grid, parity):
    """Add the points of every second band, from ``parity`` on, to the nodes."""
    for half in range(begin, end):
        first, last = _points_of(parity + 2 * half, starts)
        for p in range(first, last):
            i = order[p]
            corner, splines = splines_at(x[i, 0], x[i, 1], x[i, 2], len(layers))
            (row, layer, column), ((down, _), (deep, _), (across, _)) = corner, splines
            for a in range(WIDTH):
                for c in range(len(layers)):
                    weight = down[a] * deep[c]
                    for b in range(WIDTH):
                        grid[row + a, layer + c, column + b] += weight * across[b]


@njit(inline="always", **OPTIONS)
def field(point, potential, n_deep):
    """Return the potential at a point, and its slopes along three axes."""
    (row, layer, column), splines = point
    (down, steep_down), (deep, steep_deep), (across, steep_across) = splines
    zero = potential.dtype.type(0)
    value, g0, g1, g2 = zero, zero, zero, zero
    for a in range(WIDTH):
        flat, upward, along = zero, zero, zero
        for c in range(n_deep):
            here, steep = zero, zero
            for b in range(WIDTH):
                node = potential[row + a, layer + c, column + b]
                here += across[b] * node
                steep += steep_across[b] * node
            flat += deep[c] * here
            upward += steep_deep[c] * here
            along += deep[c] * steep
        value += down[a] * flat
        g0 += steep_down[a] * flat
        g1 += down[a] * upward
        g2 += down[a] * along
    return value, g0, g1, g2


@njit(**OPTIONS)
def _overlap(a, b):
    """Return the sums of products of four weights with those 0 to 3 nodes further."""
    return (
        a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3],
        a[0] * b[1] + a[1] * b[2] + a[2] * b[3],
        a[0] * b[2] + a[1] * b[3],
        a[0] * b[3],
    )


@njit(**OPTIONS)
def _overlaps(spline):
    """Return the overlaps of a spline with itself, and half the derivative of these."""
    weights, steep = spline
    ahead, back = _overlap(weights, steep), _overlap(steep, weights)
    half = type(ahead[0])(0.5)
    slopes = (
        ahead[0],
        half * (ahead[1] + back[1]),
        half * (ahead[2] + back[2]),
        half * (ahead[3] + back[3]),
    )
    return _overlap(weights, weights), slopes


@njit(inline="always", **OPTIONS)
def _self_field(point, near, n_deep):
    """Return the self-interaction of a point: its potential, and the slopes of that.

    By how far apart two of its nodes are.
    """
    _, (down, deep, across) = point
    (rows, of_rows), (depths, of_depths) = _overlaps(down), _overlaps(deep)
    columns, of_columns = _overlaps(across)
    zero = near.dtype.type(0)
    value, g0, g1, g2 = zero, zero, zero, zero
    for a in range(WIDTH):
        for c in range(n_deep):
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
def read(begin, end, x, order, starts, layers, potential, near, gradient, sums):
    """Write the sum over all pairs i != j, a part a band, and its gradient in ``x``.

    ``potential``: the kernel summed over all points, at the nodes.  The
    self-interaction is computed from ``near``, see :class:`mesh.Grid`, and subtracted.
    """
    for band in range(begin, end):
        total = 0.0
        first, last = _points_of(band, starts)
        for p in range(first, last):
            i = order[p]
            point = splines_at(x[i, 0], x[i, 1], x[i, 2], len(layers))
            value, g0, g1, g2 = field(point, potential, len(layers))
            self_field = _self_field(point, near, len(layers))
            total += value - self_field[0]
            # The point is at both ends of each pair.
            g0, g1, g2 = g0 - self_field[1], g1 - self_field[2], g2 - self_field[3]
            gradient[i, 0] = g0 + g0
            gradient[i, 1] = g1 + g1
            gradient[i, 2] = g2 + g2
        sums[band] = total
