"""Automatic clusters, from the run and the slider, before manual edits.

A cluster is its points.  When the points are divided anew, a new cluster gets the id of
the cluster on show that it is most alike (points of both by points of either), the most
alike first; one without such a match gets an id that was never used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.session.clusters.clustering import (
    Clustering,
    Edits,
    resolve_n_clusters,
    untouched,
)

IntArray = NDArray[np.int32]
Divide = Callable[[int], IntArray]
"""n_clusters -> (L,) cluster of each landmark, in any numbers."""

FIRST_ID = 1 << 20
"""Ids of clusters that are not a single landmark begin here."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BookState:
    """All that a book knows, ready to be stored."""

    edits: Edits
    automatic: IntArray
    of_landmarks: IntArray
    numbers: Mapping[int, int] = field(default_factory=dict)
    next_id: int = FIRST_ID


class Numbers:
    """Where new ids come from, so that none is ever given twice."""

    def __init__(self, first: int = 0) -> None:
        self.next = first
        """The number that comes next."""

    def take(self, count: int) -> IntArray:
        """Return ``count`` numbers that were never returned before."""
        self.next += count
        return np.arange(self.next - count, self.next, dtype=np.int32)


class Automatic:
    """Which landmarks make a cluster, and the lasting id of each."""

    def __init__(self, n_points: int) -> None:
        self.labels: IntArray = np.zeros(n_points, np.int32)
        """(n,) landmark of each point."""
        self.n_landmarks = 0
        self.of_landmarks: IntArray = np.zeros(0, np.int32)
        """(L,) cluster id of each landmark."""
        self.ids = Numbers(FIRST_ID)
        self.divide: Divide | None = None
        """How landmarks are merged; None while nobody knows."""
        self._is_counted_by_landmark = True

    def begin_run(self, *, is_edited: bool) -> None:
        """Prepare for a new game on the same points.

        Parameters
        ----------
        is_edited : bool
            Whether a person has decided anything: then landmark 7 of this game has
            nothing to do with one that was named before.
        """
        self._is_counted_by_landmark = not is_edited
        self.n_landmarks, self.divide = 0, None

    def receive(
        self, labels: IntArray, n_landmarks: int, divide: Divide | None
    ) -> None:
        """Take over the labels of a snapshot."""
        if self.n_landmarks not in (0, n_landmarks):
            self._is_counted_by_landmark = False  # their numbers have moved up
        self.labels, self.n_landmarks, self.divide = labels, n_landmarks, divide

    def find(self, edits: Edits, shown: Clustering | None) -> IntArray:
        """Return the (n,) cluster id of each point, as the slider stands.

        Parameters
        ----------
        edits : Edits
            With the number of clusters that is chosen.
        shown : Clustering, optional
            What was to be seen until now; None: all ids are new.
        """
        if not edits.annotated.isdisjoint(range(self.n_landmarks)):
            self._is_counted_by_landmark = False
        if not self.n_landmarks:
            return self.labels
        if shown is None:
            self.ids = Numbers(FIRST_ID)
        wanted = resolve_n_clusters(edits, self.n_landmarks)
        taken = edits.annotated
        if wanted is not None and self.divide is not None:
            division = self.divide(min(wanted, self.n_landmarks))
            clusters, place = np.unique(division, return_inverse=True)
            parts = place.astype(np.int32).take(self.labels)
            taken = taken.union(range(self.n_landmarks))
            ids = followed(parts, len(clusters), shown, taken, self.ids)
            self.of_landmarks = ids[place]
        elif self._is_counted_by_landmark:
            self.of_landmarks = np.arange(self.n_landmarks, dtype=np.int32)
        else:
            self.of_landmarks = followed(
                self.labels, self.n_landmarks, shown, taken, self.ids
            )
        return self.of_landmarks.take(self.labels)

    def restore(
        self, state: BookState, labels: IntArray, n_landmarks: int, *, can_merge: bool
    ) -> bool:
        """Go on where a stored book stopped.

        Returns
        -------
        bool
            Whether the clusters can only be shown as they were seen, as the
            landmarks cannot be merged anew.
        """
        self.ids.next = state.next_id
        is_merged = resolve_n_clusters(state.edits, n_landmarks) is not None
        is_played = n_landmarks > 0
        by_landmark = np.array_equal(state.of_landmarks, np.arange(n_landmarks))
        self._is_counted_by_landmark = is_played and not is_merged and by_landmark
        is_as_seen = not is_played or (is_merged and not can_merge)
        if is_as_seen:
            self.labels, self.of_landmarks = state.automatic, state.of_landmarks
        else:
            self.receive(labels, n_landmarks, None)
        return is_as_seen


def followed(
    division: IntArray,
    n_clusters: int,
    shown: Clustering | None,
    taken: Collection[int],
    numbers: Numbers,
) -> IntArray:
    """Return the lasting id of each cluster of a division, (n_clusters,).

    Parameters
    ----------
    division : (n,) int
        Cluster of each point, 0 to ``n_clusters - 1``.
    shown : Clustering, optional
        Whose ids are followed; None for none.
    taken : collection of int
        Ids that no cluster gets.
    numbers : Numbers
        Where new ids come from, in order of size, the largest first.
    """
    ids = np.full(n_clusters, -1, np.int32)
    sizes = np.bincount(division, minlength=n_clusters)
    used = set(taken)
    if shown is not None:
        for former, cluster in _pairs(division, sizes, shown):
            if ids[cluster] < 0 and former not in used:
                ids[cluster] = former
                used.add(former)
    new = np.flatnonzero(ids < 0)
    ids[new[np.argsort(-sizes[new], kind="stable")]] = numbers.take(len(new))
    return ids


def _pairs(
    division: IntArray, sizes: NDArray[np.intp], shown: Clustering
) -> list[tuple[int, int]]:
    """Return (former id, cluster) that may go together, the most alike first.

    Points that a person put into a cluster count for that and for the automatic one.
    """
    by_hand = np.flatnonzero(shown.labels != shown.automatic)
    former = np.concatenate([shown.automatic, shown.labels[by_hand]])
    counts = np.bincount(former)
    known = np.flatnonzero(counts)
    place = np.zeros(len(counts), np.intp)
    place[known] = np.arange(len(known))
    codes = place[former]
    codes *= len(sizes)
    codes += np.concatenate([division, division[by_hand]])
    shared = np.bincount(codes, minlength=len(known) * len(sizes))
    pairs = np.flatnonzero(shared)
    which, clusters = np.divmod(pairs, len(sizes))
    shared, before, after = shared[pairs], counts[known][which], sizes[clusters]
    likeness = shared / (before + after - shared)
    fits = np.flatnonzero((2 * shared >= before) | (2 * shared >= after))
    # Of two that are as alike the older one, as when a name is taken away again.
    order = fits[np.lexsort((which[fits], -likeness[fits]))]
    return list(
        zip(known[which[order]].tolist(), clusters[order].tolist(), strict=True)
    )


def is_untouched(edits: Edits) -> bool:
    """Return whether a person has decided nothing yet."""
    return edits == untouched(len(edits.by_hand))


def is_of_no_cluster(edits: Edits) -> bool:
    """Return whether all that a person has decided is how many clusters there are."""
    none = untouched(len(edits.by_hand))
    return edits == replace(none, n_clusters=edits.n_clusters)
