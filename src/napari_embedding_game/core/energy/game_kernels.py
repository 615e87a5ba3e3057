"""The compiled inner loops: every pairwise force of the game, once.

A kernel sees plain arrays and returns plain sums; what they mean is said in
:mod:`objective` (the energy) and :mod:`pressure`.

* **Chunks.** Loops over points run in chunks of :data:`CHUNK` points.  The
  chunks, not the threads, own the partial sums, so a result is the same to the
  last bit for every number of threads.
* **Twice, with one body.** ``*_serial`` is for small problems, where a parallel
  region costs more than it saves and where a thread that waits for a core held
  by the window would stall the game; ``*_parallel`` for the others.
* **Sums in one order.** What is added up in a row goes through :mod:`lanes`, and
  ``fastmath`` leaves out all that changes digits: a game is the same whether its
  loops were just compiled or read back, and alone or beside others.
* **Two and three dimensions.** ``flat`` does not change inside a loop, so the
  compiler takes the question out of it.
* **Unsigned indices.** With signed ones numba tests each for being negative,
  which doubles the time of the edge loop.
* **Edges one by one.** Vectors of points gathered from all over memory are slower
  than one point after the other.
* **No logarithm.** It costs three times the rest of the edge loop, and the
  gradient does not need it: :func:`edge_energy_serial` is a loop of its own,
  run only when the number is wanted.

Arrays: ``y`` (N, d) points; ``z`` (d, L) landmarks, a row per coordinate;
``indptr`` (N+1,) and ``indices`` uint32, ``weights`` of ``y``'s type: the
symmetric edges of :class:`affinities.Edges`.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,assignment,call-arg,var-annotated"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, prange

from napari_embedding_game.core.energy.lanes import (
    STRICT,
    fused,
    repel_row,
    row_powers,
    row_sum,
)

CHUNK = 1024

_OPTIONS: dict[str, Any] = {
    "fastmath": STRICT,
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
}
_PARALLEL: dict[str, Any] = {**_OPTIONS, "parallel": True}


def n_chunks(n_points: int) -> int:
    """Return the number of chunks that ``n_points`` points fall into."""
    return -(-n_points // CHUNK)


# --- Forces: the gradient of attraction and of the landmark sum -----------------


@njit(**_OPTIONS)
def _attract(i, indptr, indices, weights, y, gradient, flat):
    """Write d/dy_i of the sum of w log(1 + u^2) over the edges at point i."""
    zero = weights.dtype.type(0)
    one = weights.dtype.type(1)
    x0 = y[i, 0]
    x1 = y[i, 1]
    x2 = zero if flat else y[i, 2]
    g0 = zero
    g1 = zero
    g2 = zero
    for e in range(indptr[i], indptr[i + 1]):
        j = indices[e]
        d0 = x0 - y[j, 0]
        d1 = x1 - y[j, 1]
        d2 = zero if flat else x2 - y[j, 2]
        pull = weights[e] / fused(d2, d2, fused(d1, d1, fused(d0, d0, one)))
        g0 = fused(pull, d0, g0)
        g1 = fused(pull, d1, g1)
        g2 = fused(pull, d2, g2)
    gradient[i, 0] = g0 + g0
    gradient[i, 1] = g1 + g1
    if not flat:
        gradient[i, 2] = g2 + g2


@njit(**_OPTIONS)
def _repel(begin, end, y, z, repulsion, pull):
    """Write d/dy_i of s_i = sum_a q(|y_i - z_a|), add d s_i/dz_a to ``pull``.

    Returns the sum of s_i over the points from ``begin`` to ``end``.
    """
    total = 0.0
    if y.shape[1] == 2:
        flat_z, flat_pull = (z[0], z[1]), (pull[0], pull[1])
        for i in range(begin, end):
            s, g0, g1 = repel_row((y[i, 0], y[i, 1]), flat_z, flat_pull)
            repulsion[i, 0] = g0
            repulsion[i, 1] = g1
            total += s
        return total
    rows, pulls = (z[0], z[1], z[2]), (pull[0], pull[1], pull[2])
    for i in range(begin, end):
        s, g0, g1, g2 = repel_row((y[i, 0], y[i, 1], y[i, 2]), rows, pulls)
        repulsion[i, 0] = g0
        repulsion[i, 1] = g1
        repulsion[i, 2] = g2
        total += s
    return total


@njit(**_OPTIONS)
def _forces(c, indptr, indices, weights, y, z, attraction, repulsion, pull, s_yz):
    flat = y.shape[1] == 2
    begin = c * CHUNK
    end = min(begin + CHUNK, y.shape[0])
    for i in range(begin, end):
        _attract(i, indptr, indices, weights, y, attraction, flat)
    s_yz[c] = _repel(begin, end, y, z, repulsion, pull[c])


@njit(**_OPTIONS)
def forces_serial(indptr, indices, weights, y, z, attraction, repulsion, pull, s_yz):
    """Write the forces of all chunks of points, in one thread."""
    for c in range(s_yz.shape[0]):
        _forces(c, indptr, indices, weights, y, z, attraction, repulsion, pull, s_yz)


@njit(**_PARALLEL)
def forces_parallel(indptr, indices, weights, y, z, attraction, repulsion, pull, s_yz):
    """Write the forces of all chunks of points, in many threads."""
    for c in prange(s_yz.shape[0]):
        _forces(c, indptr, indices, weights, y, z, attraction, repulsion, pull, s_yz)


@njit(**_OPTIONS)
def landmark_sum(z, gradient):
    """Return S_zz, the diagonal included, and write its gradient, (d, L)."""
    points = z.T.copy()
    push = np.empty_like(points)
    total = _repel(0, z.shape[1], points, z, push, np.zeros_like(z))
    for a in range(z.shape[1]):
        for k in range(z.shape[0]):
            gradient[k, a] = push[a, k] + push[a, k]  # of either end
    return total


# --- The attraction's number, wanted only now and then --------------------------


@njit(**_OPTIONS)
def _edge_energy(c, indptr, indices, weights, y, sums):
    total = 0.0
    for i in range(c * CHUNK, min((c + 1) * CHUNK, y.shape[0])):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            squared = 0.0
            for k in range(y.shape[1]):
                difference = y[i, k] - y[j, k]
                squared += difference * difference
            total += weights[e] * math.log1p(squared)
    sums[c] = total


@njit(**_OPTIONS)
def edge_energy_serial(indptr, indices, weights, y, sums):
    """Write the sum of w log(1 + u^2) over all entries, a partial sum a chunk."""
    for c in range(sums.shape[0]):
        _edge_energy(c, indptr, indices, weights, y, sums)


@njit(**_PARALLEL)
def edge_energy_parallel(indptr, indices, weights, y, sums):
    """Like :func:`edge_energy_serial`."""
    for c in prange(sums.shape[0]):
        _edge_energy(c, indptr, indices, weights, y, sums)


# --- Repulsion along sampled edges (Eq. 8) ---------------------------------------


@njit(**_OPTIONS)
def symmetric_pairs(partners, one):
    """Return compressed rows of the pairs (i, partners[i, draw]), each in both rows.

    A counting sort, because a sorting one would take seconds for the N L pairs.
    Pairs drawn twice stand there twice; a point paired with itself pushes
    nothing, so both its entries are harmless.
    """
    n, width = partners.shape
    indptr = np.zeros(n + 1, np.uint32)
    for i in range(n):
        indptr[i + 1] += width
        for draw in range(width):
            indptr[partners[i, draw] + 1] += 1
    for i in range(n):
        indptr[i + 1] += indptr[i]
    indices = np.empty(indptr[n], np.uint32)
    free = indptr[:-1].copy()
    for i in range(n):
        for draw in range(width):
            j = partners[i, draw]
            indices[free[i]] = j
            free[i] += 1
            indices[free[j]] = i
            free[j] += 1
    return indptr, indices, np.full(indices.shape[0], one)


@njit(**_OPTIONS)
def _pair_repulsion(c, indptr, indices, weights, y, repulsion, sums):
    flat = y.shape[1] == 2
    zero = weights.dtype.type(0)
    one = weights.dtype.type(1)
    total = 0.0
    for i in range(c * CHUNK, min((c + 1) * CHUNK, y.shape[0])):
        x0 = y[i, 0]
        x1 = y[i, 1]
        x2 = zero if flat else y[i, 2]
        s = zero
        g0 = zero
        g1 = zero
        g2 = zero
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            d0 = x0 - y[j, 0]
            d1 = x1 - y[j, 1]
            d2 = zero if flat else x2 - y[j, 2]
            q = one / fused(d2, d2, fused(d1, d1, fused(d0, d0, one)))
            push = weights[e] * q
            s += push
            push *= q + q
            g0 = fused(push, d0, g0)
            g1 = fused(push, d1, g1)
            g2 = fused(push, d2, g2)
        repulsion[i, 0] = -g0
        repulsion[i, 1] = -g1
        if not flat:
            repulsion[i, 2] = -g2
        total += s
    sums[c] = total


@njit(**_OPTIONS)
def pair_repulsion_serial(indptr, indices, weights, y, repulsion, sums):
    """Write sum w q(u) over all entries and the gradient of half of it."""
    for c in range(sums.shape[0]):
        _pair_repulsion(c, indptr, indices, weights, y, repulsion, sums)


@njit(**_PARALLEL)
def pair_repulsion_parallel(indptr, indices, weights, y, repulsion, sums):
    """Like :func:`pair_repulsion_serial`."""
    for c in prange(sums.shape[0]):
        _pair_repulsion(c, indptr, indices, weights, y, repulsion, sums)


# --- Clusters (Eq. 7) -------------------------------------------------------------


@njit(**_OPTIONS)
def _squared_distances(i, y, z, out):
    """Write |y_i - z_a|^2 for all a and return the smallest."""
    least = y.dtype.type(np.inf)
    x0 = y[i, 0]
    x1 = y[i, 1]
    z0 = z[0]
    z1 = z[1]
    if y.shape[1] == 2:
        for a in range(z.shape[1]):
            d0 = x0 - z0[a]
            d1 = x1 - z1[a]
            out[a] = fused(d1, d1, d0 * d0)
    else:
        x2 = y[i, 2]
        z2 = z[2]
        for a in range(z.shape[1]):
            d0 = x0 - z0[a]
            d1 = x1 - z1[a]
            d2 = x2 - z2[a]
            out[a] = fused(d2, d2, fused(d1, d1, d0 * d0))
    for a in range(z.shape[1]):
        least = min(least, out[a])
    return least


@njit(**_OPTIONS)
def _nearest(squared, least):
    # Two passes, a minimum and a look-up, vectorise; one pass with both does not.
    for a in range(squared.shape[0]):
        if squared[a] == least:
            return a
    return 0


@njit(**_OPTIONS)
def nearest_landmark(y, z, labels):
    """Write the index of each point's nearest landmark; of equals, the first."""
    squared = np.empty(z.shape[1], y.dtype)
    for i in range(y.shape[0]):
        labels[i] = _nearest(squared, _squared_distances(i, y, z, squared))


