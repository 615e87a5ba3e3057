"""The clusters of a session: automatic ones with a person's edits applied.

What the game and the slider find is *automatic*; what a person decides lies
over it and holds:

- A name, colour or note belongs to points: those of the cluster when it was given.
  They are that cluster, and no others are, until a person decides otherwise.
- Numbers and automatic colours go with the clusters on show by most of their points.
- Clusters made by hand - merged, split, drawn with a lasso, named in a child
  map - keep their points, whatever the game and the slider do with the rest.
- While a game runs clusters are followed from frame to frame.  When it ends, and at
  every edit, somebody looks: ids and numbers are then those of the clusters most alike
  the ones that were looked at before.
- Many landmarks are merged into few clusters from the beginning; the number is a
  person's as soon as they choose one, and then kept.
- While each landmark is a cluster of its own, a cluster's id is the landmark's
  number, and so is its name until it is given one.  All others count from 1, the
  largest first, as they stand when the first game of a run ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.clusters import edits
from napari_embedding_game.session.clusters.automatic import (
    Automatic,
    BookState,
    Divide,
    IntArray,
    is_of_no_cluster,
    is_untouched,
)
from napari_embedding_game.session.clusters.clustering import (
    Cluster,
    Clustering,
    Edits,
    differ_in_what_is_given,
    is_color,
    map_ids,
    resolve_n_clusters,
    untouched,
)
from napari_embedding_game.session.clusters.display_numbers import Numbering
from napari_embedding_game.session.clusters.edits import Named
from napari_embedding_game.session.clusters.history import History
from napari_embedding_game.session.clusters.merging import Merging

ALIKE = 0.5
"""Intersection over union from which a named group is one cluster of the game."""
MOST_TOLD = 3
"""More names than this are counted in a sentence."""
RESERVED_NAME = "unassigned"
"""What rows that are not on the map are called in every file."""


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
        self._found = Automatic(n_points)
        self._numbering = Numbering()
        self._is_numbered = False
        self._is_new_run = False
        self._clustering = Clustering(automatic=self._found.labels, edits=self._edits)
        self._rested: Clustering | None = None
        self.history.clear()
        self.changed.emit()

    def begin_run(self) -> None:
        """Expect a new game on the same points: what was named is kept.

        Until its first frame comes all stays as it is, since none may ever come.
        """
        self._is_new_run = True

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
        if self._is_new_run:
            self._is_new_run = False
            has_edits = bool(self.history.undo_label or self.history.redo_label)
            self._found.begin_run(is_edited=has_edits or not is_untouched(self._edits))
            self._is_numbered = not self._is_anonymous
        self._found.receive(labels, n_landmarks, divide)
        self._update()

    def finish(self, *, are_looked_at: bool = False) -> None:
        """Let 1 be the largest cluster, and no number be left out, at a game's end.

        Until then clusters keep the ids and numbers that they came with, which depend
        on how often the machine could look.  From the end of a run's first game on they
        are kept; so they are while somebody looks at one, or has edited any.
        """
        if not self._is_numbered and not are_looked_at and self._is_anonymous:
            shown = self._divided(None)
            self._numbering = Numbering.by_size(shown.labels)
            self._show(shown)
        else:
            self._numbering.settle()
            self._show(self._divided(self._rested or self._clustering))
            if self._numbering.close_up(self.clusters):
                self._update()
        self._is_numbered = True
        self.rest()

    def rest(self) -> None:
        """Note that somebody sees the present clusters: what comes is named by them."""
        self._rested = self._clustering
        self._numbering.rest()

    @property
    def _is_anonymous(self) -> bool:
        """Whether no edit, undone or not, is of a cluster that has an id."""
        steps = itertools.chain(*self.history.trail)
        edits = {id(e): e for step in steps for e in (step.before, step.after)}
        return all(is_of_no_cluster(each) for each in (self._edits, *edits.values()))

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
        return map_ids(self._edits.joined, self._found.of_landmarks)

    @property
    def n_landmarks(self) -> int:
        """L, landmarks in the game; 0 before the first frame."""
        return self._found.n_landmarks

    @property
    def n_clusters(self) -> int | None:
        """How many clusters the landmarks are merged into; None: not at all."""
        return resolve_n_clusters(self._edits, self.n_landmarks)

    @property
    def divide(self) -> Divide | None:
        """How landmarks are merged, to be asked in a thread; None: nobody knows."""
        return self._found.divide

    def told_parted(self) -> str:
        """Return which names are of points that are no longer one automatic cluster."""
        automatic, given = self._clustering.automatic, self._edits.given
        held = [c for c in self.clusters if c.is_named and given[c.id].holds]
        if not held:
            return ""
        sizes = np.bincount(automatic)
        parted = []
        for cluster in held:
            shared = np.bincount(automatic[self._clustering.rows(cluster.id)])
            either = cluster.size + sizes[: len(shared)] - shared
            if (shared / np.maximum(either, 1)).max() < ALIKE:
                parted.append(cluster.name)
        if len(parted) < 2:
            keep = "is no longer one cluster: its points keep the name until you change"
            return f"{parted[0]} {keep} it." if parted else ""
        *names, last = parted[:MOST_TOLD]
        if len(parted) > MOST_TOLD:
            names, last = [*names, last], f"{len(parted) - MOST_TOLD} more"
        return (
            f"{', '.join(names)} and {last} are no longer one cluster each: their "
            "points keep the names until you change them."
        )

    # Edits: each can be undone

    def set_n_clusters(self, n_clusters: int | None) -> None:
        """Merge the landmarks into so many clusters; None leaves each its own.

        All stops of a slider on its way are one step for Undo.

        Raises
        ------
        DataError
            Fewer than one.
        """
        if n_clusters is not None and n_clusters < 1:
            raise DataError(f"There cannot be {n_clusters} clusters: choose 1 or more.")
        if n_clusters != self.n_clusters:
            chosen = replace(self._edits, n_clusters=n_clusters)
            self._edit("choice of number of clusters", chosen, series="slider")

    def rename(self, cluster: int, name: str) -> None:
        """Give the points of a cluster a name, which they keep; "" takes it away.

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
        after = edits.annotated(self._clustering, cluster, name=name)
        self._edit(f"rename of {before.name}", after)

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
        part_ids, sizes = np.unique(parts, return_counts=True)
        if len(part_ids) < 2:
            raise DataError(
                f"{before.name} does not fall into parts: "
                "draw around some of its points instead."
            )
        part_ids = part_ids[np.argsort(-sizes, kind="stable")]
        ids = [cluster, *self._found.ids.take(len(part_ids) - 1).tolist()]
        new = {
            one: rows[parts == part] for one, part in zip(ids, part_ids, strict=True)
        }
        self._edit(f"split of {before.name}", edits.split(self._clustering, new))
        return ids

    def recluster(
        self,
        rows: NDArray[np.intp],
        parts: NDArray[np.integer],
        cluster: int | None = None,
    ) -> list[int]:
        """Make the parts of some points clusters; return their ids, the largest first.

        Parameters
        ----------
        rows : (m,) int
        parts : (m,) int
            Which part each belongs to, from 0, the largest first.
        cluster : int, optional
            The cluster that these points are the whole of, or were a moment ago: the
            largest part keeps its id and name.

        Raises
        ------
        DataError
            There is one part only.
        """
        n_parts = int(parts.max(initial=-1)) + 1
        if n_parts < 2:
            raise DataError(
                "These points are one cluster, however they are divided: choose more "
                "parts, or a higher resolution."
            )
        is_known = cluster is not None and cluster in self._clustering.by_id
        kept = [cluster] if cluster is not None and is_known else []
        ids = [*kept, *self._found.ids.take(n_parts - len(kept)).tolist()]
        new = {one: rows[parts == part] for part, one in enumerate(ids)}
        what = f"{len(rows):,} points" if not kept else self._find(kept[0]).name
        made = edits.reclustered(self._clustering, new)
        self._edit(f"new clusters of {what}", made)
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
        cluster = int(self._found.ids.take(1)[0])
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

    def adopt(
        self,
        child: str,
        title: str,
        clusters: Sequence[Named],
        known: Collection[str] = (),
    ) -> None:
        """Take over the named clusters of a child map, in place of its former ones.

        Parameters
        ----------
        child : str
            Lasting key of the child map.
        title : str
            What a person calls it.
        known : collection of str
            Keys of clusters that have not changed since they were taken over: what
            was done with them here holds.
        """
        adopted = edits.adopted(
            self._clustering, child, clusters, self._found.ids, known
        )
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
            of_landmarks=self._found.of_landmarks,
            numbers=dict(self._numbering.known),
            next_id=self._found.ids.next,
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
        self._clustering = Clustering(automatic=state.automatic, edits=state.edits)
        self._numbering = Numbering(state.numbers)
        self._is_numbered = True
        can_merge = divide is not None
        if self._found.restore(state, labels, n_landmarks, can_merge=can_merge):
            self._update()
        else:
            self.receive(labels, n_landmarks, divide)
        self.rest()

    # Inside

    def _find(self, cluster: int) -> Cluster:
        known = self._clustering.by_id.get(cluster)
        if known is None:
            raise DataError("This cluster is gone: choose one from the table.")
        return known

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
        after = edits.annotated(self._clustering, cluster, **what)
        if after != self._edits:
            self._edit(label, after)

    def _edit(self, label: str, after: Edits, series: str = "") -> None:
        before, self._edits = self._edits, after
        try:
            self._update(is_known=differ_in_what_is_given(before, after))
        except Exception:
            self._edits = before
            raise
        self.rest()
        self.history.record(label, before, after, series)

    def _go_to(self, state: Edits | None) -> None:
        if state is not None:
            self._edits = state
            self._update()
            self.rest()

    def _update(self, *, is_known: bool = False) -> None:
        """Show the clusters as they are by now.

        Parameters
        ----------
        is_known : bool
            Whether each point is in the cluster that it was in.
        """
        if is_known:
            self._show(self._clustering.edited(self._edits))
        else:
            self._show(self._divided(self._clustering))

    def _divided(self, shown: Clustering | None) -> Clustering:
        """Return the clusters of game and edits, by the ids of what was on show."""
        automatic = self._found.find(self._edits, shown)
        return Clustering(automatic=automatic, edits=self._edits)

    def _show(self, shown: Clustering) -> None:
        present = self._clustering.by_id
        self._numbering.count(*shown.counted, present, self._edits.given)
        self._clustering = self._numbering.applied(shown)
        self.changed.emit()


def clusters_of(edges: Any, labels: IntArray, n_landmarks: int) -> Clustering:
    """Return the clusters of a finished run without any edits.

    They are those that a window shows at the end of the same game.

    Parameters
    ----------
    edges : core.edges.Edges
        Of all n points.
    labels : (n,) int32
        Landmark of each point.
    n_landmarks : int
    """
    book = ClusterBook(len(labels))
    book.receive(labels, n_landmarks, Merging.of(edges, labels, n_landmarks))
    book.finish()
    return book.clustering


def _rows(points: NDArray[Any]) -> NDArray[np.intp]:
    points = np.asarray(points)
    return np.flatnonzero(points) if points.dtype == bool else np.unique(points)
