"""The state of a session's clusters: numbers, annotation and undo history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.clustering import Cluster, Clustering
from napari_embedding_game.data.columns import list_text
from napari_embedding_game.session.clusters.annotation import (
    NONE,
    Annotation,
    Group,
    reindex_values,
    unique_name,
)
from napari_embedding_game.session.clusters.cluster_matching import (
    iter_free_ids,
    renumber_away_from_groups,
)

UNDECIDED = 0
"""Value of ``n_clusters`` while nobody has chosen: the program chooses the number."""
DEPTH = 100
"""Number of edits that can be undone; older edits are dropped."""
ALIKE = 0.5
"""Intersection over union from which a group counts as one cluster of the game."""
MAX_LISTED = 3
"""More names than this are counted in a sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """The menu text of an edit, and the annotation that undo or redo restores."""

    label: str
    annotation: Annotation


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterState:
    """Cluster numbers and annotation of n points, and the steps of undo."""

    cluster: NDArray[np.int32]
    """(n,) cluster number of each point, as found by the game."""
    annotation: Annotation
    n_clusters: int | None = UNDECIDED
    """How many clusters the landmarks are merged into; None for one per landmark."""
    done: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()

    def __post_init__(self) -> None:
        self.cluster.setflags(write=False)

    @cached_property
    def clustering(self) -> Clustering:
        """The clusters on show: annotated groups, and clusters of other points.

        A cluster is named by its number, which gets an ending where a group has this
        name.
        """
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

    def scattered_names_text(self) -> str:
        """Return a sentence on groups that are no longer one cluster; "" if none.

        These are groups that overlap no cluster by ``ALIKE``.  Only groups that were a
        whole cluster when they were annotated are checked.
        """
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
            f"{list_text(parted, MAX_LISTED)} are no longer one cluster each: their "
            "points keep the names until you change them."
        )

    def with_annotation(
        self, label: str, annotation: Annotation, *, joins: bool = False
    ) -> ClusterState:
        """Return the state with another annotation, and the edit as a step of undo.

        Steps of redo, and steps of undo beyond ``DEPTH``, are dropped.  The same
        annotation returns the same state.

        ``joins``: whether consecutive edits of the same label are one step.
        """
        if annotation == self.annotation:
            return self
        done = self.done
        if not (joins and done and done[-1].label == label and not self.undone):
            done = (*done, Edit(label, self.annotation))[-DEPTH:]
        return self._with_annotation_and_history(annotation, done, ())

    def undo(self) -> ClusterState:
        """Return the state before its last edit; itself where there is no edit."""
        if not self.done:
            return self
        *done, last = self.done
        undone = (*self.undone, replace(last, annotation=self.annotation))
        return self._with_annotation_and_history(last.annotation, tuple(done), undone)

    def redo(self) -> ClusterState:
        """Return the state with the last undone edit applied again, if any."""
        back = replace(self, done=self.undone, undone=self.done).undo()
        return replace(back, done=back.undone, undone=back.done)

    def limit_undo_history(self, max_bytes: int) -> ClusterState:
        """Return the state with as many steps of undo and redo as fit ``max_bytes``.

        The steps farthest from the present are dropped, those of undo being kept
        first.  An array that several steps share counts once.
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

    def to_other_rows(self, indices: NDArray[np.intp], n_points: int) -> ClusterState:
        """Return the state for another set of rows, without its undo history.

        ``indices`` (n,): position of each present row among the ``n_points`` new rows,
        -1 for none.  New rows without a present row are one more cluster.
        """
        new_number = int(self.cluster.max(initial=0)) + 1
        cluster = reindex_values(self.cluster, indices, n_points, new_number)
        annotation = self.annotation.to_other_rows(indices, n_points)
        cluster, n = renumber_away_from_groups(cluster, annotation), self.n_clusters
        return ClusterState(cluster=cluster, annotation=annotation, n_clusters=n)

    def iter_free_ids(self) -> Iterator[int]:
        """Yield the ids that no cluster or group has, ascending."""
        numbers = np.flatnonzero(np.bincount(self.cluster)).tolist()
        return iter_free_ids({*numbers, *self.annotation.groups})

    def _with_annotation_and_history(
        self, annotation: Annotation, done: tuple[Edit, ...], undone: tuple[Edit, ...]
    ) -> ClusterState:
        """Return the state with an annotation and a history.

        Clusters with the number of an annotated group get another number.
        """
        moved = replace(
            self, cluster=renumber_away_from_groups(self.cluster, annotation)
        )
        return replace(moved, annotation=annotation, done=done, undone=undone)


def initial_cluster_state(n_points: int) -> ClusterState:
    """Return the state before any game: one cluster, and no annotation."""
    cluster, codes = np.zeros(n_points, np.int32), np.full(n_points, NONE, np.int32)
    return ClusterState(cluster=cluster, annotation=Annotation(codes))
