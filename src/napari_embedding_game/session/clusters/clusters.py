"""The clusters of a session: found by the game, with a person's annotation on top.

``cluster`` changes with the map: landmarks are merged to the chosen number of clusters,
and a cluster's number is kept while most of its points are.  ``annotation`` holds the
names that a person gave to points, and stays on these points until the person changes
it.  An annotated point is shown in its group, any other point in its cluster, so that a
name never passes to other points.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.snapshot import IntArray, Snapshot
from napari_embedding_game.data.clustering import Cluster, Clustering
from napari_embedding_game.data.dataset import UNASSIGNED
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.clusters.annotation import (
    Annotation,
    Group,
    make_unique_name,
    replace_control_characters,
)
from napari_embedding_game.session.clusters.cluster_matching import (
    match_cluster_numbers,
)
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.session.clusters.state import (
    ALIKE,
    UNDECIDED,
    ClusterState,
    make_initial_cluster_state,
)

READABLE, MANY = 20, 40
"""How many clusters a person can read at once, and the number of landmarks above which
they are merged to so many."""
MIN_POINTS, MIN_SHARE = 10, 0.002
"""A cluster of fewer points, or of less than this share of all points, is merged into
its neighbour while nobody has chosen the number of clusters."""
MAX_IN_NAME = 3
"""How many of the merged clusters' names stand in the name of the result."""


