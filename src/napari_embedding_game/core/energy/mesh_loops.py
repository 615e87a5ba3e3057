"""The compiled loops between points and a grid: sort, spread, and read back.

A point ``y`` (N, d) lies on the grid at ``(y - low) / spacing``: its axes are rows,
columns and layers.  It is spread on the four nodes around it along each axis by cubic
B-splines.  Rows are cut into bands, of which those of even number never touch the same
node, nor those of odd: each kind may be spread in parallel, and every node gains its
parts in one order, that of the points.  ``layers``: a tuple as long as a point has
nodes across the plane, 1 or ``WIDTH``, which its type tells the compiler.
"""

import numpy as np

from napari_embedding_game.core.energy.compiled_pairs import pair_value
from napari_embedding_game.core.energy.pair_loops import CHUNK, OPTIONS
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.simd import across as add_lanes
from napari_embedding_game.core.simd import join, load, store
from napari_embedding_game.core.simd import spread as in_all_lanes
from napari_embedding_game.core.threads import LOOP

WIDTH = 4
"""Nodes along each axis on which a point is spread."""
BAND = 8
"""Rows in a band: at least ``WIDTH``."""
_BLOCK = 256
"""Points whose self-interactions are computed before the forces on them."""
_LANES = 8
"""Points side by side: it divides ``_BLOCK`` and ``CHUNK``, and changes no bit."""
_INLINED = {"forceinline": True, **OPTIONS}


@njit(**OPTIONS)
def kernel_values(kernel, squared):
    """Write the kernel in place of squared distances."""
    for i in range(squared.shape[0]):
        squared[i] = pair_value(kernel, squared[i])


