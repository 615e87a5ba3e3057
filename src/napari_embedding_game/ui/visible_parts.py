"""Which parts of the main dock are shown, by the state of the session alone."""

from __future__ import annotations

from dataclasses import dataclass

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.style.coloring import CLUSTER


@dataclass(frozen=True, kw_only=True)
class VisibleParts:
    """Whether each part of the main dock is shown."""

    method: bool
    """The fold *Method*: there are data."""
    data_title: bool
    """The name of the data without its fold: there is no map yet, and none is made."""
    map_controls: bool
    """Tabs, search, colours, repulsion and the folds of a map: from *Run* on."""
    map_tools: bool
    """The tools in the corner of the map, and the line of trust: there is a map."""
    clusters: bool
    """The list of clusters: they colour a map."""
    legend: bool
    """The legend: something else than the clusters colours the map."""


def visible_parts(session: Session) -> VisibleParts:
    """Return which parts of the main dock are shown in the session's present state."""
    has_map = session.snapshot is not None
    is_map = has_map or session.is_moving
    is_by_cluster = session.look.color_by == CLUSTER
    return VisibleParts(
        method=session.dataset is not None,
        data_title=not is_map,
        map_controls=is_map,
        map_tools=has_map,
        clusters=has_map and is_by_cluster,
        legend=is_map and not is_by_cluster,
    )
