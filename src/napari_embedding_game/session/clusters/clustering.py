"""The clusters on show: those of the game, and over them what a person annotated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.clustering import Cluster, Clustering
from napari_embedding_game.session.clusters.annotation import (
    NONE,
    Annotation,
    Group,
    unique_name,
)

ALIKE = 0.5
"""Intersection over union from which a named group is one cluster of the game."""
MOST_LISTED = 3
"""More names than this are counted in a sentence."""


def shown(cluster: NDArray[np.int32], annotation: Annotation) -> Clustering:
    """Return what is on show: annotated cells in their groups, others in clusters.

    ``cluster`` (n,) int32: number of the cluster of each cell, as the game finds them.
    """
    groups, codes = annotation.groups, annotation.codes
    labels = np.where(codes == NONE, cluster, codes) if groups else cluster
    sizes = np.bincount(labels)
    taken = {group.name for group in groups.values()}
    clusters = []
    for number in np.flatnonzero(sizes).tolist():
        group = groups.get(number)
        if group is None:
            group = Group(name=unique_name(str(number), taken))
        clusters.append(
            Cluster(
                id=number,
                name=group.name,
                is_named=number in groups,
                color=group.color,
                note=group.note,
                size=int(sizes[number]),
            )
        )
    labels.setflags(write=False)
    return Clustering(labels, tuple(clusters))


def told_parted(cluster: NDArray[np.int32], annotation: Annotation) -> str:
    """Return which names are of cells that are no longer one cluster of the game."""
    sizes, parted = np.bincount(cluster), []
    for code, group in annotation.groups.items():
        if group.is_whole:
            shared = np.bincount(cluster[annotation.codes == code])
            either = shared.sum() + sizes[: len(shared)] - shared
            if (shared / np.maximum(either, 1)).max() < ALIKE:
                parted.append(group.name)
    if len(parted) < 2:
        keep = "is no longer one cluster: its points keep the name until you change it."
        return f"{parted[0]} {keep}" if parted else ""
    *names, last = parted[:MOST_LISTED]
    if len(parted) > MOST_LISTED:
        names, last = [*names, last], f"{len(parted) - MOST_LISTED} more"
    return (
        f"{', '.join(names)} and {last} are no longer one cluster each: their points "
        "keep the names until you change them."
    )
