"""Lasting numbers for clusters that come anew with every frame or slider stop.

A cluster is its points.  When the points are divided anew, a new cluster gets
the number of the former one that it is most alike (points of both by points of
either), the most alike first.  A number that finds no cluster falls asleep with
the points it had last, and wakes when a cluster comes that is mostly these
points: so a slider that goes from 8 to 5 clusters and back to 8 brings all back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int32]

ALIKE = 0.5
"""Points of both by points of either, from which a sleeping number wakes."""
MOST_ASLEEP = 300
"""Sleeping numbers that are remembered; the longest asleep are forgotten first."""


class Numbers:
    """Where new numbers come from, so that none is ever given twice."""

    def __init__(self, first: int = 0) -> None:
        self.next = first
        """The number that comes next."""

    def take(self, count: int) -> IntArray:
        """Return ``count`` numbers that were never returned before."""
        self.next += count
        return np.arange(self.next - count, self.next, dtype=np.int32)


class Identities:
    """Follows the clusters of (n,) points from one division to the next.

    Parameters
    ----------
    numbers : Numbers
        Where new numbers come from.
    """

    def __init__(self, numbers: Numbers) -> None:
        self.dear: Collection[int] = ()
        """Numbers that are never forgotten, such as those with a name."""
        self._numbers = numbers
        self._awake: IntArray | None = None
        self._asleep: dict[int, NDArray[np.intp]] = {}

    def remember(self, number: int, rows: NDArray[np.intp]) -> None:
        """Let a number sleep with these points until they come together again."""
        self._asleep.pop(number, None)
        self._asleep[number] = rows
        if len(self._asleep) > MOST_ASLEEP:
            for oldest in [c for c in self._asleep if c not in self.dear][:1]:
                del self._asleep[oldest]

    @property
    def asleep(self) -> dict[int, NDArray[np.intp]]:
        """Sleeping numbers with the points they had last."""
        return dict(self._asleep)

    def hold(self, awake: IntArray) -> None:
        """Take over (n,) numbers that are known without looking at the points."""
        self._change_over(awake, set(np.unique(awake).tolist()))

    def sleep(self) -> None:
        """Let all numbers sleep, as when a new game begins on the same points."""
        if self._awake is not None:
            self._put_to_sleep(np.unique(self._awake))
        self._awake = None

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
        taken: set[int] = set()
        for number, cluster in self._pairs(division, n_clusters):
            if numbers[cluster] < 0 and number not in taken:
                numbers[cluster] = number
                taken.add(number)
        self._name_the_rest(numbers, division)
        self._change_over(numbers[division], taken)
        return numbers

    def _pairs(self, division: IntArray, n_clusters: int) -> Iterator[tuple[int, int]]:
        """Yield (number, cluster) that may go together, the most alike first."""
        sizes = np.bincount(division, minlength=n_clusters)
        known, rows = self._former()
        numbers, place, before = np.unique(
            known, return_inverse=True, return_counts=True
        )
        codes = place.astype(np.int64) * n_clusters + division[rows]
        pairs, shared = np.unique(codes, return_counts=True)
        which, clusters = np.divmod(pairs, n_clusters)
        before, after = before[which], sizes[clusters]
        likeness = shared / (before + after - shared)
        is_part = (2 * shared >= before) | (2 * shared >= after)
        sleeps = np.isin(numbers, list(self._asleep))[which]
        fits = np.flatnonzero(np.where(sleeps, likeness >= ALIKE, is_part))
        order = np.lexsort((sleeps[fits], -likeness[fits]))
        for i in fits[order]:
            yield int(numbers[which[i]]), int(clusters[i])

    def _former(self) -> tuple[IntArray, NDArray[np.intp]]:
        """Return numbers, and the row that each was on: a row may have had several."""
        numbers = [np.full(len(rows), c) for c, rows in self._asleep.items()]
        rows = list(self._asleep.values())
        if self._awake is not None:
            numbers.append(self._awake)
            rows.append(np.arange(len(self._awake)))
        if not rows:
            return np.zeros(0, np.int32), np.zeros(0, np.intp)
        return np.concatenate(numbers).astype(np.int32), np.concatenate(rows)

    def _name_the_rest(self, numbers: IntArray, division: IntArray) -> None:
        sizes = np.bincount(division, minlength=len(numbers))
        nameless = np.flatnonzero(numbers < 0)
        by_size = nameless[np.argsort(-sizes[nameless], kind="stable")]
        numbers[by_size] = self._numbers.take(len(by_size))

    def _change_over(self, awake: IntArray, taken: set[int]) -> None:
        if self._awake is not None:
            self._put_to_sleep(np.setdiff1d(self._awake, awake))
        for number in taken:
            self._asleep.pop(number, None)
        self._awake = awake

    def _put_to_sleep(self, numbers: IntArray) -> None:
        assert self._awake is not None
        order = np.argsort(self._awake, kind="stable")
        begins = np.searchsorted(self._awake[order], numbers, side="left")
        ends = np.searchsorted(self._awake[order], numbers, side="right")
        for number, begin, end in zip(numbers, begins, ends, strict=True):
            self.remember(int(number), order[begin:end])
