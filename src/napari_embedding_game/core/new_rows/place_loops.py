"""Compiled gradient descent of new rows to their positions on a finished map.

    E(x) = sum_m w_m f(|x - y_m|^2) + c sum_j k(|x - x_j|^2)

The descent starts where E is lowest among the mean of the neighbours and the positions
of the nearest neighbours.  Each step follows the negative gradient divided by the
stiffness of the row's edges, and is halved until it lowers E (Armijo).  New rows do not
affect one another.
"""

from __future__ import annotations

import numpy as np

from napari_embedding_game.core.energy import mesh_loops
from napari_embedding_game.core.energy.compiled_pairs import pair_slope, pair_value
from napari_embedding_game.core.energy.pair_loops import OPTIONS, write_row_repulsion
from napari_embedding_game.core.loop_cache import njit

MAX_STEPS = 100
_STARTS = 8
"""Number of nearest neighbours whose positions are tried as a start."""
_MAX_STEP = 2.0
"""Longest step, in units of the map; kernels are about 1 wide."""
_SETTLED = 1e-4
"""Length of a step, in units of the map, at which the descent ends."""
_HALVINGS = 12
_DECREASE = 1e-4
"""Least share of the decrease predicted by the gradient: Armijo's condition."""


@njit(**OPTIONS)
def _read_potential(x, potential, low, spacing, gradient):
    """Return the potential of a grid at position ``x`` (d,), and write its gradient.

    ``potential`` (rows, layers, columns): values at the nodes; ``low`` (d,): lower ends
    of the grid; ``spacing``: distance between nodes; ``gradient`` (d,): written.
    """
    n_layers = min(potential.shape[1], mesh_loops.WIDTH)
    # The axes of a map are rows, columns and layers of the grid.
    layer = (x[2] - low[2]) / spacing if n_layers > 1 else 0.0
    row, column = (x[0] - low[0]) / spacing, (x[1] - low[1]) / spacing
    point = mesh_loops.find_corner_and_splines(row, layer, column, n_layers)
    value, g0, g1, g2 = mesh_loops.interpolate_potential(point, potential, n_layers)
    gradient[0] = g0 / spacing
    gradient[1] = g2 / spacing
    if n_layers > 1:
        gradient[2] = g1 / spacing
    return value


@njit(**OPTIONS)
def _compute_energy_and_stiffness(
    f, k, x, positions, weights, field, scratch, gradient
):
    """Return E at ``x`` (d,) and the stiffness of its edges, and write E's gradient.

    ``positions`` (M, d), ``weights`` (M,): ends and weights of the edges; ``gradient``
    (d,): written, 0 in a dimension where the area of ``field`` has no width.  The
    stiffness is the sum of |2 w_m f'|, at least 1e-30.  ``f``, ``k``, ``field``: see
    :func:`place_rows`; ``scratch`` is overwritten.
    """
    strength, sources, potential, low, high, spacing = field
    single, pushes = scratch
    d = x.shape[0]
    if sources.shape[1] > 0:
        for c in range(d):
            single[0, c] = x[c]
        total = np.float64(
            write_row_repulsion(
                k, 0, sources.shape[1], single, sources, None, pushes, None
            )
        )
        for c in range(d):
            gradient[c] = pushes[0, c]
    else:
        total = _read_potential(x, potential, low, spacing, gradient)
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
def _minimise_energy(f, k, x, positions, weights, field, scratch, work):
    """Minimise E from ``x`` (d,) on by gradient descent; ``x`` is changed in place.

    It ends after ``MAX_STEPS`` steps, after a step shorter than ``_SETTLED``, or where
    no halved step lowers E inside the area of ``field``.  ``scratch`` and ``work`` are
    overwritten; other parameters: see :func:`_compute_energy_and_stiffness`.
    """
    low, high = field[3], field[4]
    gradient, there, trial = work
    d = x.shape[0]
    energy, stiffness = _compute_energy_and_stiffness(
        f, k, x, positions, weights, field, scratch, gradient
    )
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
                lower, stiffness = _compute_energy_and_stiffness(
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
def _write_best_start(f, k, x, positions, weights, field, scratch, work):
    """Write to ``x`` (d,) the start of lowest E.

    Tried are the weighted mean of the neighbours' positions, and the positions of the
    first ``_STARTS`` neighbours.  ``scratch`` and ``work`` are overwritten; other
    parameters: see :func:`_compute_energy_and_stiffness`.
    """
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
    lowest, _ = _compute_energy_and_stiffness(
        f, k, x, positions, weights, field, scratch, gradient
    )
    for m in range(min(_STARTS, positions.shape[0])):
        for c in range(d):
            trial[c] = positions[m, c]
        energy, _ = _compute_energy_and_stiffness(
            f, k, trial, positions, weights, field, scratch, gradient
        )
        if energy < lowest:
            lowest = energy
            for c in range(d):
                x[c] = trial[c]


@njit(**OPTIONS)
def place_rows(begin, end, f, k, indices, weights, y, field, placed):
    """Write the positions of new rows begin to end to ``placed`` (Q, d) float32.

    ``f``, ``k``: attraction and kernel; ``indices``, ``weights`` (Q, M): edges to the
    fitted rows, nearest first, which lie at ``y`` (N, d); edges of weight 0 are left
    out, and a row without others gets the position of the nearest fitted row.

    ``field`` is a tuple of:

    1. the factor c,
    2. the sources (d, S), empty where the sum of k is read from a grid,
    3. the potential at the nodes of the grid (rows, layers, columns),
    4. the lower ends (d,) of the area that rows are placed in,
    5. the upper ends (d,) of this area,
    6. the spacing of the grid.
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
        if count == 0:  # nothing holds the row, which would leave the map
            for c in range(d):
                placed[q, c] = y[indices[q, 0], c]
            continue
        ends, strengths = positions[:count], pulls[:count]
        _write_best_start(f, k, x, ends, strengths, field, scratch, work)
        _minimise_energy(f, k, x, ends, strengths, field, scratch, work)
        for c in range(d):
            placed[q, c] = x[c]
