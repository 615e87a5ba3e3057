"""Compiled loops of :mod:`edges`: bisections for the bandwidth of each row.

Also a counting sort of nodes by group and the graph between groups, which clusters use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.elementary import exp, log
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import CHECKED, LOOP, run_blocks

Distances = NDArray[np.floating]
"""(N, K), nearest first."""
GroupGraph = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]
"""indptr, indices and weights of compressed rows; indices are not sorted."""
STEPS = 20
"""Typical number of steps of a bisection."""
_LANES = 16
"""Rows are padded to a multiple of this, as exponentials are computed in vectors."""
_LOG2 = 0.6931471805599453


def compute_conditional_probabilities(
    distances: Distances, perplexity: float
) -> NDArray[np.float32]:
    """Return p(j | i), proportional to exp(-beta_i d_ij^2), (N, K) float32.

    Each row sums to 1.  A bisection finds the beta_i with entropy log(perplexity), to
    1e-5 or as near as 64 steps come.
    """
    target = log(float(perplexity))
    return _solve_row_weights(_write_conditional_probabilities, distances, target)


def compute_fuzzy_memberships(distances: Distances) -> NDArray[np.float32]:
    """Return UMAP's membership of each neighbour, (N, K) float32 in (0, 1].

    The membership is exp(-(d - rho) / sigma), at most 1.  rho is the smallest distance
    above 0 of the row.  sigma is at least a thousandth of the row's mean distance and
    makes the memberships of the row sum to log2(K + 1).
    """
    target = log(distances.shape[1] + 1.0) / _LOG2
    return _solve_row_weights(_write_fuzzy_memberships, distances, target)


def _solve_row_weights(loop: Any, distances: Distances, target: Any) -> Any:
    """Run a bisection loop over all rows; return the weights, (N, K) float32.

    ``target``: the number that the loop makes each row's entropy or sum approach.
    """
    out = np.empty(distances.shape, np.float32)
    run_blocks(loop, len(out), STEPS * out.size, distances, target, out)
    return out


def sort_by_group(
    groups: NDArray[np.integer], n_groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each group begins, (G + 1,), and the nodes sorted by group, (N,).

    ``groups`` (N,): group of each node, 0 to ``n_groups`` - 1.  Nodes of one group are
    ascending (a counting sort).
    """
    groups = np.ascontiguousarray(groups, np.int32)  # the loop is compiled for one type
    begins = np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(groups, minlength=n_groups), out=begins[1:])
    order = np.empty(len(groups), np.int64)
    _write_members_by_group(groups, begins[:-1].copy(), order)
    return begins, order


def build_group_graph(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    weights: NDArray[np.floating],
    groups: NDArray[np.integer],
    n_groups: int,
) -> GroupGraph:
    """Return the graph between groups of nodes: weights summed in float64.

    The graph of N nodes is given by ``indptr``, ``indices`` and ``weights``; ``groups``
    (N,): group of each node.  The result is in compressed rows: indptr (G + 1,),
    groups, weights.  Edges inside a group are summed on the diagonal.  Columns of a row
    are not sorted.
    """
    # Groups are summed one by one in a single row of sums, so that no more memory is
    # used than the result takes.
    begins, nodes = sort_by_group(groups, n_groups)
    groups = np.ascontiguousarray(groups, np.int32)
    kept = _view_as_unsigned(indptr), _view_as_unsigned(indices), weights
    row, seen_by = np.zeros(n_groups), np.full(n_groups, -1, np.int32)
    found_indptr = np.zeros(n_groups + 1, np.int32)
    found = np.empty(max(16 * n_groups, 16), np.int32)
    sums = np.empty(len(found))
    done = 0
    while True:
        rows = found_indptr, found, sums
        done = _write_group_rows(
            done, *kept, groups, begins, nodes, row, seen_by, *rows
        )
        if done == n_groups:
            end = found_indptr[n_groups]
            return found_indptr, found[:end].copy(), sums[:end].copy()
        more = len(found) + n_groups
        found, sums = (np.append(each, np.empty(more, each.dtype)) for each in rows[1:])


