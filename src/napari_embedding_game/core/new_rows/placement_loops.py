"""The compiled search for the place of a new row on a finished map.

One point at x, all others where they are, has the energy

    E(x) = sum_m w_m f(|x - y_m|^2) + c sum_j k(|x - x_j|^2)

over its edges to fitted points and over what repels it, see :mod:`frozen_field`.  It
begins where E is lowest among the mean of its neighbours, by weight, and the places of
the nearest, and goes down by quasi-Newton steps (BFGS) whose every step lowers E
(Armijo).  No point sees another, so that neither the order nor the number of the
points changes any of them; nor do threads, as each point is computed by one.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,assignment"
# mypy: disable-error-code="call-arg,var-annotated"

from __future__ import annotations

import numpy as np
from numba import njit

from napari_embedding_game.core.energy.compiled_pairs import (
    pair_slope,
    pair_value,
    repel_row,
)
from napari_embedding_game.core.energy.mesh_loops import (
    WIDTH,
    _on_layers,
    _on_layers_slope,
    _spline,
    _spline_slope,
)
from napari_embedding_game.core.energy.pair_loops import OPTIONS

MOST_STEPS = 40
_STARTS = 8
"""Nearest neighbours whose places are tried as a start."""
_LONGEST_STEP = 2.0
"""In units of the map: kernels are about 1 wide."""
_SETTLED = 1e-4
"""Length of a step, in units of the map, after which a point stays."""
_HALVINGS = 12
_DECREASE = 1e-4
"""Of the decrease that the slope promises: Armijo's condition."""


@njit(**OPTIONS)
def _read_grid(x, potential, low, spacing, gradient):
    """Return the potential at a place, and write its gradient."""
    d = x.shape[0]
    layers = potential.shape[1]
    # The axes of a map are rows, columns and layers of the grid.
    t0 = (x[0] - low[0]) / spacing
    t1 = (x[2] - low[2]) / spacing if d == 3 else 0.0
    t2 = (x[1] - low[1]) / spacing
    row, layer, column = np.int64(t0), np.int64(t1), np.int64(t2)
    down, steep_down = _spline(t0 - row), _spline_slope(t0 - row)
    deep, n_deep = _on_layers(t1 - layer, layers)
    steep_deep = _on_layers_slope(t1 - layer, layers)
    across, steep_across = _spline(t2 - column), _spline_slope(t2 - column)
    value, g0, g1, g2 = 0.0, 0.0, 0.0, 0.0
    for a in range(WIDTH):
        for c in range(n_deep):
            here, steep = 0.0, 0.0
            for b in range(WIDTH):
                field = potential[row + a, layer + c, column + b]
                here += across[b] * field
                steep += steep_across[b] * field
            value += down[a] * deep[c] * here
            g0 += steep_down[a] * deep[c] * here
            g1 += down[a] * steep_deep[c] * here
            g2 += down[a] * deep[c] * steep
    gradient[0] = g0 / spacing
    gradient[1] = g2 / spacing
    if d == 3:
        gradient[2] = g1 / spacing
    return value


@njit(**OPTIONS)
def _energy(f, k, x, places, weights, field, scratch, gradient):
    """Return E at x and write its gradient, both float64.

    ``places`` (M, d) and ``weights`` (M,): the other ends of the edges.  ``field``: the
    tuple of strength, sources, potential, low, high and spacing.
    """
    strength, sources, potential, low, high, spacing = field
    single, pushes, pull = scratch
    d = x.shape[0]
    if sources.shape[1] > 0:
        for c in range(d):
            single[0, c] = x[c]
        total = np.float64(
            repel_row(k, 0, sources.shape[1], single, sources, sources, pushes, pull)
        )
        for c in range(d):
            gradient[c] = strength * pushes[0, c]
    else:
        total = _read_grid(x, potential, low, spacing, gradient)
        for c in range(d):  # rounding must not drive x off a line
            gradient[c] *= strength if low[c] < high[c] else 0.0
    total *= strength
    for m in range(places.shape[0]):
        s = 0.0
        for c in range(d):
            apart = x[c] - places[m, c]
            s += apart * apart
        total += weights[m] * pair_value(f, s)
        steep = 2.0 * weights[m] * pair_slope(f, s)
        for c in range(d):
            gradient[c] += steep * (x[c] - places[m, c])
    return total


@njit(**OPTIONS)
def _reset(f, x, places, weights, inverse):
    """Write the inverse of the stiffness of the edges as the inverse Hessian."""
    stiffness = 0.0
    for m in range(places.shape[0]):
        s = 0.0
        for c in range(x.shape[0]):
            s += (x[c] - places[m, c]) ** 2
        stiffness += 2.0 * abs(weights[m]) * pair_slope(f, s)
    inverse[:] = 0.0
    for c in range(x.shape[0]):
        inverse[c, c] = 1.0 / max(stiffness, 1e-30)


