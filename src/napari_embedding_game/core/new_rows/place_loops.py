"""The compiled search for the place of a new row on a finished map.

    E(x) = sum_m w_m f(|x - y_m|^2) + c sum_j k(|x - x_j|^2)

It begins where E is lowest among the mean of its neighbours and the places of the
nearest, and goes down the slope, divided by how strongly its edges hold it, by steps of
which each lowers E (Armijo).  No point sees another.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,assignment"
# mypy: disable-error-code="call-arg,var-annotated"

from __future__ import annotations

import numpy as np
from numba import njit

from napari_embedding_game.core.energy import mesh_loops
from napari_embedding_game.core.energy.compiled_pairs import pair_slope, pair_value
from napari_embedding_game.core.energy.pair_loops import OPTIONS, repel_row

MOST_STEPS = 100
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
    n_layers = min(potential.shape[1], mesh_loops.WIDTH)
    # The axes of a map are rows, columns and layers of the grid.
    layer = (x[2] - low[2]) / spacing if n_layers > 1 else 0.0
    row, column = (x[0] - low[0]) / spacing, (x[1] - low[1]) / spacing
    point = mesh_loops.stand(row, layer, column, n_layers)
    value, g0, g1, g2 = mesh_loops.field(point, potential, n_layers)
    gradient[0] = g0 / spacing
    gradient[1] = g2 / spacing
    if n_layers > 1:
        gradient[2] = g1 / spacing
    return value


@njit(**OPTIONS)
def _energy(f, k, x, places, weights, field, scratch, gradient):
    """Return E at x and how strongly its edges hold it; write its gradient."""
    strength, sources, potential, low, high, spacing = field
    single, pushes, pull = scratch
    if sources.shape[1] > 0:
        single[0] = x
        total = np.float64(
            repel_row(k, 0, sources.shape[1], single, sources, None, pushes, pull)
        )
        gradient[:] = pushes[0]
    else:
        total = _read_grid(x, potential, low, spacing, gradient)
    total *= strength
    gradient *= strength * (low < high)  # rounding must not drive x off a line
    stiffness = 1e-30
    for m in range(places.shape[0]):
        s = 0.0
        for c in range(x.shape[0]):
            s += (x[c] - places[m, c]) ** 2
        total += weights[m] * pair_value(f, s)
        steep = 2.0 * weights[m] * pair_slope(f, s)
        stiffness += abs(steep)
        for c in range(x.shape[0]):
            gradient[c] += steep * (x[c] - places[m, c])
    return total, stiffness


@njit(**OPTIONS)
def _descend(f, k, x, places, weights, field, scratch, work):
    """Move x downhill until it settles."""
    low, high = field[3], field[4]
    gradient, there, trial = work
    energy, stiffness = _energy(f, k, x, places, weights, field, scratch, gradient)
    for _ in range(MOST_STEPS):
        squared = (gradient * gradient).sum()
        t = min(1.0 / stiffness, _LONGEST_STEP / max(np.sqrt(squared), 1e-30))
        is_lower = False
        for _ in range(_HALVINGS):
            trial[:] = x - t * gradient
            if (low <= trial).all() and (trial <= high).all():
                lower, stiffness = _energy(
                    f, k, trial, places, weights, field, scratch, there
                )
                is_lower = lower <= energy - _DECREASE * t * squared
            if is_lower:
                break
            t *= 0.5
        if not is_lower:
            return
        energy, longest = lower, np.abs(trial - x).max()
        x[:], gradient[:] = trial, there
        if longest < _SETTLED:
            return


@njit(**OPTIONS)
def _begin(f, k, x, places, weights, field, scratch, work):
    """Write the place with the lowest energy among the mean and the nearest."""
    gradient, _, trial = work
    shares = np.abs(weights)
    x[:] = (shares.reshape(-1, 1) * places).sum(axis=0) / shares.sum()
    lowest, _ = _energy(f, k, x, places, weights, field, scratch, gradient)
    for m in range(min(_STARTS, places.shape[0])):
        trial[:] = places[m]
        energy, _ = _energy(f, k, trial, places, weights, field, scratch, gradient)
        if energy < lowest:
            lowest, x[:] = energy, trial


@njit(**OPTIONS)
def place_rows(begin, end, f, k, found, weights, y, field, placed):
    """Write the places of some new rows, (Q, d) float32.

    ``found``, ``weights`` (Q, M): their edges.  ``field``: the factor c; sources (d,
    S), or none where the sum of k is read from a grid: at its nodes (rows, layers,
    columns); its ends (d,), beyond which nothing is placed; its spacing.
    """
    d = placed.shape[1]
    sources = field[1]
    scratch = (
        np.empty((1, d), np.float32),
        np.empty((1, d), np.float32),
        np.empty((d, sources.shape[1]), np.float32),
    )
    work = np.empty(d), np.empty(d), np.empty(d)
    x = np.empty(d)
    for q in range(begin, end):
        scratch[2][:] = 0
        is_edge = weights[q] != 0
        ends = y[found[q][is_edge]].astype(np.float64)
        strengths = weights[q][is_edge].astype(np.float64)
        _begin(f, k, x, ends, strengths, field, scratch, work)
        _descend(f, k, x, ends, strengths, field, scratch, work)
        placed[q] = x
