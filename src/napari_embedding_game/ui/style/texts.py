"""Texts of the window about what is known of each point."""

from __future__ import annotations

import math

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


def far_text(share: float) -> str:
    """Return what is told of a share of points that lie far; "" where it is unknown."""
    return "" if math.isnan(share) else f"{share_text(share)} misplaced"


def share_text(share: float) -> str:
    """Return a share in percent: small ones with a decimal."""
    return f"{share:.1%}" if 0 < share < 0.0995 else f"{share:.0%}"
