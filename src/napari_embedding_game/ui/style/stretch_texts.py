"""Texts of the window about stretch."""

from __future__ import annotations

import math

from napari_embedding_game.core.snapshot import FAR

STRETCH_CHOICE = "Misplaced (stretch)"
STRETCH_MEANS = (
    "stretch: how far apart this map draws a point and the points most like it in the "
    f"data, where 1 is usual. From {FAR:.0f} on it lies far from similar points: do "
    "not trust its place or the points around it; True neighbours, under Selection, "
    "shows where those like it are."
)
NO_STRETCH = (
    "The stretch of this map is not known: it is of an older file or other data."
)


def far_text(share: float) -> str:
    """Return what is told of a share of points that lie far; "" where it is unknown."""
    if math.isnan(share):
        return ""
    return f"{share_text(share)} misplaced"


def share_text(share: float) -> str:
    """Return a share in percent: small ones with a decimal."""
    return f"{share:.1%}" if 0 < share < 0.0995 else f"{share:.0%}"