@njit(**OPTIONS)
def _update(inverse, step, change, product):
    """Write the BFGS inverse Hessian after a step and the change of the gradient."""
    d = step.shape[0]
    curvature = 0.0
    for c in range(d):
        curvature += step[c] * change[c]
    if curvature <= 1e-12:
        return
    quadratic = 0.0
    for a in range(d):
        product[a] = 0.0
        for b in range(d):
            product[a] += inverse[a, b] * change[b]
        quadratic += change[a] * product[a]
    scale = (1.0 + quadratic / curvature) / curvature
    for a in range(d):
        for b in range(d):
            inverse[a, b] += (
                scale * step[a] * step[b]
                - (product[a] * step[b] + step[a] * product[b]) / curvature
            )


@njit(**OPTIONS)
def _descend(f, k, x, places, weights, field, scratch, work):
    """Move x down its energy until it stays."""
    d = x.shape[0]
    low, high = field[3], field[4]
    gradient, trial, there, direction, product, inverse = work
    energy = _energy(f, k, x, places, weights, field, scratch, gradient)
    _reset(f, x, places, weights, inverse)
    for _ in range(MOST_STEPS):
        for attempt in range(2):
            slope, length = 0.0, 0.0
            for a in range(d):
                direction[a] = 0.0
                for b in range(d):
                    direction[a] -= inverse[a, b] * gradient[b]
                slope += direction[a] * gradient[a]
                length += direction[a] ** 2
            if slope < 0.0 or attempt == 1:
                break
            _reset(f, x, places, weights, inverse)
        if not slope < 0.0:
            return
        t = min(1.0, _LONGEST_STEP / np.sqrt(length))
        is_lower = False
        for _ in range(_HALVINGS):
            is_inside = True
            for c in range(d):
                trial[c] = x[c] + t * direction[c]
                is_inside = is_inside and low[c] <= trial[c] <= high[c]
            if is_inside:
                lower = _energy(f, k, trial, places, weights, field, scratch, there)
                is_lower = lower <= energy + _DECREASE * t * slope
            if is_lower:
                break
            t *= 0.5
        if not is_lower:
            return
        energy = lower
        longest = 0.0
        for c in range(d):
            direction[c] = trial[c] - x[c]
            longest = max(longest, abs(direction[c]))
            x[c] = trial[c]
            trial[c] = there[c] - gradient[c]
            gradient[c] = there[c]
        if longest < _SETTLED:
            return
        _update(inverse, direction, trial, product)


@njit(**OPTIONS)
def _begin(f, k, x, places, weights, field, scratch, work):
    """Write the place with the lowest energy among the mean and the nearest."""
    d = x.shape[0]
    gradient, trial = work[0], work[1]
    total = 0.0
    x[:] = 0.0
    for m in range(places.shape[0]):
        total += abs(weights[m])
        for c in range(d):
            x[c] += abs(weights[m]) * places[m, c]
    for c in range(d):
        x[c] /= total
    lowest = _energy(f, k, x, places, weights, field, scratch, gradient)
    for m in range(min(_STARTS, places.shape[0])):
        for c in range(d):
            trial[c] = places[m, c]
        energy = _energy(f, k, trial, places, weights, field, scratch, gradient)
        if energy < lowest:
            lowest = energy
            for c in range(d):
                x[c] = trial[c]


@njit(**OPTIONS)
def place_rows(begin, end, f, k, found, weights, y, field, placed):
    """Write the places of some new rows into ``placed`` (Q, d) float32.

    Parameters
    ----------
    f, k : PairFunction
        Attraction and kernel.
    found : (Q, M) int64
        Fitted rows at the other ends of the edges, nearest first.
    weights : (Q, M) float32
    y : (N, d) float32
        Places of the fitted rows.
    field : tuple
        Strength, sources, potential, low, high and spacing of a ``FrozenField``.
    """
    d = placed.shape[1]
    sources = field[1]
    places = np.empty((found.shape[1], d))
    pulls = np.empty(found.shape[1])
    scratch = (
        np.empty((1, d), np.float32),
        np.empty((1, d), np.float32),
        np.empty((d, sources.shape[1]), np.float32),
    )
    work = (
        np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d),
        np.empty((d, d)),
    )  # fmt: skip
    x = np.empty(d)
    for q in range(begin, end):
        scratch[2][:] = 0
        count = 0
        for m in range(found.shape[1]):
            if weights[q, m] != 0:
                pulls[count] = weights[q, m]
                for c in range(d):
                    places[count, c] = y[found[q, m], c]
                count += 1
        ends, strengths = places[:count], pulls[:count]
        _begin(f, k, x, ends, strengths, field, scratch, work)
        _descend(f, k, x, ends, strengths, field, scratch, work)
        for c in range(d):
            placed[q, c] = x[c]
