"""A film of a run: the recorded run is played once more, and its frames are painted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.export.atomic import atomic_write
from napari_embedding_game.data.export.plots import project_to_plane
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.run.replay import replay_frames
from napari_embedding_game.ui.canvas.frame import Frame
from napari_embedding_game.ui.pixels import paint_discs

SIDE, N_FRAMES, FRAME_MS, LAST_MS = 600, 80, 60, 2_500
"""Pixels of a side, about how many frames, and how long they and the last one are
seen."""
EDGE = 0.04
"""Share of a side that is left free around the map."""


def write_film(
    X: Any,
    record: RunRecord,
    colors: NDArray[np.floating],
    path: Path,
    facing: NDArray[np.floating],
) -> None:
    """Play a run of the rows X again and write it as an animated .gif.

    ``colors`` are (N, 4), of each point in all frames; ``facing`` is as for
    :func:`~.plots.project_to_plane`.  Of a branch, the film begins where the branch
    did.

    Raises
    ------
    DataError
        The record cannot be played, or ``path`` not be written.
    """
    import imageio.v3 as imageio

    maps = (frame.embedding for frame in replay_frames(X, record, N_FRAMES))
    with atomic_write(path) as temporary:
        pictures = np.stack(list(_paint_frames(maps, colors, facing)))
        times = [FRAME_MS] * (len(pictures) - 1) + [LAST_MS]
        imageio.imwrite(temporary, pictures, extension=".gif", duration=times, loop=0)


def _paint_frames(
    maps: Iterable[NDArray[np.floating]],
    colors: NDArray[np.floating],
    facing: NDArray[np.floating],
) -> Iterator[NDArray[np.uint8]]:
    """Yield a picture of each map (N, d), (SIDE, SIDE, 3), on white.

    The view follows the extent of the map as the canvas does.
    """
    frame = Frame()
    line = SIDE * (1 - 2 * EDGE) / frame.side, SIDE * EDGE
    for embedding in maps:
        flat, order = project_to_plane(embedding, facing)
        frame.follow_extent(flat)
        size = max(1.5, min(6.0, 108 / np.cbrt(len(flat)))) / line[0]
        looks = np.full(len(flat), size), colors, (line, line), (SIDE, SIDE), order
        pixels = paint_discs(frame.to_world(flat), *looks)
        opaque = pixels[..., :3] + (255 - pixels[..., 3:])
        yield opaque.astype(np.uint8)