def _view_as_unsigned(numbers: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return int32 numbers as uint32, so that one loop takes scipy's and our types."""
    return numbers.view(np.uint32) if numbers.dtype == np.int32 else numbers


@njit(**LOOP)
def _write_members_by_group(groups, free, order):
    """Write the nodes of each group to ``order``, from ``free[group]`` on.

    ``free`` is advanced in place.
    """
    for i in range(groups.shape[0]):
        order[free[groups[i]]] = i
        free[groups[i]] += 1


@njit(**LOOP)
def _write_group_rows(
    first,
    indptr,
    indices,
    weights,
    groups,
    begins,
    nodes,
    row,
    seen_by,
    found_indptr,
    found,
    sums,
):
    """Write the rows of the group graph from group ``first`` on.

    Written are ``found_indptr`` (G + 1,), ``found`` (columns) and ``sums``.  The nodes
    of group g are ``nodes[begins[g] : begins[g + 1]]``.  Scratch arrays of one number
    per group: ``row`` of zeros, ``seen_by`` of numbers below 0.  Returns the first
    group for whose row ``found`` might be too short, or the number of groups.
    """
    n_groups = row.shape[0]
    for group in range(first, n_groups):
        begin = np.int64(found_indptr[group])
        if begin + n_groups > found.shape[0]:
            return group
        end = begin
        for at in range(begins[group], begins[group + 1]):
            node = nodes[at]
            for e in range(np.int64(indptr[node]), np.int64(indptr[node + 1])):
                neighbor = groups[indices[e]]
                if seen_by[neighbor] != group:
                    seen_by[neighbor] = group
                    found[end] = neighbor
                    end += 1
                row[neighbor] += weights[e]
        for at in range(begin, end):
            sums[at] = row[found[at]]
            row[found[at]] = 0.0
        found_indptr[group + 1] = end
    return n_groups


@njit(**CHECKED)
def _write_conditional_probabilities(begin, end, distances, target_entropy, out):
    """Write p(j | i) of rows begin to end to ``out`` (N, K), by a bisection.

    ``target_entropy``: logarithm of the perplexity.  Equal distances have equal p.
    """
    k = distances.shape[1]
    width = -(-k // _LANES) * _LANES
    row, p = np.zeros(width), np.empty(width)
    for i in range(begin, end):
        for j in range(k):
            row[j] = np.float64(distances[i, j]) ** 2
        least = row[:k].min()
        mean = row[:k].mean() - least
        beta = 1.0 / mean if mean > 0.0 else 1.0
        low, high = 0.0, np.inf
        for _ in range(64):
            total, weighted = 0.0, 0.0
            for j in range(width):
                p[j] = exp(-beta * (row[j] - least))
            for j in range(k):
                total += p[j]
                weighted += p[j] * (row[j] - least)
            entropy = log(total) + beta * weighted / total
            if abs(entropy - target_entropy) < 1e-5:
                break
            if entropy > target_entropy:
                low = beta
                beta = 2.0 * beta if high == np.inf else 0.5 * (low + high)
            else:
                high = beta
                beta = 0.5 * (low + high)
        for j in range(k):
            out[i, j] = p[j] / total


@njit(**CHECKED)
def _write_fuzzy_memberships(begin, end, distances, target_sum, out):
    """Write memberships of rows begin to end to ``out`` (N, K), by a bisection.

    ``target_sum``: the sum that the memberships of a row approach in at most 64 steps.
    """
    k = distances.shape[1]
    width = -(-k // _LANES) * _LANES
    exponents, p = np.zeros(width), np.empty(width)
    for i in range(begin, end):
        row = distances[i]
        rho = 0.0
        for j in range(k):
            if row[j] > 0.0:
                rho = row[j]
                break
        for j in range(k):
            exponents[j] = min(rho - row[j], 0.0)
        summed = distances.dtype.type(0)
        for j in range(k):  # by numpy's mean numba compiles a second longer
            summed += row[j]
        mean, low, high = distances.dtype.type(summed / k), 0.0, np.inf
        # The search is independent of the unit of length: it begins at the row's mean.
        sigma = mean if mean > 0.0 else 1.0
        for _ in range(64):
            total = 0.0
            for j in range(width):
                p[j] = exp(exponents[j] / sigma)
            for j in range(k):
                total += p[j]
            if abs(total - target_sum) < 1e-5:
                break
            if total > target_sum:
                high = sigma
                sigma = 0.5 * (low + high)
            else:
                low = sigma
                sigma = 2.0 * sigma if high == np.inf else 0.5 * (low + high)
        sigma = max(sigma, 1e-3 * (mean * k / (k + 1)))
        for j in range(k):
            out[i, j] = exp(exponents[j] / sigma)
