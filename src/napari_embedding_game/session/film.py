"""A film of a run: the recorded run is played once more, and its frames are painted."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.picture import paint_points
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import whole_or_nothing
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.run.replay import replay_frames

SIDE, N_FRAMES, FRAME_MS, LAST_MS = 600, 80, 60, 2_500
"""Of a .gif: pixels of a side, about how many frames, and how long they and the last
one are seen."""
VIDEO_SIDE, VIDEO_FRAMES, FRAMES_PER_SECOND = 720, 240, 30
"""Of a .mp4; the codec wants sides of whole blocks of 16 pixels."""
NO_FFMPEG = (
    "An .mp4 is written by ffmpeg, which is not installed here. Install it with "
    "'pip install imageio-ffmpeg', or save the film as .gif."
)
EDGE = 0.04
"""Share of a side that is left free around the map."""
EASE = 0.25
"""Share of the way to the extent of a frame that the view goes with it."""
OUTSIDE = 0.002
"""Share of the points on each side that may lie outside of the view."""
N_COLORS = 255
TURN, FROM_ABOVE = 1.5, 20.0
"""Degrees that a map in space is turned with each frame, and from how high it is seen.
"""
NO_VIDEO = (
    "ffmpeg did not write '{}': there may be no room left on the disk, or it cannot "
    "write this kind of video. Save the film as .gif."
)


def write_film(
    X: Any, record: RunRecord, colors: NDArray[np.floating], path: Path
) -> None:
    """Play a run again and write it as an animated .gif, or as a video.

    Parameters
    ----------
    X : (N, D) array or sparse matrix
        The rows that it was of.
    record : RunRecord
        Of a branch: the film begins where the branch did.
    colors : (N, 4) float, 0 to 1
        Of each point, in all frames.
    path : Path
        Ends on .mp4 for a video (H.264), which is sharper and takes less room.

    Raises
    ------
    DataError
        The record cannot be played, ``path`` not be written, or a video is asked for
        where there is no ffmpeg.
    """
    is_video = path.suffix.lower() == ".mp4"
    if is_video and importlib.util.find_spec("imageio_ffmpeg") is None:
        raise DataError(NO_FFMPEG)
    every = max(1, record.n_iter // (VIDEO_FRAMES if is_video else N_FRAMES))
    maps = (frame.embedding for frame in replay_frames(X, record, every=every))
    with whole_or_nothing(path) as temporary:
        if is_video:
            try:
                _save_video(paint(maps, colors, VIDEO_SIDE), temporary)
            except OSError as error:
                raise DataError(NO_VIDEO.format(path.name)) from error
        else:
            _save_gif(paint(maps, colors), temporary)


def paint(
    maps: Iterable[NDArray[np.floating]], colors: NDArray[np.floating], side: int = SIDE
) -> Iterator[NDArray[np.uint8]]:
    """Yield a picture of each map (N, d), (side, side, 3), on white.

    The view follows the extent of the map.  Maps in space are seen a little from above
    and turn from frame to frame, so that their depth is seen.
    """
    middle, half = np.zeros(2), 0.0
    for number, embedding in enumerate(maps):
        flat, order = _seen(embedding, number * TURN)
        low, high = np.quantile(flat, [OUTSIDE, 1 - OUTSIDE], axis=0)
        wanted = max(float((high - low).max()) / 2, 1e-9)
        ease = EASE if half else 1.0
        middle = middle + ease * ((low + high) / 2 - middle)
        half += ease * (wanted - half)
        zoom = side * (0.5 - EDGE) / half
        sizes = np.full(len(flat), max(1.5, min(6.0, 400 / np.sqrt(len(flat)))) / zoom)
        pixels = paint_points(
            np.column_stack([-flat[:, 1], flat[:, 0]]),
            sizes,
            colors,
            (zoom, side / 2 + zoom * middle[1]),
            (zoom, side / 2 - zoom * middle[0]),
            (side, side),
            order=order,
        )
        opaque = pixels[..., :3] + (255 - pixels[..., 3:])
        yield opaque.astype(np.uint8)


def _seen(
    embedding: NDArray[np.floating], turned: float
) -> tuple[NDArray[np.floating], NDArray[np.intp] | None]:
    """Return the places (N, 2) of a map on a picture, and the order of painting.

    Parameters
    ----------
    embedding : (N, d) array
    turned : float
        Degrees by which a map in space is turned around its upright axis.
    """
    if embedding.shape[1] < 3:
        flat = np.zeros((len(embedding), 2), np.float32)
        flat[:, : embedding.shape[1]] = embedding
        return flat, None
    x, y, z = (embedding - embedding.mean(axis=0, dtype=float)).T
    turn, rise = np.radians([turned, FROM_ABOVE])
    across = x * np.cos(turn) + z * np.sin(turn)
    near = z * np.cos(turn) - x * np.sin(turn)
    up = y * np.cos(rise) - near * np.sin(rise)
    nearness = near * np.cos(rise) + y * np.sin(rise)
    return np.column_stack([across, up]), np.argsort(nearness)


def _save_gif(frames: Iterable[NDArray[np.uint8]], path: Path) -> None:
    from PIL import Image

    pictures = [Image.fromarray(frame) for frame in frames]
    found = pictures[-1].quantize(N_COLORS).getpalette()
    palette = np.array(found, np.uint8).reshape(-1, 3)
    palette[palette.min(axis=1) >= 248] = 255  # the ground, which averages have tinted
    palette[-1] = 255
    table = Image.new("P", (1, 1))
    table.putpalette(palette.ravel().tolist())
    flat = [one.quantize(palette=table, dither=Image.Dither.NONE) for one in pictures]
    times = [FRAME_MS] * (len(flat) - 1) + [LAST_MS]
    flat[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=flat[1:],
        duration=times,
        loop=0,
    )


def _save_video(frames: Iterable[NDArray[np.uint8]], path: Path) -> None:
    """Raise OSError where ffmpeg gives up."""
    from imageio_ffmpeg import get_ffmpeg_exe

    size, rate = f"{VIDEO_SIDE}x{VIDEO_SIDE}", str(FRAMES_PER_SECOND)
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", rate, "-i", "-"]
    # What every player shows, also before all of it is loaded.
    shown = ["-c:v", "libx264", "-crf", "20", "-pix_fmt", "yuv420p"]
    shown += ["-movflags", "+faststart", "-f", "mp4"]
    with subprocess.Popen(
        [get_ffmpeg_exe(), "-y", *raw, *shown, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    ) as ffmpeg:
        assert ffmpeg.stdin is not None
        for frame in frames:
            ffmpeg.stdin.write(frame.tobytes())
        for _ in range(FRAMES_PER_SECOND * LAST_MS // 1000):
            ffmpeg.stdin.write(frame.tobytes())
    if ffmpeg.returncode:
        raise OSError(f"ffmpeg ended with {ffmpeg.returncode}")
