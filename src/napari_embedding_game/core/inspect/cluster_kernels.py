"""The compiled loops of :mod:`clusters`: graphs of groups, Louvain, merging.

A graph is symmetric and in compressed rows, its diagonal the weight inside a
node counted from both ends, so that a row's sum is the node's degree.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,assignment"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}

_MOST_SWEEPS = 50
_GAIN = 1e-10
"""Share of the total weight below which a gain is rounding, not a gain."""


@njit(**_OPTIONS)
def _members(groups, n_groups):
    """Return compressed rows of the nodes of every group."""
    indptr = np.zeros(n_groups + 1, np.int64)
    for group in groups:
        indptr[group + 1] += 1
    for group in range(n_groups):
        indptr[group + 1] += indptr[group]
    free = indptr[:-1].copy()
    nodes = np.empty(groups.shape[0], np.int64)
    for node in range(groups.shape[0]):
        nodes[free[groups[node]]] = node
        free[groups[node]] += 1
    return indptr, nodes


@njit(**_OPTIONS)
def group_graph(indptr, indices, weights, groups, n_groups):
    """Return the graph between groups of nodes, its weights summed in float64.

    Group by group with one row of sums, so memory stays that of the answer.
    """
    begins, nodes = _members(groups, n_groups)
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
                other = groups[indices[e]]
                if not is_there[other]:
                    is_there[other] = True
                    touched[n_touched] = other
                    n_touched += 1
                row[other] += weights[e]
        begin = np.int64(out_indptr[group])
        if begin + n_touched > out_indices.shape[0]:
            longer = 2 * (begin + n_touched)
            grown, heavier = np.empty(longer, np.int32), np.empty(longer)
            grown[:begin] = out_indices[:begin]
            heavier[:begin] = out_weights[:begin]
            out_indices, out_weights = grown, heavier
        for k in range(n_touched):
            other = touched[k]
            out_indices[begin + k] = other
            out_weights[begin + k] = row[other]
            row[other] = 0.0
            is_there[other] = False
        out_indptr[group + 1] = begin + n_touched
    end = out_indptr[n_groups]
    return out_indptr, out_indices[:end].copy(), out_weights[:end].copy()


# --- Modularity at one resolution ------------------------------------------------


@njit(**_OPTIONS)
def move_nodes(indptr, indices, weights, resolution, order, labels):
    """Move nodes to the best neighbouring community until no move gains.

    ``labels`` (n,) int64 below n are changed in place; ``order`` is the order in
    which the nodes are visited.
    """
    n = labels.shape[0]
    degree = np.zeros(n)
    volume = np.zeros(n)
    count = np.zeros(n, np.int64)
    total = 0.0
    for node in range(n):
        for e in range(indptr[node], indptr[node + 1]):
            degree[node] += weights[e]
        volume[labels[node]] += degree[node]
        count[labels[node]] += 1
        total += degree[node]
    link = np.zeros(n)
    for _ in range(_MOST_SWEEPS):
        n_moved = 0
        for node in order:
            former = labels[node]
            for e in range(indptr[node], indptr[node + 1]):
                if indices[e] != node:
                    link[labels[indices[e]]] += weights[e]
            volume[former] -= degree[node]
            count[former] -= 1
            cost = resolution * degree[node] / total
            best = former
            most = link[former] - cost * volume[former] + _GAIN * total
            for e in range(indptr[node], indptr[node + 1]):
                other = labels[indices[e]]
                gain = link[other] - cost * volume[other]
                if gain > most:
                    best, most = other, gain
            if most < 0.0 and count[former] > 0:  # better off alone
                best = 0
                while count[best] > 0:
                    best += 1
            for e in range(indptr[node], indptr[node + 1]):
                link[labels[indices[e]]] = 0.0
            volume[best] += degree[node]
            count[best] += 1
            if best != former:
                labels[node] = best
                n_moved += 1
        if n_moved == 0:
            break


@njit(**_OPTIONS)
def compact(labels):
    """Renumber labels to 0..n-1 in order of appearance, in place; return n."""
    most = 0
    for label in labels:
        most = max(most, label)
    new = np.full(most + 1, -1, np.int64)
    n = 0
    for i in range(labels.shape[0]):
        if new[labels[i]] < 0:
            new[labels[i]] = n
            n += 1
        labels[i] = new[labels[i]]
    return n


# --- Merging two clusters at a time ----------------------------------------------


@njit(**_OPTIONS)
def _score(a, b, dense, degree, size, power):
    """Return how much two clusters belong together.

    The weight between them over the weight expected of their degrees, or its root;
    without any weight it is negative, and highest for the smallest two.
    """
    if dense[a, b] > 0.0:
        expected = degree[a] * degree[b]
        return dense[a, b] / (np.sqrt(expected) if power == 0.5 else expected)
    return -(size[a] + size[b])


@njit(**_OPTIONS)
def _find_best(a, alive, level, dense, degree, size, power, best, most):
    """Write the cluster of the same level group that ``a`` belongs with most."""
    best[a] = -1
    most[a] = -np.inf
    for b in alive:
        if b != a and level[b] == level[a]:
            score = _score(a, b, dense, degree, size, power)
            if score > most[a]:
                best[a], most[a] = b, score


@njit(**_OPTIONS)
def agglomerate(dense, sizes, levels, powers):
    """Merge pair after pair, best first, inside the groups of one level and the next.

    Parameters
    ----------
    dense : (L, L) float64
        Weights between landmarks; overwritten.
    sizes : (L,) float64
        Points of each; those with none take no part.
    levels : (n_levels, L) int64
        Nested partitions, finest first; the last is a single group.
    powers : (n_levels,) float64
        1 or 0.5, see :func:`_score`.

    Returns
    -------
    born : (L,) int64
        Least number of clusters at which a landmark leads one; 0 if empty.
    leader : (L,) int64
        Who leads it below that number.
    """
    n_landmarks = dense.shape[0]
    size = sizes.copy()
    degree = np.zeros(n_landmarks)
    born = np.zeros(n_landmarks, np.int64)
    leader = np.arange(n_landmarks)
    best = np.full(n_landmarks, -1, np.int64)
    most = np.full(n_landmarks, -np.inf)
    standing = np.empty(n_landmarks, np.int64)
    n = 0
    for a in range(n_landmarks):
        for b in range(n_landmarks):
            degree[a] += dense[a, b]
        if size[a] > 0:
            standing[n] = a
            n += 1
    for step in range(levels.shape[0]):
        level, power = levels[step], powers[step]
        for a in standing[:n]:
            _find_best(a, standing[:n], level, dense, degree, size, power, best, most)
        while n > 1:
            a = standing[0]
            for c in standing[:n]:
                if most[c] > most[a]:
                    a = c
            b = best[a]
            if b < 0:
                break
            if size[b] > size[a] or (size[b] == size[a] and b < a):
                a, b = b, a
            born[b] = n
            leader[b] = a
            n = _join(a, b, standing, n, dense, degree, size)
            alive = standing[:n]
            _find_best(a, alive, level, dense, degree, size, power, best, most)
            for c in alive:
                if c == a or level[c] != level[a]:
                    continue
                if best[c] == a or best[c] == b:
                    _find_best(c, alive, level, dense, degree, size, power, best, most)
                    continue
                score = _score(c, a, dense, degree, size, power)
                if score > most[c]:
                    best[c], most[c] = a, score
    if n > 0:
        born[standing[0]] = 1
    return born, leader


@njit(**_OPTIONS)
def _join(a, b, standing, n, dense, degree, size):
    """Give all of ``b`` to ``a``, strike it off the list, return the list's length."""
    kept = 0
    for at in range(n):
        c = standing[at]
        if c != b:
            dense[a, c] += dense[b, c]
            dense[c, a] = dense[a, c]
            standing[kept] = c
            kept += 1
    degree[a] += degree[b]
    size[a] += size[b]
    return kept
