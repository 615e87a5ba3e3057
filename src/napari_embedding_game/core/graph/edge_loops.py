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


@njit(**CHECKED)
def by_group(groups, n_groups):
    """Return compressed rows of what is in each group: a counting sort."""
    indptr = np.zeros(n_groups + 1, np.int64)
    for group in groups:
        indptr[group + 1] += 1
    for group in range(n_groups):
        indptr[group + 1] += indptr[group]
    free, order = indptr[:-1].copy(), np.empty(groups.shape[0], np.int64)
    for i in range(groups.shape[0]):
        order[free[groups[i]]] = i
        free[groups[i]] += 1
    return indptr, order


@njit(**LOOP)
def group_graph(indptr, indices, weights, groups, n_groups):
    """Return the graph between groups of nodes, its weights summed in float64."""
    # Group by group with one row of sums, so memory stays that of the answer.
    begins, nodes = by_group(groups, n_groups)
    row = np.zeros(n_groups)
    is_there = np.zeros(n_groups, np.bool_)
    touched = np.empty(n_groups, np.int32)
    out_indptr = np.zeros(n_groups + 1, np.int32)
    out_indices = np.empty(max(16 * n_groups, 16), np.int32)
    out_weights = np.empty(out_indices.shape[0])
    for group in range(n_groups):
        n_touched = 0
        for at in range(begins[group], begins[group + 1]):
            node = nodes[at]
            for e in range(np.int64(indptr[node]), np.int64(indptr[node + 1])):
                neighbor = groups[indices[e]]
                if not is_there[neighbor]:
                    is_there[neighbor] = True
                    touched[n_touched] = neighbor
                    n_touched += 1
                row[neighbor] += weights[e]
        begin = np.int64(out_indptr[group])
        if begin + n_touched > out_indices.shape[0]:
            more = np.zeros(begin + 2 * n_touched, np.int32)
            out_indices = np.append(out_indices, more)
            out_weights = np.append(out_weights, np.zeros(more.shape[0]))
        for k in range(n_touched):
            neighbor = touched[k]
            out_indices[begin + k] = neighbor
            out_weights[begin + k] = row[neighbor]
            row[neighbor] = 0.0
            is_there[neighbor] = False
        out_indptr[group + 1] = begin + n_touched
    end = out_indptr[n_groups]
    return out_indptr, out_indices[:end].copy(), out_weights[:end].copy()


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
        mean, low, high = row.mean(), 0.0, np.inf
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
