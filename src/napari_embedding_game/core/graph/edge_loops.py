"""The compiled loops of :mod:`edges`: bisections for the bandwidth of each row.

And a counting sort and the graph between groups, which clusters need as well.
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
"""indptr, indices and weights of compressed rows, as they come in a row."""
STEPS = 20
"""Of a bisection, about."""
_LANES = 16
"""Exponentials are worked out in vectors: of whole ones no slow rest is left."""
_LOG2 = 0.6931471805599453


def conditional_probabilities(
    distances: Distances, perplexity: float
) -> NDArray[np.float32]:
    """Return each row's chances exp(-beta d^2), normalised, (N, K) float32.

    beta gives a row the entropy log(perplexity), by bisection to 1e-5, or as near as
    can be.
    """
    return _solved(_probabilities, distances, log(float(perplexity)))


def fuzzy_memberships(distances: Distances) -> NDArray[np.float32]:
    """Return UMAP's membership of each neighbour, (N, K) float32 in (0, 1].

    exp(-(d - rho) / sigma): rho is the least distance above 0; sigma, at least a
    thousandth of the row's mean, makes its memberships sum to log2(K + 1).
    """
    return _solved(_memberships, distances, log(distances.shape[1] + 1.0) / _LOG2)


def _solved(loop: Any, distances: Distances, target: Any) -> Any:
    out = np.empty(distances.shape, np.float32)
    run_blocks(loop, len(out), STEPS * out.size, distances, target, out)
    return out


def by_group(
    groups: NDArray[np.integer], n_groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return compressed rows of what is in each group: a counting sort."""
    groups = np.ascontiguousarray(groups, np.int32)  # the loop is compiled for one type
    begins = np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(groups, minlength=n_groups), out=begins[1:])
    order = np.empty(len(groups), np.int64)
    _sort_by_group(groups, begins[:-1].copy(), order)
    return begins, order


def group_graph(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    weights: NDArray[np.floating],
    groups: NDArray[np.integer],
    n_groups: int,
) -> GroupGraph:
    """Return the graph between groups of nodes, its weights summed in float64.

    In compressed rows: where they begin, the groups, and the weights.
    """
    # Group by group with one row of sums, so memory stays that of the answer.
    begins, nodes = by_group(groups, n_groups)
    groups = np.ascontiguousarray(groups, np.int32)
    kept = _unsigned(indptr), _unsigned(indices), weights
    row, seen_by = np.zeros(n_groups), np.full(n_groups, -1, np.int32)
    found_indptr = np.zeros(n_groups + 1, np.int32)
    found = np.empty(max(16 * n_groups, 16), np.int32)
    sums = np.empty(len(found))
    done = 0
    while True:
        rows = found_indptr, found, sums
        done = _sum_groups(done, *kept, groups, begins, nodes, row, seen_by, *rows)
        if done == n_groups:
            end = found_indptr[n_groups]
            return found_indptr, found[:end].copy(), sums[:end].copy()
        more = len(found) + n_groups
        found, sums = (np.append(each, np.empty(more, each.dtype)) for each in rows[1:])


def _unsigned(numbers: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return scipy's numbers in the type of :class:`edges.Edges`: one loop for both."""
    return numbers.view(np.uint32) if numbers.dtype == np.int32 else numbers


@njit(**LOOP)
def _sort_by_group(groups, free, order):
    """Write the numbers of what is in each group from where it begins, ``free``."""
    for i in range(groups.shape[0]):
        order[free[groups[i]]] = i
        free[groups[i]] += 1


@njit(**LOOP)
def _sum_groups(
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
    """Write the rows of groups from ``first`` on; return the one without room, or all.

    ``row``: zeros; ``seen_by``: below 0, of each group.
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
def _probabilities(begin, end, distances, target, out):
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
            if abs(entropy - target) < 1e-5:
                break
            if entropy > target:
                low = beta
                beta = 2.0 * beta if high == np.inf else 0.5 * (low + high)
            else:
                high = beta
                beta = 0.5 * (low + high)
        for j in range(k):
            out[i, j] = p[j] / total


@njit(**CHECKED)
def _memberships(begin, end, distances, target, out):
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
            if abs(total - target) < 1e-5:
                break
            if total > target:
                high = sigma
                sigma = 0.5 * (low + high)
            else:
                low = sigma
                sigma = 2.0 * sigma if high == np.inf else 0.5 * (low + high)
        sigma = max(sigma, 1e-3 * (mean * k / (k + 1)))
        for j in range(k):
            out[i, j] = exp(exponents[j] / sigma)
