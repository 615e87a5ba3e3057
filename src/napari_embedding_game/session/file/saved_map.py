"""Immutable values of everything that a session file stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.clusters.state import ClusterState
from napari_embedding_game.session.clusters.statements import Statements
from napari_embedding_game.session.run.record import Moment
from napari_embedding_game.session.settings import DisplaySettings
from napari_embedding_game.session.timeline import TimelineState

MapKind: TypeAlias = Literal["whole", "part", "reading", "placed"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownComparison:
    """Two groups of points, and the test by which they were compared."""

    title: str
    """The comparison in words."""
    inside: NDArray[np.bool_]
    """(n,) points of the first group."""
    outside: NDArray[np.bool_] | None
    """(n,) points of the second group; None for all other points."""
    method: Literal["wilcoxon", "t-test"]
    samples: str = ""
    """Column of the samples whose means were compared; "" for single points."""
    tie_correct: bool = False
    """Whether the variance of rank sums was corrected for ties."""

    @property
    def key(self) -> object:
        """A value that is equal for the same groups compared by the same test."""
        outside = ~self.inside if self.outside is None else self.outside
        groups = self.inside.tobytes(), outside.tobytes()
        return groups, self.method, self.samples, self.tie_correct


@dataclass(frozen=True, eq=False)
class PlacedOn:
    """The map of a reference of M cells, and the positions of n new cells on it."""

    reference: str
    """Name of the file of the reference."""
    cells: NDArray[np.float32]
    """(M, d) positions of the reference's cells."""
    placed: NDArray[np.float32]
    """(n, d) positions of the new cells."""

    @property
    def corners(self) -> NDArray[np.float32]:
        """(2, d) lowest and highest coordinates of all cells."""
        points = np.concatenate([self.cells, self.placed])
        return np.stack([points.min(axis=0), points.max(axis=0)])

    def has_layout_of(self, snapshot: Snapshot) -> bool:
        """Return whether the points of a snapshot lie where they were placed."""
        points, placed = snapshot.embedding, self.placed
        return points is placed or np.array_equal(points, placed)


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedMap(Moment):
    """One map of a session, with all that belongs to it."""

    key: str
    """Unique and lasting key among the maps of the session; "" for the first map."""
    title: str
    parent: str | None = None
    """Key of the parent map; None for the first map."""
    kind: MapKind = "whole"
    """"whole": all rows that were read; "part": a child map of some of the parent's
    points; "reading": the parent's rows read in another way; "placed": the parent's
    rows on the map of a reference."""
    dataset: Dataset
    """The data; rows without numbers where these were not read again."""
    clusters: ClusterState
    selected: tuple[int, ...] = ()
    drawn: NDArray[np.bool_] | None = None
    """(n,) points that were selected singly; None where clusters were."""
    look: DisplaySettings = field(default_factory=DisplaySettings)
    view: Mapping[str, Any] = field(default_factory=dict)
    """State of the window such as the camera, in values for JSON."""
    comparisons: tuple[ShownComparison, ...] = ()
    """Comparisons of groups that were kept or saved, the oldest first."""
    timeline: TimelineState = field(default_factory=TimelineState)
    placed_on: PlacedOn | None = None
    """The map of a reference on which the points were placed; None without one."""
    given_map: str = ""
    """Name of the given map that was shown last; "" for none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedSession:
    """All maps of a session, parents before their children."""

    maps: tuple[SavedMap, ...]
    current: str = ""
    """Key of the map that was shown."""

    def __getitem__(self, key: str) -> SavedMap:
        """Return the map of this key."""
        return next(one for one in self.maps if one.key == key)


def compose_names(maps: Sequence[SavedMap]) -> list[SavedMap]:
    """Return maps of one source, each with what was said in the other maps.

    A map gets the names that were given in its child maps and their children.  A
    reading has the cells of its base map, so it gets the names of the base map and of
    the other children, too.  Only names are passed: a removal holds in its own map.

    ``maps``: parents before their children.
    """
    said = {one.key: one.clusters.names.own for one in maps}
    """What was said on each map and on its children."""
    names = dict[str, Statements]()
    """The same, without removals."""
    children: dict[str, list[str]] = {one.key: [] for one in maps}
    for one in reversed(maps):
        names[one.key] = said[one.key].without_removals()
        n_rows, parent = len(said[one.key].numbers), one.parent
        if parent is not None and len(said[parent].numbers) == n_rows:
            said[parent] = said[parent].join(names[one.key])
            children[parent].append(one.key)
    n_statements = max((one.clusters.n_statements for one in maps), default=0)
    own, composed = {one.key: one.clusters.names.own for one in maps}, []
    for one in maps:
        others = Statements.make_empty(len(own[one.key].numbers))
        for key in children[one.key]:
            others = others.join(names[key])
        parent = one.parent if one.kind == "reading" else None
        if parent is not None and one.key in children[parent]:
            base = own[parent]
            for key in children[parent]:
                base = base if key == one.key else base.join(names[key])
            others = others.join(base.without_removals())
        clusters = one.clusters.with_names_of_other_maps(others, n_statements)
        is_same = clusters is one.clusters
        composed.append(one if is_same else replace(one, clusters=clusters))
    return composed