class Clusters:
    """The present clusters; ``changed`` is emitted when anything visible changes."""

    changed = Signal()

    state: ClusterState
    n_landmarks: int
    """L, the number of landmarks in the game; 0 before the first frame."""
    _reference_numbers: NDArray[np.int32] | None
    """(n,) cluster numbers that new clusters are matched with."""

    def __init__(self, n_points: int = 0) -> None:
        self.restore(make_initial_cluster_state(np.ones(n_points, bool)))

    # The game and the slider

    def update_from_game(
        self,
        labels: NDArray[np.int32],
        n_landmarks: int,
        merging: LandmarkMerge | None = None,
    ) -> None:
        """Recompute the clusters from the landmark of each point in a frame.

        Emits ``changed``.  Until numbers are fixed, the next clusters are matched with
        these.

        ``labels`` (n,) int32: landmark of each point. ``merging``: how to merge
        landmarks; None while it is unknown: then each landmark is a cluster of its own,
        whatever number is chosen.
        """
        self._labels, self.n_landmarks, self._merging = labels, n_landmarks, merging
        self._set_state(replace(self.state, cluster=self._compute_cluster_numbers()))
        if not self._has_fixed_numbers:
            self._reference_numbers = self.state.cluster

    def finish_numbering(self) -> None:
        """Number clusters that nobody has seen yet by size, and fix the numbers.

        Numbers that were fixed before, as a person has seen them, stay.
        """
        if not self._has_fixed_numbers and self.n_landmarks:
            self._reference_numbers = None
            self._set_state(
                replace(self.state, cluster=self._compute_cluster_numbers())
            )
        self.fix_numbers()

    def fix_numbers(self) -> None:
        """Fix the present numbers, as a person has seen them, for later matching.

        Nothing happens before the first frame.
        """
        if self.n_landmarks:
            self._reference_numbers, self._has_fixed_numbers = self.state.cluster, True

    @property
    def clustering(self) -> Clustering:
        """The present clusters; immutable, so any thread may read them."""
        return self.state.clustering

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """All clusters that have points."""
        return self.clustering.clusters

    def find_clusters(self, ids: Sequence[int]) -> list[Cluster]:
        """Return the clusters of these ids, in this order; missing ids are skipped."""
        by_id = self.clustering.by_id if ids else {}
        return [by_id[key] for key in ids if key in by_id]

    @property
    def labels(self) -> NDArray[np.int32]:
        """(n,) cluster id of each point."""
        return self.clustering.labels

    @property
    def n_clusters(self) -> int | None:
        """How many clusters the landmarks are merged into; None for no merging.

        While nobody has chosen a number, it is

        - None for at most ``MANY`` landmarks with two points or more on average
        - else half the square root of the number of points, between 2 and ``READABLE``
        """
        if self.state.n_clusters != UNDECIDED:
            return self.state.n_clusters
        n_points = len(self._labels)
        if self.n_landmarks <= min(MANY, n_points / 2):
            return None
        return min(READABLE, max(2, round(math.sqrt(n_points) / 2)))

    def set_n_clusters(self, n_clusters: int | None) -> None:
        """Merge the landmarks into this many clusters; None keeps one per landmark.

        The new numbers are fixed, and ``changed`` is emitted; nothing happens where the
        number was chosen already.

        Raises DataError: the number is less than one.
        """
        if n_clusters is not None and n_clusters < 1:
            raise DataError(f"There cannot be {n_clusters} clusters: choose 1 or more.")
        if n_clusters != self.state.n_clusters:
            self.state = replace(self.state, n_clusters=n_clusters)
            if self.n_landmarks:
                self.state = replace(
                    self.state, cluster=self._compute_cluster_numbers()
                )
            self._set_state(self.state)
            self.fix_numbers()

    # What a person says, which can be undone

    def rename(self, cluster: int, name: str, listed: Clustering | None = None) -> None:
        """Annotate the points of a cluster with a name; "" removes their annotation.

        Nothing happens where the cluster has this name.

        ``listed``: the clusters when the person began to type. If the cluster's points
        have changed since by more than half, the points that it had then are named.

        Raises DataError: another cluster has that name, it is reserved, or the cluster
        is gone.
        """
        name, listed = _to_one_line(name), listed or self.clustering
        if cluster in listed.by_id and name == listed.by_id[cluster].name:
            return
        old, new = listed.labels == cluster, self.labels == cluster
        if name and (old & new).sum() < ALIKE * (old | new).sum():
            self.make_group(old, name)
            return
        before = self._require_cluster(cluster)
        if not name:
            self.remove_annotation(cluster)
        else:
            self._validate_name(name, cluster)
            self._change_group_texts(f"rename of {before.name}", before, name=name)

    def recolor(self, cluster: int, color: str) -> None:
        """Give a cluster a colour, "#rrggbb"; "" restores the automatic colour.

        A cluster without annotation becomes a group.

        Raises DataError: this is no such colour, or the cluster is gone.
        """
        color, before = color.lower(), self._require_cluster(cluster)
        if color and not re.fullmatch("#[0-9a-f]{6}", color):
            raise DataError(f"{color} is no colour: give one such as #1f77b4.")
        if color != before.color:
            self._change_group_texts(f"colour of {before.name}", before, color=color)

    def set_note(self, cluster: int, note: str) -> None:
        """Write a note on a cluster, which becomes a group; "" removes the note.

        Raises DataError: the cluster is gone.
        """
        note, before = note.strip(), self._require_cluster(cluster)
        if note != before.note:
            self._change_group_texts(f"note on {before.name}", before, note=note)

    def remove_annotation(self, cluster: int) -> None:
        """Remove the annotation of a group: its points are shown in clusters again.

        Nothing happens to a cluster that is not annotated.

        Raises DataError: the cluster is gone.
        """
        before = self._require_cluster(cluster)
        if before.is_named:
            self._apply_edit(
                f"release of {before.name}", self._annotation.without_group(cluster)
            )

    def merge(self, clusters: Iterable[int]) -> int:
        """Merge clusters into one group, and return its id.

        The id is that of the largest cluster.  The name is that of the largest named
        cluster, else the names are joined; the colour is the first one from the largest
        on, and all notes are joined.

        Raises DataError: these are fewer than two clusters, or one of them is gone.
        """
        parts = [self._require_cluster(cluster) for cluster in dict.fromkeys(clusters)]
        parts.sort(key=lambda part: -part.size)
        if len(parts) < 2:
            raise DataError("Select two or more clusters to merge them.")
        names = [part.name for part in parts]
        label = f"merge of {' and '.join(names)}"
        if len(names) > MAX_IN_NAME:
            names[MAX_IN_NAME - 1 :] = [f"{len(names) - MAX_IN_NAME + 1} more"]
        named = [part for part in parts if part.is_named]
        if named:
            group = self._annotation.groups[named[0].id]
        else:
            group = Group(name=self._make_unique_name(" + ".join(names)))
        group = replace(
            group,
            is_whole=False,
            color=next((part.color for part in parts if part.color), ""),
            note="\n".join(part.note for part in parts if part.note),
        )
        rows = np.isin(self.labels, [part.id for part in parts])
        self._apply_edit(label, self._annotation.with_group(rows, parts[0].id, group))
        return parts[0].id

    def split_into_groups(
        self, cluster: int | None, rows: IntArray, parts: IntArray
    ) -> list[int]:
        """Make each part of some points a group; return their ids, the largest first.

        ``cluster``: the cluster whose points these are: its largest part keeps id and
        name, the other parts are named after it; None makes every part a new group,
        such as "Group 1". ``rows`` (m,) int: the points. ``parts`` (m,) int: part of
        each point, in any numbers.

        Raises DataError: there is only one part.
        """
        _, part_of = np.unique(parts, return_inverse=True)
        order = np.argsort(-np.bincount(part_of), kind="stable")
        if len(order) < 2:
            raise DataError(
                "These points are one cluster, however they are divided: choose more "
                "parts, or draw around some of them instead."
            )
        whole = None if cluster is None else self.clustering.by_id.get(cluster)
        levels, names = np.full(len(self.labels), -1), []
        spare = self._iter_free_names()
        for level, part in enumerate(order if whole is None else order[1:]):
            levels[rows[part_of == part]] = level
            if whole is None:
                names.append(next(spare))
            else:
                between = " " if whole.is_named else "."
                names.append(
                    self._make_unique_name(f"{whole.name}{between}{level + 2}")
                )
        title = f"{len(rows):,} points" if whole is None else whole.name
        groups = [Group(name=name) for name in names]
        ids = self._annotate_by_level(f"split of {title}", levels, groups)
        return ids if whole is None else [whole.id, *ids]

    def make_group(self, points: NDArray[Any], name: str = "") -> int:
        """Make points a group of their own and return its id.

        ``points`` (n,) bool or (m,) int. ``name``: "" for the next free "Group 1".

        Raises DataError: there are no points, or the name is reserved or taken.
        """
        points, name = np.asarray(points), _to_one_line(name)
        if not (points.any() if points.dtype == bool else len(points)):
            raise DataError("Select some points first, for instance with the lasso.")
        self._validate_name(name)
        group = Group(name=name or next(self._iter_free_names()))
        levels = np.full(len(self.labels), -1)
        levels[points] = 0
        title = "new cluster from selection"
        (cluster,) = self._annotate_by_level(title, levels, [group])
        return cluster

    def add_points_to_group(self, cluster: int, points: NDArray[Any]) -> None:
        """Add points, (n,) bool or (m,) int, to an annotated group.

        ``cluster``: id of the group.

        Raises DataError: the group is gone.
        """
        before = self._require_cluster(cluster)
        group = replace(self._annotation.groups[before.id], is_whole=False)
        annotation = self._annotation.with_group(points, before.id, group)
        self._apply_edit(f"more of {before.name}", annotation)

    def annotate_by_column(self, column: pd.Series, colors: Mapping[str, str]) -> None:
        """Annotate points by the names of their levels in a column (n,).

        Points without a level, or of a level named "" or "unassigned", keep their
        annotation.

        ``colors``: "#rrggbb" by level.  An existing group of that name keeps its note,
        and its colour if it has one.
        """
        by_name = {group.name: group for group in self._annotation.groups.values()}
        values = column.astype("category").cat.remove_unused_categories().cat
        new = [
            Group(name=str(x), color=colors.get(str(x), "")) for x in values.categories
        ]
        known = [by_name.get(group.name, group) for group in new]
        groups = [
            replace(x, color=x.color or group.color)
            for x, group in zip(known, new, strict=True)
        ]
        levels = values.codes.to_numpy().astype(np.intp)
        nothing = "", UNASSIGNED
        out = [at for at, group in enumerate(groups) if group.name.strip() in nothing]
        levels[np.isin(levels, out)] = -1
        self._annotate_by_level(f"annotation by {column.name}", levels, groups)

    @property
    def undo_label(self) -> str:
        """Menu text such as "Undo rename of T cells"; "" when nothing can be undone."""
        return f"Undo {self.state.done[-1].label}" if self.state.done else ""

    @property
    def redo_label(self) -> str:
        """Menu text such as "Redo rename of T cells"; "" when nothing can be redone."""
        return f"Redo {self.state.undone[-1].label}" if self.state.undone else ""

    def undo(self) -> None:
        """Undo the last edit, if any, and fix the cluster numbers."""
        self._set_state(self.state.undo())
        self.fix_numbers()

    def redo(self) -> None:
        """Redo the edit that was undone last, if any, and fix the cluster numbers."""
        self._set_state(self.state.redo())
        self.fix_numbers()

    # To and from a file

    def restore(
        self,
        state: ClusterState,
        snapshot: Snapshot | None = None,
        merging: LandmarkMerge | None = None,
    ) -> None:
        """Restore a stored state: the clusters are shown as they were.

        Without a map (``snapshot`` None) the numbers are dropped: the clusters of the
        next map are numbered by size.
        """
        self._labels, self.n_landmarks = np.zeros(len(state.cluster), np.int32), 0
        if snapshot is not None:
            self._labels, self.n_landmarks = snapshot.labels, len(snapshot.landmarks)
        self._merging = merging
        has_map = snapshot is not None
        self._has_fixed_numbers, self._reference_numbers = (
            has_map,
            state.cluster if has_map else None,
        )
        self.state = state
        self._is_merged = self.n_clusters is not None if self.n_landmarks else None
        self._set_state(state)

    @property
    def _annotation(self) -> Annotation:
        return self.state.annotation

    def _compute_cluster_numbers(self) -> NDArray[np.int32]:
        """Return the number of each point's cluster, (n,), from its landmark.

        - Without merging each landmark is a cluster, with a number of its own until
          numbers are fixed.
        - While nobody has chosen the number of clusters, too small clusters are joined
          to a neighbour.
        - Clusters are matched with the reference numbers where these exist, but
          numbered anew where merging has begun or ended.
        """
        n, previous = self.n_clusters, self._reference_numbers
        is_merged = n is not None and self._merging is not None
        if self._is_merged not in (None, is_merged):
            previous = None
        self._is_merged = is_merged
        new_clusters = self._labels
        if n is not None and self._merging is not None:
            min_points = 0
            if self.state.n_clusters == UNDECIDED:
                min_points = max(MIN_POINTS, round(MIN_SHARE * len(new_clusters)))
            sizes = np.bincount(new_clusters, minlength=self.n_landmarks)
            parts = self._merging.cut_into_clusters(n, sizes, min_points)
            new_clusters = (parts + 1).take(
                new_clusters
            )  # 0: of a landmark without points
        elif previous is None or not self._has_fixed_numbers:
            previous = new_clusters  # a landmark has a number of its own
        return match_cluster_numbers(new_clusters, previous, self._annotation)

    def _require_cluster(self, cluster: int) -> Cluster:
        """Return the cluster of this id; raise DataError if it no longer exists."""
        match = self.clustering.by_id.get(cluster)
        if match is None:
            raise DataError("This cluster is gone: choose one from the table.")
        return match

    def _validate_name(self, name: str, cluster: int | None = None) -> None:
        """Raise DataError if a name is reserved, or another cluster has it.

        ``cluster``: id of the cluster that may have the name; None for a new one.
        """
        if name.lower() == UNASSIGNED:
            raise DataError(
                f"'{UNASSIGNED}' is what rows outside the map are called: "
                "choose another name."
            )
        if any(name == c.name and c.id != cluster for c in self.clusters):
            raise DataError(
                f"There is already a cluster called {name}: merge the two, or "
                "choose another name."
            )

    def _make_unique_name(self, name: str) -> str:
        """Return a name, or "name (2)" and so on where a cluster has it."""
        return make_unique_name(name, {group.name for group in self.clusters})

    def _iter_free_names(self) -> Iterator[str]:
        """Yield "Group 1", "Group 2" and so on, without the names of clusters."""
        taken = {group.name for group in self.clusters}
        names = (f"Group {number}" for number in itertools.count(1))
        return (name for name in names if name not in taken)

    def _change_group_texts(self, label: str, cluster: Cluster, **texts: str) -> None:
        """Set name, colour or note of a cluster, as one edit that can be undone.

        A cluster that is not annotated becomes a group, by default named "Cluster" and
        its number.

        ``label``: name of the edit for undo. ``texts``: the fields of the group to
        change, ``name``, ``color`` or ``note``, and their new texts.
        """
        annotation = self._annotation
        if not cluster.is_named:
            name = texts.get("name") or self._make_unique_name(
                f"Cluster {cluster.name}"
            )
            rows = self.clustering.rows_in_cluster(cluster.id)
            group = Group(name=name, is_whole=True)
            annotation = annotation.with_group(rows, cluster.id, group)
        self._apply_edit(label, annotation.with_group_texts(cluster.id, **texts))

    def _annotate_by_level(
        self, label: str, levels: IntArray, groups: Sequence[Group]
    ) -> list[int]:
        """Put each point into the group of its level, and return the groups' ids.

        A group with the name of an existing one is joined to it.  Groups without points
        are not made, and have no id in the list.

        ``levels`` (n,): index into ``groups``, -1 for points that stay as they are.
        """
        rows = np.flatnonzero(levels >= 0)
        annotation = Annotation(levels[rows].astype(np.int32), dict(enumerate(groups)))
        joined = self._annotation.with_annotation_from(
            rows, annotation, self.state.iter_free_ids()
        )
        ids = {group.name: number for number, group in joined.groups.items()}
        self._apply_edit(label, joined)
        return [ids[group.name] for group in groups if group.name in ids]

    def _apply_edit(self, label: str, annotation: Annotation) -> None:
        """Set an annotation as one step of undo, and fix the cluster numbers."""
        self._set_state(self.state.with_annotation(label, annotation))
        self.fix_numbers()

    def _set_state(self, state: ClusterState) -> None:
        """Set the state and emit ``changed``."""
        self.state = state
        self.changed.emit()


def _to_one_line(name: str) -> str:
    """Return a name on one line, without control characters."""
    return " ".join(replace_control_characters(name).split())


def cluster_finished_run(
    edges: Any,
    labels: NDArray[np.int32],
    n_landmarks: int,
    n_clusters: int | None = None,
) -> Clusters:
    """Return the clusters that the window shows at the end of the same game.

    ``edges``: between all n points. ``labels`` (n,) int32: landmark of each point.
    ``n_clusters``: number of clusters, or fewer where fewer landmarks have points; None
    for the number that the window chooses.
    """
    clusters = Clusters(len(labels))
    clusters.update_from_game(
        labels, n_landmarks, LandmarkMerge.from_edges(edges, labels, n_landmarks)
    )
    if n_clusters is not None:
        clusters.set_n_clusters(n_clusters)
    clusters.finish_numbering()
    return clusters
