"""The cluster of each point, and a person's edits of the clusters."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

AUTOMATIC = -1
"""In ``by_hand``: this point is where the game and the slider put it."""
UNDECIDED = 0
"""In ``n_clusters``: nobody has decided yet, so :func:`suitable` does."""
READABLE, MANY = 20, 40
"""Clusters that can be taken in at once; landmarks above which there are so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAnnotation:
    """Name, colour and note that a person gave to a cluster; "" is not given."""

    name: str = ""
    color: str = ""
    """As "#rrggbb"."""
    note: str = ""
    origin: str = ""
    """Child map and cluster that it comes from, as "child/cluster"."""
    holds: bool = False
    """Whether nothing but name, colour and note hold the points together."""

    def __bool__(self) -> bool:
        """Whether anything was given."""
        return bool(self.name or self.color or self.note)


NOTHING = ClusterAnnotation()
_COLOR = re.compile(r"#[0-9a-f]{6}")


def is_color(text: str) -> bool:
    """Return whether this is a colour such as "#1f77b4"."""
    return _COLOR.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster, as a table or a legend shows it."""

    id: int
    """Lasting number: the same cluster keeps it while game and slider move."""
    name: str
    """The given name, or a number as text; no two clusters have the same."""
    is_named: bool
    color: str
    """The given colour as "#rrggbb"; "" where none was given."""
    note: str
    size: int
    is_by_hand: bool
    """Whether a person fixed (some of) its points: merged, split or drawn it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edits:
    """All that a person decided; immutable, so that undo keeps former ones."""

    by_hand: NDArray[np.int32]
    """(n,) cluster that a point was put into by hand, ``AUTOMATIC`` elsewhere."""
    n_clusters: int | None = UNDECIDED
    """How many clusters the landmarks are merged into; None: each is its own."""
    given: Mapping[int, ClusterAnnotation] = field(default_factory=dict)
    """By cluster id."""
    joined: Mapping[int, int] = field(default_factory=dict)
    """Cluster that another was merged into: points that reach it later follow."""
    below: NDArray[np.int32] | None = None
    """(n,) what ``by_hand`` was where a child map's cluster lies above it; None where
    there is none."""

    def __post_init__(self) -> None:
        for rows in (self.by_hand, self.below):
            if rows is not None:
                rows.setflags(write=False)

    @property
    def annotated(self) -> frozenset[int]:
        """Ids of clusters with a name, colour or note: no automatic one gets these."""
        return frozenset(i for i, given in self.given.items() if given)

    def __eq__(self, other: object) -> bool:
        """Whether the same was decided."""
        if not isinstance(other, Edits):
            return NotImplemented
        return (
            self.n_clusters == other.n_clusters
            and dict(self.given) == dict(other.given)
            and dict(self.joined) == dict(other.joined)
            and _same(self.by_hand, other.by_hand)
            and _same(self.below, other.below)
        )

    __hash__ = None  # type: ignore[assignment]


def _same(one: NDArray[np.int32] | None, other: NDArray[np.int32] | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)


def untouched(n_points: int) -> Edits:
    """Return the edits of a person who has not decided anything yet."""
    return Edits(by_hand=np.full(n_points, AUTOMATIC, np.int32))


def differ_in_what_is_given(one: Edits, other: Edits) -> bool:
    """Return whether two edits have all points in the same clusters for certain."""
    return (
        one.by_hand is other.by_hand
        and one.n_clusters == other.n_clusters
        and dict(one.joined) == dict(other.joined)
    )