@njit(**_INLINED)
def _spline(t, one):
    """Return weights of four nodes at t past the second's cell, and their slopes.

    ``t``: a number or lanes; ``one``: 1 in their type.
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
def splines_at(x0, x1, x2, n_layers):
    """Return the first node of a point, and its splines along the three axes."""
    kind = type(x0)
    zero, one = kind(0), kind(1)
    row, layer, column = np.int32(x0), np.int32(x1), np.int32(x2)
    deep = (one, zero, zero, zero), (zero, zero, zero, zero)
    if n_layers > 1:
        deep = _spline(x1 - kind(layer), one)
    splines = _spline(x0 - kind(row), one), deep, _spline(x2 - kind(column), one)
    return (row, layer, column), splines


@njit(**_INLINED)
def _place_on_grid(y, i, low, spacing, layers):
    """Return the position of a point on the grid: row, layer, column."""
    row, column = (y[i, 0] - low[0]) / spacing, (y[i, 1] - low[1]) / spacing
    if len(layers) == 1:
        return row, type(row)(0), column
    return row, (y[i, -1] - low[-1]) / spacing, column


@njit(**LOOP)
def find_extent(begin, end, y, lowest, highest):
    """Write the least and the largest coordinates of some chunks, (chunks, d) each.

    NaN where a coordinate is not finite.
    """
    for c in range(begin, end):
        for axis in range(y.shape[1]):
            low = high = y[c * CHUNK, axis]
            off = low - low
            for i in range(c * CHUNK, min((c + 1) * CHUNK, len(y))):
                x = y[i, axis]
                low, high, off = min(low, x), max(high, x), off + (x - x)
            lowest[c, axis], highest[c, axis] = low + off, high + off


@njit(**OPTIONS)
def count_in_bands(begin, end, y, low, spacing, layers, counts):
    """Write the number of points of some chunks in each band, (chunks, bands)."""
    for c in range(begin, end):
        counts[c] = 0
        for i in range(c * CHUNK, min((c + 1) * CHUNK, len(y))):
            row, _, _ = _place_on_grid(y, i, low, spacing, layers)
            counts[c, np.int64(row) // BAND] += 1


@njit(**OPTIONS)
def sort_by_band(begin, end, y, low, spacing, layers, places, order):
    """Write points of some chunks into ``order`` (N,), from ``places`` on.

    ``places`` (chunks, bands): where the points of a chunk in a band begin; they are
    written over.
    """
    for c in range(begin, end):
        for i in range(c * CHUNK, min((c + 1) * CHUNK, len(y))):
            row, _, _ = _place_on_grid(y, i, low, spacing, layers)
            band = np.int64(row) // BAND
            order[places[c, band]] = i
            places[c, band] += 1


@njit(**OPTIONS)
def spread(begin, end, y, low, spacing, layers, order, starts, parity, grid):
    """Spread the points of every second band, from ``parity`` on, on empty nodes.

    ``order`` (N,): the points by band; ``starts``: where each band begins.
    """
    for half in range(begin, end):
        band = parity + 2 * half
        for p in range(starts[band], starts[band + 1]):
            x0, x1, x2 = _place_on_grid(y, order[p], low, spacing, layers)
            corner, splines = splines_at(x0, x1, x2, len(layers))
            (row, layer, column), ((down, _), (deep, _), (across, _)) = corner, splines
            lanes = join(*across)
            for a in range(WIDTH):
                for c in range(len(layers)):
                    at = row + a, layer + c, np.int64(column)
                    nodes = load(grid, at, lanes)
                    store(nodes + (down[a] * deep[c]) * lanes, grid, at)


@njit(**OPTIONS)
def clear_rows(begin, end, grid):
    """Set some rows of nodes to 0."""
    for row in range(begin, end):
        grid[row] = 0


@njit(**OPTIONS)
def multiply_rows(begin, end, grid, potential, sums):
    """Write the sum of the products at some rows of nodes, (rows,) float64."""
    for row in range(begin, end):
        total = 0.0
        for layer in range(potential.shape[1]):
            for column in range(potential.shape[2]):
                mass = np.float64(grid[row, layer, column])
                total += mass * potential[row, layer, column]
        sums[row] = total


@njit(**_INLINED)
def field(point, potential, n_deep):
    """Return the potential at a point, and its slopes along three axes."""
    (row, layer, column), splines = point
    (down, steep_down), (deep, steep_deep), (across, steep_across) = splines
    none = in_all_lanes(potential.dtype.type(0), 4)
    flat, upward, aside = none, none, none
    for a in range(WIDTH):
        for c in range(n_deep):
            nodes = load(potential, (row + a, layer + c, np.int64(column)), none)
            flat = flat + (down[a] * deep[c]) * nodes
            upward = upward + (steep_down[a] * deep[c]) * nodes
            aside = aside + (down[a] * steep_deep[c]) * nodes
    weights, steep = join(*across), join(*steep_across)
    value, g0 = add_lanes(flat * weights), add_lanes(upward * weights)
    return value, g0, add_lanes(aside * weights), add_lanes(flat * steep)


@njit(**_INLINED)
def _overlap(a, b):
    """Return the sums of products of four weights with those 0 to 3 nodes further."""
    return (
        a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3],
        a[0] * b[1] + a[1] * b[2] + a[2] * b[3],
        a[0] * b[2] + a[1] * b[3],
        a[0] * b[3],
    )


@njit(**_INLINED)
def _overlaps(t, one):
    """Return the overlaps of a spline with itself, and half the derivative of these."""
    weights, steep = _spline(t, one)
    ahead, back = _overlap(weights, steep), _overlap(steep, weights)
    half = type(one)(0.5)
    slopes = (
        ahead[0],
        (ahead[1] + back[1]) * half,
        (ahead[2] + back[2]) * half,
        (ahead[3] + back[3]) * half,
    )
    return _overlap(weights, weights), slopes


@njit(**_INLINED)
def _sum_products(weights, near, a, c):
    """Return the sum of a row of ``near`` by the overlaps along it."""
    return (
        weights[0] * near[a, c, 0]
        + weights[1] * near[a, c, 1]
        + weights[2] * near[a, c, 2]
        + weights[3] * near[a, c, 3]
    )


@njit(**_INLINED)
def _self_field(shares, at, near, layers, none):
    """Return the self-interactions of points: their potentials, and the slopes of that.

    By how far apart two nodes of one point are.  ``shares`` (3, points): how far each
    lies past its second nodes; ``none``: lanes for so many points from ``at`` on.
    """
    one = near.dtype.type(1)
    rows, of_rows = _overlaps(load(shares, (0, at), none), one)
    columns, of_columns = _overlaps(load(shares, (2, at), none), one)
    value, g0, g1, g2 = none, none, none, none
    for a in range(WIDTH):
        flat, upward, aside = none, none, none
        if len(layers) == 1:
            flat = _sum_products(columns, near, a, 0)
            aside = _sum_products(of_columns, near, a, 0)
        else:
            depths, of_depths = _overlaps(load(shares, (1, at), none), one)
            for c in range(WIDTH):
                row = _sum_products(columns, near, a, c)
                flat = flat + depths[c] * row
                upward = upward + of_depths[c] * row
                aside = aside + depths[c] * _sum_products(of_columns, near, a, c)
        value, g0 = value + rows[a] * flat, g0 + of_rows[a] * flat
        g1, g2 = g1 + rows[a] * upward, g2 + rows[a] * aside
    return value, g0, g1, g2


@njit(**_INLINED)
def _write_shares(first, last, y, low, spacing, layers, shares):
    """Write how far some points lie past their second nodes, (3, points)."""
    kind = shares.dtype.type
    for i in range(first, last):
        x0, x1, x2 = _place_on_grid(y, i, low, spacing, layers)
        shares[0, i - first] = x0 - kind(np.int32(x0))
        shares[1, i - first] = x1 - kind(np.int32(x1))
        shares[2, i - first] = x2 - kind(np.int32(x2))


@njit(**OPTIONS)
def sum_self_terms(begin, end, y, low, spacing, layers, near, sums):
    """Write the self-interactions of the points of some chunks, (chunks,) float64."""
    none = in_all_lanes(near.dtype.type(0), _LANES)
    shares = np.zeros((3, CHUNK), near.dtype)
    values = np.empty(CHUNK, near.dtype)
    for c in range(begin, end):
        first, last, total = c * CHUNK, min((c + 1) * CHUNK, len(y)), 0.0
        _write_shares(first, last, y, low, spacing, layers, shares)
        for at in range(0, last - first, _LANES):
            store(_self_field(shares, at, near, layers, none)[0], values, (at,))
        for at in range(last - first):
            total += np.float64(values[at])
        sums[c] = total


@njit(**OPTIONS)
def add_gradient(begin, end, y, low, spacing, layers, potential, near, rates, gradient):
    """Add the gradient of the sum over pairs i != j of some points to ``gradient``.

    ``potential``: the kernel summed over all points, at the nodes.  The
    self-interaction is computed from ``near``, see :class:`mesh.Grid`, and subtracted.
    ``rates`` (d,): factor of the gradient along each axis, in units of the grid.
    """
    none, kind = in_all_lanes(near.dtype.type(0), _LANES), gradient.dtype.type
    shares, own = np.zeros((3, _BLOCK), near.dtype), np.empty((3, _BLOCK), near.dtype)
    for first in range(begin, end, _BLOCK):
        last = min(first + _BLOCK, end)
        _write_shares(first, last, y, low, spacing, layers, shares)
        for at in range(0, last - first, _LANES):
            _, g0, g1, g2 = _self_field(shares, at, near, layers, none)
            store(g0, own, (0, at))
            store(g1, own, (1, at))
            store(g2, own, (2, at))
        for i in range(first, last):
            x0, x1, x2 = _place_on_grid(y, i, low, spacing, layers)
            point = splines_at(x0, x1, x2, len(layers))
            _, g0, g1, g2 = field(point, potential, len(layers))
            gradient[i, 0] += kind(rates[0] * (g0 - own[0, i - first]))
            gradient[i, 1] += kind(rates[1] * (g2 - own[2, i - first]))
            if len(layers) > 1:
                gradient[i, 2] += kind(rates[2] * (g1 - own[1, i - first]))
