"""Immutable values of everything that a session file stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.clusters.annotation import Annotation
from napari_embedding_game.session.clusters.state import ClusterState
from napari_embedding_game.session.run.record import Moment
from napari_embedding_game.session.settings import DisplaySettings
from napari_embedding_game.session.timeline import TimelineState

MapKind: TypeAlias = Literal["whole", "part", "reading", "placed"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownComparison:
    """Two groups of points, and how they were compared."""

    title: str
    """In words."""
    inside: NDArray[np.bool_]
    """(n,)"""
    outside: NDArray[np.bool_] | None
    """(n,); None for all others."""
    method: Literal["wilcoxon", "t-test"]
    samples: str = ""
    """Column that names the samples which were compared; "" for single points."""

    @property
    def key(self) -> object:
        """The same for the same points, compared in the same way."""
        outside = ~self.inside if self.outside is None else self.outside
        groups = self.inside.tobytes(), outside.tobytes()
        return groups, self.method, self.samples


@dataclass(frozen=True, eq=False)
class PlacedOn:
    """The map of a reference of M cells, and the positions of n new cells on it."""

    reference: str
    """Name of the file of the reference."""
    cells: NDArray[np.float32]
    """(M, d) positions of its cells."""
    placed: NDArray[np.float32]
    """(n, d) positions of the new cells."""

    @property
    def corners(self) -> NDArray[np.float32]:
        """(2, d) first and last corner of the box around all cells."""
        points = np.concatenate([self.cells, self.placed])
        return np.stack([points.min(axis=0), points.max(axis=0)])

    def is_under(self, snapshot: Snapshot) -> bool:
        """Return whether the points lie where they were placed."""
        points, placed = snapshot.embedding, self.placed
        return points is placed or np.array_equal(points, placed)


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedMap(Moment):
    """One map of a session, with all that belongs to it."""

    key: str
    """Lasting key among the maps of the session; "" is the first one's."""
    title: str
    parent: str | None = None
    """Key of the map that this is below."""
    kind: MapKind = "whole"
    """How it was made: of all that was read, of a part of its parent's points, of these
    points read in another way, or placed on the map of a reference."""
    dataset: Dataset
    """The data, or rows without numbers where they were not read again."""
    clusters: ClusterState
    overlaid: Annotation | None = None
    """Of a part: what its parent's cells were annotated with when it was made."""
    selected: tuple[int, ...] = ()
    drawn: NDArray[np.bool_] | None = None
    """(n,) points that were selected one by one."""
    look: DisplaySettings = field(default_factory=DisplaySettings)
    view: Mapping[str, Any] = field(default_factory=dict)
    """What only the window knows, such as the camera, in values for JSON."""
    comparisons: tuple[ShownComparison, ...] = ()
    """Those of groups that were kept or saved, the oldest first."""
    timeline: TimelineState = field(default_factory=TimelineState)
    placed_on: PlacedOn | None = None
    """The map of a reference that the points were placed on, where they were."""
    given_map: str = ""
    """Which map of the data was shown last."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedSession:
    """All maps of a session, parents before their children."""

    maps: tuple[SavedMap, ...]
    current: str = ""
    """Key of the map that was shown."""

    def __getitem__(self, key: str) -> SavedMap:
        """Return the map of this key."""
        return next(one for one in self.maps if one.key == key)