# --- Pressure ---------------------------------------------------------------------


@njit(**_OPTIONS)
def _slope(u, near, weights, far, strengths):
    """Return dE/du of one lifted point and its own derivative, at height^2 = u."""
    pull, its_fall, _ = row_powers(near, weights, u)
    _, push, push_by_p = row_powers(far, strengths, u)
    return pull - push, 2.0 * push_by_p - its_fall


@njit(**_OPTIONS)
def lift(near, weights, far, strengths):
    """Return the height h >= 0 that minimises the energy of one lifted point.

    ``near`` and ``weights``: squared distances to the point's neighbours and
    their weights.  ``far`` and ``strengths``: squared distances to what repels
    it, and how hard.  Newton's steps in u = h^2, kept inside a bracket.
    """
    value, derivative = _slope(0.0, near, weights, far, strengths)
    if value >= 0.0:
        return 0.0
    low = 0.0
    high = 1.0
    while _slope(high, near, weights, far, strengths)[0] < 0.0:
        low = high
        high *= 4.0
        if high > 1e12:  # nothing holds this point down: no neighbours
            return math.sqrt(high)
    u = 0.5 * (low + high)
    for _ in range(60):
        value, derivative = _slope(u, near, weights, far, strengths)
        if value < 0.0:
            low = u
        else:
            high = u
        step = u - value / derivative if derivative > 0.0 else low
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - u) <= 1e-7 * (1.0 + u):
            break
        u = step
    return math.sqrt(u)


