"""The compiled descent of a new row to its position on a finished map.

    E(x) = sum_m w_m f(|x - y_m|^2) + c sum_j k(|x - x_j|^2)

It begins where E is lowest among the mean of its neighbours and the positions of the
nearest, and goes down the slope, divided by how strongly its edges hold it, by steps of
which each lowers E (Armijo).  No point sees another.
"""

from __future__ import annotations

import numpy as np

from napari_embedding_game.core.energy import mesh_loops
from napari_embedding_game.core.energy.compiled_pairs import pair_slope, pair_value
from napari_embedding_game.core.energy.pair_loops import OPTIONS, repel_row
from napari_embedding_game.core.loop_cache import njit

MAX_STEPS = 100
_STARTS = 8
"""Nearest neighbours whose positions are tried as a start."""
_MAX_STEP = 2.0
"""In units of the map: kernels are about 1 wide."""
_SETTLED = 1e-4
"""Length of a step, in units of the map, after which a point stays."""
_HALVINGS = 12
_DECREASE = 1e-4
"""Of the decrease that the slope promises: Armijo's condition."""


@njit(**OPTIONS)
def _read_grid(x, potential, low, spacing, gradient):
    """Return the potential at a position, and write its gradient."""
    n_layers = min(potential.shape[1], mesh_loops.WIDTH)
    # The axes of a map are rows, columns and layers of the grid.
    layer = (x[2] - low[2]) / spacing if n_layers > 1 else 0.0
    row, column = (x[0] - low[0]) / spacing, (x[1] - low[1]) / spacing
    point = mesh_loops.splines_at(row, layer, column, n_layers)
    value, g0, g1, g2 = mesh_loops.field(point, potential, n_layers)
    gradient[0] = g0 / spacing
    gradient[1] = g2 / spacing
    if n_layers > 1:
        gradient[2] = g1 / spacing
    return value


@njit(**OPTIONS)
def _energy(f, k, x, positions, weights, field, scratch, gradient):
    """Return E at x and how strongly its edges hold it; write its gradient."""
    strength, sources, potential, low, high, spacing = field
    single, pushes = scratch
    d = x.shape[0]
    if sources.shape[1] > 0:
        for c in range(d):
            single[0, c] = x[c]
        total = np.float64(
            repel_row(k, 0, sources.shape[1], single, sources, None, pushes, None)
        )
        for c in range(d):
            gradient[c] = pushes[0, c]
    else:
        total = _read_grid(x, potential, low, spacing, gradient)
    total *= strength
    for c in range(d):  # rounding must not drive x off a line
        gradient[c] *= strength if low[c] < high[c] else 0.0
    stiffness = 1e-30
    for m in range(positions.shape[0]):
        s = 0.0
        for c in range(d):
            s += (x[c] - positions[m, c]) ** 2
        total += weights[m] * pair_value(f, s)
        steep = 2.0 * weights[m] * pair_slope(f, s)
        stiffness += abs(steep)
        for c in range(d):
            gradient[c] += steep * (x[c] - positions[m, c])
    return total, stiffness


@njit(**OPTIONS)
def _descend(f, k, x, positions, weights, field, scratch, work):
    """Move x downhill until it settles."""
    low, high = field[3], field[4]
    gradient, there, trial = work
    d = x.shape[0]
    energy, stiffness = _energy(f, k, x, positions, weights, field, scratch, gradient)
    for _ in range(MAX_STEPS):
        squared = 0.0
        for c in range(d):
            squared += gradient[c] * gradient[c]
        t = min(1.0 / stiffness, _MAX_STEP / max(np.sqrt(squared), 1e-30))
        is_lower = False
        for _ in range(_HALVINGS):
            is_inside = True
            for c in range(d):
                trial[c] = x[c] - t * gradient[c]
                is_inside = is_inside and low[c] <= trial[c] <= high[c]
            if is_inside:
                lower, stiffness = _energy(
                    f, k, trial, positions, weights, field, scratch, there
                )
                is_lower = lower <= energy - _DECREASE * t * squared
            if is_lower:
                break
            t *= 0.5
        if not is_lower:
            return
        energy = lower
        longest = 0.0
        for c in range(d):
            longest = max(longest, abs(trial[c] - x[c]))
            x[c] = trial[c]
            gradient[c] = there[c]
        if longest < _SETTLED:
            return


@njit(**OPTIONS)
def _begin(f, k, x, positions, weights, field, scratch, work):
    """Write the start with the lowest energy: the mean or a nearest neighbour."""
    d = x.shape[0]
    gradient, _, trial = work
    total = 0.0
    x[:] = 0.0
    for m in range(positions.shape[0]):
        total += abs(weights[m])
        for c in range(d):
            x[c] += abs(weights[m]) * positions[m, c]
    for c in range(d):
        x[c] /= total
    lowest, _ = _energy(f, k, x, positions, weights, field, scratch, gradient)
    for m in range(min(_STARTS, positions.shape[0])):
        for c in range(d):
            trial[c] = positions[m, c]
        energy, _ = _energy(f, k, trial, positions, weights, field, scratch, gradient)
        if energy < lowest:
            lowest = energy
            for c in range(d):
                x[c] = trial[c]


@njit(**OPTIONS)
def place_rows(begin, end, f, k, indices, weights, y, field, placed):
    """Write the positions of some new rows, (Q, d) float32.

    ``indices``, ``weights`` (Q, M): their edges.  ``field``: the factor c; sources (d,
    S), or none where the sum of k is read from a grid: at its nodes (rows, layers,
    columns); its ends (d,), beyond which nothing is placed; its spacing.
    """
    d = placed.shape[1]
    positions, pulls = np.empty((indices.shape[1], d)), np.empty(indices.shape[1])
    scratch = np.empty((1, d), np.float32), np.empty((1, d), np.float32)
    work = np.empty(d), np.empty(d), np.empty(d)
    x = np.empty(d)
    for q in range(begin, end):
        count = 0
        for m in range(indices.shape[1]):
            if weights[q, m] != 0:
                pulls[count] = weights[q, m]
                for c in range(d):
                    positions[count, c] = y[indices[q, m], c]
                count += 1
        ends, strengths = positions[:count], pulls[:count]
        _begin(f, k, x, ends, strengths, field, scratch, work)
        _descend(f, k, x, ends, strengths, field, scratch, work)
        for c in range(d):
            placed[q, c] = x[c]
