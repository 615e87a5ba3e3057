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
"""Side of a picture in pixels."""
_LINE = (1.0, 1.0, 0.0)
"""Colour of the line around an object."""


@dataclass(frozen=True, eq=False)
class Channel:
    """One image layer as it is shown."""

    data: Any
    """Array (numpy, dask, zarr) of as many axes as the labels; one more if `rgb`."""
    limits: tuple[float, float] = (0.0, 255.0)
    """Values shown black and in full colour."""
    colors: NDArray[Any] | Color = (1.0, 1.0, 1.0)
    """Colour in full, or a (K, 3 or 4) table of two or more from dark to full."""
    gamma: float = 1.0
    """Exponent of the brightness, as of a napari layer."""
    opacity: float = 1.0
    """Share of its light that the channel gives."""
    rgb: bool = False
    """Whether the last axis holds red, green and blue, shown as they are."""
    name: str = ""


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """Pictures of objects as a sequence: ``thumbnails[row]``, (size, size, 3) uint8.

    A picture is black beyond the edge of the image, and of a row that is no object.
    Of a 3-D object it is the slice along the first axis that cuts most of it.

    The light of the channels is added up, and a line goes round the object.
    """

    channels: Sequence[Channel]
    labels: Any
    """The label image; only the surroundings of an object are read of it."""
    objects: Objects
    field: int
    """Side of the field of view in pixels of the image, so that objects compare."""

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self.objects)

    def __getitem__(self, row: int) -> NDArray[np.uint8]:
        """Return the picture of one object."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        objects, side = self.objects, self.field
        light = np.zeros((_SIZE, _SIZE, 3), np.float32)
        if not objects.present[row]:
            return light.astype(np.uint8)
        label, ndim = objects.label_ids[row], objects.ndim
        box = objects.slices(row)
        mask = np.asarray(self.labels[box]) == label
        areas = mask.sum(axis=(-2, -1))
        fullest = np.unravel_index(int(areas.argmax()), areas.shape) if ndim > 2 else ()
        plane = [part.start + int(i) for part, i in zip(box, fullest, strict=False)]
        first, last = objects.boxes[row].reshape(2, ndim)[:, -2:]
        corner = (first + last - side) // 2
        for channel in self.channels:
            light += channel.opacity * _colored(
                channel, _cut(channel.data, plane, corner, side)
            )
        window = _cut(self.labels, plane, corner, side) == label
        places = (np.arange(_SIZE) * side + side // 2) // _SIZE
        light[_edge(window[np.ix_(places, places)])] = _LINE
        return np.asarray(np.clip(light, 0, 1) * 255 + 0.5, dtype=np.uint8)


def _cut(
    image: Any, plane: Sequence[int], corner: NDArray[np.int64], length: int
) -> NDArray[Any]:
    """Window of a plane of the image, 0 where it lies outside."""
    sizes = image.shape[len(plane) : len(plane) + 2]
    parts, before, after = [], [], []
    for start, size in zip(corner.tolist(), sizes, strict=True):
        low, high = np.clip([start, start + length], 0, size).tolist()
        parts.append(slice(low, high))
        before.append(min(length, max(0, low - start)))
        after.append(length - before[-1] - (high - low))
    pixels = np.asarray(image[(*plane, *parts)])
    more = [(0, 0)] * (pixels.ndim - 2)
    return np.pad(pixels, [*zip(before, after, strict=True), *more])


def _colored(channel: Channel, pixels: NDArray[Any]) -> NDArray[np.float32]:
    """(64, 64, 3) light of a window of one channel, 0 to 1."""
    from skimage.transform import resize

    values = np.nan_to_num(pixels.astype(np.float32))
    values = resize(values, (_SIZE, _SIZE), 1, anti_aliasing=len(pixels) > _SIZE)
    if channel.rgb:
        full = 255.0 if pixels.dtype == np.uint8 else 1.0
        return np.asarray(np.clip(values[..., :3] / full, 0, 1), np.float32)
    low, high = channel.limits
    light = np.clip((values - low) / max(high - low, 1e-30), 0, 1) ** channel.gamma
    table = np.asarray(channel.colors, dtype=np.float32)
    if table.ndim == 1:
        return np.asarray(light[..., None] * table[:3], np.float32)
    steps = np.arange(len(table))
    places = light * (len(table) - 1)
    colors = [np.interp(places, steps, table[:, i]) for i in range(3)]
    return np.stack(colors, axis=-1).astype(np.float32)


def _edge(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels of the mask with one of another kind beside them."""
    from scipy.ndimage import binary_erosion

    return np.asarray(mask & ~binary_erosion(mask))
