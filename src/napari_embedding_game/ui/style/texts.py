"""Texts of the window about what is known of each point."""

from __future__ import annotations

from napari_embedding_game.core.snapshot import FAR, UNLIKE

STRETCH_CHOICE = "Misplaced (stretch)"
STRETCH_MEANS = (
    f"stretch, usually 1: from {FAR:.0f} on a point lies far from similar points. Do "
    "not trust its position; True neighbours, under Selection, shows where these are."
)
NO_STRETCH = "The stretch of this map is not known."
ISOLATION_CHOICE = "Outliers (isolation)"
ISOLATION_MEANS = (
    f"isolation, usually 1: above {UNLIKE:g} a point differs from all others. It may "
    "be debris, a rare cell or an error."
)
NO_ISOLATION = "The isolation of this map is not known."
PRESSURE_CHOICE = "Crowded (pressure)"
PRESSURE_MEANS = "pressure: how far the crowd would push a point out of the map."
NO_PRESSURE = "No pressure is known for this method, or for so many points."
