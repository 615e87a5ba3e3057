"""One moment of a map: a frame, a mark, a saved map, the end of another seed's game."""

from __future__ import annotations

from dataclasses import dataclass

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import HandForces, Snapshot
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.session.run.record import RunRecord


@dataclass(frozen=True, kw_only=True, eq=False)
class Moment:
    """A layout with what it was made by."""

    settings: Settings
    """As they stood in the window."""
    snapshot: Snapshot | None
    """None before anything was played."""
    record: RunRecord | None = None
    """What was played up to here; None where nobody knows."""
    merging: Merging | None = None
    """How the landmarks can be merged; None where nobody knows."""
    forces: HandForces | None = None
    """What a hand does from here on; None: what it did at the end of the record."""
