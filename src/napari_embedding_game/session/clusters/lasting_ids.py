"""Keep the ids of clusters stable from frame to frame and slider stop to stop.

A cluster is its points.  When the points are divided anew, a new cluster gets
the number of the former one that it is most alike (points of both by points of
either), the most alike first.  A number without a matching cluster becomes dormant
with the points it had last, and active again when a cluster has mostly these points:
so a slider that goes from 8 to 5 clusters and back to 8 brings all back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int32]

ALIKE = 0.5
"""Intersection over union from which a dormant id becomes active again."""
MOST_DORMANT = 300
"""Most dormant ids that are kept; the longest dormant are forgotten first."""
MOST_ROWS = 2
"""Most points of all dormant ids together, in multiples of the number of points."""
FEW = 1 << 20
"""Pairs up to which a table of all of them is quicker than sorting."""


class Numbers:
    """Where new numbers come from, so that none is ever given twice."""

    def __init__(self, first: int = 0) -> None:
        self.next = first
        """The number that comes next."""

    def take(self, count: int) -> IntArray:
        """Return ``count`` numbers that were never returned before."""
        self.next += count
        return np.arange(self.next - count, self.next, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class _Division:
    """Clusters of (n,) points, and the number of each."""

    numbers: IntArray
    """(C,) lasting number of each cluster, with points or without."""
    place: NDArray[np.integer]
    """(n,) cluster of each point, 0 to C - 1."""

    @classmethod
    def of(cls, labels: IntArray) -> _Division:
        """Take (n,) lasting numbers apart."""
        numbers, place = np.unique(labels, return_inverse=True)
        return cls(numbers.astype(np.int32), place)

    def present(self) -> set[int]:
        """Return the numbers that have points."""
        sizes = np.bincount(self.place, minlength=len(self.numbers))
        return set(self.numbers[sizes > 0].tolist())

    def rows(self, numbers: Collection[int]) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Yield each of these numbers with its points."""
        # A stable sort of short integers takes no time.
        short = self.place.astype(np.min_scalar_type(len(self.numbers)))
        order = np.argsort(short, kind="stable")
        ends = np.cumsum(np.bincount(self.place, minlength=len(self.numbers)))
        parts = zip(self.numbers.tolist(), np.split(order, ends[:-1]), strict=True)
        known = sorted((number, rows) for number, rows in parts if number in numbers)
        yield from known


