"""Cluster numbers that stay with their points from frame to frame."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.session.clusters.annotation import NONE, Annotation

IntArray = NDArray[np.int32]


def match_cluster_numbers(
    new_clusters: NDArray[np.integer],
    previous_numbers: IntArray | None,
    annotation: Annotation,
) -> IntArray:
    """Return the number of each point's new cluster, (n,), matched with old numbers.

    Pairs of a new and a previous cluster are taken by falling overlap (Jaccard index),
    and the new cluster takes over the number of the previous cluster.  The remaining
    clusters get the lowest free numbers from 1, the largest first.  A cluster with
    points that are not annotated never gets the id of a group.

    ``new_clusters`` (n,) int: new cluster of each point, in any numbers from 0.
    ``previous_numbers`` (n,) int: number of each point's previous cluster; None for no
    previous clusters.
    """
    sizes = np.bincount(new_clusters)
    free = np.bincount(new_clusters[annotation.codes == NONE], minlength=len(sizes)) > 0
    numbers = np.full(len(sizes), -1, np.int32)
    groups, used = annotation.groups.keys(), set[int]()
    if previous_numbers is not None:
        for number, part in _list_pairs_by_jaccard_index(
            new_clusters, sizes, previous_numbers
        ):
            may = number not in used and not (free[part] and number in groups)
            if may and numbers[part] < 0:
                numbers[part] = number
                used.add(number)
    new = np.flatnonzero((numbers < 0) & (sizes > 0))
    unused = iter_free_ids({*used, *groups})
    for part in new[np.argsort(-sizes[new], kind="stable")]:
        numbers[part] = next(unused)
    return numbers.take(new_clusters)


def renumber_away_from_groups(cluster: IntArray, annotation: Annotation) -> IntArray:
    """Return cluster numbers, (n,), of which none is the id of an annotated group.

    Only the clusters of points that are not annotated count.  Where no number has to
    change, the same array is returned.
    """
    used = np.flatnonzero(np.bincount(cluster[annotation.codes == NONE]))
    if annotation.groups.keys().isdisjoint(used.tolist()):
        return cluster
    return match_cluster_numbers(cluster, cluster, annotation)


def iter_free_ids(used: Collection[int]) -> Iterator[int]:
    """Yield the numbers from 1 that are not used, ascending and without end."""
    return (number for number in itertools.count(1) if number not in used)


def _list_pairs_by_jaccard_index(
    new_clusters: NDArray[np.integer],
    sizes: NDArray[np.intp],
    previous_numbers: IntArray,
) -> list[tuple[int, int]]:
    """Return pairs (previous number, new cluster) that share points.

    They are sorted by falling Jaccard index, then by ascending previous number.

    ``new_clusters``, ``previous_numbers`` (n,): of each point. ``sizes``: number of
    points of each new cluster.
    """
    counts = np.bincount(previous_numbers)
    used = np.flatnonzero(counts)
    index = np.zeros(len(counts), np.intp)
    index[used] = np.arange(len(used))
    pairs = index[previous_numbers] * len(sizes) + new_clusters
    shared = np.bincount(pairs, minlength=len(used) * len(sizes))
    pairs = np.flatnonzero(shared)
    which, parts = np.divmod(pairs, len(sizes))
    likeness = shared[pairs] / (counts[used][which] + sizes[parts] - shared[pairs])
    order = np.lexsort((which, -likeness))
    return list(zip(used[which[order]].tolist(), parts[order].tolist(), strict=True))
