"""The compiled loops of :mod:`clusters`: graphs of groups, Louvain, merging.

A graph is symmetric and, but for :func:`_join`, in compressed rows, its diagonal the
weight inside a node counted from both ends, so that a row's sum is the node's degree.
"""

import numpy as np

from napari_embedding_game.core.graph.edge_loops import by_group, group_graph
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP

__all__ = ["compact", "group_graph", "join_groups", "modularity", "move_nodes"]

_MAX_SWEEPS = 50
_GAIN = 1e-10
"""Share of the total weight below which a gain is rounding, not a gain."""


@njit(**LOOP)
def modularity(indptr, indices, weights, resolution, labels):
    """Return the share of weight inside minus ``resolution`` times the expected."""
    volume, inside = np.zeros(labels.shape[0]), 0.0
    for node in range(labels.shape[0]):
        for e in range(indptr[node], indptr[node + 1]):
            volume[labels[node]] += weights[e]
            if labels[indices[e]] == labels[node]:
                inside += weights[e]
    total, squared = 0.0, 0.0
    for one in volume:
        total += one
        squared += one * one
    return inside / total - resolution * squared / (total * total)


@njit(**LOOP)
def move_nodes(indptr, indices, weights, resolution, order, labels):
    """Move nodes to the best neighbouring community until no move gains."""
    n, total = labels.shape[0], 0.0
    degree, volume, link = np.zeros(n), np.zeros(n), np.zeros(n)
    count = np.zeros(n, np.int64)
    for node in range(n):
        for e in range(indptr[node], indptr[node + 1]):
            degree[node] += weights[e]
        volume[labels[node]] += degree[node]
        count[labels[node]] += 1
        total += degree[node]
    for _ in range(_MAX_SWEEPS):
        n_moved = 0
        for node in order:
            previous = labels[node]
            for e in range(indptr[node], indptr[node + 1]):
                if indices[e] != node:
                    link[labels[indices[e]]] += weights[e]
            volume[previous] -= degree[node]
            count[previous] -= 1
            cost = resolution * degree[node] / total
            best = previous
            most = link[previous] - cost * volume[previous] + _GAIN * total
            for e in range(indptr[node], indptr[node + 1]):
                label = labels[indices[e]]
                gain = link[label] - cost * volume[label]
                if gain > most:
                    best, most = label, gain
            if most < 0.0 and count[previous] > 0:  # better off alone
                best = 0
                while count[best] > 0:
                    best += 1
            for e in range(indptr[node], indptr[node + 1]):
                link[labels[indices[e]]] = 0.0
            volume[best] += degree[node]
            count[best] += 1
            if best != previous:
                labels[node] = best
                n_moved += 1
        if n_moved == 0:
            break


@njit(**LOOP)
def compact(labels):
    """Renumber labels to 0..n-1 in order of appearance, in place; return n."""
    new, n = np.full(labels.max() + 1, -1, np.int64), 0
    for i in range(labels.shape[0]):
        if new[labels[i]] < 0:
            new[labels[i]] = n
            n += 1
        labels[i] = new[labels[i]]
    return n


@njit(**LOOP)
def join_groups(indptr, indices, weights, size, groups, n_groups, is_rooted):
    """Join all clusters of each group, pair after pair, see :func:`_join`.

    Returns the joined clusters, those they join, and a score that orders the pairs of
    all groups: the worst in its group so far, as a pair can follow only the merges that
    make it possible.
    """
    n = size.shape[0]
    begins, nodes = by_group(groups, n_groups)
    degree, index = np.zeros(n), np.empty(n, np.int64)
    for node in range(n):
        for e in range(indptr[node], indptr[node + 1]):
            degree[node] += weights[e]
    joined, into = np.empty(n, np.int64), np.empty(n, np.int64)
    scores, count = np.empty(n), 0
    for group in range(n_groups):
        members = nodes[begins[group] : begins[group + 1]]
        dense = np.zeros((members.shape[0], members.shape[0]))
        index[members] = np.arange(members.shape[0])
        for k in range(members.shape[0]):
            for e in range(indptr[members[k]], indptr[members[k] + 1]):
                if groups[indices[e]] == group:
                    dense[k, index[indices[e]]] = weights[e]
        merges = _join(dense, degree[members], size[members], is_rooted)
        worst = np.inf
        for k in range(members.shape[0] - 1):
            worst = min(worst, merges[2][k])
            joined[count], into[count] = members[merges[0][k]], members[merges[1][k]]
            scores[count] = worst
            count += 1
    return joined[:count], into[:count], scores[:count]


@njit(**LOOP)
def _score(a, b, weights, degree, size, is_rooted):
    """Return how well two clusters go together, see :func:`_join`."""
    expected = degree[a] * degree[b]
    if weights[a, b] <= 0.0 or expected <= 0.0:
        return -(size[a] + size[b])
    return weights[a, b] / (np.sqrt(expected) if is_rooted else expected)


@njit(**LOOP)
def _find_best(a, best, most, is_there, weights, degree, size, is_rooted):
    """Write which of the clusters after ``a`` goes with it best, and the score."""
    best[a], most[a] = -1, -np.inf
    for b in range(a + 1, size.shape[0]):
        if is_there[b]:
            score = _score(a, b, weights, degree, size, is_rooted)
            if score > most[a]:
                best[a], most[a] = b, score


@njit(**LOOP)
def _join(weights, degree, size, is_rooted):
    """Join all clusters of a dense graph (m, m), two at a time, best first.

    Best have the most weight between them over that expected of their degrees, with
    ``is_rooted`` over its root; without any weight the smallest go first, and of
    equals the lowest numbers.  Returns the joined clusters, those they join, and the
    scores, below 0 without weight, (m - 1,) each.  The larger cluster of a pair keeps
    its number; the arguments are overwritten.
    """
    n = size.shape[0]
    joined, into = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64)
    scores, is_there = np.empty(n - 1), np.ones(n, np.bool_)
    best, most = np.empty(n, np.int64), np.empty(n)
    for a in range(n):
        _find_best(a, best, most, is_there, weights, degree, size, is_rooted)
    for step in range(n - 1):
        one = most.argmax()
        other, scores[step] = best[one], most[one]
        if size[other] > size[one]:
            one, other = other, one
        joined[step], into[step] = other, one
        degree[one] += degree[other]
        size[one] += size[other]
        for a in range(n):
            weights[one, a] += weights[other, a]
        for a in range(n):
            weights[a, one] += weights[a, other]
        is_there[other], most[other] = False, -np.inf
        for a in range(n):
            if not is_there[a]:
                continue
            if a == one or best[a] == one or best[a] == other:
                _find_best(a, best, most, is_there, weights, degree, size, is_rooted)
            elif a < one:
                score = _score(a, one, weights, degree, size, is_rooted)
                if score > most[a] or (score == most[a] and one < best[a]):
                    best[a], most[a] = one, score
    return joined, into, scores
