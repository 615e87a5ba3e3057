"""Encode the timeline of a map."""

from __future__ import annotations

from napari_embedding_game.session.file.array_pool import ArrayPool
from napari_embedding_game.session.file.json_schema import MarkText, TimelineText
from napari_embedding_game.session.file.moment_writer import (
    Arrays,
    moment_arrays,
    moment_values,
)
from napari_embedding_game.session.file.saved_map import SavedMap
from napari_embedding_game.session.timeline import thinned

MOST_BYTES = 64 * 2**20
"""Of the arrays of marks that are stored: what is saved each minute stays small."""


def write_timeline(one: SavedMap) -> tuple[TimelineText | None, Arrays]:
    """Return the timeline of a map as text, and the arrays of its marks.

    The oldest marks are left out where they would make the file much larger.
    """
    if one.timeline is None:
        return None, {}
    state, pool = thinned(one.timeline, MOST_BYTES), ArrayPool()
    marks = tuple(
        MarkText(
            **moment_values(mark),
            number=mark.number,
            label=mark.label,
            kind=mark.kind,
            parent=mark.parent,
            branch=mark.branch,
            made_at=mark.made_at,
            name=mark.name,
            is_pinned=mark.is_pinned,
            arrays={
                name: pool.add(array) for name, array in moment_arrays(mark).items()
            },
        )
        for mark in state.marks
    )
    text = TimelineText(
        marks=marks,
        head=state.head,
        shown=state.shown,
        n_made=state.n_made,
        branch=state.branch,
        n_thinned=state.n_thinned,
        pool=pool.text,
    )
    return text, pool.members()
