"""Texts of the window about isolation."""

from __future__ import annotations

from napari_embedding_game.core.snapshot import UNLIKE, Snapshot
from napari_embedding_game.ui.style.stretch_texts import share_text

ISOLATION_CHOICE = "Outliers (isolation)"
ISOLATION_MEANS = (
    "isolation: how much a point differs, in the data, from the points most like it, "
    f"where 1 is usual around it. Above {UNLIKE:g} it is unlike all others, as debris, "
    "a rare cell or an error may be. No place on a map fits it: look at what is known "
    "of it instead."
)
NO_ISOLATION = (
    "How unlike others the points are is not known: the map is of an older file, of "
    "other data or of given edges."
)


def unlike_text(snapshot: Snapshot) -> str:
    """Return how many points are unlike all others in the data; "" for none."""
    count = snapshot.unlike_count
    if not count:
        return ""
    share = share_text(count / len(snapshot.embedding))
    return f"{count:,} {'outlier' if count == 1 else 'outliers'} ({share})"
