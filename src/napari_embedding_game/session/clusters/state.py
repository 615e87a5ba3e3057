"""All that a session knows of its clusters, and the way back through it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.clustering import Cluster, Clustering
from napari_embedding_game.data.columns import listed
from napari_embedding_game.session.clusters.annotation import (
    NONE,
    Annotation,
    Group,
    carried,
    unique_name,
)
from napari_embedding_game.session.clusters.following import disjoint, free_ids

UNDECIDED = 0
"""In ``n_clusters``: nobody has decided yet, so that many landmarks are merged."""
DEPTH = 100
"""Edits that can be undone; older ones are forgotten."""
ALIKE = 0.5
"""Intersection over union from which a named group is one cluster of the game."""
MAX_LISTED = 3
"""More names than this are counted in a sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """An edit, as a menu calls it, and the annotation on its other side."""

    label: str
    annotation: Annotation


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterState:
    """Clusters of n cells, what a person said of them, and the steps of undo."""

    cluster: NDArray[np.int32]
    """(n,) number of the cluster of each cell, as the game finds them."""
    annotation: Annotation
    n_clusters: int | None = UNDECIDED
    """How many clusters the landmarks are merged into; None: each is its own."""
    done: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()

    def __post_init__(self) -> None:
        self.cluster.setflags(write=False)

    @cached_property
    def clustering(self) -> Clustering:
        """What is on show: annotated cells in their groups, others in clusters."""
        groups, codes = self.annotation.groups, self.annotation.codes
        labels = self.cluster
        if groups:
            labels = np.where(codes == NONE, labels, codes)
        sizes = np.bincount(labels)
        taken = {group.name for group in groups.values()}
        clusters = []
        for number in np.flatnonzero(sizes).tolist():
            group = groups.get(number)
            if group is None:
                group = Group(name=unique_name(str(number), taken))
            is_named, size = number in groups, int(sizes[number])
            texts = {part: getattr(group, part) for part in ("name", "color", "note")}
            clusters.append(Cluster(id=number, is_named=is_named, size=size, **texts))
        labels.setflags(write=False)
        return Clustering(labels, tuple(clusters))

    def parted_names_text(self) -> str:
        """Return a sentence on names whose cells are no longer one cluster."""
        sizes, parted = np.bincount(self.cluster), []
        for code, group in self.annotation.groups.items():
            if group.is_whole:
                shared = np.bincount(self.cluster[self.annotation.codes == code])
                union = shared.sum() + sizes[: len(shared)] - shared
                if (shared / np.maximum(union, 1)).max() < ALIKE:
                    parted.append(group.name)
        if len(parted) < 2:
            keep = "is no longer one cluster: its points keep the name until you change"
            return f"{parted[0]} {keep} it." if parted else ""
        return (
            f"{listed(parted, MAX_LISTED)} are no longer one cluster each: their "
            "points keep the names until you change them."
        )

    def edited(
        self, label: str, annotation: Annotation, *, joins: bool = False
    ) -> ClusterState:
        """Return it with another annotation, which can be undone.

        ``joins``: whether edits of this label that follow each other are one step.
        """
        if annotation == self.annotation:
            return self
        done = self.done
        if not (joins and done and done[-1].label == label and not self.undone):
            done = (*done, Edit(label, self.annotation))[-DEPTH:]
        return self._with(annotation, done, ())

    def undo(self) -> ClusterState:
        """Return it without its last edit."""
        if not self.done:
            return self
        *done, last = self.done
        undone = (*self.undone, replace(last, annotation=self.annotation))
        return self._with(last.annotation, tuple(done), undone)

    def redo(self) -> ClusterState:
        """Return it with the edit that was last undone."""
        back = replace(self, done=self.undone, undone=self.done).undo()
        return replace(back, done=back.undone, undone=back.done)

    def without_far_edits(self, max_bytes: int) -> ClusterState:
        """Return it without its farthest steps of undo, then of redo.

        The arrays of those that stay take at most ``max_bytes``.
        """
        arrays, n_bytes, n_kept = {id(self.annotation.codes)}, 0, 0
        for edit in (*self.done[::-1], *self.undone[::-1]):
            codes = edit.annotation.codes
            n_bytes += codes.nbytes * (id(codes) not in arrays)
            if n_bytes > max_bytes:
                break
            arrays.add(id(codes))
            n_kept += 1
        n_done = min(n_kept, len(self.done))
        done = self.done[len(self.done) - n_done :]
        undone = self.undone[len(self.undone) - (n_kept - n_done) :]
        return replace(self, done=done, undone=undone)

    def carried(self, indices: NDArray[np.intp], n_points: int) -> ClusterState:
        """Return it for other cells, without undo; ``indices``: as for `carried`.

        Cells that have no index are one more cluster.
        """
        new_number = int(self.cluster.max(initial=0)) + 1
        cluster = carried(self.cluster, indices, n_points, new_number)
        annotation = self.annotation.carried(indices, n_points)
        cluster, n = disjoint(cluster, annotation), self.n_clusters
        return ClusterState(cluster=cluster, annotation=annotation, n_clusters=n)

    def free_ids(self) -> Iterator[int]:
        """Return ids that no cluster or group has, the lowest first."""
        numbers = np.flatnonzero(np.bincount(self.cluster)).tolist()
        return free_ids({*numbers, *self.annotation.groups})

    def _with(
        self, annotation: Annotation, done: tuple[Edit, ...], undone: tuple[Edit, ...]
    ) -> ClusterState:
        moved = replace(self, cluster=disjoint(self.cluster, annotation))
        return replace(moved, annotation=annotation, done=done, undone=undone)


def initial_state(n_points: int) -> ClusterState:
    """Return the state before any game."""
    cluster, codes = np.zeros(n_points, np.int32), np.full(n_points, NONE, np.int32)
    return ClusterState(cluster=cluster, annotation=Annotation(codes))
