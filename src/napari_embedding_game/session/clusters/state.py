"""The state of a session's clusters: numbers, annotation and undo history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.clustering import Cluster, Clustering
from napari_embedding_game.data.columns import list_text
from napari_embedding_game.session.clusters.annotation import (
    NONE,
    Annotation,
    Group,
    make_unique_name,
)
from napari_embedding_game.session.clusters.cluster_matching import (
    iter_free_ids,
    renumber_away_from_groups,
)
from napari_embedding_game.session.clusters.statements import MapNames, Statements

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
    """The menu text of an edit, and the statements that undo or redo restores."""

    label: str
    own: Statements
    """Column of the map's own statements."""
    ids: Mapping[str, int] = field(default_factory=dict)
    """Ids of the groups on the map, by key."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterState:
    """Cluster numbers and names of n points, and the steps of undo."""

    cluster: NDArray[np.int32]
    """(n,) cluster number of each point, as found by the game."""
    names: MapNames
    """What a person said of the points, here and in other maps."""
    n_clusters: int | None = UNDECIDED
    """How many clusters the landmarks are merged into; None for one per landmark."""
    done: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()
    n_statements: int = 0
    """Number of the latest statement of the session; a number is never given twice."""

    def __post_init__(self) -> None:
        self.cluster.setflags(write=False)

    @property
    def annotation(self) -> Annotation:
        """The group of each point, by the names on show."""
        return self.names.annotation

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
                group = Group(name=make_unique_name(str(number), taken))
            is_named, size = number in groups, int(sizes[number])
            texts = {part: getattr(group, part) for part in ("name", "color", "note")}
            clusters.append(Cluster(id=number, is_named=is_named, size=size, **texts))
        labels.setflags(write=False)
        return Clustering(labels, tuple(clusters))

    def describe_scattered_names(self) -> str:
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

    def with_annotation(self, label: str, annotation: Annotation) -> ClusterState:
        """Return the state with another annotation, and the edit as a step of undo.

        Steps of redo, and steps of undo beyond ``DEPTH``, are dropped.  The same
        annotation returns the same state.
        """
        if annotation == self.annotation:
            return self
        done = (*self.done, Edit(label, self.names.own, self.names.ids))[-DEPTH:]
        first = self.n_statements + 1
        names = self.names.with_edit(annotation, first)
        latest = max([first, *names.own.keys])
        edited = replace(self, done=done, undone=(), n_statements=latest)
        return edited._with_names(names)

    def with_names_of_other_maps(
        self, others: Statements, n_statements: int
    ) -> ClusterState:
        """Return the state with the statements of other maps; itself if nothing is new.

        That is no step of undo: undo takes back what was said on this map.

        ``n_statements``: number of the latest statement of the session.
        """
        state = self
        if n_statements != self.n_statements:
            state = replace(state, n_statements=n_statements)
        if not others.equals(self.names.others):
            return state._with_names(replace(self.names, others=others))
        # A file may lack the id of a group.
        return state._with_names(self.names) if self.names.keys_without_id else state

    def undo(self) -> ClusterState:
        """Return the state before its last edit; itself where there is no edit."""
        if not self.done:
            return self
        *done, last = self.done
        step = replace(last, own=self.names.own, ids=self.names.ids)
        before = replace(self, done=tuple(done), undone=(*self.undone, step))
        return before._with_names(self.names.restore_own(last.own, last.ids))

    def redo(self) -> ClusterState:
        """Return the state with the last undone edit applied again, if any."""
        back = replace(self, done=self.undone, undone=self.done).undo()
        return replace(back, done=back.undone, undone=back.done)

    def limit_undo_history(self, max_bytes: int) -> ClusterState:
        """Return the state with as many steps of undo and redo as fit ``max_bytes``.

        The steps farthest from the present are dropped, those of undo being kept
        first.  An array that several steps share counts once.
        """
        arrays, n_bytes, n_kept = {id(self.names.own.numbers)}, 0, 0
        for edit in (*self.done[::-1], *self.undone[::-1]):
            numbers = edit.own.numbers
            n_bytes += numbers.nbytes * (id(numbers) not in arrays)
            if n_bytes > max_bytes:
                break
            arrays.add(id(numbers))
            n_kept += 1
        n_done = min(n_kept, len(self.done))
        done = self.done[len(self.done) - n_done :]
        undone = self.undone[len(self.undone) - (n_kept - n_done) :]
        return replace(self, done=done, undone=undone)

    def with_kept_rows(self, kept: NDArray[np.bool_]) -> ClusterState:
        """Return the state for other rows of the same source, with the same steps.

        Names of rows that are left out stay in the column of the source. Rows that were
        not on the map are one more cluster.

        ``kept``: (n_source_rows,) True where a row of the source is on the map.
        """
        cluster = np.full(len(kept), int(self.cluster.max(initial=0)) + 1, np.int32)
        cluster[self.names.kept] = self.cluster
        moved = replace(self, cluster=cluster[kept])
        return moved._with_names(replace(self.names, kept=kept))

    def to_reading(self, kept: NDArray[np.bool_], base: MapNames) -> ClusterState:
        """Return the state of a new reading with the names of its base map.

        Cluster numbers are those of the present points, as in :meth:`with_kept_rows`.

        ``kept``: (n_source_rows,) True where a row of the source is in the reading.
        """
        moved = replace(self.with_kept_rows(kept), done=(), undone=())
        nothing, said = Statements.make_empty(len(kept)), base.standalone.own
        return moved._with_names(
            MapNames(kept, nothing, said.without_removals(), base.ids)
        )

    def to_other_source(
        self, indices: NDArray[np.intp], kept: NDArray[np.bool_]
    ) -> ClusterState:
        """Return the state for rows of another source, without its undo history.

        ``indices`` (n,): position of each present row among the m new rows, -1 for
        none. ``kept``: (n_source_rows,) mask of the m new rows in the other source.
        New rows without a present row are one more cluster.
        """
        to, new = indices[indices >= 0], np.flatnonzero(kept)
        cluster = np.full(len(new), int(self.cluster.max(initial=0)) + 1, np.int32)
        cluster[to] = self.cluster[indices >= 0]
        names, numbers = self.names.standalone, np.zeros(len(kept), np.int32)
        numbers[new[to]] = names.own.numbers[names.kept][indices >= 0]
        own = replace(names.own, numbers=numbers).without_unused_keys()
        moved = replace(self, cluster=cluster, done=(), undone=())
        nothing = Statements.make_empty(len(kept))
        return moved._with_names(replace(names, kept=kept, own=own, others=nothing))

    @property
    def standalone(self) -> ClusterState:
        """The same state, with the statements of other maps as its own.

        So are those in the steps of undo.
        """
        others = self.names.others

        def join(edit: Edit) -> Edit:
            """Return a step with the statements of other maps."""
            return replace(edit, own=edit.own.join(others).without_unused_keys())

        return replace(
            self,
            names=self.names.standalone,
            done=tuple(map(join, self.done)),
            undone=tuple(map(join, self.undone)),
        )

    def iter_free_ids(self) -> Iterator[int]:
        """Yield the ids that no cluster or group has, ascending."""
        numbers = np.flatnonzero(np.bincount(self.cluster)).tolist()
        return iter_free_ids({*numbers, *self.annotation.groups})

    def _with_names(self, names: MapNames) -> ClusterState:
        """Return the state with other names, and an id for each group on show.

        Clusters with the number of a group on show get another number.
        """
        if names.keys_without_id:
            numbers = np.flatnonzero(np.bincount(self.cluster)).tolist()
            names = names.with_free_ids(iter_free_ids({*numbers, *names.ids.values()}))
        cluster = renumber_away_from_groups(self.cluster, names.annotation)
        return replace(self, cluster=cluster, names=names)


def make_initial_cluster_state(kept: NDArray[np.bool_]) -> ClusterState:
    """Return the state before any game: one cluster, and no annotation.

    ``kept``: (n_source_rows,) mask of the points among the rows of the source.
    """
    cluster = np.zeros(int(np.count_nonzero(kept)), np.int32)
    return ClusterState(cluster=cluster, names=MapNames.make_empty(kept))
