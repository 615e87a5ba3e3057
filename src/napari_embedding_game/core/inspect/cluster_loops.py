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
    """Return the graph between groups of nodes, its weights summed in float64."""
    # Group by group with one row of sums, so memory stays that of the answer.
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
def modularity(indptr, indices, weights, resolution, labels):
    """Return the share of weight inside minus ``resolution`` times the expected."""
    volume = np.zeros(labels.shape[0])
    inside = 0.0
    for node in range(labels.shape[0]):
        for e in range(indptr[node], indptr[node + 1]):
            volume[labels[node]] += weights[e]
            if labels[indices[e]] == labels[node]:
                inside += weights[e]
    total = 0.0
    squared = 0.0
    for one in volume:
        total += one
        squared += one * one
    return inside / total - resolution * squared / (total * total)


@njit(**_OPTIONS)
def move_nodes(indptr, indices, weights, resolution, order, labels):
    """Move nodes to the best neighbouring community until no move gains."""
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
#
# The edges of a cluster are a linked list through the arrays of the graph, so that
# two clusters are joined by tying two lists.  What an edge leads to is looked up in
# `root` when it is next read.


@njit(**_OPTIONS)
def _sum_edges(a, edges, root, entry):
    """Leave one edge from ``a`` to each other cluster, with the sum of the weights."""
    first, following, indices, weights = edges
    last, e = -1, first[a]
    first[a] = -1
    while e >= 0:
        c = indices[e]
        while root[c] != c:
            root[c] = root[root[c]]
            c = root[c]
        if c != a and entry[c] >= 0:
            weights[entry[c]] += weights[e]
        elif c != a:
            indices[e] = c
            entry[c] = e
            if last < 0:
                first[a] = e
            else:
                following[last] = e
            last = e
        e = following[e]
    if last >= 0:
        following[last] = -1
    e = first[a]
    while e >= 0:
        entry[indices[e]] = -1
        e = following[e]
    return last


@njit(**_OPTIONS)
def _score(a, b, weight, degree, is_rooted):
    """Return the weight between two clusters over that expected, or over its root."""
    expected = degree[a] * degree[b]
    return weight / (np.sqrt(expected) if is_rooted else expected)


@njit(**_OPTIONS)
def _find_best(a, edges, level, degree, is_rooted, best, most):
    """Write the linked cluster of the same level that ``a`` belongs with most."""
    first, following, indices, weights = edges
    best[a], most[a] = -1, 0.0
    e = first[a]
    while e >= 0:
        c = indices[e]
        if level[c] == level[a]:
            score = _score(a, c, weights[e], degree, is_rooted)
            if score > most[a] or (score == most[a] and c < best[a]):
                best[a], most[a] = c, score
        e = following[e]


@njit(**_OPTIONS)
def _smallest_pair(standing, level, size):
    """Return two clusters of one level with the fewest points; -1 if all are alone."""
    smallest = np.full((2, size.shape[0]), -1, np.int64)
    a, b = -1, -1
    for c in standing:
        one, two = smallest[:, level[c]]
        if one < 0 or size[c] < size[one]:
            one, two = c, one
        elif two < 0 or size[c] < size[two]:
            two = c
        smallest[0, level[c]], smallest[1, level[c]] = one, two
    for group in range(size.shape[0]):
        one, two = smallest[0, group], smallest[1, group]
        if two >= 0 and (b < 0 or size[one] + size[two] < size[a] + size[b]):
            a, b = one, two
    return a, b


@njit(**_OPTIONS)
def agglomerate(indptr, indices, weights, sizes, levels):
    """Merge pair after pair, best first, inside the groups of one level and the next.

    Those go first that have the most weight between them, over the weight expected of
    their degrees; on the way to the first level over the root of that, which keeps
    single stray landmarks from standing alone while real clusters merge.  Those
    without any weight between them go last, the smallest first; between equals the
    lowest numbers.  Returns ``born`` and ``leader`` of a :class:`.clusters.MergeTree`.
    """
    # The graph is overwritten; `levels` (n_levels, L) are nested, finest first, of
    # numbers below L, and the last is one group.
    n_landmarks = sizes.shape[0]
    size = sizes.copy()
    degree = np.zeros(n_landmarks)
    born = np.zeros(n_landmarks, np.int64)
    leader = np.arange(n_landmarks)
    root = np.arange(n_landmarks)
    entry = np.full(n_landmarks, -1, np.int64)
    first = np.full(n_landmarks, -1, np.int64)
    last = np.full(n_landmarks, -1, np.int64)
    following = np.arange(1, indices.shape[0] + 1)
    edges = first, following, indices, weights
    best = np.full(n_landmarks, -1, np.int64)
    most = np.zeros(n_landmarks)
    for a in range(n_landmarks):
        if indptr[a] < indptr[a + 1]:
            first[a] = indptr[a]
            following[indptr[a + 1] - 1] = -1
        for e in range(indptr[a], indptr[a + 1]):
            degree[a] += weights[e]
    standing = np.flatnonzero(size > 0)
    for step in range(levels.shape[0]):
        level, is_rooted = levels[step], step == 0
        for a in standing:
            last[a] = _sum_edges(a, edges, root, entry)
            _find_best(a, edges, level, degree, is_rooted, best, most)
        while standing.shape[0] > 1:
            a = standing[0]
            for c in standing:
                if most[c] > most[a]:
                    a = c
            b = best[a]
            if b < 0:
                a, b = _smallest_pair(standing, level, size)
                if b < 0:
                    break
            if size[b] > size[a] or (size[b] == size[a] and b < a):
                a, b = b, a
            born[b] = standing.shape[0]
            leader[b] = root[b] = a
            degree[a] += degree[b]
            size[a] += size[b]
            if last[a] < 0:
                first[a] = first[b]
            else:
                following[last[a]] = first[b]
            last[a] = _sum_edges(a, edges, root, entry)
            standing = standing[standing != b]
            _find_best(a, edges, level, degree, is_rooted, best, most)
            e = first[a]
            while e >= 0:
                c = indices[e]
                if level[c] == level[a] and (best[c] == a or best[c] == b):
                    last[c] = _sum_edges(c, edges, root, entry)
                    _find_best(c, edges, level, degree, is_rooted, best, most)
                elif level[c] == level[a]:
                    score = _score(a, c, weights[e], degree, is_rooted)
                    if score > most[c] or (score == most[c] and a < best[c]):
                        best[c], most[c] = a, score
                e = following[e]
    born[standing[:1]] = 1
    return born, leader
