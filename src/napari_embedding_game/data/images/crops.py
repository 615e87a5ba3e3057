"""Cut thumbnails of objects out of an image, on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.label_objects import Objects

Color = tuple[float, float, float]

_SIZE = 64
"""Side of a thumbnail in pixels."""
_LINE = (1.0, 1.0, 0.0)
"""Colour of the outline of an object."""


@dataclass(frozen=True, eq=False)
class Channel:
    """One image layer with its display settings."""

    data: Any
    """Array (numpy, dask, zarr) with the axes of the labels; one more axis if `rgb`."""
    limits: tuple[float, float] = (0.0, 255.0)
    """Values shown black and in full colour."""
    colors: NDArray[Any] | Color = (1.0, 1.0, 1.0)
    """The full colour, or a (K, 3 or 4) table of two or more colours from dark to
    full."""
    gamma: float = 1.0
    """Exponent of the brightness, as of a napari layer."""
    opacity: float = 1.0
    """Factor of the channel's light."""
    rgb: bool = False
    """Whether the last axis holds red, green and blue."""
    name: str = ""


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """Thumbnails of objects: ``thumbnails[row]`` is (64, 64, 3) uint8.

    A thumbnail is black beyond the edge of the image, and for a row that is no object.
    Of a 3-D object it shows the plane along the first axis that has most of its pixels.

    The light of the channels is added, and the object is outlined.
    """

    channels: Sequence[Channel]
    labels: Any
    """The label image; only the surroundings of an object are read."""
    objects: Objects
    field_side: int
    """Side of the field of view in the finest pixels, equal for all objects."""
    spacing: tuple[float, float] = (1.0, 1.0)
    """Size of a pixel along y and x, in finest pixels."""

    def __getitem__(self, row: int) -> NDArray[np.uint8]:
        """Return the thumbnail of the object of a row, (64, 64, 3) uint8.

        It is black for a row that is no object.
        """
        from scipy.ndimage import binary_erosion

        objects, sides = self.objects, np.rint(self.field_side / np.array(self.spacing))
        sides = np.maximum(sides, 1).astype(int)
        light = np.zeros((_SIZE, _SIZE, 3), np.float32)
        if not objects.present[row]:
            return light.astype(np.uint8)
        label, box = objects.label_ids[row], objects.make_box_slices(row)
        areas = (np.asarray(self.labels[box]) == label).sum(axis=(-2, -1))
        fullest = np.unravel_index(int(areas.argmax()), areas.shape)
        plane = [part.start + int(i) for part, i in zip(box, fullest, strict=False)]
        corner = (objects.box_corners[row, :, -2:].sum(axis=0) - sides) // 2
        for channel in self.channels:
            pixels = _cut_window(channel.data, plane, corner, sides)
            light += channel.opacity * _render_channel_crop(channel, pixels)
        window = _cut_window(self.labels, plane, corner, sides) == label
        indices = (np.outer(sides, np.arange(_SIZE)) + sides[:, None] // 2) // _SIZE
        mask = window[np.ix_(*indices)]
        light[mask & ~binary_erosion(mask)] = _LINE
        return np.asarray(np.clip(light, 0, 1) * 255 + 0.5, dtype=np.uint8)


def _cut_window(
    image: Any,
    plane_index: Sequence[int],
    corner: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> NDArray[Any]:
    """Return a window of a plane of an image, and 0 where it lies outside.

    ``plane_index``: index of the plane along the axes before y and x. ``corner`` and
    ``lengths`` (2,): first pixel and sides of the window, along y and x. An axis of
    colours is kept whole.
    """
    sizes = image.shape[len(plane_index) : len(plane_index) + 2]
    low, high = np.clip([corner, corner + lengths], 0, sizes)
    before = np.clip(-corner, 0, lengths)
    pixels = np.asarray(image[(*plane_index, *map(slice, low.tolist(), high.tolist()))])
    ends = np.column_stack([before, lengths - before - (high - low)]).tolist()
    return np.pad(pixels, ends + [[0, 0]] * (pixels.ndim - 2))


def _render_channel_crop(channel: Channel, pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Return the light of a window of one channel, (64, 64, 3) from 0 to 1.

    The window is resized; limits, gamma and colours then apply as in napari. NaN is 0.
    The opacity is not applied.
    """
    from skimage.transform import resize

    values = np.nan_to_num((pixels[..., :3] if channel.rgb else pixels).astype("f4"))
    is_large = max(values.shape[:2]) > _SIZE
    values = resize(values, (_SIZE, _SIZE), 1, anti_aliasing=is_large)
    low, high = channel.limits
    light = np.clip((values - low) / max(high - low, 1e-30), 0, 1) ** channel.gamma
    if channel.rgb:
        return np.asarray(light, np.float32)
    table = np.asarray(channel.colors, dtype=np.float32)
    if table.ndim == 1:
        return np.asarray(light[..., None] * table[:3], np.float32)
    indices, steps = light * (len(table) - 1), np.arange(len(table))
    colors = [np.interp(indices, steps, along) for along in table[:, :3].T]
    return np.stack(colors, axis=-1).astype(np.float32)
