"""Compiled loops of :mod:`clusters`: graphs of groups, Louvain, merging.

A graph is symmetric and in compressed rows (in :func:`_merge_pairwise` dense).  Its
diagonal has the weight inside each node, counted from both ends, so that the sum of a
row is the degree of the node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.edge_loops import build_group_graph, sort_by_group
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP

__all__ = [
    "build_group_graph",
    "merge_within_groups",
    "modularity",
    "move_nodes",
    "renumber_labels",
]

Indices = NDArray[Any]
Numbers = NDArray[np.float64]
_MAX_SWEEPS = 50
_GAIN = 1e-10
"""Share of the total weight below which a gain is taken for rounding error."""


def modularity(
    indptr: Indices,
    indices: Indices,
    weights: Numbers,
    resolution: float,
    labels: NDArray[np.int64],
) -> float:
    """Return the modularity of a partition of the nodes of a graph.

    It is the share of the weight inside communities, minus ``resolution`` times the
    share that the degrees lead to expect.  ``labels`` (n,): the community of each node,
    below n.  The graph must have some weight.
    """
    volume = np.zeros(len(labels))
    graph = indptr, indices, weights
    return float(_modularity(*graph, resolution, labels, volume))


@njit(**LOOP)
def _modularity(indptr, indices, weights, resolution, labels, volume):
    """Run :func:`modularity`.

    ``volume`` (n,): zeros, to which the degrees of each community are added in place.
    """
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
    """Move nodes to the best neighbouring community until no move gains modularity.

    A node that gains by leaving all communities gets a new one, with the lowest number
    that is not used.  ``labels`` (n,) are changed in place.  Nodes are visited in
    ``order`` (n,), at most ``_MAX_SWEEPS`` times.  Gains below ``_GAIN`` of the total
    weight are ignored.
    """
    n = len(labels)
    count = np.bincount(labels, minlength=n)
    graph, (degree, volume, link) = (indptr, indices, weights), np.zeros((3, n))
    _move_nodes(*graph, resolution, order, labels, degree, volume, link, count)


@njit(**LOOP)
def _move_nodes(
    indptr, indices, weights, resolution, order, labels, degree, volume, link, count
):
    """Move each node to its best community, changing ``labels``, until none moves.

    Or for ``_MAX_SWEEPS`` sweeps.  The other arrays are scratch of :func:`move_nodes`:
    ``degree``, ``volume`` and ``link`` (n,) are zeros at first; ``count`` (n,) is the
    number of nodes in each community.
    """
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
            if most < 0.0 and count[previous] > 0:  # a community of its own is better
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


def renumber_labels(labels: NDArray[np.int64]) -> int:
    """Renumber labels to 0..n-1 in order of first appearance, in place; return n."""
    return int(_renumber_labels(labels, np.full(labels.max() + 1, -1)))


@njit(**LOOP)
def _renumber_labels(labels, new):
    """Run :func:`renumber_labels` in place; return the number of labels.

    ``new`` (largest label + 1,) is filled with -1 at first, and gets the new labels.
    """
    n = 0
    for i in range(labels.shape[0]):
        label = labels[i]
        if new[label] < 0:
            new[label] = n
            n += 1
        labels[i] = new[label]
    return n


def merge_within_groups(
    indptr: Indices,
    indices: Indices,
    weights: Numbers,
    size: Numbers,
    groups: NDArray[np.int64],
    n_groups: int,
    takes_root: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64], Numbers]:
    """Merge the clusters of each group, pair by pair, until one cluster is left.

    ``indptr``, ``indices`` and ``weights``: graph of n clusters; ``size`` (n,): points
    of each cluster; ``groups`` (n,): group of each cluster, from 0 to ``n_groups`` - 1;
    ``takes_root``: see :func:`_merge_pairwise`, which chooses the pairs.

    Returns three arrays with an entry for each merge, group after group:

    1. the cluster that is absorbed,
    2. the cluster that absorbs it,
    3. the lowest pair score of the group so far, by which the merges of all groups can
       be sorted: a merge never sorts before the merges that made its clusters.
    """
    n = len(size)
    begins, nodes = sort_by_group(groups, n_groups)
    most = int(np.diff(begins).max())
    joined, into = np.empty((2, n), np.int64)
    scores, dense = np.empty(n), np.empty((most, most))
    graph = indptr, indices, weights
    # Scratch arrays are made here, as numba takes seconds to compile their creation.
    numbers, flags = np.empty((5, n)), np.empty((2, n), np.int64)
    count = _merge_within_groups(
        *graph, size, groups, begins, nodes, takes_root, joined, into, scores,
        dense, numbers, flags, np.empty(n, np.bool_),
    )  # fmt: skip
    return joined[:count], into[:count], scores[:count]


@njit(**LOOP)
def _merge_within_groups(
    indptr,
    indices,
    weights,
    size,
    groups,
    begins,
    nodes,
    takes_root,
    joined,
    into,
    scores,
    dense,
    numbers,
    flags,
    is_there,
):
    """Run :func:`merge_within_groups`; return the number of merges.

    ``begins`` (groups + 1,) and ``nodes`` (n,): clusters sorted by group.  The results
    are written to ``joined``, ``into`` and ``scores`` (n,).  Scratch arrays: ``dense``
    (m, m) for the m clusters of the largest group, ``numbers`` (5, n), ``flags`` (2,
    n), ``is_there`` (n,).
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
        _merge_pairwise(
            n, dense, part_degree, part_size, takes_root, best, most, is_there,
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
def _score_merge(a, b, weights, degree, size, takes_root):
    """Return the score of merging clusters a and b, see :func:`_merge_pairwise`.

    It is minus their joint size where no weight lies between them.
    """
    expected = degree[a] * degree[b]
    if weights[a, b] <= 0.0 or expected <= 0.0:
        return -(size[a] + size[b])
    return weights[a, b] / (np.sqrt(expected) if takes_root else expected)


@njit(no_cpython_wrapper=True, **LOOP)
def _find_best_partner(a, n, best, most, is_there, weights, degree, size, takes_root):
    """Write the partner of best score among clusters after ``a`` to ``best[a]``.

    Its score is written to ``most[a]``.  Without partners they are -1 and -inf; of
    equal scores the lowest number is taken.
    """
    best[a], most[a] = -1, -np.inf
    for b in range(a + 1, n):
        if is_there[b]:
            score = _score_merge(a, b, weights, degree, size, takes_root)
            if score > most[a]:
                best[a], most[a] = b, score


@njit(no_cpython_wrapper=True, **LOOP)
def _merge_pairwise(
    n, weights, degree, size, takes_root, best, most, is_there, joined, into, scores
):
    """Merge ``n`` clusters of a dense graph into one, the pair of best score first.

    - The score of a pair is the weight between the clusters over the product of their
      degrees, or over the root of the product where ``takes_root``.
    - The score of a pair without weight is minus its size, so that such pairs come
      last.
    - Of equal scores the lowest numbers are merged first.
    - The larger cluster of a pair keeps its number, of equal sizes the lower number.

    ``joined`` (absorbed), ``into`` (absorbing) and ``scores`` get n - 1 entries each,
    in the order of the merges.  All other arrays are overwritten.
    """
    for a in range(n):
        _find_best_partner(
            a, n, best, most, is_there, weights, degree, size, takes_root
        )
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
                _find_best_partner(
                    a, n, best, most, is_there, weights, degree, size, takes_root
                )
            elif a < one:
                score = _score_merge(a, one, weights, degree, size, takes_root)
                if score > most[a] or (score == most[a] and one < best[a]):
                    best[a], most[a] = one, score