class LastingIds:
    """Follows the clusters of (n,) points from one division to the next.

    Parameters
    ----------
    numbers : Numbers
        Where new numbers come from.
    """

    def __init__(self, numbers: Numbers) -> None:
        self.pinned: Collection[int] = ()
        """Numbers that are never forgotten, such as those with a note."""
        self.taken: Collection[int] = ()
        """Numbers that no cluster gets."""
        self._numbers = numbers
        self._active: _Division | None = None
        self._dormant: dict[int, NDArray[np.intp]] = {}
        self._at_rest: tuple[_Division, dict[int, NDArray[np.intp]]] | None = None

    def rest(self) -> None:
        """Note that somebody sees the present ids, which :meth:`settle` goes by."""
        self._at_rest = None if self._active is None else (self._active, self.dormant)

    def settle(self, division: IntArray, n_clusters: int) -> IntArray:
        """Return what :meth:`follow` does in one step from the last rest.

        On many small steps two clusters may change places; ids that came and went in
        between are forgotten.
        """
        if self._at_rest is not None:
            self._active, self._dormant = self._at_rest
        numbers = self.follow(division, n_clusters)
        self.rest()
        return numbers

    def remember(self, number: int, rows: NDArray[np.intp]) -> None:
        """Make an id dormant with these points, until a cluster matches them again."""
        self._dormant.pop(number, None)
        self._dormant[number] = rows
        self._forget()

    @property
    def dormant(self) -> dict[int, NDArray[np.intp]]:
        """Dormant ids with the points that they had last."""
        return dict(self._dormant)

    def set_active(self, active: IntArray) -> None:
        """Take over (n,) numbers that are known without looking at the points."""
        division = _Division.of(active)
        self._set_active(division, division.present())

    def make_all_dormant(self) -> None:
        """Make all ids dormant, as when a new run begins on the same points."""
        if self._active is not None:
            self._make_dormant(self._active, self._active.present())
        self._active = None

    def follow(self, division: IntArray, n_clusters: int) -> IntArray:
        """Return the lasting number of each cluster of a division.

        Parameters
        ----------
        division : (n,) int
            Cluster of each point, 0 to ``n_clusters - 1``.

        Returns
        -------
        (n_clusters,) int32
            New numbers are in order of size, the largest first.
        """
        numbers = np.full(n_clusters, -1, np.int32)
        sizes = np.bincount(division, minlength=n_clusters)
        taken: set[int] = set()
        for number, cluster in self._pairs(division, sizes):
            if numbers[cluster] < 0 and number not in taken:
                numbers[cluster] = number
                taken.add(number)
        self._number_the_rest(numbers, sizes)
        self._set_active(_Division(numbers, division), taken)
        return numbers

    def _pairs(
        self, division: IntArray, sizes: NDArray[np.intp]
    ) -> Iterator[tuple[int, int]]:
        """Yield (number, cluster) that may go together, the most alike first."""
        numbers, which, clusters, shared = self._shared(division, len(sizes))
        before = np.bincount(which, shared, len(numbers)).astype(np.intp)
        before, after = before[which], sizes[clusters]
        likeness = shared / (before + after - shared)
        is_part = (2 * shared >= before) | (2 * shared >= after)
        is_dormant = np.isin(numbers, list(self._dormant))[which]
        is_free = ~np.isin(numbers, list(self.taken))[which]
        is_fit = np.where(is_dormant, likeness >= ALIKE, is_part)
        fits = np.flatnonzero(is_fit & is_free)
        # Of two that are as alike the older one, as when a name is taken away again.
        order = np.lexsort((which[fits], -likeness[fits]))
        for i in fits[order]:
            yield int(numbers[which[i]]), int(clusters[i])

    def _shared(
        self, division: IntArray, n_clusters: int
    ) -> tuple[IntArray, NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Return the former numbers, and the points that they share with clusters.

        Returns
        -------
        numbers : (K,) int32
            Ascending.
        which, clusters, shared : (P,) int
            Place of a number, a cluster, and how many points are of both.
        """
        active, dormant = self._active, self._dormant
        parts = [np.fromiter(dormant, np.int32, len(dormant))]
        if active is not None:
            parts.append(active.numbers)
        numbers, place = np.unique(np.concatenate(parts), return_inverse=True)
        bases, codes = place * n_clusters, []
        if dormant:
            rows = list(dormant.values())
            codes.append(np.repeat(bases[: len(rows)], [len(part) for part in rows]))
            codes[0] += division.take(np.concatenate(rows))
        if active is not None:
            codes.append(bases[len(dormant) :].take(active.place) + division)
        pairs, shared = _counted(codes, len(numbers) * n_clusters)
        which, clusters = np.divmod(pairs, n_clusters)
        return numbers, which, clusters, shared

    def _number_the_rest(self, numbers: IntArray, sizes: NDArray[np.intp]) -> None:
        nameless = np.flatnonzero(numbers < 0)
        by_size = nameless[np.argsort(-sizes[nameless], kind="stable")]
        numbers[by_size] = self._numbers.take(len(by_size))

    def _set_active(self, active: _Division, taken: set[int]) -> None:
        if self._active is not None:
            gone = self._active.present() - active.present()
            self._make_dormant(self._active, gone)
        for number in taken:
            self._dormant.pop(number, None)
        self._active = active

    def _make_dormant(self, division: _Division, numbers: Collection[int]) -> None:
        if numbers:
            for number, rows in division.rows(numbers):
                self.remember(number, rows)

    def _forget(self) -> None:
        """Forget the ids that were dormant longest, where there are too many."""
        n_rows = sum(map(len, self._dormant.values()))
        n_points = 0 if self._active is None else len(self._active.place)
        for oldest in [c for c in self._dormant if c not in self.pinned]:
            few = n_rows <= MOST_ROWS * n_points or not n_points
            if few and len(self._dormant) <= MOST_DORMANT:
                return
            n_rows -= len(self._dormant.pop(oldest))


def _counted(
    codes: list[NDArray[np.intp]], size: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return which of the codes 0 to ``size - 1`` there are, and how often."""
    if not codes:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    if size > FEW:
        return np.unique(np.concatenate(codes), return_counts=True)
    counts = sum(np.bincount(part, minlength=size) for part in codes)
    codes_present = np.flatnonzero(counts)
    return codes_present, np.asarray(counts)[codes_present]
