"""Numbers of clusters that follow their cells."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.session.clusters.annotation import NONE, Annotation

IntArray = NDArray[np.int32]


def follow(
    division: NDArray[np.integer], previous: IntArray | None, annotation: Annotation
) -> IntArray:
    """Return the number of the cluster of each cell, (n,).

    A part of the division gets the number of the previous cluster with the highest
    overlap (Jaccard index), the highest first.  The remaining parts get the lowest free
    numbers from 1, the largest first.  A part with cells that are not annotated never
    gets the id of a group.

    ``division`` (n,) int: part of each cell, in any numbers from 0. ``previous`` (n,)
    int: numbers that are followed.
    """
    sizes = np.bincount(division)
    free = np.bincount(division[annotation.codes == NONE], minlength=len(sizes)) > 0
    numbers = np.full(len(sizes), -1, np.int32)
    groups, used = annotation.groups.keys(), set[int]()
    if previous is not None:
        for number, part in _most_alike(division, sizes, previous):
            may = number not in used and not (free[part] and number in groups)
            if may and numbers[part] < 0:
                numbers[part] = number
                used.add(number)
    new = np.flatnonzero((numbers < 0) & (sizes > 0))
    unused = free_ids({*used, *groups})
    for part in new[np.argsort(-sizes[new], kind="stable")]:
        numbers[part] = next(unused)
    return numbers.take(division)


def disjoint(cluster: IntArray, annotation: Annotation) -> IntArray:
    """Return the numbers of clusters, with new ones instead of the ids of groups."""
    used = np.flatnonzero(np.bincount(cluster[annotation.codes == NONE]))
    if annotation.groups.keys().isdisjoint(used.tolist()):
        return cluster
    return follow(cluster, cluster, annotation)


def free_ids(used: Collection[int]) -> Iterator[int]:
    """Return the numbers from 1 that are not used, the lowest first."""
    return (number for number in itertools.count(1) if number not in used)


def _most_alike(
    division: NDArray[np.integer], sizes: NDArray[np.intp], previous: IntArray
) -> list[tuple[int, int]]:
    """Return (former number, part) that share cells, the most alike first."""
    counts = np.bincount(previous)
    used = np.flatnonzero(counts)
    index = np.zeros(len(counts), np.intp)
    index[used] = np.arange(len(used))
    pairs = index[previous] * len(sizes) + division
    shared = np.bincount(pairs, minlength=len(used) * len(sizes))
    pairs = np.flatnonzero(shared)
    which, parts = np.divmod(pairs, len(sizes))
    likeness = shared[pairs] / (counts[used][which] + sizes[parts] - shared[pairs])
    order = np.lexsort((which, -likeness))
    return list(zip(used[which[order]].tolist(), parts[order].tolist(), strict=True))
