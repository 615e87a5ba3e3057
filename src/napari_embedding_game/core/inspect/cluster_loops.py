"""The compiled loops of :mod:`clusters`: graphs of groups, Louvain, merging.

A graph is symmetric and, but for :func:`_join`, in compressed rows, its diagonal the
weight inside a node counted from both ends, so that a row's sum is the node's degree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.edge_loops import build_group_graph, sort_by_group
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP

__all__ = ["build_group_graph", "compact", "join_groups", "modularity", "move_nodes"]

Indices = NDArray[Any]
Numbers = NDArray[np.float64]
_MAX_SWEEPS = 50
_GAIN = 1e-10
"""Share of the total weight below which a gain is rounding, not a gain."""


def modularity(
    indptr: Indices,
    indices: Indices,
    weights: Numbers,
    resolution: float,
    labels: NDArray[np.int64],
) -> float:
    """Return the share of weight inside minus ``resolution`` times the expected."""
    volume = np.zeros(len(labels))
    graph = indptr, indices, weights
    return float(_modularity(*graph, resolution, labels, volume))


@njit(**LOOP)
def _modularity(indptr, indices, weights, resolution, labels, volume):
    inside, total, squared = 0.0, 0.0, 0.0
    for node in range(labels.shape[0]):
        for e in range(indptr[node], indptr[node + 1]):
            volume[labels[node]] += weights[e]
            if labels[indices[e]] == labels[node]:
                inside += weights[e]
    for label in range(volume.shape[0]):
        total += volume[label]
        squared += volume[label] * volume[label]
    return inside / total - resolution * squared / (total * total)


def move_nodes(
    indptr: Indices,
    indices: Indices,
    weights: Numbers,
    resolution: float,
    order: NDArray[np.int64],
    labels: NDArray[np.int64],
) -> None:
    """Move nodes to the best neighbouring community until no move gains."""
    n = len(labels)
    count = np.bincount(labels, minlength=n)
    graph, (degree, volume, link) = (indptr, indices, weights), np.zeros((3, n))
    _move_nodes(*graph, resolution, order, labels, degree, volume, link, count)


@njit(**LOOP)
def _move_nodes(
    indptr, indices, weights, resolution, order, labels, degree, volume, link, count
):
    """Move nodes, see above; ``degree``, ``volume`` and ``link`` (n,) are zeros."""
    n, total = labels.shape[0], 0.0
    for node in range(n):
        for e in range(indptr[node], indptr[node + 1]):
            degree[node] += weights[e]
        volume[labels[node]] += degree[node]
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


def compact(labels: NDArray[np.int64]) -> int:
    """Renumber labels to 0..n-1 in order of appearance, in place; return n."""
    return int(_compact(labels, np.full(labels.max() + 1, -1)))


@njit(**LOOP)
def _compact(labels, new):
    n = 0
    for i in range(labels.shape[0]):
        label = labels[i]
        if new[label] < 0:
            new[label] = n
            n += 1
        labels[i] = new[label]
    return n


def join_groups(
    indptr: Indices,
    indices: Indices,
    weights: Numbers,
    size: Numbers,
    groups: NDArray[np.int64],
    n_groups: int,
    is_rooted: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64], Numbers]:
    """Join all clusters of each group, pair after pair, see :func:`_join`.

    Returns the joined clusters, those they join, and a score that orders the pairs of
    all groups: the worst in its group so far, as a pair can follow only the merges that
    make it possible.
    """
    n = len(size)
    begins, nodes = sort_by_group(groups, n_groups)
    most = int(np.diff(begins).max())
    joined, into = np.empty((2, n), np.int64)
    scores, dense = np.empty(n), np.empty((most, most))
    graph = indptr, indices, weights
    # Arrays that loops use again: numba takes seconds to compile what makes them.
    numbers, flags = np.empty((5, n)), np.empty((2, n), np.int64)
    count = _join_groups(
        *graph, size, groups, begins, nodes, is_rooted, joined, into, scores,
        dense, numbers, flags, np.empty(n, np.bool_),
    )  # fmt: skip
    return joined[:count], into[:count], scores[:count]


@njit(**LOOP)
def _join_groups(
    indptr,
    indices,
    weights,
    size,
    groups,
    begins,
    nodes,
    is_rooted,
    joined,
    into,
    scores,
    dense,
    numbers,
    flags,
    is_there,
):
    """Join the clusters of each group, see above; return the number of pairs.

    ``dense`` (m, m), ``numbers`` (5, n), ``flags`` (2, n) and ``is_there`` (n,) are
    written over.
    """
    degree, part_degree, part_size = numbers[0], numbers[1], numbers[2]
    most, part_scores, index, best = numbers[3], numbers[4], flags[0], flags[1]
    for node in range(size.shape[0]):
        degree[node] = 0.0
        for e in range(indptr[node], indptr[node + 1]):
            degree[node] += weights[e]
    count = 0
    for group in range(begins.shape[0] - 1):
        first, n = begins[group], begins[group + 1] - begins[group]
        for k in range(n):
            node = nodes[first + k]
            index[node] = k
            part_degree[k], part_size[k], is_there[k] = degree[node], size[node], True
            for other in range(n):
                dense[k, other] = 0.0
        for k in range(n):
            node = nodes[first + k]
            for e in range(indptr[node], indptr[node + 1]):
                if groups[indices[e]] == group:
                    dense[k, index[indices[e]]] = weights[e]
        _join(
            n, dense, part_degree, part_size, is_rooted, best, most, is_there,
            joined[count:], into[count:], part_scores,
        )  # fmt: skip
        worst = np.inf
        for k in range(n - 1):
            worst = min(worst, part_scores[k])
            joined[count] = nodes[first + joined[count]]
            into[count] = nodes[first + into[count]]
            scores[count] = worst
            count += 1
    return count


@njit(no_cpython_wrapper=True, **LOOP)
def _score(a, b, weights, degree, size, is_rooted):
    """Return how well two clusters go together, see :func:`_join`."""
    expected = degree[a] * degree[b]
    if weights[a, b] <= 0.0 or expected <= 0.0:
        return -(size[a] + size[b])
    return weights[a, b] / (np.sqrt(expected) if is_rooted else expected)


@njit(no_cpython_wrapper=True, **LOOP)
def _find_best(a, n, best, most, is_there, weights, degree, size, is_rooted):
    """Write which of the clusters after ``a`` goes with it best, and the score."""
    best[a], most[a] = -1, -np.inf
    for b in range(a + 1, n):
        if is_there[b]:
            score = _score(a, b, weights, degree, size, is_rooted)
            if score > most[a]:
                best[a], most[a] = b, score


@njit(no_cpython_wrapper=True, **LOOP)
def _join(
    n, weights, degree, size, is_rooted, best, most, is_there, joined, into, scores
):
    """Join ``n`` clusters of a dense graph, two at a time, best first.

    Best have the most weight between them over that expected of their degrees, with
    ``is_rooted`` over its root; without any weight the smallest go first, and of
    equals the lowest numbers.  Writes the joined clusters, those they join, and the
    scores, below 0 without weight, n - 1 each.  The larger cluster of a pair keeps
    its number; the other arguments are overwritten.
    """
    for a in range(n):
        _find_best(a, n, best, most, is_there, weights, degree, size, is_rooted)
    for step in range(n - 1):
        one = 0
        for a in range(1, n):
            if most[a] > most[one]:
                one = a
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
                _find_best(a, n, best, most, is_there, weights, degree, size, is_rooted)
            elif a < one:
                score = _score(a, one, weights, degree, size, is_rooted)
                if score > most[a] or (score == most[a] and one < best[a]):
                    best[a], most[a] = one, score