@njit(**_OPTIONS)
def _distances_to(i, indptr, indices, y, out):
    begin = np.int64(indptr[i])
    n = np.int64(indptr[i + 1]) - begin
    for e in range(n):
        j = indices[begin + e]
        squared = 0.0
        for k in range(y.shape[1]):
            difference = y[i, k] - y[j, k]
            squared += difference * difference
        out[e] = squared
    return n


@njit(**_OPTIONS)
def _widest(indptr):
    widest = 0
    for i in range(indptr.shape[0] - 1):
        widest = max(widest, np.int64(indptr[i + 1]) - np.int64(indptr[i]))
    return widest


@njit(**_OPTIONS)
def landmark_pressure(indptr, indices, weights, y, z, strength, own, labels, pressure):
    """Write each point's nearest landmark and its pressure under all landmarks.

    ``own``: share of the nearest landmark's push that is the point's own, which does
    not push it.
    """
    near = np.empty(_widest(indptr), y.dtype)
    far = np.empty(z.shape[1], y.dtype)
    strengths = np.full(z.shape[1], strength, y.dtype)
    for i in range(y.shape[0]):
        n = _distances_to(i, indptr, indices, y, near)
        nearest = _nearest(far, _squared_distances(i, y, z, far))
        labels[i] = nearest
        pull = weights[np.int64(indptr[i]) : np.int64(indptr[i + 1])]
        strengths[nearest] = strength * (1.0 - own)
        pressure[i] = lift(near[:n], pull, far, strengths)
        strengths[nearest] = strength


# --- All pairs, for the true energy (Eq. 1) ----------------------------------------


@njit(**_OPTIONS)
def kernel_rows(y, rows):
    """Return the sum over i in ``rows`` and all j of q(|y_i - y_j|), float64."""
    total = 0.0
    q = np.empty(y.shape[0])
    for i in rows:
        for j in range(y.shape[0]):
            squared = 1.0
            for k in range(y.shape[1]):
                difference = y[i, k] - y[j, k]
                squared += difference * difference
            q[j] = 1.0 / squared
        total += row_sum(q)
    return total
