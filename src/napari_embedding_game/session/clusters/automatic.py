"""Automatic clusters, from the run and the slider, before manual edits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.session.clusters.clustering import (
    Clustering,
    Edits,
    resolve_n_clusters,
    untouched,
)
from napari_embedding_game.session.clusters.lasting_ids import (
    IntArray,
    LastingIds,
    Numbers,
)

Divide = Callable[[int], IntArray]
"""n_clusters -> (L,) cluster of each landmark, in any numbers."""

Follow = Callable[[LastingIds, IntArray, int], IntArray]

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
    dormant: Mapping[int, NDArray[np.intp]] = field(default_factory=dict)
    """Points of clusters that are not to be seen now."""


class Automatic:
    """Which landmarks make a cluster, and the lasting id of each.

    Landmarks are clusters of their own (``single``) or come together
    (``merged``); both remember what they called their clusters while the other
    is shown.
    """

    def __init__(self, n_points: int) -> None:
        self.labels: IntArray = np.zeros(n_points, np.int32)
        """(n,) landmark of each point."""
        self.n_landmarks = 0
        self.of_landmarks: IntArray = np.zeros(0, np.int32)
        """(L,) cluster id of each landmark."""
        self.ids = Numbers(FIRST_ID)
        self.divide: Divide | None = None
        """How landmarks are merged; None while nobody knows."""
        self._single = LastingIds(self.ids)
        self._merged = LastingIds(self.ids)
        self._is_counted_by_landmark = True
        self._was_merged = False

    @property
    def dormant(self) -> dict[int, NDArray[np.intp]]:
        """Points of the clusters that are not to be seen now."""
        return {**self._single.dormant, **self._merged.dormant}

    def begin_run(self, *, is_edited: bool) -> None:
        """Prepare for a new game on the same points.

        Parameters
        ----------
        is_edited : bool
            Whether a person has decided anything: then landmark 7 of this game has
            nothing to do with one that was named before.
        """
        self._stop_counting_by_landmark()
        self._single.make_all_dormant()
        self._merged.make_all_dormant()
        self._is_counted_by_landmark = not is_edited
        if not is_edited:
            self._single = LastingIds(self.ids)
        self.n_landmarks = 0
        self.divide = None

    def number_anew(self) -> None:
        """Forget all ids: those of the clusters to be seen begin with the largest."""
        self.ids = Numbers(FIRST_ID)
        self._single, self._merged = LastingIds(self.ids), LastingIds(self.ids)

    def receive(
        self, labels: IntArray, n_landmarks: int, divide: Divide | None
    ) -> None:
        """Take over the labels of a snapshot."""
        if self.n_landmarks not in (0, n_landmarks):
            self._stop_counting_by_landmark()  # their numbers have moved up
        self.labels, self.n_landmarks, self.divide = labels, n_landmarks, divide

    def rest(self) -> None:
        """Note that somebody sees the present clusters."""
        self._single.rest()
        self._merged.rest()

    def find(
        self, edits: Edits, shown: Clustering, *, settles: bool = False
    ) -> IntArray:
        """Return the (n,) cluster id of each point, as the slider stands.

        Parameters
        ----------
        edits : Edits
            With the number of clusters that is chosen.
        shown : Clustering
            What was to be seen until now.
        settles : bool
            Whether ids go to the clusters most alike those of the last rest, rather
            than of a moment ago.
        """
        follow = LastingIds.settle if settles else LastingIds.follow
        self._single.pinned = self._merged.pinned = edits.given
        self._single.taken = self._merged.taken = edits.named
        if not edits.named.isdisjoint(range(self.n_landmarks)):
            self._stop_counting_by_landmark()
        if not self.n_landmarks:
            return self.labels
        wanted = resolve_n_clusters(edits, self.n_landmarks)
        is_merged = wanted is not None and self.divide is not None
        if is_merged and not self._was_merged:
            self._remember_named_landmarks(edits, shown)
        self._was_merged = is_merged
        if wanted is not None and self.divide is not None:
            division = self.divide(min(wanted, self.n_landmarks))
            self.of_landmarks = self._follow(division, follow)
        else:
            self.of_landmarks = self._landmark_ids(follow)
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
        self._was_merged = resolve_n_clusters(state.edits, n_landmarks) is not None
        is_played = n_landmarks > 0
        self._is_counted_by_landmark = (
            is_played
            and not self._was_merged
            and np.array_equal(state.of_landmarks, np.arange(n_landmarks))
        )
        present = [self._merged if self._was_merged else self._single]
        if not is_played:  # on these points: nobody knows how many landmarks come
            present = [self._merged, self._single]
        for ids in present:
            ids.set_active(state.automatic)
            for cluster, rows in state.dormant.items():
                ids.remember(cluster, rows)
        is_as_seen = not is_played or (self._was_merged and not can_merge)
        if is_as_seen:
            self.labels, self.of_landmarks = state.automatic, state.of_landmarks
        else:
            self.receive(labels, n_landmarks, None)
        return is_as_seen

    def _follow(self, division: IntArray, follow: Follow) -> IntArray:
        clusters, place = np.unique(division, return_inverse=True)
        division = place.astype(np.int32)
        numbers = follow(self._merged, division.take(self.labels), len(clusters))
        return numbers[division]

    def _landmark_ids(self, follow: Follow) -> IntArray:
        if self._is_counted_by_landmark:
            return np.arange(self.n_landmarks, dtype=np.int32)
        return follow(self._single, self.labels, self.n_landmarks)

    def _stop_counting_by_landmark(self) -> None:
        if self._is_counted_by_landmark and self.n_landmarks:
            self._single.set_active(self.labels)
            self._single.rest()
        self._is_counted_by_landmark = False

    def _remember_named_landmarks(self, edits: Edits, shown: Clustering) -> None:
        """Restore a landmark's colour and note where its points are a cluster again."""
        for cluster in edits.given:
            rows = shown.rows(cluster)
            if len(rows) and cluster not in edits.by_hand:
                self._merged.remember(cluster, rows)


def is_untouched(edits: Edits) -> bool:
    """Return whether a person has decided nothing yet."""
    return edits == untouched(len(edits.by_hand))


def is_of_no_cluster(edits: Edits) -> bool:
    """Return whether all that a person has decided is how many clusters there are."""
    none = untouched(len(edits.by_hand))
    return edits == replace(none, n_clusters=edits.n_clusters)
