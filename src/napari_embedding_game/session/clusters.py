"""The clusters of a session: they follow the game, and a person edits them.

What the game and the slider find is *automatic*; what a person decides lies
over it and holds:

- A name, colour or note belongs to a cluster, and goes with most of its points.
  Where the slider merges clusters, the name of the largest part stays, and the
  others sleep: they come back with their points (:mod:`identities`).
- Clusters made by hand - merged, split, drawn with a lasso, named in a child
  map - keep their points, whatever the game and the slider do with the rest.
- Many landmarks are merged into few clusters from the beginning; the number is a
  person's as soon as they choose one, and then kept.
- While each landmark is a cluster of its own, a cluster's id is the landmark's
  number, and so is its name until it is given one.  All others count from 1, the
  largest first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session import edits
from napari_embedding_game.session.clustering import (
    Cluster,
    Clustering,
    Edits,
    Given,
    Grouping,
    suitable,
    through,
    untouched,
)
from napari_embedding_game.session.edits import Named
from napari_embedding_game.session.history import History
from napari_embedding_game.session.identities import Identities, IntArray, Numbers
from napari_embedding_game.session.merging import has_leiden

Divide = Callable[[int, Grouping], IntArray]
"""(n_clusters, grouping) -> (L,) cluster of each landmark, in any numbers."""

FIRST_ID = 1 << 20
"""Ids of clusters that are not a single landmark begin here."""
RESERVED_NAME = "unassigned"
"""What rows that are not on the map are called in every file."""
_COLOR = re.compile(r"#[0-9a-f]{6}")


@dataclass(frozen=True, kw_only=True, eq=False)
class BookState:
    """All that a book knows, ready to be stored."""

    edits: Edits
    automatic: IntArray
    of_landmarks: IntArray
    numbers: Mapping[int, int] = field(default_factory=dict)
    next_id: int = FIRST_ID
    asleep: Mapping[int, NDArray[np.intp]] = field(default_factory=dict)
    """Points of clusters that are not to be seen now."""


class ClusterBook:
    """The present clusters, their edits, and the way back and forth through them.

    ``changed`` tells that anything to be seen has changed; ``history.changed``
    that the words for Undo and Redo have.
    """

    changed = Signal()

    def __init__(self, n_points: int = 0) -> None:
        self.history: History[Edits] = History()
        self.restart(n_points)

    # The game and the slider

    def restart(self, n_points: int) -> None:
        """Forget everything: other points."""
        self._edits = untouched(n_points)
        self._labels: IntArray = np.zeros(n_points, np.int32)
        self._n_landmarks = 0
        self._divide: Divide | None = None
        self._ids = Numbers(FIRST_ID)
        self._single = Identities(self._ids)
        self._merged = Identities(self._ids)
        self._is_counted_by_landmark = True
        self._was_merged = False
        self._numbers: dict[int, int] = {}
        self._of_landmarks: IntArray = np.zeros(0, np.int32)
        self._clustering = Clustering(automatic=self._labels, edits=self._edits)
        self.history.clear()
        self.changed.emit()

    def begin_run(self) -> None:
        """Prepare for a new game on the same points: what was named is kept."""
        self._stop_counting_by_landmark()
        self._single.sleep()
        self._merged.sleep()
        # Landmark 7 of this game has nothing to do with one that was named before.
        has_edits = bool(self.history.undo_label or self.history.redo_label)
        self._is_counted_by_landmark = not has_edits and self._edits == untouched(
            len(self._labels)
        )
        if self._is_counted_by_landmark:
            self._single = Identities(self._ids)
        self._n_landmarks = 0
        self._divide = None

    def receive(
        self, labels: IntArray, n_landmarks: int, divide: Divide | None = None
    ) -> None:
        """Follow the game.

        Parameters
        ----------
        labels : (n,) int32
            Landmark of each point.
        n_landmarks : int
        divide : callable, optional
            How to merge landmarks; None while nobody knows: then each landmark is
            a cluster of its own, whatever the slider says.
        """
        if self._n_landmarks not in (0, n_landmarks):
            self._stop_counting_by_landmark()  # their numbers have moved up
        self._labels, self._n_landmarks, self._divide = labels, n_landmarks, divide
        self._update()

    @property
    def clustering(self) -> Clustering:
        """The present clusters; immutable, so it may be handed to a thread."""
        return self._clustering

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """All clusters that have points."""
        return self._clustering.clusters

    @property
    def labels(self) -> IntArray:
        """(n,) cluster id of each point."""
        return self._clustering.labels

    @property
    def of_landmarks(self) -> IntArray:
        """(L,) cluster id of each landmark."""
        return through(self._edits.joined, self._of_landmarks)

    @property
    def n_landmarks(self) -> int:
        """L, landmarks in the game; 0 before the first frame."""
        return self._n_landmarks

    @property
    def n_clusters(self) -> int | None:
        """How many clusters the landmarks are merged into; None: not at all."""
        return suitable(self._edits.n_clusters, self._n_landmarks)

    @property
    def grouping(self) -> Grouping:
        """How they are merged."""
        return self._edits.grouping

    # Edits: each can be undone

    def set_n_clusters(
        self, n_clusters: int | None, grouping: Grouping | None = None
    ) -> None:
        """Merge the landmarks into so many clusters; None leaves each its own.

        All stops of a slider on its way are one step for Undo.

        Raises
        ------
        DataError
            Fewer than one, or Leiden's packages are not installed.
        """
        if n_clusters is not None and n_clusters < 1:
            raise DataError(f"There cannot be {n_clusters} clusters: choose 1 or more.")
        grouping = grouping or self._edits.grouping
        if (n_clusters, grouping) == (self.n_clusters, self.grouping):
            return
        if grouping == "leiden" and not has_leiden():
            raise DataError(
                "Leiden clusters need the packages leidenalg and igraph: "
                'pip install "napari-embedding-game[leiden]".'
            )
        chosen = replace(self._edits, n_clusters=n_clusters, grouping=grouping)
        label = "choice of number of clusters"
        self._edit(label, chosen, series=f"slider {grouping}")

    def rename(self, cluster: int, name: str) -> None:
        """Give a name; "" goes back to the number.

        Raises
        ------
        DataError
            Another cluster has that name.
        """
        name = " ".join(name.split())
        before = self._find(cluster)
        if name == before.name or (not name and not before.is_named):
            return
        self._check_name(cluster, name)
        self._give(f"rename of {before.name}", cluster, name=name)

    def recolor(self, cluster: int, color: str) -> None:
        """Give a colour as "#rrggbb"; "" goes back to the automatic one."""
        color = color.lower()
        if color and not is_color(color):
            raise DataError(f"{color} is no colour: give one such as #1f77b4.")
        name = self._find(cluster).name
        self._give(f"colour of {name}", cluster, color=color)

    def annotate(self, cluster: int, note: str) -> None:
        """Write a note on a cluster; "" takes it away."""
        name = self._find(cluster).name
        self._give(f"note on {name}", cluster, note=note.strip())

    def merge(self, clusters: Iterable[int]) -> int:
        """Merge clusters into the largest of them and return its id.

        The name is that of the largest cluster that has one; all notes stay.
        """
        parts = sorted(
            (self._find(c) for c in dict.fromkeys(clusters)), key=lambda c: -c.size
        )
        if len(parts) < 2:
            raise DataError("Select two or more clusters to merge them.")
        label = f"merge of {' and '.join(part.name for part in parts)}"
        self._edit(label, edits.merged(self._clustering, parts))
        return parts[0].id

    def split(
        self, cluster: int, rows: NDArray[Any], parts: NDArray[np.integer]
    ) -> list[int]:
        """Split a cluster and return the ids of its parts, the largest first.

        Parameters
        ----------
        cluster : int
            The largest part keeps its id and name.
        rows : (m,) int
            Points of the cluster; those that have left it meanwhile are passed over.
        parts : (m,) int
            Which part each belongs to, in any numbers.
        """
        before = self._find(cluster)
        inside = self.labels[rows] == cluster
        rows, parts = np.asarray(rows)[inside], np.asarray(parts)[inside]
        found, sizes = np.unique(parts, return_counts=True)
        if len(found) < 2:
            raise DataError(
                f"{before.name} does not fall into parts: "
                "draw around some of its points instead."
            )
        found = found[np.argsort(-sizes, kind="stable")]
        ids = [cluster, *self._ids.take(len(found) - 1).tolist()]
        new = {one: rows[parts == part] for one, part in zip(ids, found, strict=True)}
        self._edit(f"split of {before.name}", edits.split(self._clustering, new))
        return ids

    def make_cluster(self, points: NDArray[Any], name: str = "") -> int:
        """Make points a cluster of their own and return its id.

        Parameters
        ----------
        points : (n,) bool or (m,) int
        name : str
            "" for the next free number.
        """
        rows = _rows(points)
        if not len(rows):
            raise DataError("Select some points first, for instance with the lasso.")
        name = " ".join(name.split())
        cluster = int(self._ids.take(1)[0])
        self._check_name(cluster, name)
        made = edits.made(self._clustering, cluster, rows, name)
        self._edit("new cluster from selection", made)
        return cluster

    def release(self, cluster: int) -> None:
        """Give the points that were fixed by hand back to game and slider."""
        before = self._find(cluster)
        self._edit(
            f"release of {before.name}", edits.released(self._clustering, cluster)
        )

    def adopt(self, child: str, title: str, clusters: Sequence[Named]) -> None:
        """Take over the named clusters of a child map, in place of its former ones.

        Parameters
        ----------
        child : str
            Lasting key of the child map.
        title : str
            What a person calls it.
        """
        adopted = edits.adopted(self._clustering, child, clusters, self._ids)
        if adopted != self._edits:
            self._edit(f"names from {title}", adopted, series=f"names from {child}")

    def undo(self) -> None:
        """Take the last edit back."""
        self._go_to(self.history.undo())

    def redo(self) -> None:
        """Make the last undone edit again."""
        self._go_to(self.history.redo())

    # To and from a file

    def state(self) -> BookState:
        """Return all that is needed to go on later."""
        return BookState(
            edits=self._edits,
            automatic=self._clustering.automatic,
            of_landmarks=self._of_landmarks,
            numbers=dict(self._numbers),
            next_id=self._ids.next,
            asleep={**self._single.asleep, **self._merged.asleep},
        )

    def restore(
        self,
        state: BookState,
        labels: IntArray,
        n_landmarks: int,
        divide: Divide | None = None,
    ) -> None:
        """Go on where a stored book stopped; the history begins anew."""
        self.restart(len(labels))
        self._edits = state.edits
        self._ids.next = state.next_id
        self._numbers = dict(state.numbers)
        self._was_merged = suitable(state.edits.n_clusters, n_landmarks) is not None
        self._is_counted_by_landmark = not self._was_merged and np.array_equal(
            state.of_landmarks, np.arange(n_landmarks)
        )
        present = self._merged if self._was_merged else self._single
        present.hold(state.automatic)
        for cluster, rows in state.asleep.items():
            present.remember(cluster, rows)
        if divide is None and self._was_merged:
            # What was seen is shown, even where the landmarks cannot be merged anew.
            self._labels, self._of_landmarks = state.automatic, state.of_landmarks
            self._update()
        else:
            self.receive(labels, n_landmarks, divide)

    # Inside

    def _find(self, cluster: int) -> Cluster:
        found = self._clustering.by_id.get(cluster)
        if found is None:
            raise DataError("This cluster is gone: choose one from the table.")
        return found

    def _check_name(self, cluster: int, name: str) -> None:
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

    def _give(self, label: str, cluster: int, **what: str) -> None:
        after = edits.given(self._clustering, cluster, **what)
        if after != self._edits:
            self._edit(label, after)

    def _edit(self, label: str, after: Edits, series: str = "") -> None:
        before, self._edits = self._edits, after
        try:
            self._update()
        except Exception:
            self._edits = before
            raise
        self.history.record(label, before, after, series)

    def _go_to(self, state: Edits | None) -> None:
        if state is not None:
            self._edits = state
            self._update()

    def _update(self) -> None:
        self._single.dear = self._merged.dear = self._edits.given
        is_merged = self.n_clusters is not None and self._divide is not None
        if not self._n_landmarks:
            self._show(self._labels)
            return
        if is_merged and not self._was_merged:
            self._remember_named_landmarks()
        self._was_merged = is_merged
        self._of_landmarks = self._merge() if is_merged else self._landmark_ids()
        self._show(self._of_landmarks[self._labels])

    def _show(self, automatic: IntArray) -> None:
        shown = Clustering(automatic=automatic, edits=self._edits)
        self._count(shown.labels)
        self._clustering = replace(shown, numbers=dict(self._numbers))
        self.changed.emit()

    def _merge(self) -> IntArray:
        assert self._divide is not None
        assert self.n_clusters is not None
        wanted = min(self.n_clusters, self._n_landmarks)
        division = self._divide(wanted, self._edits.grouping)
        found, place = np.unique(division, return_inverse=True)
        division = place.astype(np.int32)
        return self._merged.follow(division[self._labels], len(found))[division]

    def _landmark_ids(self) -> IntArray:
        if self._is_counted_by_landmark:
            return np.arange(self._n_landmarks, dtype=np.int32)
        return self._single.follow(self._labels, self._n_landmarks)

    def _stop_counting_by_landmark(self) -> None:
        if self._is_counted_by_landmark and self._n_landmarks:
            self._single.hold(self._labels)
        self._is_counted_by_landmark = False

    def _remember_named_landmarks(self) -> None:
        """Let a name given to a landmark wake where its points come together."""
        for cluster in self._edits.given:
            rows = self._clustering.rows(cluster)
            if len(rows) and cluster not in self._edits.by_hand:
                self._merged.remember(cluster, rows)

    def _count(self, labels: IntArray) -> None:
        """Number the clusters that have none; the largest gets the lowest."""
        ids, sizes = np.unique(labels, return_counts=True)
        seen = [int(i) for i in ids[np.argsort(-sizes, kind="stable")]]
        present = {c.id for c in self._clustering.clusters}
        taken: set[int] = set()
        waiting = []
        for cluster in sorted(seen, key=lambda c: c not in present):
            number = cluster if cluster < FIRST_ID else self._numbers.get(cluster)
            if number is None or number in taken:
                if not self._edits.given.get(cluster, Given()).name:
                    waiting.append(cluster)
            else:
                taken.add(number)
                self._numbers[cluster] = number
        free = 1
        for cluster in waiting:
            while free in taken:
                free += 1
            self._numbers[cluster] = free
            taken.add(free)


def is_color(text: str) -> bool:
    """Return whether this is a colour such as "#1f77b4"."""
    return _COLOR.fullmatch(text) is not None


def _rows(points: NDArray[Any]) -> NDArray[np.intp]:
    points = np.asarray(points)
    return np.flatnonzero(points) if points.dtype == bool else np.unique(points)
