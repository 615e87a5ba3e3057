"""Immutable values of everything that a session file stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.clusters.annotation import Annotation
from napari_embedding_game.session.clusters.state import ClusterState
from napari_embedding_game.session.display import DisplaySettings
from napari_embedding_game.session.looked_at import ShownComparison
from napari_embedding_game.session.moment import Moment
from napari_embedding_game.session.reference.placed_on import PlacedOn, behind
from napari_embedding_game.session.timeline import TimelineState


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedMap(Moment):
    """One map of a session, with all that belongs to it."""

    key: str
    """Lasting key among the maps of the session; "" is the first one's."""
    title: str
    parent: str | None = None
    """Key of the map that this is a part of."""
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
    timeline: TimelineState | None = None
    placed_on: PlacedOn | None = None
    """The map of a reference that the points were placed on, where they were."""

    @property
    def behind(self) -> PlacedOn | None:
        """The map of a reference, while the points lie where they were placed on it."""
        return behind(self.placed_on, self.snapshot)


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedSession:
    """All maps of a session, parents before their children."""

    maps: tuple[SavedMap, ...]
    current: str = ""
    """Key of the map that was shown."""

    def __getitem__(self, key: str) -> SavedMap:
        """Return the map of this key."""
        return next(one for one in self.maps if one.key == key)
