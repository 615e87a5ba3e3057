"""Texts of the window about what is known of each point."""

from __future__ import annotations

import math

from napari_embedding_game.core.snapshot import FAR, UNLIKE

STRETCH_CHOICE = "Misplaced (stretch)"
STRETCH_MEANS = (
    "stretch: how far apart the map draws a point and its neighbours in the data; "
    f"usual is 1. From {FAR:.0f} on points lie far from similar points: do not trust "
    "their position. True neighbours, under Selection, shows where these are."
)
NO_STRETCH = (
    "The stretch of this map is not known: it is of an older file or other data."
)
ISOLATION_CHOICE = "Outliers (isolation)"
ISOLATION_MEANS = (
    "isolation: how much a point differs from its neighbours in the data; usual is 1. "
    f"Above {UNLIKE:g} it may be debris, a rare cell or an error."
)
NO_ISOLATION = (
    "How unlike others the points are is not known: the map is of an older file, of "
    "other data or of given edges."
)
PRESSURE_CHOICE = "Crowded (pressure)"
PRESSURE_MEANS = (
    "pressure: how far the crowd around a point would push it out of the map. It "
    "tells that the map is crowded there, not that a position is wrong."
)
NO_PRESSURE = "No pressure is known for this method, or for so many points."


def far_text(share: float) -> str:
    """Return what is told of a share of points that lie far; "" where it is unknown."""
    return "" if math.isnan(share) else f"{share_text(share)} misplaced"


def share_text(share: float) -> str:
    """Return a share in percent: small ones with a decimal."""
    return f"{share:.1%}" if 0 < share < 0.0995 else f"{share:.0%}"
