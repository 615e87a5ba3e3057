"""Dataclasses of the JSON texts in a session file; see :mod:`json_codec`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from napari_embedding_game.core.inspect.markers import MarkerMethod
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.session.clusters.clustering import (
    ClusterAnnotation,
    Grouping,
)
from napari_embedding_game.session.display import DisplaySettings
from napari_embedding_game.session.file.array_pool import PooledText
from napari_embedding_game.session.file.forces_text import ForcedText
from napari_embedding_game.session.file.origin import Origin
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.shown_figures import ShownFigure
from napari_embedding_game.session.timeline import Kind

FORMAT: Literal["napari-embedding-game session"] = "napari-embedding-game session"
VERSION = 1
"""Raised when files are written that an older program would read wrongly."""


@dataclass(frozen=True, kw_only=True)
class SessionText:
    """What ``session.json`` holds."""

    format: Literal["napari-embedding-game session"]
    version: int
    saved_at: str
    current: str
    n_maps: int
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ShotText:
    """The numbers of a snapshot that are no arrays."""

    iteration: int
    n_iter: int
    energy: float
    warning: str
    finished: bool
    remedy: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the game's settings that mend what the warning says."""
    map_hash: str = ""
    """For who reads the file; the map itself tells it anew."""


@dataclass(frozen=True, kw_only=True)
class MomentText:
    """What a map was like at one moment, without its arrays."""

    start: Settings
    game: Settings
    record: RunRecord | None
    shot: ShotText | None
    is_merged: bool
    branch_left: int | None = None
    """Of the map that the run went on from, iterations that were left; else None."""
    forced: tuple[ForcedText, ...] = ()
    """What a hand did to the points of the run."""


@dataclass(frozen=True, kw_only=True)
class MarkText(MomentText):
    """A mark of the timeline."""

    number: int
    label: str
    kind: Kind
    parent: int | None
    branch: int
    made_at: float
    name: str
    is_pinned: bool
    arrays: Mapping[str, int]
    """The number that each array has in the pool, by the name that it has there."""


@dataclass(frozen=True, kw_only=True)
class TimelineText:
    """All of a timeline; its arrays lie in one pool, which marks share."""

    marks: tuple[MarkText, ...]
    head: int | None
    shown: int | None
    n_made: int
    branch: int
    n_thinned: int
    pool: tuple[PooledText, ...]


@dataclass(frozen=True, kw_only=True)
class ComparisonText:
    """How two groups were compared; their points are rows of one array."""

    method: MarkerMethod
    samples: str
    column: str
    levels: tuple[str, str]
    has_outside: bool
    has_selected: bool


@dataclass(frozen=True, kw_only=True)
class ColumnText:
    """A column of metadata that no file holds; its values are in an array."""

    name: str
    kind: Literal["number", "integer", "bool", "text", "category"]
    levels: tuple[str, ...] = ()
    """Of names: those that occur."""
    ordered: bool = False


@dataclass(frozen=True, kw_only=True)
class PredictedText:
    """Labels that were predicted from a reference; their values are in arrays."""

    reference: str
    label: str
    correct_batch: bool
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PlacedOnText:
    """The map of a reference that points were placed on; its places are in arrays."""

    reference: str
    label: str
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PreparedText:
    """What a recipe came to, whose numbers are in arrays."""

    genes: tuple[str, ...]
    """Those that the components are of; none where only batches were mixed."""
    target_sum: float
    max_value: float
    has_doublets: bool


@dataclass(frozen=True, kw_only=True)
class MapText(MomentText):
    """What ``map.json`` in the folder of a map holds."""

    key: str
    title: str
    parent: str | None
    origin: Origin
    n_points: int
    n_clusters: int | None
    grouping: Grouping
    given: tuple[tuple[int, ClusterAnnotation], ...]
    joined: tuple[tuple[int, int], ...]
    numbers: tuple[tuple[int, int], ...]
    next_id: int
    selected: tuple[int, ...]
    is_drawn: bool
    has_x: bool = False
    columns: tuple[ColumnText, ...] = ()
    """Metadata, where ``has_x``."""
    profile_names: tuple[str, ...] = ()
    """Columns in their own units, where these are others than what is embedded."""
    scores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Genes of the sets that were scored, by what the score is called."""
    taught: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    """Rows that are examples of taught classes, by the column of the classes."""
    boxes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Rows that are sorted into boxes, learned from or not, by the name of the box."""
    predicted: tuple[PredictedText, ...] = ()
    n_axes: int = 0
    """Axes of the label image that the rows are objects of; 0: they are none."""
    look: DisplaySettings
    view: Mapping[str, Any]
    timeline: TimelineText | None = None
    comparisons: tuple[ComparisonText, ...] = ()
    """Those that were kept or saved, the oldest first."""
    figures: tuple[ShownFigure, ...] = ()
    """As ``comparisons``."""
    placed_on: PlacedOnText | None = None
    prepared: PreparedText | None = None