def resolve_n_clusters(edits: Edits, n_landmarks: int) -> int | None:
    """Return into how many clusters landmarks are merged; None: not at all.

    While nobody has decided, as many as can be taken in, and no more than leave each
    some points: half the root of their number.
    """
    if edits.n_clusters != UNDECIDED:
        return edits.n_clusters
    if n_landmarks <= MANY:
        return None
    return min(READABLE, max(2, round(math.sqrt(len(edits.by_hand)) / 2)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Clustering:
    """The clusters at one moment: automatic clusters and the edits.

    Parameters
    ----------
    automatic : (n,) int32
        Cluster id of each point without the edits.
    edits : Edits
    numbers : mapping
        Cluster id to the number that names it while no name is given.
    """

    automatic: NDArray[np.int32]
    edits: Edits
    numbers: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """(n,) cluster id of each point."""
        labels = map_ids(self.edits.joined, self.automatic)
        by_hand = self.edits.by_hand
        labels = np.where(by_hand == AUTOMATIC, labels, by_hand)
        labels.setflags(write=False)
        return labels

    @cached_property
    def counted(self) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """Ids of all clusters that have points, ascending, and their sizes: (C,)."""
        # With counts, as numpy then sorts: its other way takes ten times as long.
        return np.unique(self.labels, return_counts=True)

    @cached_property
    def fixed(self) -> frozenset[int]:
        """Clusters of which a person has fixed points."""
        by_hand = np.unique(self.edits.by_hand, return_counts=True)[0]
        return frozenset(by_hand.tolist())

    @cached_property
    def clusters(self) -> tuple[Cluster, ...]:
        """All clusters that have points, in order of their numbers."""
        ids, sizes = (part.tolist() for part in self.counted)
        numbers = [self.numbers.get(i, i) for i in ids]
        in_order = sorted(zip(numbers, ids, sizes, strict=True))
        given = self.edits.given
        names = _without_doubles(
            [(i, given.get(i, NOTHING).name, str(number)) for number, i, _ in in_order]
        )
        return tuple(
            _cluster(i, names[i], size, given.get(i, NOTHING), i in self.fixed)
            for _, i, size in in_order
        )

    @cached_property
    def by_id(self) -> dict[int, Cluster]:
        """The clusters by their ids."""
        return {cluster.id: cluster for cluster in self.clusters}

    @cached_property
    def names(self) -> NDArray[np.object_]:
        """(n,) name of each point's cluster."""
        ids, place = np.unique(self.labels, return_inverse=True)
        id_names = [self.by_id[int(i)].name for i in ids]
        return np.array(id_names, dtype=object)[place]

    def rows(self, cluster: int) -> NDArray[np.intp]:
        """Return the points of a cluster."""
        return np.flatnonzero(self.labels == cluster)

    def numbered(self, numbers: Mapping[int, int]) -> Clustering:
        """Return the same clusters with these numbers."""
        return self._same(numbers=numbers)

    def edited(self, edits: Edits) -> Clustering:
        """Return the same clusters by other names, colours or notes."""
        return self._same(edits=edits)

    def _same(self, **changed: Any) -> Clustering:
        """Return clusters of the same points: these are not counted again."""
        same = replace(self, **changed)
        for known in {"labels", "counted", "fixed"} & self.__dict__.keys():
            same.__dict__[known] = self.__dict__[known]
        return same


def _cluster(
    number: int, name: str, size: int, given: ClusterAnnotation, fixed: bool
) -> Cluster:
    return Cluster(
        id=number,
        name=name,
        is_named=bool(given.name),
        color=given.color,
        note=given.note,
        size=size,
        is_by_hand=fixed and not given.holds,
    )


def map_ids(joined: Mapping[int, int], ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return ids with those that were merged replaced by what they were merged into."""
    if not joined or not len(ids):
        return ids
    unique_ids, place = np.unique(ids, return_inverse=True)
    ends = [end_of(joined, int(i)) for i in unique_ids]
    return np.array(ends, np.int32)[place]


def end_of(joined: Mapping[int, int], cluster: int) -> int:
    """Return what a cluster was merged into in the end; itself where in none."""
    while cluster in joined:
        cluster = joined[cluster]
    return cluster


def _without_doubles(entries: list[tuple[int, str, str]]) -> dict[int, str]:
    """Return a name for each (id, given name or "", number as text), all different.

    A child map may bring a name that another cluster has.
    """
    seen: Counter[str] = Counter()
    names = {}
    for cluster, name, number in sorted(entries, key=lambda e: (not e[1], e[0])):
        wanted = name or number
        unique = wanted
        while seen[unique]:
            seen[wanted] += 1
            unique = f"{wanted} ({seen[wanted]})"
        seen[unique] += 1
        names[cluster] = unique
    return names
