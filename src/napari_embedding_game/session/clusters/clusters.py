"""The clusters of a session: those that the game finds, under what a person said.

``cluster`` moves with the map: landmarks are merged to the chosen number, and numbers
follow the cells.  ``annotation`` is what a person said of cells, and stays on them
until they say otherwise.  An annotated cell is shown in its group, any other in its
cluster, so that no name ever comes to stand on other cells.
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
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.clusters.annotation import (
    Annotation,
    Group,
    unique_name,
    without_controls,
)
from napari_embedding_game.session.clusters.following import follow
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.session.clusters.state import (
    ALIKE,
    UNDECIDED,
    ClusterState,
    initial_state,
)

READABLE, MANY = 20, 40
"""Clusters that can be taken in at once; landmarks above which there are so many."""
MIN_POINTS, MIN_SHARE = 10, 0.002
"""Clusters of fewer points, or of less than this share of all, go to their neighbour
while nobody has chosen how many there are."""
MAX_IN_NAME = 3
"""Of clusters that are merged."""
RESERVED_NAME = "unassigned"
"""What rows that are not on the map are called in every file."""


class Clusters:
    """The present clusters; ``changed``: anything to be seen has changed."""

    changed = Signal()

    state: ClusterState
    n_landmarks: int
    """L, landmarks in the game; 0 before the first frame."""
    _followed: NDArray[np.int32] | None
    """(n,) numbers that new ones follow."""

    def __init__(self, n_points: int = 0) -> None:
        self.restore(initial_state(n_points))

    # The game and the slider

    def receive(
        self,
        labels: NDArray[np.int32],
        n_landmarks: int,
        merging: Merging | None = None,
    ) -> None:
        """Follow the game.

        ``labels`` (n,) int32: landmark of each point. ``merging``: how to merge
        landmarks; None while nobody knows: then each landmark is a cluster of its own,
        whatever the slider says.
        """
        self._labels, self.n_landmarks, self._merging = labels, n_landmarks, merging
        self._set_state(replace(self.state, cluster=self._division()))
        if not self._is_rested:
            self._followed = self.state.cluster

    def finish(self) -> None:
        """Number the clusters by size if nobody has seen them; keep the numbers."""
        if not self._is_rested and self.n_landmarks:
            self._followed = None
            self._set_state(replace(self.state, cluster=self._division()))
        self.fix_numbers()

    def fix_numbers(self) -> None:
        """Keep the present numbers, as a person has seen them; later ones follow."""
        if self.n_landmarks:
            self._followed, self._is_rested = self.state.cluster, True

    @property
    def clustering(self) -> Clustering:
        """The present clusters; immutable, so it may be handed to a thread."""
        return self.state.clustering

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """All clusters that have points."""
        return self.clustering.clusters

    def of(self, ids: Sequence[int]) -> list[Cluster]:
        """Return the clusters of these ids that there are."""
        by_id = self.clustering.by_id if ids else {}
        return [by_id[key] for key in ids if key in by_id]

    @property
    def labels(self) -> NDArray[np.int32]:
        """(n,) cluster id of each point."""
        return self.clustering.labels

    @property
    def n_clusters(self) -> int | None:
        """How many clusters the landmarks are merged into; None: not at all.

        While nobody has decided: None where landmarks are few and have two points or
        more on average; else as many as can be taken in, and no more than leave each
        some points: half the root of their number.
        """
        if self.state.n_clusters != UNDECIDED:
            return self.state.n_clusters
        n_points = len(self._labels)
        if self.n_landmarks <= min(MANY, n_points / 2):
            return None
        return min(READABLE, max(2, round(math.sqrt(n_points) / 2)))

    def set_n_clusters(self, n_clusters: int | None) -> None:
        """Merge the landmarks into so many clusters; None leaves each its own.

        Raises DataError: fewer than one.
        """
        if n_clusters is not None and n_clusters < 1:
            raise DataError(f"There cannot be {n_clusters} clusters: choose 1 or more.")
        if n_clusters != self.state.n_clusters:
            self.state = replace(self.state, n_clusters=n_clusters)
            if self.n_landmarks:
                self.state = replace(self.state, cluster=self._division())
            self._set_state(self.state)
            self.fix_numbers()

    # What a person says, which can be undone

    def rename(self, cluster: int, name: str, listed: Clustering | None = None) -> None:
        """Annotate the points of a cluster with a name; "" takes their annotation away.

        ``listed``: the clusters when a person began to type. If the cluster is another
        one by now, the points that it had then get the name.

        Raises DataError: another cluster has that name.
        """
        name, listed = _to_one_line(name), listed or self.clustering
        if cluster in listed.by_id and name == listed.by_id[cluster].name:
            return
        old, new = listed.labels == cluster, self.labels == cluster
        if name and (old & new).sum() < ALIKE * (old | new).sum():
            self.make_cluster(old, name)
            return
        before = self._find(cluster)
        if not name:
            self.release(cluster)
        else:
            self._check_name(name, cluster)
            self._annotate_cluster(f"rename of {before.name}", before, name=name)

    def recolor(self, cluster: int, color: str) -> None:
        """Give a colour as "#rrggbb"; "" goes back to the automatic one."""
        color, before = color.lower(), self._find(cluster)
        if color and not re.fullmatch("#[0-9a-f]{6}", color):
            raise DataError(f"{color} is no colour: give one such as #1f77b4.")
        if color != before.color:
            self._annotate_cluster(f"colour of {before.name}", before, color=color)

    def annotate(self, cluster: int, note: str) -> None:
        """Write a note on a cluster; "" takes it away."""
        note, before = note.strip(), self._find(cluster)
        if note != before.note:
            self._annotate_cluster(f"note on {before.name}", before, note=note)

    def release(self, cluster: int) -> None:
        """Take the annotation of a group away: its points are in clusters again."""
        before = self._find(cluster)
        if before.is_named:
            self._edit(f"release of {before.name}", self._annotation.without(cluster))

    def merge(self, clusters: Iterable[int]) -> int:
        """Make clusters one group; return its id, which the largest of them had.

        The name is that of the largest cluster that has one; all notes stay.
        """
        parts = [self._find(cluster) for cluster in dict.fromkeys(clusters)]
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
            group = Group(name=self._new_name(" + ".join(names)))
        group = replace(
            group,
            is_whole=False,
            color=next((part.color for part in parts if part.color), ""),
            note="\n".join(part.note for part in parts if part.note),
        )
        rows = np.isin(self.labels, [part.id for part in parts])
        self._edit(label, self._annotation.with_group(rows, parts[0].id, group))
        return parts[0].id

    def split(self, cluster: int | None, rows: IntArray, parts: IntArray) -> list[int]:
        """Make parts of points groups; return their ids, the largest first.

        ``cluster``: the cluster that the points are of: its largest part stays what it
        is. ``rows`` (m,) int. ``parts`` (m,) int: which part each belongs to, in any
        numbers.
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
        spare = self._spare_names()
        for level, part in enumerate(order if whole is None else order[1:]):
            levels[rows[part_of == part]] = level
            if whole is None:
                names.append(next(spare))
            else:
                between = " " if whole.is_named else "."
                names.append(self._new_name(f"{whole.name}{between}{level + 2}"))
        title = f"{len(rows):,} points" if whole is None else whole.name
        groups = [Group(name=name) for name in names]
        ids = self._join(f"split of {title}", levels, groups)
        return ids if whole is None else [whole.id, *ids]

    def make_cluster(self, points: NDArray[Any], name: str = "") -> int:
        """Make points a group of their own and return its id.

        ``points`` (n,) bool or (m,) int. ``name``: "" for the next free "Group 1".
        """
        points, name = np.asarray(points), _to_one_line(name)
        if not (points.any() if points.dtype == bool else len(points)):
            raise DataError("Select some points first, for instance with the lasso.")
        self._check_name(name)
        group = Group(name=name or next(self._spare_names()))
        levels = np.full(len(self.labels), -1)
        levels[points] = 0
        title = "new cluster from selection"
        (cluster,) = self._join(title, levels, [group])
        return cluster

    def add_to(self, cluster: int, points: NDArray[Any]) -> None:
        """Put points, (n,) bool or (m,) int, into an annotated group."""
        before = self._find(cluster)
        group = replace(self._annotation.groups[before.id], is_whole=False)
        annotation = self._annotation.with_group(points, before.id, group)
        self._edit(f"more of {before.name}", annotation)

    def annotate_by(self, column: pd.Series, colors: Mapping[str, str]) -> None:
        """Annotate all points that have one by the levels of a column (n,).

        `colors` are those of levels as "#rrggbb".  A group of that name keeps what else
        was said of it.
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
        nothing = "", RESERVED_NAME
        out = [at for at, group in enumerate(groups) if group.name.strip() in nothing]
        levels[np.isin(levels, out)] = -1
        self._join(f"annotation by {column.name}", levels, groups)

    @property
    def undo_label(self) -> str:
        """Words for the menu, such as "Undo rename of T cells"; "" when nothing is."""
        return f"Undo {self.state.done[-1].label}" if self.state.done else ""

    @property
    def redo_label(self) -> str:
        """Words for the menu; "" when there is nothing to redo."""
        return f"Redo {self.state.undone[-1].label}" if self.state.undone else ""

    def undo(self) -> None:
        """Take the last edit back."""
        self._set_state(self.state.undo())
        self.fix_numbers()

    def redo(self) -> None:
        """Make the last undone edit again."""
        self._set_state(self.state.redo())
        self.fix_numbers()

    # To and from a file

    def restore(
        self,
        state: ClusterState,
        snapshot: Snapshot | None = None,
        merging: Merging | None = None,
    ) -> None:
        """Go on where a stored state stopped: the clusters are as they were seen.

        Without a map its numbers are forgotten: those of the next one go by size.
        """
        self._labels, self.n_landmarks = np.zeros(len(state.cluster), np.int32), 0
        if snapshot is not None:
            self._labels, self.n_landmarks = snapshot.labels, len(snapshot.landmarks)
        self._merging = merging
        has_map = snapshot is not None
        self._is_rested, self._followed = has_map, state.cluster if has_map else None
        self.state = state
        self._is_merged = self.n_clusters is not None if self.n_landmarks else None
        self._set_state(state)

    @property
    def _annotation(self) -> Annotation:
        return self.state.annotation

    def _division(self) -> NDArray[np.int32]:
        """Return the number of each point's cluster, as game and slider have it."""
        n, previous = self.n_clusters, self._followed
        is_merged = n is not None and self._merging is not None
        if self._is_merged not in (None, is_merged):
            previous = None
        self._is_merged = is_merged
        division = self._labels
        if n is not None and self._merging is not None:
            fewest = 0
            if self.state.n_clusters == UNDECIDED:
                fewest = max(MIN_POINTS, round(MIN_SHARE * len(division)))
            sizes = np.bincount(division, minlength=self.n_landmarks)
            parts = self._merging.cut(n, sizes, fewest)
            division = (parts + 1).take(division)  # 0: of a landmark without points
        elif previous is None or not self._is_rested:
            previous = division  # a landmark has a number of its own
        return follow(division, previous, self._annotation)

    def _find(self, cluster: int) -> Cluster:
        match = self.clustering.by_id.get(cluster)
        if match is None:
            raise DataError("This cluster is gone: choose one from the table.")
        return match

    def _check_name(self, name: str, cluster: int | None = None) -> None:
        if name.lower() == RESERVED_NAME:
            raise DataError(
                f"'{RESERVED_NAME}' is what rows outside the map are called: "
                "choose another name."
            )
        if any(name == c.name and c.id != cluster for c in self.clusters):
            raise DataError(
                f"There is already a cluster called {name}: merge the two, or "
                "choose another name."
            )

    def _new_name(self, name: str) -> str:
        return unique_name(name, {group.name for group in self.clusters})

    def _spare_names(self) -> Iterator[str]:
        taken = {group.name for group in self.clusters}
        names = (f"Group {number}" for number in itertools.count(1))
        return (name for name in names if name not in taken)

    def _annotate_cluster(self, label: str, cluster: Cluster, **texts: str) -> None:
        """Change name, colour or note of a cluster; its points become a group."""
        annotation = self._annotation
        if not cluster.is_named:
            name = texts.get("name") or self._new_name(f"Cluster {cluster.name}")
            rows = self.clustering.rows(cluster.id)
            group = Group(name=name, is_whole=True)
            annotation = annotation.with_group(rows, cluster.id, group)
        self._edit(label, annotation.with_changes(cluster.id, **texts))

    def _join(self, label: str, levels: IntArray, groups: Sequence[Group]) -> list[int]:
        """Annotate points by level, and return the id of each group."""
        rows = np.flatnonzero(levels >= 0)
        annotation = Annotation(levels[rows].astype(np.int32), dict(enumerate(groups)))
        joined = self._annotation.adopted(rows, annotation, self.state.free_ids())
        ids = {group.name: number for number, group in joined.groups.items()}
        self._edit(label, joined)
        return [ids[group.name] for group in groups if group.name in ids]

    def _edit(self, label: str, annotation: Annotation) -> None:
        self._set_state(self.state.edited(label, annotation))
        self.fix_numbers()

    def _set_state(self, state: ClusterState) -> None:
        self.state = state
        self.changed.emit()


def _to_one_line(name: str) -> str:
    return " ".join(without_controls(name).split())


def clusters_of(
    edges: Any,
    labels: NDArray[np.int32],
    n_landmarks: int,
    n_clusters: int | None = None,
) -> Clusters:
    """Return the clusters of a finished run without any edits.

    They are those that a window shows at the end of the same game.

    ``edges``: of all n points. ``labels`` (n,) int32: landmark of each point.
    ``n_clusters``: how many instead, or fewer where fewer landmarks have points.
    """
    clusters = Clusters(len(labels))
    clusters.receive(labels, n_landmarks, Merging.of(edges, labels, n_landmarks))
    if n_clusters is not None:
        clusters.set_n_clusters(n_clusters)
    clusters.finish()
    return clusters
