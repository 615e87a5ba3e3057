"""Write a film of a run by playing its record again and painting the frames."""

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
"""Pixels of a side, approximate number of frames, milliseconds of a frame and of the
last frame."""
EDGE = 0.04
"""Share of a side that is left free at each edge."""


def write_film(
    X: Any,
    record: RunRecord,
    colors: NDArray[np.floating],
    path: Path,
    facing: NDArray[np.floating],
    second_X: Any = None,
) -> None:
    """Play a recorded run of the rows X again and write an animated .gif.

    The film of a branch begins where the branch began.

    Parameters
    ----------
    X : (N, p)
        The rows of the run.
    record : RunRecord
        The run to play again.
    colors : (N, 4) floating
        Red, green, blue and opacity of each point in all frames, 0 to 1.
    path : Path
        The file to write.
    facing : (2, 3) floating
        The view of a 3-D map: unit vectors to the right and up.
    second_X : (N, E), optional
        The rows of the run in its second space.

    Raises
    ------
    DataError
        The record cannot be played, or ``path`` cannot be written.
    """
    import imageio.v3 as imageio

    maps = (frame.embedding for frame in replay_frames(X, record, N_FRAMES, second_X))
    with atomic_write(path) as temporary:
        pictures = np.stack(list(_paint_frames(maps, colors, facing)))
        times = [FRAME_MS] * (len(pictures) - 1) + [LAST_MS]
        imageio.imwrite(temporary, pictures, extension=".gif", duration=times, loop=0)


def _paint_frames(
    maps: Iterable[NDArray[np.floating]],
    colors: NDArray[np.floating],
    facing: NDArray[np.floating],
) -> Iterator[NDArray[np.uint8]]:
    """Yield a picture (SIDE, SIDE, 3) uint8 of each map (N, d), on white.

    A 3-D map is projected to the plane of ``facing`` (2, 3) and painted from back to
    front; ``colors`` (N, 4).  The visible range follows the extent of the maps as on
    the canvas; discs are smaller in maps of many points.
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
